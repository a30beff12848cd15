"""The fabric, drawn by its levels, each link in a class of a scale by its load.

Large maps are drawn in groups: the hosts of one switch become one mark, and levels with many
switches are cut into at most `MOST_GROUPS` runs of neighbours; a drawn line then stands for all
links between two groups and has the load of the busiest of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pyarrow as pa
from numpy.typing import NDArray

from raddle.report.chart import QUIET, SCALE, TEXT, Chart, View, figure
from raddle.results.columns import Floats, Integers, floats, integers, select
from raddle.results.folder import Results
from raddle.statistics.verdict import label_of
from raddle.text import percent, span_us

__all__ = [
    "BusyLink",
    "Drawing",
    "between_groups",
    "broken_lines",
    "busiest_links",
    "draw_groups",
    "fabric_chart",
    "level_axes",
    "link_loads",
]

MOST_LINKS = 3000
MOST_GROUPS = 60
# Load classes as shares of the busiest link, with the width of their lines: width and order carry
# the meaning as well, so that colour is not needed to read the picture.
CLASSES = ((0.2, 0.6), (0.4, 1.0), (0.6, 1.6), (0.8, 2.3), (1.0, 3.2))


@dataclass(frozen=True, slots=True)
class BusyLink:
    """A link in its busier direction.

    `load` is the share of its capacity over the run and `pause_us` its pause time, means over
    seeds; `max_queue_bytes` is the longest queue of any seed.
    """

    source: str
    target: str
    load: float
    max_queue_bytes: int
    pause_us: float


@dataclass(frozen=True, slots=True)
class Drawing:
    """Groups of nodes with their places, and the group of each node."""

    group_of: Mapping[int, int]
    x: Floats
    y: Floats
    text: list[str]
    is_host: NDArray[np.bool_]


def link_loads(results: Results, scheme: str, simulated_ps: float) -> Floats:
    """Load of each row of `results.links` (0 to 1): the busier direction, mean over seeds."""
    links, ports = results.links, select(results.ports, scheme=scheme)
    if ports.num_rows == 0 or simulated_ps <= 0:
        return np.zeros(links.num_rows)
    seeds = len(set(integers(ports, "seed").tolist()))
    key = _key(integers(ports, "node"), integers(ports, "port"))
    values, inverse = np.unique(key, return_inverse=True)
    sent = np.bincount(inverse, weights=floats(ports, "tx_bytes")) / seeds
    rate = floats(links, "rate_bps")
    loads = []
    for end in ("a", "b"):
        wanted = _key(integers(links, f"node_{end}"), integers(links, f"port_{end}"))
        place = np.clip(np.searchsorted(values, wanted), 0, values.size - 1)
        bytes_sent = np.where(values[place] == wanted, sent[place], 0.0)
        loads.append(bytes_sent * 8e12 / (rate * simulated_ps))
    return np.minimum(np.maximum(*loads), 1.0)


def fabric_chart(results: Results, simulated_ps: Mapping[str, float]) -> Chart | None:
    """One view per scheme."""
    if results.links.num_rows == 0 or results.nodes.num_rows == 0:
        return None
    drawing = draw_groups(results.nodes, results.links)
    loads = {
        s: link_loads(results, s, simulated_ps.get(s) or 0.0)
        for s in results.schemes
        if simulated_ps.get(s)
    }
    top = max((float(v.max()) for v in loads.values()), default=0.0)
    if top <= 0:
        return None
    levels = sorted(set(drawing.y.tolist()))
    views = [
        View(label_of(s), _map(results, drawing, values, top, levels, s))
        for s, values in loads.items()
    ]
    grouped = len(drawing.x) < results.nodes.num_rows
    caption = (
        "Hosts at the bottom, switches above by level. Colour and width of a link: bytes sent in "
        "its busier direction over what it could carry in the simulated time, with the same "
        f"classes for every scheme (the busiest link of all: {percent(top)}). Ringed switches had "
        "paused ports."
    )
    if grouped:
        caption += (
            f" The {results.nodes.num_rows:,} nodes are drawn in {len(drawing.x):,} groups; a "
            "line shows the busiest of its links."
        )
    return Chart("fabric", "Load of the links", views, caption, height=460, scale="Load")


def busiest_links(
    results: Results, scheme: str, simulated_ps: float, most: int = 8
) -> list[BusyLink]:
    """The links with the highest load, busiest first."""
    links = results.links
    loads = link_loads(results, scheme, simulated_ps)
    names = dict(
        zip(
            integers(results.nodes, "node").tolist(), results.nodes["name"].to_pylist(), strict=True
        )
    )
    ports = select(results.ports, scheme=scheme)
    seeds = max(1, len(set(integers(ports, "seed").tolist())))
    key = _key(integers(ports, "node"), integers(ports, "port"))
    found = []
    for index in np.argsort(-loads, kind="stable")[:most].tolist():
        ends = [
            (links[f"node_{end}"][index].as_py(), links[f"port_{end}"][index].as_py())
            for end in ("a", "b")
        ]
        rows = [np.flatnonzero(key == node * 65536 + port) for node, port in ends]
        sent, queue, pause = (
            [floats(ports, column)[r] for r in rows]
            for column in ("tx_bytes", "max_queue_bytes", "pause_ps")
        )
        busier = int(sent[1].sum() > sent[0].sum())
        source, target = ends[busier][0], ends[1 - busier][0]
        found.append(
            BusyLink(
                str(names.get(source, source)),
                str(names.get(target, target)),
                float(loads[index]),
                int(queue[busier].max(initial=0)),
                float(pause[busier].sum()) / 1e6 / seeds,
            )
        )
    return found


def _map(
    results: Results,
    drawing: Drawing,
    loads: Floats,
    top: float,
    levels: list[float],
    scheme: str,
) -> go.Figure:
    left, right, peak = between_groups(drawing, results.links, loads)
    traces: list[go.Scatter] = []
    low = 0.0
    for (share, width), colour in zip(CLASSES, SCALE, strict=True):
        high = share * top
        rows = (peak >= low) & ((peak < high) | (share == 1.0)) & (left != right)
        xs = np.column_stack([drawing.x[left[rows]], drawing.x[right[rows]]])
        ys = np.column_stack([drawing.y[left[rows]], drawing.y[right[rows]]])
        traces.append(
            go.Scatter(
                x=broken_lines(xs),
                y=broken_lines(ys),
                mode="lines",
                name=_between(low, high, top),
                line={"color": colour, "width": width},
                hoverinfo="skip",
            )
        )
        low = high
    paused = _paused_us(results, scheme, drawing)
    hover = [
        text + (f"<br>paused {span_us(p)}" if p > 0 else "")
        for text, p in zip(drawing.text, paused, strict=True)
    ]
    traces.append(
        go.Scatter(
            x=drawing.x,
            y=drawing.y,
            mode="markers",
            name="nodes",
            text=hover,
            hovertemplate="%{text}<extra></extra>",
            marker={
                "size": np.where(drawing.is_host, 4, 9),
                "symbol": np.where(drawing.is_host, "circle", "square").tolist(),
                "color": QUIET,
                "line": {
                    "color": TEXT,
                    "width": np.where((paused > 0) & ~drawing.is_host, 2.0, 0.0),
                },
            },
            meta="nodes",
        )
    )
    return figure(traces, **level_axes(levels))


def _between(low: float, high: float, top: float) -> str:
    digits = 0 if top > 0.05 else 1
    return f"{100 * low:.{digits}f}–{100 * high:.{digits}f} %"


def level_axes(levels: list[float]) -> dict[str, Any]:
    """Axes and margins of a map: levels named at the left."""
    return {
        "x": {"visible": False, "range": [-0.01, 1.01], "fixedrange": True},
        "y": {
            "tickvals": levels,
            "ticktext": ["hosts" if v == 0 else f"level {v:.0f}" for v in levels],
            "range": [levels[0] - 0.2, levels[-1] + 0.2],
            "showgrid": False,
            "showline": False,
            "ticks": "",
            "zeroline": False,
            "fixedrange": True,
        },
        "margin": {"l": 58, "r": 12, "t": 8, "b": 8},
    }


def between_groups(
    drawing: Drawing, links: pa.Table, values: Floats
) -> tuple[Integers, Integers, Floats]:
    """The pairs of groups that links join, and the largest value of each pair's links."""
    a = np.asarray([drawing.group_of[n] for n in integers(links, "node_a").tolist()], np.int64)
    b = np.asarray([drawing.group_of[n] for n in integers(links, "node_b").tolist()], np.int64)
    pair = np.minimum(a, b) * len(drawing.x) + np.maximum(a, b)
    pairs, inverse = np.unique(pair, return_inverse=True)
    peak = np.zeros(pairs.size)
    np.maximum.at(peak, inverse, values)
    return pairs // len(drawing.x), pairs % len(drawing.x), peak


