"""Statistics of results: percentiles, slowdown, fairness, intervals over seeds.

Times are µs as floats, sizes are bytes. Nothing here reads a file. Flows have their own module,
`raddle.statistics.flows`, and so have pauses, `raddle.statistics.pauses`.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from raddle.results.columns import Floats, floats

__all__ = [
    "PERCENTILES",
    "SIZE_EDGES_BYTES",
    "Interval",
    "SizeBin",
    "Spread",
    "jain",
    "jain_of",
    "mean_interval",
    "slowdown",
    "spread",
    "student_t_quantile",
]

PERCENTILES = (("p50", 50.0), ("p95", 95.0), ("p99", 99.0), ("p99_9", 99.9))
PS_PER_US = 1e6


@dataclass(frozen=True, slots=True)
class Interval:
    """A mean over seeds with its 95 % interval (Student t); no interval below two seeds."""

    mean: float
    half_width: float | None
    n: int

    @property
    def low(self) -> float | None:
        """Lower end of the interval."""
        return None if self.half_width is None else self.mean - self.half_width

    @property
    def high(self) -> float | None:
        """Upper end of the interval."""
        return None if self.half_width is None else self.mean + self.half_width


@dataclass(frozen=True, slots=True)
class Spread:
    """Percentiles of a sample: linear interpolation between order statistics, as numpy does.

    `n` counts all observations and `unfinished` those without a value, which the percentiles
    cannot see.
    """

    n: int
    unfinished: int
    mean: float | None
    p50: float | None
    p95: float | None
    p99: float | None
    p99_9: float | None


@dataclass(frozen=True, slots=True)
class SizeBin:
    """Slowdown (FCT over the FCT on an idle fabric) of flows with low <= size < high bytes."""

    low_bytes: int
    high_bytes: int
    slowdown: Spread

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "SizeBin":
        """The bin that a row of `summary.json` says."""
        of_spread = {name: row[name] for name in Spread.__slots__}
        return cls(row["low_bytes"], row["high_bytes"], Spread(**of_spread))


def spread(values: ArrayLike) -> Spread:
    """Mean and percentiles of `values`; NaN stands for a flow that did not finish.

    Examples
    --------
    >>> spread([1.0, 2.0, 3.0, float("nan")]).p50
    2.0
    >>> spread([1.0, float("nan")]).unfinished
    1
    """
    sample = np.asarray(values, dtype=np.float64)
    finished = sample[~np.isnan(sample)]
    if finished.size == 0:
        return Spread(sample.size, sample.size, None, None, None, None, None)
    points = np.percentile(finished, [p for _, p in PERCENTILES])
    return Spread(
        sample.size,
        sample.size - finished.size,
        float(finished.mean()),
        *(float(p) for p in points),
    )


def jain(values: ArrayLike) -> float | None:
    """Jain's fairness index (Σx)² / (n Σx²): 1 if all are equal, 1/n if one has everything.

    Examples
    --------
    >>> jain([5, 5, 5])
    1.0
    >>> jain([1, 0, 0, 0])
    0.25
    """
    x = np.asarray(values, dtype=np.float64)
    return jain_of(float(x.sum()), float(np.square(x).sum()), x.size)


def jain_of(total: float, squares: float, n: int) -> float | None:
    """Jain's index of n values by their sum and the sum of their squares."""
    return total**2 / (n * squares) if n and squares else None


def mean_interval(values: Iterable[float], level: float = 0.95) -> Interval:
    """Mean of one figure over seeds and the half width of its `level` interval.

    Examples
    --------
    >>> mean_interval([3.0])
    Interval(mean=3.0, half_width=None, n=1)
    >>> round(mean_interval([1.0, 2.0, 3.0]).half_width, 4)
    2.4841
    """
    x = np.asarray(list(values), dtype=np.float64)
    if x.size == 0:
        msg = "a mean needs at least one value"
        raise ValueError(msg)
    if x.size == 1:
        return Interval(float(x[0]), None, 1)
    t = student_t_quantile(0.5 + level / 2, x.size - 1)
    return Interval(float(x.mean()), t * float(x.std(ddof=1)) / math.sqrt(x.size), x.size)


def student_t_quantile(probability: float, degrees: int) -> float:
    """The t with P(T <= t) = `probability` (above one half) for `degrees` >= 1 of freedom.

    Bisection on the finite series for whole degrees of freedom [Abramowitz & Stegun, 26.7.3 and
    26.7.4]: exact to rounding, and spares every user the 100 MB of scipy.
    """
    if not 0.5 < probability < 1 or degrees < 1:
        msg = f"no t quantile for probability {probability} and {degrees} degrees of freedom"
        raise ValueError(msg)
    low, high = 0.0, 1.0
    while _student_t_cdf(high, degrees) < probability:
        high *= 2
    for _ in range(80):
        middle = (low + high) / 2
        if _student_t_cdf(middle, degrees) < probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _student_t_cdf(t: float, degrees: int) -> float:
    theta = math.atan(t / math.sqrt(degrees))
    cos_squared = math.cos(theta) ** 2
    odd = degrees % 2 == 1
    term, total = 1.0, 0.0
    for k in range((degrees - 1) // 2 if odd else degrees // 2):
        if k:
            term *= cos_squared * ((2 * k) / (2 * k + 1) if odd else (2 * k - 1) / (2 * k))
        total += term
    if odd:
        inside = 2 / math.pi * (theta + math.sin(theta) * math.cos(theta) * total)
    else:
        inside = math.sin(theta) * total
    return 0.5 + inside / 2


def slowdown(flows: pa.Table) -> Floats:
    """FCT over the ideal FCT per flow; NaN where unfinished or no ideal is known."""
    ideal = floats(flows, "ideal_fct_ps")
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(ideal > 0, floats(flows, "fct_ps") / ideal, np.nan)


SIZE_EDGES_BYTES: tuple[int, ...] = (
    0,
    *(digit * 10**power for power in range(2, 12) for digit in (1, 3)),
)
"""Where bins of sizes begin."""
