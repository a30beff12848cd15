"""Where schemes of a run differ most: a class of flows, the slower and the faster scheme."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from raddle.results.columns import codes, floats, integers, select, take
from raddle.results.folder import Results
from raddle.statistics.rule import common_flows, difference
from raddle.statistics.score import class_order, role_of

__all__ = ["Contrast", "widest_contrast"]


@dataclass(frozen=True, slots=True)
class Contrast:
    """A class of flows under two schemes; `fast` is None where a run has only one.

    Both tables hold the same flows of all seeds: those that finished under both. `unfinished` are
    the flows of the class that did not, under either.
    """

    kind: str
    slow: str
    fast: str | None
    under_slow: pa.Table
    under_fast: pa.Table
    unfinished: int
    tie: bool

    @property
    def ratio(self) -> float:
        """Mean completion time under the slower scheme over that under the faster one."""
        return mean_us(self.under_slow) / mean_us(self.under_fast)


def widest_contrast(results: Results, *, leaders: Sequence[str] = ()) -> Contrast | None:
    """The class and the schemes whose mean completion times differ most, if not by a tie.

    Of tested classes if there are any. First between a scheme that leads and one that does not,
    where that one is slower; then between any two. If all tie, the ones that differ most. None
    where no class has flows that finished.
    """
    _, classes = codes(results.flow_sample, "class")
    tested = [name for name in classes if role_of(name) is not None]
    samples = {
        (kind, scheme): _Sample.of(select(results.flow_sample, scheme=scheme), kind)
        for kind in sorted(tested or classes, key=class_order)
        for scheme in results.schemes
    }
    samples = {key: sample for key, sample in samples.items() if sample.finished}
    if len(results.schemes) == 1:
        alone = [_alone(kind, scheme, sample) for (kind, scheme), sample in samples.items()]
        return max(alone, key=lambda c: _over_idle(c.under_slow), default=None)
    ties: list[Contrast] = []
    for kind, a, b in _pairs(samples, leaders):
        contrast = _contrast(kind, (a, samples[kind, a]), (b, samples[kind, b]))
        if contrast is not None and not contrast.tie:
            return contrast
        ties += [] if contrast is None else [contrast]
    return max(ties, key=lambda c: c.ratio, default=None)


def mean_us(flows: pa.Table) -> float:
    """Mean completion time of finished flows."""
    return float(floats(flows, "fct_ps").mean()) / 1e6


@dataclass(frozen=True, slots=True)
class _Sample:
    """The flows of a class under a scheme, and the mean of those that finished, in ps."""

    flows: pa.Table
    finished: int
    mean: float

    @classmethod
    def of(cls, flows: pa.Table, kind: str) -> "_Sample":
        which, names = codes(flows, "class")
        rows = np.flatnonzero(which == names.index(kind)) if kind in names else which[:0]
        flows = take(flows, rows)
        fct = floats(flows, "fct_ps")
        finished = int((~np.isnan(fct)).sum())
        return cls(flows, finished, float(np.nanmean(fct)) if finished else 0.0)

    @property
    def whole(self) -> bool:
        """Whether all flows finished."""
        return self.finished == self.flows.num_rows


def _over_idle(flows: pa.Table) -> float:
    """Mean completion time over that on an idle fabric; 0 where that is not known."""
    idle = float(np.nansum(floats(flows, "ideal_fct_ps")))
    return float(floats(flows, "fct_ps").sum()) / idle if idle > 0 else 0.0


def _pairs(
    samples: Mapping[tuple[str, str], _Sample], leaders: Sequence[str]
) -> list[tuple[str, str, str]]:
    """Class, slower and faster scheme, those with the largest ratio first.

    Their means are of what finished under each, so that the order is only about right where flows
    did not finish.
    """
    pairs = [
        (slow.mean / fast.mean, kind, a, b)
        for (kind, a), slow in samples.items()
        for (other, b), fast in samples.items()
        if kind == other and (slow.mean, b) > (fast.mean, a) and fast.mean > 0
    ]
    pairs.sort(key=lambda pair: -pair[0])
    led = [pair for pair in pairs if pair[3] in leaders and pair[2] not in leaders]
    return list(dict.fromkeys(pair[1:] for pair in (*led, *pairs)))


def _alone(kind: str, scheme: str, sample: _Sample) -> Contrast:
    flows = sample.flows
    done = take(flows, np.flatnonzero(~np.isnan(floats(flows, "fct_ps"))))
    return Contrast(kind, scheme, None, done, done, flows.num_rows - done.num_rows, tie=True)


def _contrast(
    kind: str, first: tuple[str, _Sample], second: tuple[str, _Sample]
) -> Contrast | None:
    """Two schemes over the flows that finished under both; None if there are none."""
    (a, of_a), (b, of_b) = first, second
    under_a, under_b, unfinished = of_a.flows, of_b.flows, 0
    if not (of_a.whole and of_b.whole and under_a.num_rows == under_b.num_rows):
        masks, flows = common_flows([under_a, under_b])
        under_a = take(under_a, np.flatnonzero(masks[0]))
        under_b = take(under_b, np.flatnonzero(masks[1]))
        unfinished = flows - under_a.num_rows
    if under_a.num_rows == 0:
        return None
    tie = difference(_per_seed(under_a), _per_seed(under_b)).tie
    if mean_us(under_a) < mean_us(under_b):
        a, b, under_a, under_b = b, a, under_b, under_a
    return Contrast(kind, a, b, under_a, under_b, unfinished, tie)


def _per_seed(flows: pa.Table) -> dict[str, float]:
    seeds, fct = integers(flows, "seed"), floats(flows, "fct_ps")
    return {str(seed): float(fct[seeds == seed].mean()) for seed in np.unique(seeds).tolist()}
