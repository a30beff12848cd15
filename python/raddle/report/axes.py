"""Axes that show what is compared, and say so where they do not begin at zero."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from raddle.results.columns import Floats

__all__ = [
    "BEGINS",
    "WIDE",
    "SplitAxis",
    "log_axis",
    "split_axis",
    "time_unit",
    "value_axis",
    "whole_axis",
]

Axis = dict[str, Any]
BEGINS = "begins"
"""Key of an axis that does not begin at zero: where it begins. `figure` marks it."""

FAR = 10.0
MOST_FAR = 3
WIDE = 30.0
"""Counts up to it have a linear axis, of more a logarithmic one."""


@dataclass(frozen=True, slots=True)
class SplitAxis:
    """A horizontal axis with a break: `near` for values up to `limit`, `far` for the few above."""

    near: Axis
    far: Axis
    limit: float


def value_axis(title: str, values: Sequence[Floats]) -> Axis:
    """A linear axis from zero, or from where the values begin if zero would hide what differs.

    That is so where all lie in the upper half. Only for marks whose place is read, as of points and
    lines: a bar needs its zero.
    """
    known = _together([v[np.isfinite(v)] for v in values])
    low, high = (float(known[0]), float(known[-1])) if known.size else (0.0, 0.0)
    axis: Axis = {"title": {"text": title}}
    if low <= 0 or low < 0.5 * high:
        return {**axis, "rangemode": "tozero"}
    reach = max(high - low, 0.02 * high)
    middle = (low + high) / 2
    step = 10.0 ** math.floor(math.log10(reach)) / 2
    begin = math.floor((middle - 0.62 * reach) / step) * step
    return {**axis, "range": [begin, middle + 0.62 * reach], BEGINS: begin}


def log_axis(title: str, values: Sequence[Floats], including: Sequence[float] = ()) -> Axis:
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
            "ticktext": [f"{tick:,.6g}" for tick in ticks],
        }
    return {
        "type": "log",
        "title": {"text": title},
        "dtick": "D2" if high / low < 300 else 1,
        "exponentformat": "none" if high < 1e7 else "power",
        "tickformat": ",~g" if high < 1e7 else None,
    }


def whole_axis(title: str, values: Floats) -> Axis:
    """A linear axis with ticks at whole numbers only."""
    low, high = float(values.min()), float(values.max())
    axis: Axis = {"title": {"text": title}, "range": [low - 0.5, high + 0.5], "tickformat": ",d"}
    step = max(1, 10 ** math.floor(math.log10(max(high - low, 1))) // 2)
    return {**axis, "dtick": step}


def split_axis(title: str, values: Sequence[Floats]) -> SplitAxis | None:
    """An axis of counts with a break, where few lie ten times as high as all others; else None."""
    known = _together([v[v > 0] for v in values])
    if known.size < 2:
        return None
    steps = known[1:] / known[:-1]
    place = int(np.argmax(steps))
    near, far = known[: place + 1], known[place + 1 :]
    if steps[place] < FAR or far.size > MOST_FAR:
        return None
    axis = log_axis(title, [near]) if near[-1] > WIDE else whole_axis(title, near)
    apart: Axis = {
        "domain": [0.9, 1.0],
        "type": "log",
        "range": [math.log10(far[0] / 1.5), math.log10(far[-1] * 1.5)],
        "tickvals": far.tolist(),
        "ticktext": [f"{value:,.0f}" for value in far],
        "anchor": "y",
    }
    return SplitAxis({**axis, "domain": [0.0, 0.85]}, apart, float(near[-1]))


def time_unit(values_us: Sequence[Floats]) -> tuple[str, float]:
    """The unit in which times are read best, and how many of it are a µs."""
    known = _together([v[np.isfinite(v)] for v in values_us])
    high = float(known[-1]) if known.size else 0.0
    return ("s", 1e-6) if high >= 2e6 else ("ms", 1e-3) if high >= 2e3 else ("µs", 1.0)


def _together(values: Sequence[Floats]) -> Floats:
    return np.unique(np.concatenate([np.zeros(0), *values]))


def _ticks(low: float, high: float) -> list[float]:
    """Round values between `low` and `high`, which are less than a decade apart."""
    if high / low > 2.5:
        power = 10.0 ** math.floor(math.log10(low))
        round_values = [f * p for p in (power, 10 * power) for f in (1, 1.5, 2, 3, 4, 5, 6, 8)]
        return [v for v in round_values if low <= v <= high]
    step = 10.0 ** math.floor(math.log10((high - low) / 3))
    step *= next(f for f in (1, 2, 5, 10) if (high - low) / (f * step) <= 7)
    return [k * step for k in range(math.ceil(low / step), math.floor(high / step) + 1)]
