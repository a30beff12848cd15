"""The spread of values that come in parts, in memory that does not grow with their number."""

from dataclasses import dataclass, field

import numpy as np

from raddle.results.columns import Floats, Integers
from raddle.statistics.samples import PERCENTILES, Spread, spread

__all__ = ["MOST_EXACT", "Distribution"]

MOST_EXACT = 1 << 20
"""Values up to which percentiles are exact; beyond, they are within `WIDTH` of a value's size."""
WIDTH = 5e-4
"""Width of a bin over its values."""
LEAST, LARGEST = 1e-9, 1e15
"""What lies outside is counted with these."""
BINS = int(np.ceil(np.log(LARGEST / LEAST) / WIDTH)) + 1


@dataclass
class Distribution:
    """Values are added in parts; NaN stands for a flow that did not finish.

    Counts, sums and extremes are exact. So are percentiles of up to `MOST_EXACT` values; those of
    more are taken from a histogram of bins that are 0.05 % wide.
    """

    n: int = 0
    finished: int = 0
    _parts: list[Floats] = field(default_factory=list)
    _bins: Integers | None = None
    _sum: float = 0.0
    _least: float = np.inf
    _largest: float = -np.inf

    def add(self, values: Floats) -> None:
        """Add values; the array is kept, and must not change."""
        done = values[~np.isnan(values)]
        self.n += values.size
        self.finished += done.size
        if not done.size:
            return
        self._parts.append(done)
        if self._bins is not None or self.finished > MOST_EXACT:
            self._count()

    def merge(self, other: "Distribution") -> None:
        """Add all values of another one."""
        self.n += other.n
        self.finished += other.finished
        self._parts += other._parts
        if self._bins is not None or other._bins is not None or self.finished > MOST_EXACT:
            self._count()
        if other._bins is not None:
            assert self._bins is not None
            self._bins += other._bins
            self._sum += other._sum
            self._least = min(self._least, other._least)
            self._largest = max(self._largest, other._largest)

    def spread(self) -> Spread:
        """Mean and percentiles of what was added."""
        if self._bins is None:
            found = spread(np.concatenate(self._parts) if self._parts else np.zeros(0))
            return Spread(
                self.n,
                self.n - self.finished,
                *(found.mean, found.p50, found.p95, found.p99, found.p99_9),
            )
        points = (self._percentile(p) for _, p in PERCENTILES)
        return Spread(self.n, self.n - self.finished, self._sum / self.finished, *points)

    def _count(self) -> None:
        """Move the values that are kept into bins."""
        if self._bins is None:
            self._bins = np.zeros(BINS, dtype=np.int64)
        for part in self._parts:
            place = np.log(np.clip(part, LEAST, LARGEST) / LEAST) / WIDTH
            self._bins += np.bincount(place.astype(np.int64), minlength=BINS)
            self._sum += float(part.sum())
            self._least = min(self._least, float(part.min()))
            self._largest = max(self._largest, float(part.max()))
        self._parts = []

    def _percentile(self, percent: float) -> float:
        """Between order statistics as numpy does it; each is the middle of its bin."""
        assert self._bins is not None
        upto: Integers = np.cumsum(self._bins)
        rank = percent / 100 * (self.finished - 1)
        below = int(rank)
        bins = np.searchsorted(upto, [below, min(below + 1, self.finished - 1)], side="right")
        low, high = np.clip(
            LEAST * np.exp((bins + 0.5) * WIDTH), self._least, self._largest
        ).tolist()
        return float(low + (high - low) * (rank - below))
