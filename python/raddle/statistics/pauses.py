"""PFC pauses: how long each port was silenced, by whom, and the trees in which pauses spread.

A pause row names the port that had to be silent. The peer of that port sent the pause frame, so
(pauser, paused) follows from the links. If a switch is itself paused while it pauses others, its
queue cannot drain and the pause passes through: the pauser's own pausers are its parents in the
tree. The roots are where congestion begins.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from raddle.results.columns import floats, integers

__all__ = [
    "PauseEdge",
    "PauseNode",
    "covered_ps",
    "pause_edges",
    "pause_time_by_port_us",
    "pause_tree",
    "spans_of",
]

Spans = NDArray[np.float64]
"""Disjoint (start, end) rows in ps, ascending."""

PS_PER_US = 1e6


@dataclass(frozen=True, slots=True)
class PauseEdge:
    """`pauser` silenced the port of `paused` that leads to it."""

    pauser: int
    paused: int
    pauses: int
    paused_us: float
    spans_ps: Spans


@dataclass(frozen=True, slots=True)
class PauseNode:
    """A node of the pause tree.

    `paused_us` is how long its parent silenced it while the parent was itself silenced by *its*
    parent (for the first level below a root: all of it); for a root it is 0.
    """

    node: int
    paused_us: float
    pauses: int
    children: tuple["PauseNode", ...]
    repeats: bool = False
    more: int = 0


def pause_time_by_port_us(
    pauses: pa.Table, end_ps: int | None = None
) -> dict[tuple[int, int], float]:
    """Total time each (node, port) was silenced, µs; a pause without an end lasts to `end_ps`."""
    spans = spans_of(pauses, end_ps)
    node, port = integers(pauses, "node"), integers(pauses, "port")
    key = node * 65536 + port
    values, inverse = np.unique(key, return_inverse=True)
    total = np.bincount(inverse, weights=spans[:, 1] - spans[:, 0], minlength=values.size)
    return {
        (int(k) // 65536, int(k) % 65536): float(t) / PS_PER_US
        for k, t in zip(values, total, strict=True)
    }


def pause_edges(pauses: pa.Table, links: pa.Table, end_ps: int | None = None) -> list[PauseEdge]:
    """Who silenced whom, longest first; pauses of ports that no link names are left out."""
    peers = _peers(links)
    spans = spans_of(pauses, end_ps)
    key = integers(pauses, "node") * 65536 + integers(pauses, "port")
    rows: dict[tuple[int, int], list[Spans]] = {}
    counts: dict[tuple[int, int], int] = {}
    order = np.argsort(key, kind="stable")
    values, first = np.unique(key[order], return_index=True)
    for value, group in zip(values, np.split(order, first[1:]), strict=True):
        node, port = int(value) // 65536, int(value) % 65536
        pauser = peers.get((node, port))
        if pauser is None:
            continue
        rows.setdefault((pauser, node), []).append(spans[group])
        counts[pauser, node] = counts.get((pauser, node), 0) + group.size
    edges = []
    for (pauser, paused), parts in rows.items():
        merged = merge_spans(np.concatenate(parts))
        total = float((merged[:, 1] - merged[:, 0]).sum()) / PS_PER_US
        edges.append(PauseEdge(pauser, paused, counts[pauser, paused], total, merged))
    return sorted(edges, key=lambda e: (-e.paused_us, e.pauser, e.paused))


def pause_tree(edges: list[PauseEdge], *, widest: int = 5, deepest: int = 5) -> list[PauseNode]:
    """The trees of pauses, roots with the longest pauses first.

    A pauser is a root if it was free of pauses for most of the time in which it paused others (its
    congestion is its own). A node that already stands on the way from the root closes a cycle; it
    is shown once more with `repeats` set and not followed. `more` counts branches left out.
    """
    below: dict[int, list[PauseEdge]] = {}
    above: dict[int, list[PauseEdge]] = {}
    for edge in edges:
        below.setdefault(edge.pauser, []).append(edge)
        above.setdefault(edge.paused, []).append(edge)
    roots: list[tuple[float, int]] = []
    for pauser, out in below.items():
        active = merge_spans(np.concatenate([e.spans_ps for e in out]))
        own = [e.spans_ps for e in above.get(pauser, [])]
        passed_on = overlap_ps(active, merge_spans(np.concatenate(own))) if own else 0.0
        if passed_on <= float((active[:, 1] - active[:, 0]).sum()) / 2:
            roots.append((-sum(e.paused_us for e in out), pauser))
    if not roots and below:  # one closed cycle: begin where most time was lost
        roots = [min((-sum(e.paused_us for e in out), p) for p, out in below.items())]
    trees = []
    for _, root in sorted(roots)[:widest]:
        children, more = _children(root, None, (root,), below, widest, deepest)
        trees.append(PauseNode(root, 0.0, 0, children, more=more))
    return trees


def _children(
    node: int,
    during: Spans | None,
    way: tuple[int, ...],
    below: Mapping[int, list[PauseEdge]],
    widest: int,
    deepest: int,
) -> tuple[tuple[PauseNode, ...], int]:
    found: list[tuple[float, PauseEdge]] = []
    for edge in below.get(node, []):
        time = edge.paused_us if during is None else overlap_ps(edge.spans_ps, during) / PS_PER_US
        if time > 0:
            found.append((time, edge))
    found.sort(key=lambda item: (-item[0], item[1].paused))
    nodes = []
    for time, edge in found[:widest]:
        repeats = edge.paused in way
        follow = not repeats and len(way) < deepest
        children, more = (
            _children(edge.paused, edge.spans_ps, (*way, edge.paused), below, widest, deepest)
            if follow
            else ((), 0)
        )
        nodes.append(PauseNode(edge.paused, time, edge.pauses, children, repeats, more))
    return tuple(nodes), max(0, len(found) - widest)


def merge_spans(spans: Spans) -> Spans:
    """The union of `spans` as disjoint ascending spans.

    Examples
    --------
    >>> merge_spans(np.array([[5.0, 7.0], [0.0, 2.0], [1.0, 3.0]])).tolist()
    [[0.0, 3.0], [5.0, 7.0]]
    """
    if len(spans) == 0:
        return np.zeros((0, 2))
    ordered = spans[np.lexsort((spans[:, 1], spans[:, 0]))]
    reach = np.maximum.accumulate(ordered[:, 1])
    begins = np.concatenate([[True], ordered[1:, 0] > reach[:-1]])
    starts = ordered[begins, 0]
    last = np.concatenate([np.flatnonzero(begins)[1:] - 1, [len(ordered) - 1]])
    return np.column_stack([starts, reach[last]])


def overlap_ps(left: Spans, right: Spans) -> float:
    """Time in which both sets of disjoint spans are active, ps.

    Examples
    --------
    >>> overlap_ps(np.array([[0.0, 10.0]]), np.array([[2.0, 3.0], [8.0, 20.0]]))
    3.0
    """
    return float(covered_ps(left, right).sum())


def covered_ps(each: Spans, spans: Spans) -> NDArray[np.float64]:
    """How much of each span, which may overlap others, is covered by disjoint `spans`, ps.

    Examples
    --------
    >>> spans = np.array([[2.0, 3.0], [8.0, 20.0]])
    >>> covered_ps(np.array([[0.0, 10.0], [5.0, 9.0]]), spans).tolist()
    [3.0, 1.0]
    """
    if len(each) == 0 or len(spans) == 0:
        return np.zeros(len(each))
    # Measure of `spans` up to a time, as a piecewise linear function.
    lengths = spans[:, 1] - spans[:, 0]
    times = spans.ravel()
    measure = np.column_stack([np.cumsum(lengths) - lengths, np.cumsum(lengths)]).ravel()
    at_end = np.interp(each[:, 1], times, measure)
    at_start = np.interp(each[:, 0], times, measure)
    return at_end - at_start


def spans_of(pauses: pa.Table, end_ps: int | None = None) -> Spans:
    """Start and end of each pause; one without an end lasts to `end_ps`."""
    start, end = floats(pauses, "start_ps"), floats(pauses, "end_ps")
    known = np.concatenate([start, end[~np.isnan(end)], [0.0]])
    last = float(end_ps) if end_ps is not None else float(known.max())
    end = np.where(np.isnan(end), last, end)
    return np.column_stack([start, np.maximum(start, end)])


def _peers(links: pa.Table) -> dict[tuple[int, int], int]:
    peers: dict[tuple[int, int], int] = {}
    columns = (integers(links, c).tolist() for c in ("node_a", "port_a", "node_b", "port_b"))
    for node_a, port_a, node_b, port_b in zip(*columns, strict=True):
        peers[node_a, port_a] = node_b
        peers[node_b, port_b] = node_a
    return peers
