"""Comparisons of times: pairs measured in turns, their ratios, and what may be said of them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from scipy import stats

FEWEST_PAIRS = 20
WIDEST = 0.10
"""Widest interval of a ratio that counts as measured, as a share of its median."""

CONFIDENCE = 0.95
RESAMPLES = 9_999


class Verdict(StrEnum):
    """What a comparison says."""

    HOLDS = "holds"
    MISSED = "MISSED"
    SHOWN = "shown"
    """There is no limit."""
    NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class Comparison:
    """Ratios before / after of pairs, their median with its interval, beside the least allowed."""

    what: str
    at_least: float | None
    pairs: int
    median: float
    low: float
    high: float
    verdict: Verdict

    def as_json(self) -> dict[str, Any]:
        """The comparison as JSON; what is not known is null."""
        known = {
            key: None if math.isnan(value) else round(value, 4)
            for key, value in (("median", self.median), ("low", self.low), ("high", self.high))
        }
        return {
            "what": self.what,
            "at_least": self.at_least,
            "pairs": self.pairs,
            **known,
            "verdict": self.verdict.value,
        }

    def line(self) -> str:
        """The comparison as a line."""
        if math.isnan(self.median):
            measured = "–"
        else:
            measured = f"{self.median:.3f} [{self.low:.3f}, {self.high:.3f}]"
        least = "–" if self.at_least is None else f"{self.at_least:.2f}"
        return f"{self.what:<44}{least:>7}  {measured:<24}{self.verdict}"

    @property
    def fails(self) -> bool:
        """Whether there is a limit that was not seen to hold."""
        return self.at_least is not None and self.verdict is not Verdict.HOLDS


def compare(what: str, at_least: float | None, ratios: Sequence[float]) -> Comparison:
    """Judge the ratios of pairs: at least `FEWEST_PAIRS`, median inside the limit, interval narrow.

    The interval is a bootstrap one of the median (percentile method, fixed seed).
    """
    if len(ratios) < 2:
        nothing = math.nan
        return Comparison(
            what, at_least, len(ratios), nothing, nothing, nothing, Verdict.NOT_MEASURED
        )
    found = stats.bootstrap(
        (np.asarray(ratios),),
        np.median,
        confidence_level=CONFIDENCE,
        n_resamples=RESAMPLES,
        method="percentile",
        rng=np.random.default_rng(1),
    ).confidence_interval
    median, low, high = float(np.median(ratios)), float(found.low), float(found.high)
    if len(ratios) < FEWEST_PAIRS or high - low >= WIDEST * median:
        verdict = Verdict.NOT_MEASURED
    elif at_least is None:
        verdict = Verdict.SHOWN
    else:
        verdict = Verdict.HOLDS if median >= at_least else Verdict.MISSED
    return Comparison(what, at_least, len(ratios), median, low, high, verdict)
