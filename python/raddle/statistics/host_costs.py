"""Costs of hosts from what was measured: straight lines through times over bytes, and a fit."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np

from raddle.results.columns import Floats

__all__ = ["PLACES", "Line", "Measured", "Row", "fit", "line", "middle", "of_messages"]

PLACES = ("between", "inside")
"""Where messages are measured: between ranks of two hosts, and of one."""
STEPS = 6
LEAST_US = 0.01
"""Fitted costs are not shorter."""

Row = dict[str, float]
"""Times of one size: bytes, and send_us and half_us (of messages), or walk_us, call_us and loop_us
(of sums)."""


@dataclass(frozen=True, slots=True)
class Line:
    """A time over bytes, in ns and ns per byte."""

    offset: float
    slope: float


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured in a lab.

    Attributes
    ----------
    messages
        By place of `PLACES`: times of messages between ranks.
    scheduled
        As "between", with the library that schedules messages under the program; empty: without.
    sums
        By hosts and processors: sums by messages, one rank on each host.
    offloaded
        The same in switches; empty: switches do not compute here.
    """

    messages: Mapping[str, Sequence[Row]]
    scheduled: Sequence[Row]
    sums: Mapping[tuple[int, int], Row]
    offloaded: Mapping[tuple[int, int], Row]

    def as_json(self) -> dict[str, Any]:
        """All rows, by what was measured."""
        found: dict[str, Any] = {
            f"messages {key}": list(rows) for key, rows in self.messages.items()
        }
        if self.scheduled:
            found["messages between, scheduled"] = list(self.scheduled)
        for name, sums in (("sums", self.sums), ("sums in switches", self.offloaded)):
            if sums:
                found[name] = [
                    {"hosts": hosts, "processors": processors, **row}
                    for (hosts, processors), row in sums.items()
                ]
        return found


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


def middle(runs: Sequence[Sequence[Row]]) -> list[Row]:
    """The middle one of several runs, size by size."""
    return [
        {key: median(one[key] for one in same) for key in same[0]}
        for same in zip(*runs, strict=True)
    ]


def of_messages(measured: Measured, wire_ns_per_byte: float) -> dict[str, float]:
    """Costs that follow from messages in closed form, in us.

    A send takes o_s + c b, half a round trip o + 2 c b and a byte's time on the wire; inside a host
    it is twice what either end takes, which is the same. What scheduling adds to half a round trip
    is on both ends alike.
    """
    between, inside = (measured.messages[place] for place in PLACES)
    send, half, local = line(between, "send_us"), line(between, "half_us"), line(inside, "half_us")
    found = {
        "send_overhead": send.offset,
        "copy_per_byte": max((half.slope - wire_ns_per_byte) / 2, 0.0),
        "local_overhead": local.offset / 2,
        "local_copy_per_byte": local.slope / 2,
        "socket_latency": 0.0,
        "cross_latency": 0.0,
    }
    if measured.scheduled:
        pairs = zip(measured.scheduled, between, strict=True)
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

    values = np.array([max(start[name], LEAST_US) for name in names])
    best = errors(values)
    for _ in range(STEPS):
        slopes = []
        for place in range(len(names)):
            moved = values.copy()
            step = 0.1 * moved[place] + 0.1
            moved[place] += step
            slopes.append((errors(moved) - best) / step)
        move = np.linalg.lstsq(np.array(slopes).T, -best, rcond=None)[0]
        for _ in range(3):
            tried = np.maximum(values + move, LEAST_US)
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
