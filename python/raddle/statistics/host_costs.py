"""Costs of hosts from what was measured: straight lines through times over bytes, and a fit."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from raddle.results.columns import Floats

__all__ = ["Line", "Row", "fit", "line", "middle", "of_messages"]

STEPS = 6
LEAST = 0.001
"""Fitted costs are not shorter than this share of where the search began."""

Row = dict[str, float]
"""Times of one size: bytes, and send_us and half_us (of messages), or walk_us, call_us and loop_us
(of sums)."""


@dataclass(frozen=True, slots=True)
class Line:
    """A time over bytes, in ns and ns per byte."""

    offset: float
    slope: float


def middle(runs: Sequence[Sequence[Row]]) -> list[Row]:
    """The middle one of several runs, size by size."""
    return [
        {key: median(one[key] for one in same) for key in same[0]}
        for same in zip(*runs, strict=True)
    ]


def line(rows: Sequence[Row], key: str) -> Line:
    """A straight line through a time over bytes; each size counts by its relative error.

    Examples
    --------
    >>> rows = [{"bytes": size, "half_us": 2.0 + size / 1000} for size in (8, 1000, 8000)]
    >>> found = line(rows, "half_us")
    >>> round(found.offset), round(found.slope, 3)
    (2000, 1.0)
    """
    sizes = np.array([row["bytes"] for row in rows])
    times = np.array([1e3 * row[key] for row in rows])
    slope, offset = np.polyfit(sizes, times, 1, w=1 / times)
    return Line(max(float(offset), 0.0), max(float(slope), 0.0))


def of_messages(
    between: Sequence[Row], inside: Sequence[Row], scheduled: Sequence[Row]
) -> dict[str, float]:
    """Costs that follow from messages in closed form, in us.

    Parameters
    ----------
    between
        Times between ranks of two hosts: a send takes o_s, and more for each byte.
    inside
        Of one host: half a round trip is twice what either end takes, which is the same.
    scheduled
        As `between`, with the library that schedules messages under the program; empty: without.
        What it adds to half a round trip is on both ends alike.
    """
    send, local = line(between, "send_us"), line(inside, "half_us")
    found = {
        "send_overhead": send.offset,
        "local_overhead": local.offset / 2,
        "local_copy_per_byte": local.slope / 2,
        "socket_latency": 0.0,
        "cross_latency": 0.0,
    }
    if scheduled:
        pairs = zip(scheduled, between, strict=True)
        more = median(1e3 * (own["half_us"] - plain["half_us"]) for own, plain in pairs)
        found["schedule_overhead"] = max(more / 2, 0.0)
    return {name: value / 1e3 for name, value in found.items()}


def fit(
    predict: Callable[[Mapping[str, float]], Sequence[float]],
    measured: Sequence[float],
    start: Mapping[str, float],
) -> dict[str, float]:
    """Costs with which predictions are nearest to what was measured, by relative errors.

    Gauss and Newton's method with a step that is halved as long as it makes things worse.

    Parameters
    ----------
    predict
        The predictions with such costs, in us.
    measured
        What they are compared with.
    start
        Where the search begins, in us; the costs that are fitted.

    Examples
    --------
    >>> lines = lambda costs: [costs["a"] + size * costs["b"] for size in (1, 2, 3)]
    >>> found = fit(lines, [5.0, 7.0, 9.0], {"a": 1.0, "b": 1.0})
    >>> [round(value, 3) for value in found.values()]
    [3.0, 2.0]
    """
    names = list(start)

    def errors(values: Floats) -> Floats:
        told = predict(dict(zip(names, map(float, values), strict=True)))
        return np.asarray(np.log(np.array(told) / np.array(measured)), dtype=np.float64)

    scale = np.array([start[name] for name in names])
    values = scale.copy()
    best = errors(values)
    for _ in range(STEPS):
        slopes = []
        for place in range(len(names)):
            moved = values.copy()
            step = 0.1 * moved[place] + 0.02 * scale[place]
            moved[place] += step
            slopes.append((errors(moved) - best) / step)
        move = np.linalg.lstsq(np.array(slopes).T, -best, rcond=None)[0]
        for _ in range(3):
            tried = np.maximum(values + move, LEAST * scale)
            found = errors(tried)
            if float(found @ found) < float(best @ best):
                break
            move = move / 2
        else:
            break
        improved = float(best @ best - found @ found)
        values, best = tried, found
        if improved < 1e-6:
            break
    return dict(zip(names, map(float, values), strict=True))
