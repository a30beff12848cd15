"""The page of a paper: how far our figures are from the published ones, and every row."""

from collections.abc import Mapping, Sequence
from typing import Any

import plotly.graph_objects as go

from raddle.report.chart import QUIET, Chart, View, figure
from raddle.report.html import render_page
from raddle.results.reproduction import CLOSE, Outcome, Row, count_rows
from raddle.text import many, significant

__all__ = ["render_paper"]

COLOURS = {"exact": "#009E73", "chosen": "#CC79A7", "fitted": "#E69F00", "predicted": "#0072B2"}
SYMBOLS = {"exact": "diamond", "chosen": "triangle-up", "fitted": "square", "predicted": "circle"}
FAR = 100.0
"""Per cent; what is farther away is drawn at the edge."""
SEARCH = ("search-points", "search-inputs", "search-findings")


def render_paper(title: str, name: str, outcome: Outcome, *, quick: bool) -> str:
    """The page of one paper."""
    rows = list(outcome.rows)
    found = count_rows(rows)
    verdicts = found["verdicts"]
    charts = [chart for chart in [_deviations(rows)] if chart.views]
    headline = (
        f"{many(found['rows'], 'row')}: holds {verdicts['holds']}, misses {verdicts['misses']}, "
        f"not shown {verdicts['not_shown']}, lost in the paper's text {verdicts['lost']}"
    )
    lines = [_capital(line) for line in _summary(found)]
    for variant, counts in found.get("variants", {}).items():
        lines += [f"{_capital(variant)}: {line}" for line in _summary(counts)]
    search = outcome.facts.get("search")
    if search:
        lines.append(
            f"At the best of {many(search['points'], 'point')} of lost inputs "
            f"{search['best_holds']} of {many(search['findings'], 'finding')} hold together"
        )
    return render_page(
        "reproduction.html.j2",
        name=title,
        facts=[
            f"raddle reproduce {name}{' --quick' if quick else ''}",
            many(len(rows), "row"),
            *(["fewer seeds, rounds and points: --quick"] if quick else []),
        ],
        headline=headline,
        lines=lines,
        charts=charts,
        chart_json=[chart.to_json() for chart in charts],
        items=[
            {"name": place, "rows": [_row(row) for row in rows if row.place == place]}
            for place in _places(rows)
        ],
        tables=[
            {
                "name": key.replace("-", " "),
                "columns": list(table.columns),
                "rows": [["" if v is None else str(v) for v in row] for row in table.rows],
            }
            for key, table in sorted(outcome.tables.items(), key=lambda pair: pair[0] in SEARCH)
        ],
    )


def _summary(found: Mapping[str, Any]) -> list[str]:
    """What the counts of a model say, in sentences."""
    lines, sentences = [], sum(found["findings"].values())
    if found["predicted_cells"]:
        lines.append(
            f"{found['predicted_within']} of {found['predicted_cells']} predicted cells are within "
            f"{CLOSE * 100:.0f} % of the published figure"
        )
    if found["null_cells"]:
        lines.append(
            f"the null model is within it for {found['null_within']} of {found['null_cells']}"
        )
    if sentences:
        lines.append(
            f"of {many(sentences, 'sentence')} of the paper {found['findings']['holds']} hold"
        )
    return lines


def _capital(words: str) -> str:
    return words[:1].upper() + words[1:]


def _places(rows: Sequence[Row]) -> list[str]:
    """Items, each beside the other models' of the same."""
    items = dict.fromkeys(row.item for row in rows)
    return list(dict.fromkeys(row.place for item in items for row in rows if row.item == item))


def _row(row: Row) -> dict[str, Any]:
    ours = _number(row.ours)
    if row.ci_low is not None and row.ci_high is not None:
        ours += f" [{_number(row.ci_low)}, {_number(row.ci_high)}]"
    return {
        "setting": row.setting,
        "statement": row.statement,
        "unit": row.unit,
        "published": _number(row.published),
        "ours": ours,
        "deviation": _percent(row.deviation_frac),
        "null": _percent(row.null_deviation_frac),
        "kind": row.kind,
        "verdict": row.verdict.replace("_", " "),
        "note": row.note,
    }


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{int(value):,}" if float(value).is_integer() else significant(value, 4)


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share * 100:+.1f} %"


def _deviations(rows: Sequence[Row]) -> Chart:
    """Deviations by item: a mark per cell, the band within which a cell holds, the null model."""
    cells = [row for row in rows if row.deviation_frac is not None]
    places = _places(cells)
    data: list[Any] = []
    nulls = [row for row in cells if row.null_deviation_frac is not None]
    if nulls:
        data.append(
            go.Scatter(
                name="null model",
                x=[_clipped(row.null_deviation_frac) for row in nulls],
                y=[row.place for row in nulls],
                text=[f"null model: {row.setting}" for row in nulls],
                mode="markers",
                marker={"symbol": "line-ns-open", "size": 11, "color": QUIET},
                hovertemplate="%{text}<br>%{x:+.1f} %<extra></extra>",
            )
        )
    for kind, colour in COLOURS.items():
        some = [row for row in cells if row.kind == kind]
        if some:
            data.append(
                go.Scatter(
                    name=kind,
                    x=[_clipped(row.deviation_frac) for row in some],
                    y=[row.place for row in some],
                    text=[f"{row.setting}: {_number(row.ours)} {row.unit}" for row in some],
                    mode="markers",
                    marker={"symbol": SYMBOLS[kind], "size": 8, "color": colour, "opacity": 0.75},
                    hovertemplate="%{text}<br>%{x:+.1f} %<extra></extra>",
                )
            )
    edge = 100 * CLOSE
    band = {
        "type": "rect", "xref": "x", "yref": "paper", "x0": -edge, "x1": edge, "y0": 0, "y1": 1,
        "fillcolor": "#009E73", "opacity": 0.12, "line": {"width": 0}, "layer": "below",
    }  # fmt: skip
    view = figure(
        data,
        x={"title": {"text": "ours / published - 1, per cent"}, "range": [-FAR - 4, FAR + 4]},
        y={"autorange": "reversed", "categoryorder": "array", "categoryarray": places},
        shapes=[band],
    )
    return Chart(
        "deviations",
        "How far our figures are from the published ones",
        [View("all", view)] if cells else [],
        f"A mark per cell; within the band (±{edge:.0f} %) a cell holds. What is farther away than "
        f"{FAR:.0f} % is drawn at the edge.",
        height=max(260, 90 + 44 * len(places)),
    )


def _clipped(share: float | None) -> float:
    return max(-FAR, min(FAR, 100 * (share or 0.0)))
