"""Figures of a run's flows in one pass, however many they are."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from raddle.results.columns import floats, groups, integers
from raddle.results.folder import Results
from raddle.statistics.distribution import Distribution
from raddle.statistics.samples import (
    PS_PER_US,
    SIZE_EDGES_BYTES,
    SizeBin,
    Spread,
    jain_of,
    slowdown,
)

__all__ = ["LONG_BYTES", "FlowFigures", "fct_us", "size_bins"]

COLUMNS = ["size_bytes", "start_ps", "fct_ps", "class", "ideal_fct_ps"]
LONG_BYTES = 1e6
"""Flows of this size and more have a rate worth telling."""


@dataclass
class FlowFigures:
    """What is counted and summed over flows that are added in parts."""

    flows: int = 0
    finished: int = 0
    fct: dict[str, Distribution] = field(default_factory=dict)
    """Completion times in µs per class."""
    slowdown: Distribution = field(default_factory=Distribution)
    by_size: dict[int, Distribution] = field(default_factory=dict)
    """Slowdown per bin of sizes, by the bin's number."""
    last_ps: float = 0.0
    """The last start or end of a flow."""
    long_flows: int = 0
    _long_rates: float = 0.0
    _long_squares: float = 0.0
    _payload: float = 0.0
    _first_ps: float = np.inf
    _end_ps: float = 0.0

    @classmethod
    def of(cls, results: Results, scheme: str, seed: int) -> "FlowFigures":
        """The figures of a run."""
        figures = cls()
        for flows in results.flow_batches(scheme, seed, COLUMNS):
            figures.add(flows)
        return figures

    def add(self, flows: pa.Table) -> None:
        """Count more flows."""
        self.flows += flows.num_rows
        fct_ps = floats(flows, "fct_ps")
        start, sizes = floats(flows, "start_ps"), floats(flows, "size_bytes")
        done = ~np.isnan(fct_ps)
        self.finished += int(done.sum())
        fct_us = floats(flows, "fct_ps", 1 / PS_PER_US)
        for name, mask in groups(flows, "class"):
            self.fct.setdefault(name, Distribution()).add(fct_us[mask])
        self._add_slowdown(flows)
        long = sizes >= LONG_BYTES
        rates = np.zeros(int(long.sum()))  # an unfinished flow has rate 0
        np.divide(sizes[long] * 8e3, fct_ps[long], out=rates, where=done[long])
        self.long_flows += rates.size
        self._long_rates += float(rates.sum())
        self._long_squares += float(np.square(rates).sum())
        if flows.num_rows:
            self.last_ps = max(self.last_ps, float(np.where(done, start + fct_ps, start).max()))
        if done.any():
            self._payload += float(sizes[done].sum())
            self._first_ps = min(self._first_ps, float(start[done].min()))
            self._end_ps = max(self._end_ps, float((start[done] + fct_ps[done]).max()))

    def _add_slowdown(self, flows: pa.Table) -> None:
        values = slowdown(flows)
        self.slowdown.add(values)
        which = np.searchsorted(SIZE_EDGES_BYTES, integers(flows, "size_bytes"), side="right") - 1
        for index in np.unique(which).tolist():
            self.by_size.setdefault(index, Distribution()).add(values[which == index])

    @property
    def fct_us(self) -> dict[str, Spread]:
        """Completion times per class."""
        return fct_us([self])

    @property
    def goodput_gbps(self) -> float | None:
        """Payload of finished flows over the time from the first start to the last end, Gb/s."""
        span_ps = self._end_ps - self._first_ps
        return self._payload * 8e3 / span_ps if self.finished and span_ps > 0 else None

    @property
    def long_flow_rate_gbps(self) -> float | None:
        """Mean of size over completion time of long flows, Gb/s."""
        return self._long_rates / self.long_flows if self.long_flows else None

    @property
    def jain_long_flows(self) -> float | None:
        """Jain's fairness index of the rates of long flows."""
        return jain_of(self._long_rates, self._long_squares, self.long_flows)


def fct_us(runs: Sequence[FlowFigures]) -> dict[str, Spread]:
    """Completion times per class over several runs."""
    classes: dict[str, Distribution] = {}
    for run in runs:
        for name, values in run.fct.items():
            classes.setdefault(name, Distribution()).merge(values)
    return {name: classes[name].spread() for name in sorted(classes)}


def size_bins(runs: Sequence[FlowFigures]) -> list[SizeBin]:
    """Slowdown per bin of sizes over several runs; the last bin has no upper edge."""
    bins: dict[int, Distribution] = {}
    for run in runs:
        for index, values in run.by_size.items():
            bins.setdefault(index, Distribution()).merge(values)
    edges = (*SIZE_EDGES_BYTES, 2**63)
    return [SizeBin(edges[i], edges[i + 1], bins[i].spread()) for i in sorted(bins)]
