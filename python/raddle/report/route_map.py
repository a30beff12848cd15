"""One tree of each engine on the map of `raddle route`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from raddle.report.chart import QUIET, TEXT, Chart, View, figure
from raddle.report.fabric_map import (
    Drawing,
    between_groups,
    broken_lines,
    draw_groups,
    level_axes,
)
from raddle.results.columns import Integers, integers
from raddle.results.routes import load_drawn
from raddle.text import join_words, many

__all__ = ["tree_chart"]

Json = Mapping[str, Any]
MOST_LINES = 4000


def tree_chart(folder: Path, colours: Mapping[str, str]) -> Chart | None:
    """A view per engine: its tree in the engine's colour."""
    drawn: Mapping[str, Json] = load_drawn(folder)
    if not drawn:
        return None
    nodes = pq.read_table(folder / "nodes.parquet")
    links = _map_links(folder)
    drawing = draw_groups(nodes, links)
    views = [
        View(name, _tree(drawing, links, tree, colours.get(name, TEXT)), _note(tree))
        for name, tree in drawn.items()
    ]
    caption = (
        "Of each engine the tree with the highest TFI, among those the largest. The large square "
        "is the root, dots in the tree's colour are members."
    )
    if len(drawing.x) < nodes.num_rows:
        caption += (
            f" The {many(nodes.num_rows, 'node')} are drawn in {many(len(drawing.x), 'group')}; a "
            "line stands for all links between two of them."
        )
    return Chart("tree", "One tree on the map", views, caption, height=460)


def _note(tree: Json) -> str:
    return (
        f"Tree of {_groups(tree)}: {many(tree['members'], 'member')}, root {tree['root_name']}, "
        f"colour {tree['colour']}, {many(len(tree['links']), 'link')}."
    )


def _groups(tree: Json) -> str:
    names = tree["groups"]
    if tree["tfi"] == 1:
        return f"group {names[0]}"
    shown = join_words(names) if tree["tfi"] <= 3 else f"{', '.join(names[:3])}, …"
    return f"{many(tree['tfi'], 'group')} ({shown})"


def _map_links(folder: Path) -> pa.Table:
    """Each link once: the rows of the first engine."""
    columns = ["engine", "link", "node_a", "node_b"]
    table = pq.read_table(folder / "links.parquet", columns=columns)
    first = table["engine"][0].as_py()
    rows = np.asarray([v == first for v in table["engine"].to_pylist()])
    return table.slice(0, int(rows.sum()))


def _tree(drawing: Drawing, links: pa.Table, tree: Json, colour: str) -> go.Figure:
    used = np.zeros(links.num_rows)
    used[np.isin(integers(links, "link"), tree["links"])] = 1.0
    left, right, peak = between_groups(drawing, links, used)
    apart = left != right
    traces = [
        _lines(drawing, left, right, apart & (peak == 0), "other links", (QUIET, 0.5, 0.25)),
        _lines(drawing, left, right, apart & (peak > 0), "tree", (colour, 1.6, 0.95)),
    ]
    root = drawing.group_of[tree["root"]]
    members = np.unique([drawing.group_of[m] for m in tree["member_nodes"]]).astype(np.int64)
    colours = np.full(len(drawing.x), QUIET, dtype=object)
    sizes = np.where(drawing.is_host, 4.0, 7.0)
    colours[members], sizes[members] = colour, 6.0
    colours[root], sizes[root] = TEXT, 14.0
    traces.append(
        go.Scatter(
            x=drawing.x,
            y=drawing.y,
            mode="markers",
            name="nodes",
            text=drawing.text,
            hovertemplate="%{text}<extra></extra>",
            marker={
                "size": sizes,
                "symbol": np.where(drawing.is_host, "circle", "square").tolist(),
                "color": colours.tolist(),
            },
            meta="nodes",
        )
    )
    return figure(traces, **level_axes(sorted(set(drawing.y.tolist()))))


def _lines(
    drawing: Drawing,
    left: Integers,
    right: Integers,
    rows: NDArray[np.bool_],
    name: str,
    look: tuple[str, float, float],
) -> go.Scatter:
    """Lines between groups in a colour, width and opacity."""
    colour, width, opacity = look
    places = np.flatnonzero(rows)
    step = max(1, len(places) // MOST_LINES)
    places = places[::step]
    xs = np.column_stack([drawing.x[left[places]], drawing.x[right[places]]])
    ys = np.column_stack([drawing.y[left[places]], drawing.y[right[places]]])
    return go.Scatter(
        x=broken_lines(xs),
        y=broken_lines(ys),
        mode="lines",
        name=name,
        opacity=opacity,
        line={"color": colour, "width": width},
        hoverinfo="skip",
    )
