"""Where the time of a trace's ranks goes: computing, sending, waiting for others, and the wire.

A call that waits is *late* until what it waits for has been sent: the last of its messages, or the
ranks without which a collective cannot end. The rest of it is *wire*: the way of a message with
what hosts do for it, and whatever else keeps the call; so is posting a receive. A call's kind
decides, not what the MPI library did inside: all of a send is *send*, also where it waits for its
receiver. Calls of threads that overlap count each.

Clocks of ranks start with each rank's own end of MPI_Init. They are set so that ranks come out of
collectives of the whole program at the same time, in the median.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray

from raddle import core

__all__ = ["PARTS", "split_time"]

PARTS = ("compute", "send", "late", "wire", "collective late", "collective wire")
"""What a rank's time consists of."""

EVERYBODY = frozenset({"barrier", "allreduce", "allgather", "alltoall", "reduce_scatter"})
"""Collectives that no rank can leave before all have come."""

COLUMNS = ("rank", "start_ns", "end_ns", "action", "peer", "tag", "comm", "request", "requests")


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls of a trace: lists by row, and the rows of each collective operation."""

    rank: Sequence[int]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    action: Sequence[str]
    peer: Sequence[int | None]
    tag: Sequence[int | None]
    comm: Sequence[int | None]
    request: Sequence[int | None]
    requests: Sequence[Sequence[int] | None]

    @classmethod
    def read(cls, path: Path) -> "Calls":
        """Read the columns; the file is known to be a trace."""
        columns = pq.read_table(path, columns=list(COLUMNS)).columns
        rank, start, end, *others = (cast("list[Any]", column.to_pylist()) for column in columns)
        return cls(rank, np.array(start, np.int64), np.array(end, np.int64), *others)

    def rows(self, action: str) -> Iterator[int]:
        """Rows of an action, in order."""
        return (row for row, found in enumerate(self.action) if found == action)

    def operations(self) -> list[list[int]]:
        """The rows of each collective: the k-th of a communicator is the same on all ranks."""
        seen: defaultdict[tuple[int, int | None], int] = defaultdict(int)
        found: defaultdict[tuple[int | None, int], list[int]] = defaultdict(list)
        for row, action in enumerate(self.action):
            if action not in ("send", "receive", "wait", "end"):
                place = (self.rank[row], self.comm[row])
                found[(self.comm[row], seen[place])].append(row)
                seen[place] += 1
        return list(found.values())

    def senders(self) -> dict[int, int]:
        """The row of each receive's send: the k-th of a communicator, pair and tag."""
        sent: defaultdict[tuple[Any, ...], list[int]] = defaultdict(list)
        for row in self.rows("send"):
            sent[(self.comm[row], self.rank[row], self.peer[row], self.tag[row])].append(row)
        queues = {key: iter(rows) for key, rows in sent.items()}
        return {
            row: next(queues[(self.comm[row], self.peer[row], self.rank[row], self.tag[row])])
            for row in self.rows("receive")
        }

    def completions(self) -> dict[int, list[int]]:
        """For each call that is neither send nor collective, the receives that it completes."""
        started: dict[tuple[int, int], int] = {}
        found: dict[int, list[int]] = {}
        for row, action in enumerate(self.action):
            request = self.request[row]
            if action == "receive":
                found[row] = [row] if request is None else []
                if request is not None:
                    started[(self.rank[row], request)] = row
            elif action in ("wait", "end"):
                keys = ((self.rank[row], number) for number in self.requests[row] or ())
                found[row] = [started[key] for key in keys if key in started]
        return found


def split_time(path: Path) -> dict[str, Any]:
    """Split the time of a trace's ranks into `PARTS`.

    Returns
    -------
    dict
        `parts` has the mean over ranks of each part, `ranks` the parts of each rank; seconds.

    Raises
    ------
    TraceError
        The file is no trace, is damaged, or has messages without their other end.
    """
    ranks = core.trace.describe(path).ranks
    calls = Calls.read(path)
    operations = calls.operations()
    clock = _clocks(calls, operations, ranks)
    sent_at = calls.start - clock[calls.rank]
    totals = {part: np.zeros(ranks) for part in PARTS}

    def add(part: str, row: int, length_ns: float) -> None:
        totals[part][calls.rank[row]] += length_ns / 1e9

    def add_wait(kind: str, row: int, until_ns: float) -> None:
        length = int(calls.end[row] - calls.start[row])
        late = min(max(until_ns - sent_at[row], 0.0), length)
        add(f"{kind}late", row, late)
        add(f"{kind}wire", row, length - late)

    for row in calls.rows("send"):
        add("send", row, calls.end[row] - calls.start[row])
    senders = calls.senders()
    for row, receives in calls.completions().items():
        add_wait("", row, max((sent_at[senders[each]] for each in receives), default=-np.inf))
    for rows in operations:
        for row in rows:
            needed = [sent_at[other] for other in rows if _needs(calls, row, other)]
            add_wait("collective ", row, max(needed, default=-np.inf))
    totals["compute"] = _ends(calls, ranks) / 1e9 - sum(totals[part] for part in PARTS[1:])
    by_rank = [{part: float(totals[part][rank]) for part in PARTS} for rank in range(ranks)]
    return {"parts": {part: float(totals[part].mean()) for part in PARTS}, "ranks": by_rank}


def _needs(calls: Calls, row: int, other: int) -> bool:
    """Whether a rank in a collective cannot leave before another has come."""
    if calls.request[row] is not None:
        return False
    kind = calls.action[row]
    if kind in ("bcast", "scatter"):
        return calls.rank[other] == calls.peer[row]
    if kind in ("reduce", "gather"):
        return calls.rank[row] == calls.peer[row]
    return kind in EVERYBODY or calls.rank[other] < calls.rank[row]


def _ends(calls: Calls, ranks: int) -> NDArray[np.float64]:
    """When each rank is through, by its own clock."""
    ends = np.zeros(ranks)
    np.maximum.at(ends, calls.rank, calls.end)
    return ends


def _clocks(calls: Calls, operations: list[list[int]], ranks: int) -> NDArray[np.float64]:
    """How far each rank's clock is ahead of the mean of all, in ns."""
    common = [
        calls.end[sorted(rows, key=lambda row: calls.rank[row])]
        for rows in operations
        if len(rows) == ranks
        and calls.action[rows[0]] in EVERYBODY
        and all(calls.request[row] is None for row in rows)
    ]
    if not common:
        return np.zeros(ranks)
    ends = np.array(common, np.float64)
    ahead: NDArray[np.float64] = np.median(ends - ends.mean(axis=1, keepdims=True), axis=0)
    return ahead
