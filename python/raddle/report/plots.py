"""Pictures for papers (matplotlib): who talks to whom, and a map by its levels."""

import math
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pyarrow as pa
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from raddle.core.fabric import DrawnFabric
from raddle.errors import ResultsError
from raddle.files import replacing
from raddle.results.columns import codes, integers
from raddle.text import many

__all__ = ["check_ending", "draw_fabric", "draw_traffic", "save"]

TESTED = ("#0072B2", "#009E73", "#CC79A7")
BACKGROUND = ("#E69F00", "#D55E00", "#56B4E9", "#999999")
MOST_MARKS = 20_000


def save(figure: Figure, file: Path) -> None:
    """Write a figure in the format of the file's ending.

    Raises
    ------
    ResultsError
        The ending is not one that can be drawn.
    """
    check_ending(file)
    # Fixed ids and no date: the same figure is the same file.
    with mpl.rc_context({"svg.hashsalt": "raddle", "svg.fonttype": "none"}):
        when = {"Date": None} if file.suffix.lower() == ".svg" else {}
        kind = file.suffix.lower().removeprefix(".")
        with replacing(file) as temporary:
            figure.savefig(
                temporary, format=kind, dpi=200, metadata=when or None, bbox_inches="tight"
            )


def check_ending(file: Path) -> None:
    """Refuse a picture that cannot be drawn, before the work that it would need."""
    if file.suffix.lower() not in (".svg", ".png", ".pdf"):
        msg = f"cannot draw {file.name!r}: the ending must be .svg, .png or .pdf"
        raise ResultsError(msg)


def draw_traffic(panels: Sequence[tuple[str, pa.Table]], *, seed: int) -> Figure:
    """Source against destination, as the paper's Figure 7: tested dots, background triangles.

    Classes of a panel stand beside each other within a host's place, so that none hides another.

    Parameters
    ----------
    panels
        Title and flows (columns src, dst, class) of each panel.
    """
    hosts = max((_last_host(flows) + 1 for _, flows in panels), default=1)
    figure = Figure(figsize=(4.6 * len(panels), 5.2), layout="constrained")
    axes = np.atleast_1d(figure.subplots(1, len(panels), sharex=True, sharey=True))
    for axis, (title, flows) in zip(axes, panels, strict=True):
        which, names = codes(flows, "class")
        src, dst = integers(flows, "src"), integers(flows, "dst")
        step = max(1, flows.num_rows // MOST_MARKS)
        used = {"tested": 0, "background": 0}
        # Background first, so that the few tested dots lie on top.
        order = sorted(range(len(names)), key=lambda c: (_is_tested(names[c]), names[c]))
        for code, (right, up) in zip(order, _places(len(order)), strict=True):
            rows = np.flatnonzero(which == code)
            rows = rows[::step] if rows.size > 1000 else rows
            kind = "tested" if _is_tested(names[code]) else "background"
            palette = TESTED if kind == "tested" else BACKGROUND
            colour = palette[used[kind] % len(palette)]
            used[kind] += 1
            axis.scatter(
                src[rows] + right,
                dst[rows] + up,
                s=9 if kind == "tested" else 7,
                marker="o" if kind == "tested" else "^",
                color=colour,
                alpha=0.9 if kind == "tested" else 0.35,
                linewidths=0,
                label=f"{names[code]} ({int((which == code).sum()):,})",
            )
        axis.set_title(f"{title}: {many(flows.num_rows, 'flow')}", fontsize=10)
        axis.set_xlabel("source host")
        for side in (axis.xaxis, axis.yaxis):
            side.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        axis.set_xlim(-0.5, hosts - 0.5)
        axis.set_ylim(-0.5, hosts - 0.5)
        axis.set_aspect("equal")
        legend = axis.legend(
            loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, fontsize=7, frameon=False
        )
        for mark in legend.legend_handles:
            if mark is not None:
                mark.set_alpha(1)
    axes[0].set_ylabel("destination host")
    note = f"seed {seed}; dots are tested flows, triangles background; "
    note += "classes stand beside each other in a host's place"
    if any(table.num_rows > MOST_MARKS for _, table in panels):
        note += "; large classes are thinned out"
    figure.text(0.5, -0.045, note, fontsize=7, color="#666666", ha="center", va="top")
    return figure


def _last_host(flows: pa.Table) -> int:
    return max((int(integers(flows, end).max(initial=0)) for end in ("src", "dst")), default=0)


def _places(count: int) -> list[tuple[float, float]]:
    """So many places on a grid within a square of 0.6 around (0, 0)."""
    side = math.ceil(math.sqrt(count))
    rows = math.ceil(count / side) if side else 0
    return [
        (0.6 * ((k % side + 0.5) / side - 0.5), 0.6 * ((k // side + 0.5) / rows - 0.5))
        for k in range(count)
    ]


def draw_fabric(fabric: DrawnFabric) -> Figure:
    """A map by its levels: hosts below, links as lines."""
    nodes, links = fabric.graph.nodes, fabric.graph.links
    levels = np.asarray(nodes.level)
    position: dict[int, tuple[float, float]] = {}
    for level in np.unique(levels):
        members = [nodes.node[i] for i in np.flatnonzero(levels == level).tolist()]
        for place, node in enumerate(members):
            position[node] = ((place + 0.5) / len(members), float(level))
    figure = Figure(figsize=(10, 1.6 + 1.5 * len(np.unique(levels))), layout="constrained")
    axis = figure.subplots()
    segments = [(position[a], position[b]) for a, b in zip(links.node_a, links.node_b, strict=True)]
    axis.add_collection(LineCollection(segments, colors="#7f7f7f", linewidths=0.4, alpha=0.5))
    for level in np.unique(levels):
        members = [nodes.node[i] for i in np.flatnonzero(levels == level).tolist()]
        xs, ys = zip(*(position[m] for m in members), strict=True)
        marker, colour = ("o", "#0072B2") if level == 0 else ("s", "#D55E00")
        size = max(4.0, 60 - len(members) / 4)
        axis.scatter(xs, ys, s=size, marker=marker, color=colour, zorder=3)
        name = many(len(members), "host")
        if level > 0:
            name = f"level {level}: {many(len(members), 'switch')}"
        axis.text(-0.01, float(level), name, ha="right", va="center")
    axis.set_xlim(-0.16, 1.01)
    axis.set_axis_off()
    axis.set_title(f"{fabric.name}: {many(len(position), 'node')}, {many(len(segments), 'link')}")
    return figure


def _is_tested(name: str) -> bool:
    return name.lower().startswith(("t_", "t-", "tested"))
