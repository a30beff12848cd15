"""`sweep.html`: the main figures over the swept value."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

import numpy as np
import plotly.graph_objects as go

from raddle.report.axes import value_axis
from raddle.report.chart import SYMBOLS, Chart, View, colour_of, dash_of, figure
from raddle.report.html import render_page
from raddle.report.why_sweep import why_of_sweep
from raddle.results.columns import Floats
from raddle.statistics.score import class_order
from raddle.statistics.sweep_verdict import sweep_headline
from raddle.statistics.verdict import label_of
from raddle.text import fixed, join_words, many, significant, size, span_us

__all__ = ["render_sweep"]

Json = Mapping[str, Any]
Value = Callable[[Json], Any]
Words = tuple[str, ...]


def render_sweep(table: Json, *, reports: bool) -> str:
    """The page of a sweep; with `reports` its rows lead to the reports of the points."""
    points = table["points"]
    schemes = list(dict.fromkeys(name for p in points for name in p["schemes"]))
    scored = any("s" in row for p in points for row in p["schemes"].values())
    seeds = table["seeds"]
    words = (
        f"seed {seeds[0]}" if len(seeds) == 1 else f"mean and 95 % over {many(len(seeds), 'seed')}"
    )
    charts = {c.key: c for c in _charts(table, schemes, words, scored=scored) if c.views}
    return render_page(
        "sweep.html.j2",
        name=table["name"],
        keys=table["keys"],
        complete=table["complete"],
        headline=sweep_headline(table),
        compared=_compared(points),
        facts=[
            many(len(points), "point"),
            *(f"{key}: {join_words(values)}" for key, values in table["keys"].items()),
            words,
        ],
        charts=charts,
        chart_json=[chart.to_json() for chart in charts.values()],
        schemes=[{"label": label_of(s), "colour": colour_of(s, i)} for i, s in enumerate(schemes)],
        tables=_tables(points, schemes, scored=scored),
        why=why_of_sweep(table),
        folders=[
            {"set": p["set"], "href": f"{quote(p['folder'])}/report.html" if reports else ""}
            for p in points
        ],
    )


def _charts(table: Json, schemes: Sequence[str], words: str, *, scored: bool) -> list[Chart]:
    classes = sorted(
        {n for p in table["points"] for r in p["schemes"].values() for n in r["fct_p99_us"]},
        key=class_order,
    )
    lower = "; lower is better"

    def chart(
        key: str, title: str, rows: Sequence[tuple[Words, str, Value, str]], note: str
    ) -> Chart:
        views = [
            View((*label, *combination), shown)
            for label, axis, value, spread in rows
            for combination, shown in _over(table, schemes, axis, value, spread)
        ]
        return Chart(key, title, views, f"{note}; {words}.")

    charts = []
    if scored:
        ratios = (("s", "S"), ("s_long", "S_L"), ("s_short", "S_S"), ("s_allreduce", "S_A"))
        charts.append(
            chart(
                "sweep-score",
                "Score",
                [((label,), f"{label}{lower}", _get(key), key) for key, label in ratios],
                "S and its parts: tested flows under load against the same flows alone",
            )
        )
    charts += [
        chart(
            "sweep-fct",
            "Flow completion times",
            [
                ((name, label), f"completion time, {label}, µs", _of_class(key, name), "")
                for name in classes
                for key, label in (("fct_p99_us", "p99"), ("fct_p50_us", "p50"))
            ],
            "Completion times per class under load",
        ),
        chart(
            "sweep-slowdown",
            "Slowdown",
            [
                (("p99",), "p99 slowdown, ×", _get("slowdown_p99"), "slowdown_p99"),
                (("p50",), "median slowdown, ×", _get("slowdown_p50"), "slowdown_p50"),
            ],
            "Completion time over that on an idle fabric, all flows",
        ),
        chart(
            "sweep-rate",
            "Bandwidth",
            [
                (("Long flows",), "flows ≥ 1 MB, Gb/s each", _get("long_flow_rate_gbps"),
                 "long_flow_rate_gbps"),
                (("Goodput",), "goodput, Gb/s", _get("goodput_gbps"), "goodput_gbps"),
            ],
            "Mean rate of long flows; goodput is the payload of finished flows over time",
        ),
        chart(
            "sweep-pauses",
            "Pause time",
            [(("Pauses",), "pause time, all ports, ms", _get("pause_us", 1e-3), "pause_us")],
            "Time that ports were silenced by PFC, summed over ports",
        ),
        chart(
            "sweep-queue",
            "Longest queue",
            [(("Queue",), "longest queue of a port, MB", _get("max_port_queue_bytes", 1e-6),
              "max_port_queue_bytes")],
            "Largest sample of any port",
        ),
    ]  # fmt: skip
    return charts


def _over(
    table: Json, schemes: Sequence[str], axis: str, value: Value, spread: str
) -> list[tuple[Words, go.Figure]]:
    """A figure over the values of the first key, for each combination of the others."""
    first, *others = table["keys"]
    values = table["keys"][first]
    combinations = list(dict.fromkeys(tuple(p["set"][k] for k in others) for p in table["points"]))
    shown = []
    for combination in combinations:
        rows = {
            p["set"][first]: p["schemes"]
            for p in table["points"]
            if tuple(p["set"][k] for k in others) == combination
        }
        lines = []
        for index, scheme in enumerate(schemes):
            found = [(v, rows[v][scheme]) for v in values if scheme in rows.get(v, {})]
            xy = [(v, value(row), row) for v, row in found if value(row) is not None]
            if xy:
                lines.append(_line(scheme, index, xy, spread, value))
        if lines:
            words = tuple(
                f"{k.rpartition('.')[2]} {v}" for k, v in zip(others, combination, strict=True)
            )
            x = {
                "type": "category",
                "title": {"text": first},
                "categoryorder": "array",
                "categoryarray": list(values),
            }
            y = value_axis(axis, [ends for line in lines for ends in _ends(line)])
            shown.append((words, figure(lines, x=x, y=y, hovermode="x unified")))
    return shown


def _ends(line: go.Scatter) -> tuple[Floats, Floats]:
    """The values of a line with the ends of their whiskers."""
    y = np.asarray(line.y, dtype=np.float64)
    halves = np.asarray(line.error_y.array or 0, dtype=np.float64)
    return y - halves, y + halves


def _line(
    scheme: str, index: int, xy: Sequence[tuple[str, float, Json]], spread: str, value: Value
) -> go.Scatter:
    halves = [value({spread: row["ci95"].get(spread)}) if spread else None for _, _, row in xy]
    return go.Scatter(
        x=[x for x, _, _ in xy],
        y=[y for _, y, _ in xy],
        name=label_of(scheme),
        mode="lines+markers",
        line={"color": colour_of(scheme, index), "dash": dash_of(scheme, index), "width": 1.8},
        # Open marks: where lines coincide, all of them can be seen.
        marker={
            "size": 10,
            "symbol": f"{SYMBOLS[index % len(SYMBOLS)]}-open",
            "line": {"width": 2},
        },
        error_y=None
        if None in halves
        else {"type": "data", "array": halves, "thickness": 1, "width": 3},
        hovertemplate=f"{label_of(scheme)}: %{{y:.4~g}}<extra></extra>",
    )


def _get(key: str, scale: float = 1.0) -> Value:
    def value(row: Json) -> Any:  # noqa: ANN401 - a number or None
        found = row.get(key)
        return None if found is None else found * scale

    return value


def _of_class(key: str, name: str) -> Value:
    return lambda row: (row.get(key) or {}).get(name)


def _compared(points: Sequence[Json]) -> list[str]:
    """Which flows were compared: once, if it is the same at all points."""
    said = {", ".join(p["set"].values()): p["verdict"]["compared"] for p in points}
    found = list(dict.fromkeys(words for words in said.values() if words))
    if len(found) < 2:
        return found
    return [f"{where}: {words}" for where, words in said.items() if words]


def _tables(points: Sequence[Json], schemes: Sequence[str], *, scored: bool) -> list[Json]:
    """A table per figure: a row per point, a column per scheme; who leads or ties is marked."""
    wanted: list[tuple[str, str, Callable[[float], str]]] = [
        *([("s", "Score S", fixed)] if scored else []),
        ("slowdown_p99", "p99 slowdown, ×", fixed),
        ("long_flow_rate_gbps", "Flows ≥ 1 MB, Gb/s each", significant),
        ("pause_us", "Pause time, all ports together", span_us),
        ("max_port_queue_bytes", "Longest queue of a port", size),
    ]
    tables: list[Json] = []
    for key, title, form in wanted:
        rows = []
        for point in points:
            found = {s: point["schemes"].get(s, {}).get(key) for s in schemes}
            first = point["leaders"].get(key, [])
            best = first if len(first) < len(point["schemes"]) else []
            rows.append(
                [
                    {"text": "–" if v is None else form(v), "best": v is not None and s in best}
                    for s, v in found.items()
                ]
            )
        if any(cell["text"] != "–" for row in rows for cell in row):
            tables.append({"title": title, "rows": rows})
    return tables
