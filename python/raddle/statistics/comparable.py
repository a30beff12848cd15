"""What schemes are compared by: the same seeds, and the flows that finished under all of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import pyarrow as pa

from raddle.results.columns import codes, floats, select, take
from raddle.results.flows import Run, is_tested
from raddle.results.folder import Results
from raddle.statistics import score as scoring
from raddle.statistics.rule import LEAST_SHARE, PerSeed, common_flows, difference
from raddle.statistics.samples import slowdown, spread
from raddle.statistics.score import Role, Score

__all__ = ["Comparison", "Scores", "compare_schemes"]

Scores = Mapping[str, Mapping[int, Score]]
"""The score of each scheme and seed."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The figures of all schemes over one set of flows.

    Attributes
    ----------
    figure
        What is compared: the score S, or the p99 of the slowdown.
    schemes, left_out
        Schemes that are compared, and those whose runs are not all done.
    seeds
        Seeds that all of them have.
    judged, finished
        Flows of all seeds that started under any scheme, and those of them that finished under
        every one: tested flows (under load and alone) where there is a score, else all flows.
    unfinished
        Flows under load, of any kind, that did not finish, per scheme.
    judged_unfinished, tested
        The same per seed, of tested flows where there are any; and whether there are.
    waiting, planned
        Flows of the first seed that had not started when the runs ended, of how many; 0 of 0 where
        the experiment does not say how many it has.
    values
        The figure per scheme and seed over the flows that finished under all; empty if none did.
    scores
        What the values are made of, where the figure is the score.
    sample
        The judged flows are one of so many, where there are too many to compare them all; tested
        flows are all judged.
    """

    figure: Literal["s", "slowdown_p99"]
    schemes: tuple[str, ...]
    left_out: tuple[str, ...]
    seeds: tuple[int, ...]
    judged: int
    finished: int
    unfinished: Mapping[str, int]
    judged_unfinished: Mapping[str, PerSeed]
    tested: bool
    waiting: int
    planned: int
    values: Mapping[str, PerSeed]
    scores: Scores = field(default_factory=dict)
    sample: int = 1

    @property
    def few(self) -> bool:
        """Whether too few flows finished under all schemes for one to be named best."""
        started = 1 - self.waiting / self.planned if self.planned else 1.0
        return self.finished * started < LEAST_SHARE * self.judged or self.judged == 0

    def left_more(self, scheme: str) -> tuple[str, ...]:
        """Schemes that left fewer flows unfinished than `scheme`, by more than a tie."""
        own = self.judged_unfinished[scheme]
        gaps = {s: difference(v, own) for s, v in self.judged_unfinished.items() if s != scheme}
        return tuple(s for s, gap in gaps.items() if gap.mean > 0 and not gap.tie)


def compare_schemes(results: Results, scores: Scores, rules: scoring.Rules) -> Comparison | None:
    """Set the schemes of `results` side by side; None if no run has flows.

    Parameters
    ----------
    scores
        The score of each seed, of schemes that have one.
    """
    by_score = any(scores.get(s) for s in results.schemes)
    runs = {s: _seeds_of(results, s) for s in results.schemes}
    if by_score:
        runs = {s: tuple(scores.get(s) or ()) for s in results.schemes}
    schemes = tuple(s for s in results.schemes if runs[s])
    if not schemes:
        return None
    shared = sorted(set.intersection(*(set(runs[s]) for s in schemes)))
    tables = {
        (s, n): select(results.flow_sample, scheme=s, seed=n) for s in schemes for n in shared
    }
    seeds = tuple(n for n in shared if any(tables[s, n].num_rows for s in schemes))
    waiting, planned = _waiting(results, [(s, seeds[0]) for s in schemes] if seeds else [])
    if by_score:
        judged, finished, kept = _by_score(results, tables, schemes, seeds, scores, rules)
        values = {
            s: {str(n): one.totals[rules.primary] for n, one in kept[s].items()} for s in kept
        }
    else:
        kept = {}
        judged, finished, values = _by_slowdown(tables, schemes, seeds)
    return Comparison(
        figure="s" if by_score else "slowdown_p99",
        schemes=schemes,
        left_out=tuple(s for s in results.schemes if s not in schemes),
        seeds=seeds,
        judged=judged,
        finished=finished,
        unfinished={
            s: sum(results.flow_file.unfinished.get((s, n), 0) for n in seeds) for s in schemes
        },
        judged_unfinished={
            s: {str(n): _judged_unfinished(tables[s, n]) for n in seeds} for s in schemes
        },
        tested=any(_tested_classes(one) for one in tables.values()),
        waiting=waiting,
        planned=planned,
        values=values,
        scores=kept,
        sample=results.flow_file.share,
    )


def _seeds_of(results: Results, scheme: str) -> tuple[int, ...]:
    return tuple(seed for name, seed in results.runs if name == scheme)


def _waiting(results: Results, runs: Sequence[Run]) -> tuple[int, int]:
    planned = (results.manifest.get("traffic") or {}).get("flows") or 0
    counts = results.flow_file.counts
    most = max((sum(counts.get(run, {}).values()) for run in runs), default=0)
    return (planned - most, planned) if 0 < most < planned else (0, 0)


def _tested_classes(flows: pa.Table) -> list[int]:
    """The codes of tested classes."""
    return [i for i, name in enumerate(codes(flows, "class")[1]) if is_tested(name)]


def _judged(flows: pa.Table) -> pa.Table:
    """The tested flows; all where none is."""
    tested = _tested_classes(flows)
    if not tested:
        return flows
    return take(flows, np.flatnonzero(np.isin(codes(flows, "class")[0], tested)))


def _judged_unfinished(flows: pa.Table) -> float:
    return float(np.isnan(floats(_judged(flows), "fct_ps")).sum())


def _by_slowdown(
    tables: Mapping[tuple[str, int], pa.Table], schemes: Sequence[str], seeds: Sequence[int]
) -> tuple[int, int, dict[str, dict[str, float]]]:
    judged = finished = 0
    values: dict[str, dict[str, float]] = {s: {} for s in schemes}
    for seed in seeds:
        own = [_judged(tables[s, seed]) for s in schemes]
        equal = len({t.num_rows for t in own}) == 1
        if not equal or any(t["fct_ps"].null_count for t in own):
            masks, flows = common_flows(own)
            own = [take(t, np.flatnonzero(m)) for t, m in zip(own, masks, strict=True)]
        else:
            flows = own[0].num_rows
        judged += flows
        finished += own[0].num_rows
        for scheme, table in zip(schemes, own, strict=True):
            p99 = spread(slowdown(table)).p99
            if p99 is not None:
                values[scheme][str(seed)] = p99
    whole = all(len(v) == len(seeds) for v in values.values()) and bool(seeds)
    return judged, finished, values if whole else {}


def _by_score(
    results: Results,
    tables: Mapping[tuple[str, int], pa.Table],
    schemes: Sequence[str],
    seeds: Sequence[int],
    scores: Scores,
    rules: scoring.Rules,
) -> tuple[int, int, dict[str, dict[int, Score]]]:
    """Tested flows, those that finished under all schemes and alone, and the scores over those."""
    twin = results.isolated
    judged = finished = 0
    kept: dict[str, dict[int, Score]] = {s: {} for s in schemes}
    for seed in seeds:
        own = [scores[s][seed] for s in schemes]
        pairs = {tuple(one.parts[role].pairs for role in Role) for one in own}
        whole = all(p.unfinished == p.unpaired == 0 for one in own for p in one.parts.values())
        if (whole and len(pairs) == 1) or twin is None:
            judged += sum(next(iter(pairs)))
            finished += sum(next(iter(pairs)))
            for scheme, one in zip(schemes, own, strict=True):
                kept[scheme][seed] = one
            continue
        alone = {s: select(twin.flow_sample, scheme=s, seed=seed) for s in schemes}
        tested = [scoring.tested_flows(tables[s, seed]) for s in schemes]
        ended = [scoring.finished_pairs(tables[s, seed], alone[s]) for s in schemes]
        common = {role: set.intersection(*(one[role] for one in ended)) for role in Role}
        judged += sum(len(set.union(*(one[role] for one in tested))) for role in Role)
        finished += sum(map(len, common.values()))
        for scheme in schemes:
            found = scoring.score(
                tables[scheme, seed],
                alone[scheme],
                reading=rules.reading,
                mode=rules.variance,
                weights=rules.weights,
                only=common,
            )
            if found is not None:
                kept[scheme][seed] = found
    missing = not seeds or any(len(kept[s]) < len(seeds) for s in schemes)
    return judged, finished, {} if missing else kept
