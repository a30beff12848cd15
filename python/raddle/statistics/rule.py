"""The rule of every comparison: which flows are compared, and which differences are ties.

`raddle run`, `sweep`, `compare` and the report call a difference a tie by this rule only
(docs/reference/results.md#verdict):

- Over two seeds or more: the 95 % interval of the difference includes zero. The interval is of the
  differences seed by seed where both sides have the seeds, else Welch's.
- Of one seed: the two differ by at most 3 % of the smaller.

Completion times are compared over flows that finished on every side, and no scheme is named best
if fewer than half of the flows did, or if it left more flows unfinished than another.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from raddle.results.columns import codes, floats, integers
from raddle.statistics.samples import Interval, mean_interval, student_t_quantile
from raddle.text import many

__all__ = [
    "LEAST_SHARE",
    "TIE_PERCENT",
    "Difference",
    "PerSeed",
    "common_flows",
    "difference",
    "leaders",
    "tie_words",
]

TIE_PERCENT = 3.0
"""Figures of one seed that differ by at most this much of the smaller are a tie."""
LEAST_SHARE = 0.5
"""Share of the flows that must have finished under all schemes for one to be named best."""

PerSeed = Mapping[str, float]
"""A figure of each seed, by the seed's number in words (as in JSON)."""
Mask = NDArray[np.bool_]
Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Difference:
    """The second figure minus the first; `half_width` of its 95 % interval, None of one seed."""

    mean: float
    half_width: float | None
    seeds: int
    how: Literal["paired", "unpaired", "one seed"]
    percent: float
    """Size of the difference in % of the smaller figure; infinite if that is zero."""

    @property
    def tie(self) -> bool:
        """Whether the rule calls it a tie."""
        if self.half_width is None:
            return self.percent <= TIE_PERCENT * (1 + 1e-9)  # 2.06 over 2.00 is 3 %
        return abs(self.mean) <= self.half_width

    @property
    def words(self) -> str:
        """The difference with its interval."""
        if self.half_width is None:
            return f"{self.percent:.1f} %"
        return f"{abs(self.mean):.2f} ± {self.half_width:.2f} ({self.how}, 95 %)"


def difference(a: PerSeed, b: PerSeed) -> Difference:
    """How far `b` lies from `a`, each with a value or more.

    Examples
    --------
    >>> difference({"1": 2.0}, {"1": 2.05}).tie, difference({"1": 2.0}, {"1": 2.1}).tie
    (True, False)
    >>> difference({"1": 2.0, "2": 3.0}, {"1": 2.1, "2": 3.1}).tie  # every seed by as much
    False
    >>> difference({"1": 2.0, "2": 3.0}, {"3": 2.1, "4": 3.1}).how
    'unpaired'
    """
    shared = sorted(set(a) & set(b))
    first, second = mean_interval(a.values()), mean_interval(b.values())
    if len(shared) >= 2:
        first = mean_interval(a[s] for s in shared)
        second = mean_interval(b[s] for s in shared)
        gap = mean_interval(b[s] - a[s] for s in shared)
        how: Literal["paired", "unpaired"] = "paired"
    elif len(a) >= 2 and len(b) >= 2:
        gap, how = _welch(first, second), "unpaired"
    else:
        gap = Interval(second.mean - first.mean, None, 1)
        return Difference(gap.mean, None, 1, "one seed", _percent(first.mean, second.mean))
    return Difference(gap.mean, gap.half_width, gap.n, how, _percent(first.mean, second.mean))


def leaders(figures: Mapping[str, PerSeed], *, lower_is_better: bool = True) -> tuple[str, ...]:
    """The one with the best mean and all that tie with it, best first.

    Examples
    --------
    >>> leaders({"a": {"1": 5.0}, "b": {"1": 2.0}, "c": {"1": 2.02}})
    ('b', 'c')
    """
    sign = 1 if lower_is_better else -1
    ranked = sorted(figures, key=lambda name: sign * mean_interval(figures[name].values()).mean)
    return tuple(n for n in ranked if difference(figures[ranked[0]], figures[n]).tie)