def draw_groups(nodes: pa.Table, links: pa.Table) -> Drawing:
    """Places of all nodes (node, level, name); with many links (node_a, node_b) in groups."""
    ids, level = integers(nodes, "node"), integers(nodes, "level")
    names = [str(n) for n in nodes["name"].to_pylist()]
    many = links.num_rows > MOST_LINKS
    above = _switch_above(ids, level, integers(links, "node_a"), integers(links, "node_b"))
    group_of: dict[int, int] = {}
    xs: list[float] = []
    ys: list[float] = []
    text: list[str] = []
    host: list[bool] = []
    for value in np.unique(level).tolist():
        members = np.flatnonzero(level == value)
        if not many:
            parts = [np.asarray([m]) for m in members]
        elif value == 0:
            parts = _limit(_of_equal(members, above[members]))
        else:
            parts = np.array_split(members, min(members.size, MOST_GROUPS))
        for place, part in enumerate(parts):
            for member in part.tolist():
                group_of[int(ids[member])] = len(xs)
            xs.append((place + 0.5) / len(parts))
            ys.append(float(value))
            host.append(value == 0)
            first, last = names[part[0]], names[part[-1]]
            text.append(first if part.size == 1 else f"{first} to {last} ({part.size} nodes)")
    return Drawing(group_of, np.asarray(xs), np.asarray(ys), text, np.asarray(host))


