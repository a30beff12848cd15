"""A chart of a page: figures that share a place, with buttons to choose between them.

Colours: schemes have theirs (`COLOURS`). What is no scheme has none of them: a quantity is drawn in
`SCALE`, a sequential scale, lines of one scheme in `FLOWS`. These are names of the page's style, so
that they suit its light and its dark theme; report.js puts the colours in.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from raddle.report.axes import BEGINS, SplitAxis
from raddle.statistics.score import class_order

__all__ = [
    "COLOURS",
    "FLOWS",
    "QUIET",
    "SCALE",
    "SYMBOLS",
    "TEXT",
    "Chart",
    "View",
    "colour_of",
    "dash_of",
    "drawn_classes",
    "figure",
    "split_figure",
]

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

SCALE = tuple(f"var(--scale-{step})" for step in range(1, 6))
"""Five classes of a quantity, from little to much."""

FLOWS = tuple(f"var(--flow-{number})" for number in range(1, 9))
"""Lines that are no schemes."""

TEXT, QUIET = "var(--text)", "var(--quiet)"

SYMBOLS = ("circle", "square", "diamond", "triangle-up", "x", "triangle-down", "star", "cross")
"""Marks of series in turn, so that colour is never the only difference."""

MOST_CLASSES = 24
"""Classes of flows that a chart has buttons for."""
SPARE = ("#64748b", "#7c5295", "#0f766e", "#a3590b", "#be3a6b", "#4d7c0f", "#3b5bdb")
"""Colours of what is no scheme: none of them is a scheme's."""
DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")


@dataclass(frozen=True, slots=True)
class View:
    """One figure of a chart and the word on its button.

    A label of several words gives a row of buttons for each; `note` stands under this figure only.
    """

    label: str | tuple[str, ...]
    figure: go.Figure
    note: str = ""

    @property
    def words(self) -> tuple[str, ...]:
        """The words on the buttons that choose this view, one per row."""
        return (self.label,) if isinstance(self.label, str) else self.label


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart: its views, what it shows, and the caption with n, seeds and units explained.

    With `scale` the legend is a scale from little to much, not a list of names.
    """

    key: str
    title: str
    views: Sequence[View]
    caption: str
    height: int = 360
    scale: str = ""

    def to_json(self) -> str:
        """Views as JSON for report.js; `</` is escaped so that it can stand in a script tag."""
        views: list[dict[str, Any]] = [
            {"label": v.words, "note": v.note, **json.loads(v.figure.to_json())} for v in self.views
        ]
        content = {"key": self.key, "title": self.title, "scale": self.scale, "views": views}
        return json.dumps(content, allow_nan=False).replace("</", "<\\/")


def drawn_classes(names: Iterable[str]) -> tuple[list[str], str]:
    """The classes that a chart shows, in their order, and the words about those left out."""
    ordered = sorted(names, key=class_order)
    if len(ordered) <= MOST_CLASSES:
        return ordered, ""
    return ordered[:MOST_CLASSES], f" Drawn are the first {MOST_CLASSES} of {len(ordered)} classes."


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
    """A figure in the report's plain style; report.js adds the colours of the page's theme.

    An axis that does not begin at zero (`value_axis`) is marked in the picture.
    """
    begin = y.get(BEGINS)
    if begin is not None:
        y = {key: value for key, value in y.items() if key != BEGINS}
        _add(layout, "shapes", [_stroke(0, "M -6,9 L 6,13"), _stroke(0, "M -6,14 L 6,18")])
        _add(layout, "annotations", [_words(f"axis begins at {begin:,.6g}, not at 0")])
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


def split_figure(data: Sequence[Any], *, x: SplitAxis, y: dict[str, Any]) -> go.Figure:
    """A figure whose horizontal axis has a break; traces of the far part have `xaxis="x2"`."""
    near, far = x.near["domain"][1], x.far["domain"][0]
    middle = (near + far) / 2
    shapes = [_stroke(middle, "M -8,-7 L -2,7"), _stroke(middle, "M 2,-7 L 8,7")]
    return figure(data, x=x.near, y=y, xaxis2=x.far, shapes=shapes)


def _stroke(x: float, path: str) -> dict[str, Any]:
    """A slanted stroke across an axis, the sign of a break: pixels from its foot at `x`."""
    return {
        "type": "path",
        "path": path,
        "xref": "paper",
        "yref": "paper",
        "xsizemode": "pixel",
        "ysizemode": "pixel",
        "xanchor": x,
        "yanchor": 0,
        "line": {"color": TEXT, "width": 1.4},
    }


def _words(text: str) -> dict[str, Any]:
    return {
        "text": text,
        "xref": "paper",
        "yref": "paper",
        "x": 0,
        "y": 0,
        "xanchor": "left",
        "yanchor": "bottom",
        "xshift": 12,
        "showarrow": False,
        "font": {"color": QUIET, "size": 11},
    }


def _add(layout: dict[str, Any], key: str, what: list[dict[str, Any]]) -> None:
    layout[key] = [*layout.get(key, ()), *what]
