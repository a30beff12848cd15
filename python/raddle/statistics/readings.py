"""All readings of the score side by side: does it matter which one is taken?

The paper leaves open whether a part of the score is a mean of ratios or a ratio of means, and has
lost its formula for W. `[score]` takes one of the eight readings; here stands who leads by each of
them, and what is said where they disagree.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

from raddle.statistics.comparable import Scores
from raddle.statistics.rule import PerSeed
from raddle.statistics.samples import mean_interval
from raddle.statistics.score import Reading, Rules, VarianceMode
from raddle.text import join_words, many, spelled

__all__ = ["READING_WORDS", "Read", "all_readings", "apart", "disagreement", "tie_within"]

READING_WORDS: Mapping[str, str] = {
    "per-flow": "ratios per flow",
    "ratio-of-means": "ratios of means",
}
MOST_NAMED = 3
"""More readings than that which say the same are counted, not named."""


@dataclass(frozen=True, slots=True)
class Read:
    """Who leads by one reading of the score at one weighting; `leaders` as the verdict's."""

    reading: Reading
    variance: VarianceMode
    weights: str
    means: Mapping[str, float]
    leaders: tuple[str, ...]

    @property
    def words(self) -> str:
        """The reading's name in a sentence."""
        term = "without W" if self.variance == "none" else f"with W = {self.variance}"
        return f"{READING_WORDS[self.reading]} {term}"

    @property
    def apart_percent(self) -> float | None:
        """By how much the leaders' S differ; None where one leads alone, or none."""
        return apart(self.means, self.leaders)

    def as_json(self) -> dict[str, Any]:
        """The reading in `summary.json`."""
        return {
            "reading": self.reading,
            "variance": self.variance,
            "weights": self.weights,
            "leaders": list(self.leaders),
            "apart_percent": self.apart_percent,
            "means": dict(self.means),
        }


def all_readings(
    scores: Scores,
    rules: Rules,
    leaders: Callable[[Mapping[str, PerSeed]], tuple[str, ...]],
) -> list[Read]:
    """Read the scores in all eight ways at all weightings of `rules`.

    Parameters
    ----------
    scores
        Over the flows that are compared.
    leaders
        The rule that says who leads by figures of each scheme and seed.
    """
    found = []
    for reading in get_args(Reading):
        for variance in get_args(VarianceMode):
            for name, weights in rules.weights.items():
                totals = {
                    scheme: {
                        str(seed): one.total(weights, reading=reading, mode=variance)
                        for seed, one in seeds.items()
                    }
                    for scheme, seeds in scores.items()
                }
                means = {s: mean_interval(own.values()).mean for s, own in totals.items()}
                found.append(Read(reading, variance, name, means, leaders(totals)))
    return found


def apart(means: Mapping[str, float], leaders: Sequence[str]) -> float | None:
    """By how many percent the largest figure of the leaders exceeds the least; None of one."""
    values = [means[name] for name in leaders]
    if len(values) < 2 or min(values) <= 0:
        return None
    return 100 * (max(values) / min(values) - 1)


def tie_within(percent: float | None) -> str:
    """A tie in words; rounded up, so that all of them are within it.

    Examples
    --------
    >>> tie_within(1.234), tie_within(0.0), tie_within(None)
    ('a tie within 1.3 %', 'a tie within 0 %', 'a tie')
    """
    if percent is None:
        return "a tie"
    # What only rounding of binary fractions adds is no tenth of a percent.
    tenths = math.ceil(10 * percent - 1e-6)
    return f"a tie within {tenths // 10 if tenths % 10 == 0 else tenths / 10} %"


def disagreement(
    readings: Sequence[Read], weights: str, best: Sequence[str], label: Callable[[str], str]
) -> str:
    """What is said where readings at these weights name others than `best`; empty if none does."""
    own = [one for one in readings if one.weights == weights]
    groups: dict[frozenset[str], list[Read]] = {frozenset(best): []}
    for one in own:
        groups.setdefault(frozenset(one.leaders), []).append(one)
    if len(groups) == 1:
        return ""
    phrases = [_group(group, label) for group in groups.values() if group]
    return f"The {spelled(len(own))} readings of the score disagree: {'; '.join(phrases)}."


def _group(group: Sequence[Read], label: Callable[[str], str]) -> str:
    first = group[0]
    names = join_words(label(scheme) for scheme in first.leaders)
    if not names:
        doing = "none is named best"
    elif len(first.leaders) == 1:
        doing = f"{names} leads"
    else:
        widest = max((one.apart_percent or 0.0) for one in group)
        doing = f"{names} are {tie_within(widest)}"
    if len(group) > MOST_NAMED:
        return f"{doing} by {many(len(group), 'reading')}"
    return f"{doing} by {join_words(one.words for one in group)}"
