"""A chart of the report: figures that share a place, with buttons to choose between them."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from raddle.columns import Floats

__all__ = ["COLOURS", "Chart", "View", "colour_of", "dash_of", "figure", "log_axis"]

COLOURS = {
    "none": "#8a8f98",
    "dctcp": "#E69F00",
    "dcqcn": "#D55E00",
    "timely": "#CC79A7",
    "hpcc": "#0072B2",
    "pint": "#009E73",
    "swift": "#56B4E9",
    "powertcp": "#B59F00",
}
"""Okabe-Ito colours, one per scheme, the same in every chart (its black and yellow are too close
to a page's text and ground; grey and a darker yellow stand in)."""

SPARE = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#8a8f98")
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")


@dataclass(frozen=True, slots=True)
class View:
    """One figure of a chart and the word on its button."""

    label: str
    figure: go.Figure


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart: its views, what it shows, and the caption with n, seeds and units explained."""

    key: str
    title: str
    views: Sequence[View]
    caption: str
    height: int = 360

    def to_json(self) -> str:
        """Views as JSON for report.js; `</` is escaped so that it can stand in a script tag."""
        views: list[dict[str, Any]] = [
            {"label": v.label, **json.loads(v.figure.to_json())} for v in self.views
        ]
        return json.dumps({"key": self.key, "views": views}, allow_nan=False).replace("</", "<\\/")


def colour_of(scheme: str, index: int) -> str:
    """The colour of a scheme; unknown schemes take the spare colours in turn."""
    return COLOURS.get(scheme) or SPARE[index % len(SPARE)]


def dash_of(scheme: str, index: int) -> str:
    """A dash for series beyond the palette, so that colour is never the only difference."""
    return "solid" if scheme in COLOURS else DASHES[index // len(SPARE) % len(DASHES)]


def figure(
    data: Sequence[Any],
    *,
    x: dict[str, Any],
    y: dict[str, Any],
    **layout: Any,  # noqa: ANN401 - plotly's own keywords
) -> go.Figure:
    """A figure in the report's plain style; report.js adds the colours of the page's theme."""
    return go.Figure(
        data=list(data),
        layout=go.Layout(
            template=None,
            showlegend=False,
            margin=layout.pop("margin", {"l": 58, "r": 12, "t": 12, "b": 48}),
            hovermode=layout.pop("hovermode", "closest"),
            xaxis={"automargin": True, **x},
            yaxis={"automargin": True, **y},
            **layout,
        ),
    )


def log_axis(
    title: str, values: Sequence[Floats], including: Sequence[float] = ()
) -> dict[str, Any]:
    """A logarithmic axis with ticks at 1, 2, 5 where it spans few decades."""
    positive = [v[v > 0] for v in values]
    low = min((float(v.min()) for v in positive if v.size), default=1.0)
    high = max((float(v.max()) for v in positive if v.size), default=10.0)
    low, high = min([low, *including]), max([high, *including])
    if high / low < 8:  # under a decade 1, 2, 5 would leave one tick or none
        low, high = low / 1.06, high * 1.06
        ticks = _ticks(low, high)
        return {
            "type": "log",
            "title": {"text": title},
            "range": [math.log10(low), math.log10(high)],
            "tickvals": ticks,
            "ticktext": [f"{tick:.6g}" for tick in ticks],
        }
    return {
        "type": "log",
        "title": {"text": title},
        "dtick": "D2" if high / low < 300 else 1,
        "exponentformat": "none" if high < 1e7 else "power",
        "tickformat": "~g" if high < 1e7 else None,
    }


def _ticks(low: float, high: float) -> list[float]:
    """Round values between `low` and `high`, which are less than a decade apart."""
    if high / low > 2.5:
        power = 10.0 ** math.floor(math.log10(low))
        round_values = [f * p for p in (power, 10 * power) for f in (1, 1.5, 2, 3, 4, 5, 6, 8)]
        return [v for v in round_values if low <= v <= high]
    step = 10.0 ** math.floor(math.log10((high - low) / 3))
    step *= next(f for f in (1, 2, 5, 10) if (high - low) / (f * step) <= 7)
    return [k * step for k in range(math.ceil(low / step), math.floor(high / step) + 1)]
