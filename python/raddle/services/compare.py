"""Two results folders side by side: what their experiments differ in, and which figures differ."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from raddle.results.differences import Difference, folder_differences
from raddle.results.faults import refuse_changed
from raddle.results.folder import Results, load
from raddle.statistics.figures import label_of_figure, of_finished, per_seed
from raddle.statistics.rule import PerSeed, difference
from raddle.statistics.samples import mean_interval
from raddle.statistics.summary import summary_of
from raddle.statistics.verdict import Verdict, verdict_of

__all__ = ["Comparison", "Row", "Unfinished", "compare_folders"]

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Row:
    """One figure of one scheme in both folders, of each seed; empty where there is none.

    `comparable` is false where the figure is of flows that finished and some did not.
    """

    scheme: str
    figure: str
    in_a: PerSeed
    in_b: PerSeed
    comparable: bool

    @property
    def a(self) -> float | None:
        """The mean in A."""
        return mean_interval(self.in_a.values()).mean if self.in_a else None

    @property
    def b(self) -> float | None:
        """The mean in B."""
        return mean_interval(self.in_b.values()).mean if self.in_b else None

    @property
    def same(self) -> bool:
        """Whether it is the same for every seed."""
        return self.in_a == self.in_b

    @property
    def change_percent(self) -> float | None:
        """B against A in %, None if one is missing or A is 0 and B is not."""
        if self.a is None or self.b is None:
            return None
        if self.a == self.b:
            return 0.0
        return None if self.a == 0 else (self.b / self.a - 1) * 100

    @property
    def tie(self) -> bool | None:
        """Whether the rule of comparisons calls it a tie; None if it cannot be compared."""
        if not self.in_a or not self.in_b or not self.comparable:
            return None
        return difference(self.in_a, self.in_b).tie

    def exceeds(self, tolerance_percent: float) -> bool:
        """Whether the two differ by more than that; a missing figure always does."""
        if self.same:
            return False
        change = self.change_percent
        return change is None or abs(change) > tolerance_percent

    def as_json(self) -> Json:
        """The row as JSON."""
        return {
            "scheme": self.scheme,
            "figure": self.figure,
            "label": label_of_figure(self.figure),
            "a": self.a,
            "b": self.b,
            "change_percent": self.change_percent,
            "same": self.same,
            "tie": self.tie,
            "comparable": self.comparable,
        }


@dataclass(frozen=True, slots=True)
class Unfinished:
    """Flows of a scheme that did not finish, of how many, in both folders."""

    scheme: str
    a: int
    of_a: int
    b: int
    of_b: int

    def as_json(self) -> Json:
        """It as JSON."""
        return {
            "scheme": self.scheme, "a": self.a, "flows_a": self.of_a,
            "b": self.b, "flows_b": self.of_b,
        }  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    """Two folders; figures are means over `seeds`, those that both have, where there are any."""

    a: Results
    b: Results
    differences: tuple[Difference, ...]
    seeds: tuple[int, ...]
    schemes: tuple[str, ...]
    unfinished: tuple[Unfinished, ...]
    rows: tuple[Row, ...]
    verdicts: tuple[Verdict, Verdict]

    @cached_property
    def differing(self) -> tuple[Row, ...]:
        """Rows that are in both folders and not the same."""
        return tuple(r for r in self.rows if not r.same and r.in_a and r.in_b)

    @cached_property
    def same(self) -> int:
        """Rows that are the same in both folders."""
        return sum(r.same for r in self.rows)

    def only_in(self, side: str) -> dict[tuple[str, ...], list[str]]:
        """Figures that one folder alone has of schemes that both have, and of which schemes."""
        found: dict[str, list[str]] = {}
        for row in self.rows:
            here, there = (row.in_a, row.in_b) if side == "A" else (row.in_b, row.in_a)
            if here and not there and row.scheme in self.schemes:
                found.setdefault(row.scheme, []).append(row.figure)
        together: dict[tuple[str, ...], list[str]] = {}
        for scheme, figures in found.items():
            together.setdefault(tuple(figures), []).append(scheme)
        return together


def compare_folders(a: Path, b: Path) -> Comparison:
    """Set every figure that at least one of the folders has side by side, by scheme.

    Raises
    ------
    ResultsError
        One of them is not a results folder, or a file cannot be read.
    """
    first, second = load(a), load(b)
    for one in (first, second):
        if not one.summary:
            refuse_changed(one)  # the figures will be computed from the tables
    summaries = [summary_of(one) for one in (first, second)]
    left, right = (one["schemes"] for one in summaries)
    seeds = tuple(sorted(set(first.seeds) & set(second.seeds)))
    rows: list[Row] = []
    unfinished: list[Unfinished] = []
    for scheme in dict.fromkeys([*left, *right]):
        lost = _unfinished(scheme, left.get(scheme, {}), right.get(scheme, {}), seeds)
        if lost.a or lost.b:
            unfinished.append(lost)
        in_a, in_b = (per_seed(side.get(scheme, {})) for side in (left, right))
        for figure in dict.fromkeys([*in_a, *in_b]):
            whole = not (of_finished(figure) and (lost.a or lost.b))
            mine, other = in_a.get(figure, {}), in_b.get(figure, {})
            rows.append(Row(scheme, figure, *_shared(mine, other), comparable=whole))
    return Comparison(
        a=first,
        b=second,
        differences=tuple(folder_differences(first, second)),
        seeds=seeds,
        schemes=tuple(s for s in left if s in right),
        unfinished=tuple(unfinished),
        rows=tuple(rows),
        verdicts=(verdict_of(summaries[0]), verdict_of(summaries[1])),
    )


def _shared(a: PerSeed, b: PerSeed) -> tuple[PerSeed, PerSeed]:
    """Both over the seeds that both have; as they are if there are none."""
    shared = [seed for seed in a if seed in b]
    if not shared:
        return a, b
    return {s: a[s] for s in shared}, {s: b[s] for s in shared}


def _unfinished(scheme: str, a: Json, b: Json, seeds: tuple[int, ...]) -> Unfinished:
    counts = []
    for row in (a, b):
        runs = row.get("per_seed") or {}
        kept = [run for seed, run in runs.items() if not seeds or int(seed) in seeds]
        flows = sum(run["flows"] for run in kept)
        counts += [flows - sum(run["finished"] for run in kept), flows]
    return Unfinished(scheme, *counts)