def _of_equal(members: Integers, keys: Integers) -> list[Integers]:
    """The members by key, in the order of both."""
    order = np.argsort(keys, kind="stable")
    return np.split(members[order], 1 + np.flatnonzero(np.diff(keys[order])))


def _limit(parts: list[Integers]) -> list[Integers]:
    if len(parts) <= MOST_GROUPS:
        return parts
    runs = np.array_split(np.arange(len(parts)), MOST_GROUPS)
    return [np.concatenate([parts[i] for i in run.tolist()]) for run in runs]


def _switch_above(ids: Integers, level: Integers, a: Integers, b: Integers) -> Integers:
    """The other end of each host's first link, by row of the nodes; of others and without: -1."""
    order = np.argsort(ids)
    ends = np.column_stack((a, b))
    rows = order[np.searchsorted(ids, ends, sorter=order)].ravel()
    others = ends[:, ::-1].ravel()
    of_host = level[rows] == 0
    above = np.full(ids.size, -1)
    # A row that comes twice gets its last value: the first link's.
    above[rows[of_host][::-1]] = others[of_host][::-1]
    return above


def _paused_us(results: Results, scheme: str, drawing: Drawing) -> Floats:
    ports = select(results.ports, scheme=scheme)
    total = np.zeros(len(drawing.x))
    seeds = max(1, len(set(integers(ports, "seed").tolist())))
    spans = floats(ports, "pause_ps")
    paused = np.flatnonzero(spans)
    nodes = integers(ports, "node")[paused].tolist()
    places = np.asarray([drawing.group_of.get(n, 0) for n in nodes], dtype=np.int64)
    np.add.at(total, places, spans[paused] / 1e6 / seeds)
    return total


def broken_lines(pairs: Floats) -> Floats:
    """Pairs of coordinates as one line with a gap after each pair."""
    return np.column_stack([pairs, np.full(len(pairs), np.nan)]).ravel().astype(np.float32)


def _key(node: Integers, port: Integers) -> Integers:
    return node * 65536 + port
