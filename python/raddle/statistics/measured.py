"""What the tables of a run measured of a class of flows: queues that they meet, pauses, waits."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import pyarrow as pa

from raddle.results.columns import Floats, Integers, floats, integers, select
from raddle.results.folder import Results
from raddle.statistics.contrast import Contrast
from raddle.statistics.pauses import (
    PauseEdge,
    covered_ps,
    merge_spans,
    pause_edges,
    pause_tree,
    spans_of,
)
from raddle.statistics.ways import Mask, Ways

__all__ = ["Measured", "Pair", "Pauser", "Port"]

MOST_PORTS = 64
"""Longest queues among which one is looked for that flows of the class can meet."""
KEY = ("seed", "src", "dst", "sport")
Pair = tuple[float, float]
"""A figure under the slower scheme and under the faster one; the same twice without a faster."""


@dataclass(frozen=True, slots=True)
class Port:
    """The longest queue under the slower scheme that flows of the class can meet.

    `passing` are the flows that do, and `how` is how that is known: their recorded ways, the last
    port before their host, or a shortest way; None where it is not known. `other_bytes` is the
    port's longest queue under the faster scheme, `p99_bytes` the 99th percentile of the port's
    samples while the flows ran, None where they were not recorded.
    """

    node: int
    peer: int
    queue_bytes: int
    drain_us: float
    other_bytes: int
    passing: Mask | None
    how: Literal["recorded", "last", "shortest"]
    p99_bytes: float | None


@dataclass(frozen=True, slots=True)
class Pauser:
    """Who silenced others longest in a seed, and whom."""

    node: int
    edges: tuple[PauseEdge, ...]
    seed: int

    @property
    def total_us(self) -> float:
        """Pause time of all that it silenced."""
        return sum(edge.paused_us for edge in self.edges)


@dataclass(frozen=True, slots=True)
class _Steps:
    """Recorded ways: where each of their steps leads, and the number of its flow's name.

    `flow` are the numbers of the flows that are looked at, all below `names`.
    """

    node: Integers
    peer: Integers
    name: Integers
    flow: Integers
    names: int


@dataclass(frozen=True)
class Measured:
    """The flows of a contrast in a run's tables; what a table does not hold is None."""

    results: Results
    of: Contrast

    @property
    def sides(self) -> list[tuple[str, pa.Table]]:
        """Both schemes with their flows; one where there is no faster one."""
        sides = [(self.of.slow, self.of.under_slow)]
        if self.of.fast is not None:
            sides.append((self.of.fast, self.of.under_fast))
        return sides

    def _pair(self, figure: Callable[[str, pa.Table], float | None]) -> Pair | None:
        found = [figure(scheme, flows) for scheme, flows in self.sides]
        first, last = found[0], found[-1]
        return None if first is None or last is None else (first, last)

    # Queues.

    @cached_property
    def _ways(self) -> Ways | None:
        known = self.results.nodes.num_rows and self.results.links.num_rows
        return Ways.of(self.results.nodes, self.results.links) if known else None

    @cached_property
    def _lengths(self) -> Integers | None:
        """Links on a shortest way of each flow."""
        src, dst = (integers(self.of.under_slow, c) for c in ("src", "dst"))
        if self._ways is None or not (self._ways.ports(src).all() and self._ways.ports(dst).all()):
            return None
        return self._ways.lengths(src, dst)

    @cached_property
    def port(self) -> Port | None:
        """The longest queue that flows of the class can meet; else the longest of all."""
        ports = select(self.results.ports, scheme=self.of.slow)
        node, peer = integers(ports, "node"), integers(ports, "peer")
        queue, rate = floats(ports, "max_queue_bytes"), floats(ports, "rate_bps")
        first: Port | None = None
        seen: set[tuple[int, int]] = set()
        for row in np.argsort(-queue, kind="stable").tolist():
            ends = (int(node[row]), int(peer[row]))
            if queue[row] <= 0 or len(seen) == MOST_PORTS:
                break
            if ends in seen:
                continue
            seen.add(ends)
            passing, how = self._passing(*ends)
            drain = queue[row] * 8e6 / rate[row]
            number = int(integers(ports, "port")[row])
            other, p99 = self._other_queue(*ends), self._p99(ends[0], number)
            port = Port(*ends, int(queue[row]), drain, other, passing, how, p99)
            first = first or port
            if passing is not None and passing.any():
                return port
        return first

    def _passing(
        self, node: int, peer: int
    ) -> tuple[Mask | None, Literal["recorded", "last", "shortest"]]:
        recorded = self._recorded(node, peer)
        if recorded is not None:
            return recorded, "recorded"
        if self._ways is None:
            return None, "shortest"
        src, dst = (integers(self.of.under_slow, c) for c in ("src", "dst"))
        if self._ways.is_host[peer] and self._ways.ports(np.asarray([peer]))[0] == 1:
            return dst == peer, "last"
        if self._lengths is None:
            return None, "shortest"
        return self._ways.through(node, peer, src, dst, self._lengths), "shortest"

    def _recorded(self, node: int, peer: int) -> Mask | None:
        """Which flows have a port on their recorded way (`[record] paths`)."""
        if self._steps is None:
            return None
        there = (self._steps.node == node) & (self._steps.peer == peer)
        passes = np.zeros(self._steps.names, dtype=np.bool_)
        passes[self._steps.name[there]] = True
        return passes[self._steps.flow]

    @cached_property
    def _steps(self) -> _Steps | None:
        paths = self.results.paths
        if paths is None or paths["sport"].null_count:  # over rails a pair has ways, not a flow
            return None
        paths = select(paths, scheme=self.of.slow)
        keys = np.concatenate([_keys(paths), _keys(self.of.under_slow)])
        names, number = np.unique(keys, return_inverse=True)
        return _Steps(
            integers(paths, "node"),
            integers(paths, "peer"),
            number[: paths.num_rows],
            number[paths.num_rows :],
            names.size,
        )

    def _other_queue(self, node: int, peer: int) -> int:
        if self.of.fast is None:
            return 0
        ports = select(self.results.ports, scheme=self.of.fast)
        rows = (integers(ports, "node") == node) & (integers(ports, "peer") == peer)
        return int(floats(ports, "max_queue_bytes")[rows].max(initial=0))

    def _p99(self, node: int, port: int) -> float | None:
        """Of the port's own samples while the flows ran (`[record] ports`, `busiest`)."""
        if self.results.port_queues is None:
            return None
        samples = select(self.results.port_queues, scheme=self.of.slow)
        own = (integers(samples, "node") == node) & (integers(samples, "port") == port)
        rows = own & _while_running(samples, self.of.under_slow)
        return (
            float(np.percentile(floats(samples, "queue_bytes")[rows], 99)) if rows.any() else None
        )

    @cached_property
    def held_bytes(self) -> Pair | None:
        """What the fullest port held in the mean while the flows ran."""

        def mean(scheme: str, flows: pa.Table) -> float | None:
            samples = select(self.results.queues, scheme=scheme)
            rows = _while_running(samples, flows)
            return float(floats(samples, "max_port_bytes")[rows].mean()) if rows.any() else None

        return self._pair(mean)

    # Pauses.

    @cached_property
    def paused_us(self) -> Pair | None:
        """Pause time of all ports together, the mean over seeds."""
        return self._pair(lambda scheme, _: self._paused_us(scheme))

    def _paused_us(self, scheme: str) -> float | None:
        ports = select(self.results.ports, scheme=scheme)
        seeds = len(set(integers(ports, "seed").tolist()))
        return float(floats(ports, "pause_ps").sum()) / 1e6 / seeds if seeds else None

    @cached_property
    def silenced_us(self) -> Pair | None:
        """For how long the source of a flow stood silenced while it ran, in the mean."""
        return self._pair(self._silenced_us)

    def _silenced_us(self, scheme: str, flows: pa.Table) -> float | None:
        src, seeds = integers(flows, "src"), integers(flows, "seed")
        if self._ways is None or not (self._ways.ports(src) == 1).all():
            return None  # of several ports a flow uses one that is not known
        pauses = select(self.results.pauses, scheme=scheme)
        if pauses.num_rows == 0 and self._paused_us(scheme):
            return None  # the table is missing
        start = floats(flows, "start_ps")
        each = np.column_stack([start, start + floats(flows, "fct_ps")])
        spans = spans_of(pauses)
        paused = _rows_by(integers(pauses, "node"), integers(pauses, "seed"))
        total = 0.0
        silenced = np.flatnonzero(np.isin(src, integers(pauses, "node")))
        for host, rows in _rows_by(src[silenced], seeds[silenced]).items():
            if host in paused:
                running = each[silenced[rows]]
                total += float(covered_ps(running, merge_spans(spans[paused[host]])).sum())
        return total / 1e6 / flows.num_rows

    @cached_property
    def pauser(self) -> Pauser | None:
        """The root of the longest pauses under the slower scheme, in the first seed."""
        seed = self.results.seeds[0]
        rows = select(self.results.pauses, scheme=self.of.slow, seed=seed)
        edges = pause_edges(rows, self.results.links) if rows.num_rows else []
        roots = pause_tree(edges, widest=1, deepest=1)
        if not roots:
            return None
        root = roots[0].node
        return Pauser(root, tuple(edge for edge in edges if edge.pauser == root), seed)

    # Flows.

    @cached_property
    def waits_us(self) -> Floats:
        """What each flow took beyond an idle fabric; NaN where that is not known."""
        flows = self.of.under_slow
        ideal = floats(flows, "ideal_fct_ps")
        return np.where(ideal > 0, floats(flows, "fct_ps") - ideal, np.nan) / 1e6

    @cached_property
    def apart_us(self) -> Pair | None:
        """Mean wait of the flows that meet the longest queue, and of the others."""
        passing = None if self.port is None else self.port.passing
        if passing is None or passing.all() or not passing.any() or np.isnan(self.waits_us).any():
            return None
        return float(self.waits_us[passing].mean()), float(self.waits_us[~passing].mean())

    @cached_property
    def drops(self) -> tuple[int, int]:
        """Dropped packets of all seeds."""
        found = [
            int(floats(select(self.results.ports, scheme=scheme), "drops").sum())
            for scheme, _ in self.sides
        ]
        return found[0], found[-1]


