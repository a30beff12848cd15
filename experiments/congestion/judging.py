"""How sentences of Sun et al. are judged: each is a list of inequalities over seeds."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from raddle.results.reproduction import Kind, Row, Table, finding
from raddle.statistics.samples import Interval, mean_interval

__all__ = [
    "CLOSE",
    "Sentence",
    "Values",
    "counts_table",
    "high",
    "judge",
    "low",
    "over",
    "row_of",
    "values_table",
]

CLOSE = 1.1
"""Figures within 10 % of each other count as close."""

Seeds = NDArray[np.float64]
Values = Mapping[str, Seeds]
"""A figure of each scheme, seed by seed."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """What the paper says, what we measured of it, and by how much it holds."""

    key: str
    item: str
    paper: str
    measure: str
    """What the values are, with their unit."""
    values: Values
    margins: Mapping[str, Seeds]
    """By what is compared: each is above 0 where the sentence holds."""
    digits: int = 2

    @property
    def deciding(self) -> tuple[str, Interval]:
        """The inequality that holds least."""
        found = {name: mean_interval(seeds) for name, seeds in self.margins.items()}
        return min(found.items(), key=lambda one: low(one[1]))


def low(interval: Interval) -> float:
    """Lower end; of one seed, which has no interval, the figure itself."""
    return interval.mean if interval.low is None else interval.low


def high(interval: Interval) -> float:
    """Upper end."""
    return interval.mean if interval.high is None else interval.high


def judge(sentence: Sentence) -> bool | None:
    """Whether it holds: every 95 % interval above 0; not: one at or below 0; else None."""
    found = [mean_interval(seeds) for seeds in sentence.margins.values()]
    if all(low(interval) > 0 for interval in found):
        return True
    return False if any(high(interval) <= 0 for interval in found) else None


def over(values: Values, better: Sequence[str], rest: Iterable[str]) -> dict[str, Seeds]:
    """By how much `rest` lies above each of `better`."""
    return {f"{b} below {r}": values[r] - values[b] for r in rest for b in better}


def row_of(sentence: Sentence, setting: str, *, kind: Kind = "predicted") -> Row:
    """The row of a sentence: `ours` is the margin of the inequality that holds least."""
    name, interval = sentence.deciding
    means = "; ".join(
        f"{scheme} {seeds.mean():.{sentence.digits}f}" for scheme, seeds in sentence.values.items()
    )
    seeds = f"{interval.n} seeds" if interval.n > 1 else "one seed, no interval"
    ends = (low(interval), high(interval)) if interval.n > 1 else None
    return finding(
        item=sentence.item,
        setting=f"{sentence.key}, {setting}",
        statement=sentence.paper,
        holds=judge(sentence),
        kind=kind,
        ours=interval.mean,
        unit="margin",
        ci=ends,
        note=f"{name}; {sentence.measure}: {means}; {seeds}",
    )


WORDS = {True: "holds", False: "misses", None: "not shown"}


def values_table(columns: Mapping[str, Sequence[Sentence]], schemes: Sequence[str]) -> Table:
    """A line per sentence and run: the figures of all schemes, the least margin, the verdict."""
    lines = []
    for found in zip(*columns.values(), strict=True):
        for index, (name, one) in enumerate(zip(columns, found, strict=True)):
            head = f"**{one.key}** {one.paper}: {one.measure}" if index == 0 else ""
            what, margin = one.deciding
            digits = max(one.digits, 2)
            width = "" if margin.half_width is None else f" ± {margin.half_width:.{digits}f}"
            cells = [
                f"{one.values[s].mean():.{one.digits}f}" if s in one.values else "" for s in schemes
            ]
            margins = f"{margin.mean:.{digits}f}{width}"
            lines.append((head, name, *cells, what, margins, WORDS[judge(one)]))
    columns_ = ("sentence", "run", *schemes, "least margin", "by", "verdict")
    return Table(columns_, lines)


def counts_table(columns: Mapping[str, Sequence[Sentence]]) -> Table:
    """Which sentences hold in which run."""
    first = next(iter(columns.values()))
    lines = []
    for name, found in columns.items():
        verdicts = [judge(one) for one in found]
        marks = [WORDS[verdict] for verdict in verdicts]
        lines.append((name, *marks, sum(verdict is True for verdict in verdicts)))
    return Table(("run", *(one.key for one in first), "hold"), lines)
