"""`report.html` of `raddle route`: engines side by side, EFI and TFI, one tree, what merged."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pyarrow as pa
import pyarrow.parquet as pq

from raddle.columns import Floats, integers
from raddle.report.chart import Chart, View, figure, log_axis
from raddle.report.fabric_map import (
    Drawing,
    between_groups,
    broken_lines,
    draw_groups,
    level_axes,
)
from raddle.report.html import render_page
from raddle.route import headline, load_drawn, load_summary
from raddle.text import elapsed_s, fixed, join_words, many, map_words, memory

__all__ = ["render_routes"]

Json = Mapping[str, Any]
COLOURS = {
    "c-mr4lms-fixed": "#0072B2",
    "c-mr4lms-dynamic": "#009E73",
    "mr4lms": "#D55E00",
    "broadcast": "#8a8f98",
    "opensm": "#CC79A7",
}
DASHES = {"c-mr4lms-dynamic": "dash", "broadcast": "dot", "opensm": "dashdot"}
TREE, GROUND, ROOT, MEMBER = "#D55E00", "#b4bcc6", "#0072B2", "#009E73"
MOST_MERGES = 40
MOST_NAMES = 6
MOST_LINES = 4000


def render_routes(folder: Path) -> str:
    """The page of a folder that `raddle route` wrote."""
    summary = load_summary(folder)
    engines: Mapping[str, Json] = summary["engines"]
    routed = {name: row for name, row in engines.items() if row["error"] is None}
    charts = [
        _distribution("efi", "EFI of the links", routed, "efi_distribution", "links"),
        _distribution("tfi", "TFI of the trees", routed, "tfi_distribution", "trees"),
        _distribution("tables", "Table entries", routed, "entries_distribution", "switches"),
        _trees(folder),
    ]
    shown = {chart.key: chart for chart in charts if chart is not None and chart.views}
    return render_page(
        "routes.html.j2",
        name=summary["name"],
        headline=headline(summary),
        facts=_facts(summary),
        charts=shown,
        chart_json=[chart.to_json() for chart in shown.values()],
        rows=[_row(name, row) for name, row in engines.items()],
        merges=_merges(folder, routed),
        failures=[(name, row["error"]) for name, row in engines.items() if row["error"]],
        file=summary["file"],
        warnings=summary["warnings"],
    )


def _facts(summary: Json) -> list[str]:
    fabric, groups, multicast = summary["fabric"], summary["groups"], summary["multicast"]
    facts = [
        map_words(fabric),
        f"{many(groups['count'], 'group')} of {groups['smallest']:,} to "
        f"{many(groups['largest'], 'member')}",
        f"{many(multicast['colours'], 'colour')}, {multicast['table']} tables",
    ]
    if multicast["fault_tolerant"]:
        facts.append("two trees per group")
    return facts


def _row(name: str, row: Json) -> dict[str, Any]:
    whole = ("groups", "max_efi", "max_tfi", "trees_left", "merges", "table_entries_max")
    cells = {key: "–" if row[key] is None else f"{row[key]:,}" for key in whole}
    cells |= {key: fixed(row[key]) for key in ("mean_efi", "mean_tfi")}
    cells["time"] = "–" if row["route_s"] is None else elapsed_s(row["route_s"])
    cells["process_growth"] = (
        "–" if row["process_growth_bytes"] is None else memory(row["process_growth_bytes"])
    )
    return {"name": name, "colour": COLOURS.get(name, GROUND), "cells": cells}


def _distribution(
    key: str, title: str, routed: Mapping[str, Json], column: str, what: str
) -> Chart | None:
    """How many links, trees or switches have at least a value, and how many have exactly that."""
    found = {n: np.asarray(row[column], float).reshape(-1, 2) for n, row in routed.items()}
    found = {name: pairs for name, pairs in found.items() if len(pairs)}
    if not found:
        return None
    label = {"efi": "EFI (groups on a link)", "tfi": "TFI (groups on a tree)"}.get(
        key, "table entries in use"
    )
    wide = max(pairs[-1, 0] for pairs in found.values()) > 30
    x = log_axis(label, [pairs[:, 0] for pairs in found.values()]) if wide else _linear(label)
    at_least: list[Any] = []
    exactly: list[Any] = []
    for name, pairs in found.items():
        values, counts = pairs[:, 0], pairs[:, 1]
        line = {"color": COLOURS.get(name, GROUND), "dash": DASHES.get(name, "solid"), "width": 2}
        tail = np.cumsum(counts[::-1])[::-1]
        at_least.append(
            _line(name, values, tail, {**line, "shape": "vh"}, f"≥ %{{x}}: %{{y:,}} {what}")
        )
        exactly.append(_line(name, values, counts, line, f"%{{x}}: %{{y:,}} {what}"))
    y = log_axis(what, [np.asarray(trace.y) for trace in at_least])
    y_exact = log_axis(what, [np.asarray(trace.y) for trace in exactly])
    views = [
        View("At least", figure(at_least, x=x, y=y)),
        View("Exactly", figure(exactly, x=x, y=y_exact)),
    ]
    captions = {
        "efi": "EFI of a link: groups whose tree uses it, members of merged groups counted each. "
        "Links between switches and to terminals, used ones only.",
        "tfi": "TFI of a tree: groups that share it after merging; 1 is a tree of its own.",
        "tables": "Entries that a switch's fullest table holds: the fullest port's with per-port "
        "tables, the switch's own with per-switch tables. Switches without entries are left out.",
    }
    return Chart(key, title, views, captions[key])


def _linear(label: str) -> dict[str, Any]:
    return {"title": {"text": label}, "dtick": None, "rangemode": "tozero", "tickformat": "d"}


def _line(name: str, x: Floats, y: Floats, line: Mapping[str, Any], hover: str) -> go.Scatter:
    return go.Scatter(
        x=x,
        y=y,
        name=name,
        mode="lines+markers",
        line=dict(line),
        marker={"size": 5 if len(x) < 40 else 3},
        hovertemplate=f"{name} {hover}<extra></extra>",
    )


def _trees(folder: Path) -> Chart | None:
    """The map with one tree of each engine."""
    drawn: Mapping[str, Json] = load_drawn(folder)
    if not drawn:
        return None
    nodes = pq.read_table(folder / "nodes.parquet")
    links = _map_links(folder)
    drawing = draw_groups(nodes, links)
    views = [View(name, _tree(drawing, links, tree)) for name, tree in drawn.items()]
    lines = [
        f"{name}: tree of {_groups(tree)} with {many(tree['members'], 'member')}, "
        f"root {tree['root_name']}, colour {tree['colour']}, {many(len(tree['links']), 'link')}"
        for name, tree in drawn.items()
    ]
    caption = "The tree with the highest TFI of each engine, among those the largest. "
    caption += "; ".join(lines) + ". Blue: root; green: members."
    if len(drawing.x) < nodes.num_rows:
        caption += (
            f" The {many(nodes.num_rows, 'node')} are drawn in {many(len(drawing.x), 'group')}; a "
            "line stands "
            "for all links between two of them."
        )
    return Chart("tree", "One tree on the map", views, caption, height=460)


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


def _tree(drawing: Drawing, links: pa.Table, tree: Json) -> go.Figure:
    used = np.zeros(links.num_rows)
    used[np.isin(integers(links, "link"), tree["links"])] = 1.0
    left, right, peak = between_groups(drawing, links, used)
    apart = left != right
    traces = [
        _lines(drawing, left, right, apart & (peak == 0), "other links", GROUND, 0.5, 0.35),
        _lines(drawing, left, right, apart & (peak > 0), "tree", TREE, 1.6, 0.95),
    ]
    root = drawing.group_of[tree["root"]]
    members = {drawing.group_of[m] for m in tree["member_nodes"]}
    colour = [
        ROOT if i == root else MEMBER if i in members else "#7a828c" for i in range(len(drawing.x))
    ]
    sizes = np.where(drawing.is_host, 4.0, 7.0)
    sizes[[i in members for i in range(len(drawing.x))]] = 6.0
    sizes[root] = 14.0
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
                "color": colour,
            },
            meta="nodes",
        )
    )
    return figure(traces, **level_axes(sorted(set(drawing.y.tolist()))))


def _lines(
    drawing: Drawing,
    left: Any,  # noqa: ANN401 - integers
    right: Any,  # noqa: ANN401 - integers
    rows: Any,  # noqa: ANN401 - a mask
    name: str,
    colour: str,
    width: float,
    opacity: float,
) -> go.Scatter:
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


def _merges(folder: Path, routed: Mapping[str, Json]) -> list[dict[str, Any]]:
    """What merged and why, the largest trees first."""
    table = pq.read_table(folder / "merges.parquet").to_pylist()
    named = pq.read_table(folder / "trees.parquet", columns=["group", "name"])
    names = dict(zip(integers(named, "group").tolist(), named["name"].to_pylist(), strict=True))
    shown = []
    for engine in routed:
        rows = [row for row in table if row["engine"] == engine]
        rows.sort(key=lambda row: (-len(row["groups"]), row["groups"]))
        if rows:
            shown.append(
                {
                    "engine": engine,
                    "total": len(rows),
                    "rows": [
                        {
                            "tfi": len(row["groups"]),
                            "names": _some([str(names[group]) for group in row["groups"]]),
                            "why": row["reason"],
                        }
                        for row in rows[:MOST_MERGES]
                    ],
                    "more": max(0, len(rows) - MOST_MERGES),
                }
            )
    return shown


def _some(names: list[str]) -> str:
    """The first names and how many more there are."""
    if len(names) <= MOST_NAMES:
        return join_words(names)
    return f"{', '.join(names[:MOST_NAMES])} and {len(names) - MOST_NAMES:,} more"
