"""Plans of `raddle advise`: which is better, and which is no better than another."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from raddle.statistics.rule import TIE_PERCENT
from raddle.statistics.samples import Interval, mean_interval

__all__ = ["WORTH", "Judged", "in_order", "judge"]

WORTH = 0.01
"""A plan that saves less than this more than another is not worth more settings."""

K = TypeVar("K")


@dataclass(frozen=True, slots=True)
class Judged:
    """A plan's time and what it saves of the plain one, over seeds; each seed is paired."""

    times: Interval
    """In seconds."""
    gains: Interval
    per_seed: Sequence[float]
    """What it saves, by seed."""
    settings: int
    """How many settings it changes."""

    @property
    def gain(self) -> float:
        """The mean share of time that it saves."""
        return self.gains.mean

    @property
    def noise(self) -> bool:
        """Whether the gain is at most 3 %, more or less, or its 95 % interval includes 0.

        The same rule as for jobs of a run: what replays leave out is worth more than 3 %.
        """
        return abs(self.gains.mean) <= TIE_PERCENT / 100 or _tie(self.gains)

    def told(self) -> dict[str, Any]:
        """As `summary.json` has it."""
        return {
            "predicted_s": self.times.mean,
            "ci95_s": _ends(self.times),
            "gain_frac": self.gain,
            "gain_ci95": _ends(self.gains),
            "is_noise": self.noise,
        }


def judge(times: Sequence[float], gains: Sequence[float], settings: int) -> Judged:
    """A plan from its times (in seconds) and gains, seed by seed.

    Examples
    --------
    >>> judge([1.0, 1.1], [0.5, 0.5], 1).noise, judge([1.0, 1.1], [-0.1, 0.1], 1).noise
    (False, True)
    >>> judge([1.0, 1.0], [0.02, 0.02], 1).noise
    True
    """
    return Judged(mean_interval(times), mean_interval(gains), gains, settings)


def in_order(plans: Mapping[K, Judged]) -> list[K]:
    """The plans, best first: those that are no worse than the fastest by the number of settings.

    A plan is no worse if the seeds show no difference, or one of less than `WORTH`.

    Examples
    --------
    >>> both, one = judge([1, 1], [0.5, 0.51], 2), judge([1, 1], [0.5, 0.505], 1)
    >>> in_order({"both": both, "one": one, "slow": judge([2, 2], [0.1, 0.1], 1)})
    ['one', 'both', 'slow']
    """
    ranked = sorted(plans, key=lambda key: -plans[key].gain)
    if not ranked:
        return []
    best = plans[ranked[0]]
    level = [key for key in ranked if _level(best, plans[key])]
    level.sort(key=lambda key: plans[key].settings)
    return [*level, *(key for key in ranked if key not in level)]


def _level(best: Judged, other: Judged) -> bool:
    gaps = [a - b for a, b in zip(best.per_seed, other.per_seed, strict=True)]
    gap = mean_interval(gaps)
    return gap.mean < WORTH or _tie(gap)


def _tie(interval: Interval) -> bool:
    if interval.half_width is None:
        return abs(interval.mean) <= TIE_PERCENT / 100
    return abs(interval.mean) <= interval.half_width


def _ends(interval: Interval) -> list[float | None] | None:
    return None if interval.half_width is None else [interval.low, interval.high]
