"""`report.html` of `raddle route`: engines side by side, EFI and TFI, a tree, merges, why."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go

from raddle.core.route import FailedEngine, RoutedEngine, RouteSummary
from raddle.report.axes import WIDE, log_axis, split_axis, whole_axis
from raddle.report.chart import Chart, View, figure, split_figure
from raddle.report.html import render_page
from raddle.report.merges import read_merges
from raddle.report.route_map import tree_chart
from raddle.report.why_route import why_of_routes
from raddle.results.columns import Floats
from raddle.results.routes import load_summary
from raddle.statistics.routes import headline
from raddle.text import elapsed_s, fixed, many, map_words, memory

__all__ = ["render_routes"]

COLOURS = {
    "c-mr4lms-fixed": "#0072B2",
    "c-mr4lms-dynamic": "#009E73",
    "mr4lms": "#D55E00",
    "broadcast": "#8a8f98",
    "opensm": "#CC79A7",
}
DASHES = {"c-mr4lms-dynamic": "dash", "broadcast": "dot", "opensm": "dashdot"}
GROUND = "#8a8f98"


def render_routes(folder: Path) -> str:
    """The page of a folder that `raddle route` wrote."""
    summary = load_summary(folder)
    routed = summary.routed
    charts = [
        _distribution("efi", "EFI of the links", routed, "efi_distribution", "links"),
        _distribution("tfi", "TFI of the trees", routed, "tfi_distribution", "trees"),
        _distribution("tables", "Table entries", routed, "entries_distribution", "switches"),
        tree_chart(folder, COLOURS),
    ]
    merges = read_merges(folder, list(routed))
    shown = {chart.key: chart for chart in charts if chart is not None and chart.views}
    return render_page(
        "routes.html.j2",
        name=summary.name,
        headline=headline(summary),
        facts=_facts(summary),
        charts=shown,
        chart_json=[chart.to_json() for chart in shown.values()],
        rows=[_row(name, row) for name, row in summary.engines.items()],
        merges=merges,
        colours=COLOURS,
        why=why_of_routes(folder, summary, merges),
        failures=list(summary.failed.items()),
        file=summary.file,
        warnings=summary.warnings,
    )


def _facts(summary: RouteSummary) -> list[str]:
    fabric, groups, multicast = summary.fabric, summary.groups, summary.multicast
    facts = [
        map_words(fabric.hosts, fabric.switches, fabric.links),
        f"{many(groups.count, 'group')} of {groups.smallest:,} to {many(groups.largest, 'member')}",
        f"{many(multicast.colours, 'colour')}, tables: {multicast.table}",
    ]
    if multicast.fault_tolerant:
        facts.append("two trees per group")
    return facts


def _row(name: str, row: RoutedEngine | FailedEngine) -> dict[str, Any]:
    whole = ("groups", "max_efi", "max_tfi", "trees_left", "merges", "table_entries_max")
    cells = {key: "–" if getattr(row, key) is None else f"{getattr(row, key):,}" for key in whole}
    cells |= {key: fixed(getattr(row, key)) for key in ("mean_efi", "mean_tfi")}
    cells["time"] = "–" if row.route_s is None else elapsed_s(row.route_s)
    cells["process_growth"] = (
        "–" if row.process_growth_bytes is None else memory(row.process_growth_bytes)
    )
    return {"name": name, "colour": COLOURS.get(name, GROUND), "cells": cells}


def _distribution(
    key: str, title: str, routed: Mapping[str, RoutedEngine], column: str, what: str
) -> Chart | None:
    """How many links, trees or switches have at least a value, and how many have exactly that."""
    found = {n: np.asarray(getattr(row, column), float).reshape(-1, 2) for n, row in routed.items()}
    found = {name: pairs for name, pairs in found.items() if len(pairs)}
    if not found:
        return None
    label = {"efi": "EFI (groups on a link)", "tfi": "TFI (groups on a tree)"}.get(
        key, "table entries in use"
    )
    parts = split_axis(label, [pairs[:, 0] for pairs in found.values()])
    at_least: list[Any] = []
    exactly: list[Any] = []
    for name, pairs in found.items():
        values, counts = pairs[:, 0], pairs[:, 1]
        line = {"color": COLOURS.get(name, GROUND), "dash": DASHES.get(name, "solid"), "width": 2}
        tail = np.cumsum(counts[::-1])[::-1]
        stairs = {**line, "shape": "vh"}
        limit = np.inf if parts is None else parts.limit
        for far in (False, True):
            rows = (values > limit) == far
            if rows.any():
                where = (values[rows], far)
                at_least.append(
                    _line(name, where, tail[rows], stairs, f"≥ %{{x}}: %{{y:,}} {what}")
                )
                exactly.append(_line(name, where, counts[rows], line, f"%{{x}}: %{{y:,}} {what}"))
    views = []
    for words, traces in (("At least", at_least), ("Exactly", exactly)):
        y = log_axis(what, [np.asarray(trace.y) for trace in traces])
        if parts is None:
            x = _counts(label, np.concatenate([pairs[:, 0] for pairs in found.values()]))
            views.append(View(words, figure(traces, x=x, y=y)))
        else:
            views.append(View(words, split_figure(traces, x=parts, y=y)))
    captions = {
        "efi": "EFI of a link: groups whose tree uses it, members of merged groups counted each. "
        "Links between switches and to terminals, used ones only.",
        "tfi": "TFI of a tree: groups that share it after merging; 1 is a tree of its own.",
        "tables": "Entries that a switch's fullest table holds: the fullest port's with per-port "
        "tables, the switch's own with per-switch tables. Switches without entries are left out.",
    }
    caption = captions[key]
    if parts is not None:
        caption += " The horizontal axis has a break."
    return Chart(key, title, views, caption)


def _counts(label: str, values: Floats) -> dict[str, Any]:
    return log_axis(label, [values]) if values.max() > WIDE else whole_axis(label, values)


def _line(
    name: str, where: tuple[Floats, bool], y: Floats, line: Mapping[str, Any], hover: str
) -> go.Scatter:
    """A line of an engine over its values, or in the far part of a split axis."""
    x, far = where
    return go.Scatter(
        x=x,
        y=y,
        name=name,
        mode="lines+markers",
        line=dict(line),
        marker={"size": 9 if len(x) == 1 else 5 if len(x) < 40 else 3},
        xaxis="x2" if far else "x",
        hovertemplate=f"{name} {hover}<extra></extra>",
    )