def tie_words(seeds: int) -> str:
    """What is a tie over so many seeds."""
    if seeds < 2:
        return f"one seed: differences of up to {TIE_PERCENT:g} % are ties"
    return f"{many(seeds, 'seed')}: differences whose 95 % interval includes zero are ties"


def common_flows(tables: Sequence[pa.Table]) -> tuple[list[Mask], int]:
    """Which rows of each table are flows that finished in all of the tables.

    The same flow is the k-th of equal class, source, destination and size: in closed loops start
    times differ between runs.

    Returns
    -------
    tuple
        A mask for each table, and the number of different flows in all tables together.
    """
    names = sorted({name for table in tables for name in codes(table, "class")[1]})
    sorted_ones = [_keys(table, names) for table in tables]
    finished = [
        ~np.isnan(floats(table, "fct_ps")[order])
        for table, (order, _) in zip(tables, sorted_ones, strict=True)
    ]
    first = sorted_ones[0][1]
    if all(np.array_equal(first, keys) for _, keys in sorted_ones):
        in_all = np.logical_and.reduce(finished)
        common, flows = [in_all] * len(tables), in_all.size
    else:
        ids, flows = _numbered([keys for _, keys in sorted_ones])
        counts = np.zeros(flows, dtype=np.int64)
        for own, done in zip(ids, finished, strict=True):
            counts[own] += done
        common = [(counts == len(tables))[own] for own in ids]
    masks = []
    for (order, _), mask in zip(sorted_ones, common, strict=True):
        back = np.zeros(order.size, dtype=np.bool_)
        back[order] = mask
        masks.append(back)
    return masks, flows


def _welch(a: Interval, b: Interval) -> Interval:
    """The difference of two means whose samples have nothing to do with each other."""
    squares = []
    for one in (a, b):
        t = student_t_quantile(0.975, one.n - 1)
        squares.append(((one.half_width or 0.0) / t) ** 2)
    total = sum(squares)
    parts = sum(s**2 / (one.n - 1) for s, one in zip(squares, (a, b), strict=True))
    freedom = max(1, math.floor(total**2 / parts)) if parts > 0 else a.n + b.n - 2
    half = student_t_quantile(0.975, freedom) * math.sqrt(total)
    return Interval(b.mean - a.mean, half, min(a.n, b.n))


def _percent(a: float, b: float) -> float:
    if a == b:
        return 0.0
    smaller = min(abs(a), abs(b))
    return 100 * abs(b - a) / smaller if smaller > 0 else math.inf


def _keys(flows: pa.Table, names: Sequence[str]) -> tuple[Rows, Rows]:
    """The order in which flows of any run can be set side by side, and what names each of them."""
    indices, values = codes(flows, "class")
    number = np.asarray([names.index(value) for value in values], dtype=np.int64)
    columns = [number[indices] if indices.size else indices]
    columns += [integers(flows, name) for name in ("src", "dst", "size_bytes")]
    order = np.lexsort((integers(flows, "sport"), integers(flows, "start_ps"), *reversed(columns)))
    keys = np.stack([column[order] for column in columns], axis=1)
    place = np.arange(order.size)
    begins = np.ones(order.size, dtype=np.bool_)
    begins[1:] = (keys[1:] != keys[:-1]).any(axis=1)
    rank = place - np.maximum.accumulate(np.where(begins, place, 0))
    return order, np.column_stack([keys, rank])


def _numbered(keys: Sequence[Rows]) -> tuple[list[Rows], int]:
    """A number for each different key, the same in all lists; and how many there are."""
    joined = np.concatenate(keys)
    order = np.lexsort(joined.T[::-1])
    ordered = joined[order]
    begins = np.ones(order.size, dtype=np.bool_)
    begins[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    ids = np.empty(order.size, dtype=np.int64)
    ids[order] = np.cumsum(begins) - 1
    ends = np.cumsum([len(part) for part in keys])[:-1]
    return np.split(ids, ends), int(begins.sum())
