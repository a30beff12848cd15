"""Which flows have a port on a shortest path between their hosts."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from raddle.results.columns import Integers, integers

__all__ = ["Ways"]

MOST_STEPS = 50_000_000
"""Links that may be looked at for lengths of ways; beyond it nobody would wait."""

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Ways:
    """Links of a map in both directions, ordered by their source."""

    is_host: Mask
    first: Integers
    target: Integers

    @classmethod
    def of(cls, nodes: pa.Table, links: pa.Table) -> "Ways":
        """The map of results."""
        a, b = integers(links, "node_a"), integers(links, "node_b")
        ids = integers(nodes, "node")
        is_host = np.zeros(int(ids.max(initial=-1)) + 1, dtype=np.bool_)
        is_host[ids] = integers(nodes, "level") == 0
        source, target = np.concatenate([a, b]), np.concatenate([b, a])
        order = np.argsort(source, kind="stable")
        first = np.searchsorted(source[order], np.arange(is_host.size + 1))
        return cls(is_host, first.astype(np.int64), target[order])

    def ports(self, hosts: Integers) -> Integers:
        """How many links each host has; 0 for what is no node."""
        known = (hosts >= 0) & (hosts < self.is_host.size)
        place = np.where(known, hosts, 0)
        return np.where(known, self.first[place + 1] - self.first[place], 0)

    def lengths(self, src: Integers, dst: Integers) -> Integers | None:
        """Links on a shortest way of each (src, dst), -1 without one; None of too large a map."""
        at = self._attached(dst)
        ends = np.unique(at)
        if ends.size * self.target.size > MOST_STEPS:
            return None
        found = np.full(src.size, -1, dtype=np.int64)
        for end in ends.tolist():
            rows = at == end
            steps = self._distance(end)[src[rows]]
            found[rows] = np.where(steps < 0, -1, steps + (dst[rows] != end))
        return found

    def through(
        self, node: int, peer: int, src: Integers, dst: Integers, lengths: Integers
    ) -> Mask:
        """Whether the port of `node` to `peer` lies on a shortest way of each (src, dst).

        `lengths` are those of these ways.
        """
        to_node, from_peer = self._distance(node)[src], self._distance(peer)[dst]
        known = (to_node >= 0) & (from_peer >= 0) & (lengths >= 0)
        mask: Mask = known & (to_node + 1 + from_peer == lengths)
        return mask

    def _attached(self, hosts: Integers) -> Integers:
        """The one neighbour of each host, or the host itself where it has several."""
        one = self.target[np.minimum(self.first[hosts], self.target.size - 1)]
        return np.where(self.ports(hosts) == 1, one, hosts)

    def _distance(self, start: int) -> Integers:
        """Links from `start` to every node, never through a host; -1 where there is no way."""
        found = np.full(self.is_host.size, -1, dtype=np.int64)
        found[start] = 0
        front = np.asarray([start], dtype=np.int64)
        steps = 0
        while front.size:
            steps += 1
            counts = self.first[front + 1] - self.first[front]
            begins = np.repeat(self.first[front], counts)
            within = np.arange(begins.size) - np.repeat(np.cumsum(counts) - counts, counts)
            reached = self.target[begins + within]
            found[reached[found[reached] < 0]] = steps
            front = np.flatnonzero((found == steps) & ~self.is_host)
        return found