def _while_running(samples: pa.Table, flows: pa.Table) -> Mask:
    """Which samples lie between the first start and the last end of flows of their seed."""
    seeds, times = integers(samples, "seed"), floats(samples, "time_ps")
    start = floats(flows, "start_ps")
    end, of_seed = start + floats(flows, "fct_ps"), integers(flows, "seed")
    inside = np.zeros(times.size, dtype=np.bool_)
    for seed in np.unique(of_seed).tolist():
        own = of_seed == seed
        within = (times >= start[own].min()) & (times <= end[own].max())
        inside |= (seeds == seed) & within
    return inside


def _rows_by(host: Integers, seed: Integers) -> dict[tuple[int, int], Integers]:
    """Rows of each host and seed, ascending in both; rows stay in their order."""
    order = np.lexsort((seed, host))
    hosts, seeds = host[order], seed[order]
    first = 1 + np.flatnonzero((hosts[1:] != hosts[:-1]) | (seeds[1:] != seeds[:-1]))
    parts = [rows for rows in np.split(order, first) if rows.size]
    return {(int(host[rows[0]]), int(seed[rows[0]])): rows for rows in parts}


def _keys(table: pa.Table) -> np.ndarray:
    """What names the flow of each row, as one value."""
    columns = np.column_stack([integers(table, name) for name in KEY])
    return np.ascontiguousarray(columns).view([("", np.int64)] * len(KEY)).ravel()
