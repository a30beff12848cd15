"""`raddle status`: how far runs are, whoever is at them. It reads and writes nothing."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from raddle.results.owners import Claim, Claims
from raddle.results.parts import how_it_went
from raddle.results.planned import kept
from raddle.services.run import JOIN, states_of

__all__ = ["RunStatus", "Status", "status"]

State = Literal["done", "running", "waiting"]


@dataclass(frozen=True, slots=True)
class RunStatus:
    """How far one run is."""

    key: str
    """Its name, in a sweep with the point's folder before it."""
    state: State
    """`waiting`: nobody is at it, or who was died."""
    host: str | None = None
    pid: int | None = None
    shard: str | None = None
    since_s: float | None = None
    """For how long it is under way, or how long it took."""
    beat_s: float | None = None
    """For how long its process gave no sign of life."""
    share: float = 0.0
    packet_hops: int = 0
    taken_over_from: Sequence[str] = ()
    """Hosts of processes that died on it, the first one first."""


@dataclass(frozen=True, slots=True)
class Status:
    """How far all runs are."""

    runs: Sequence[RunStatus]
    joined: bool
    """Whether tables and summary of all runs are there."""
    joining: str | None
    """The host that joins them now."""

    @property
    def counts(self) -> dict[State, int]:
        """How many runs are in each state."""
        found = Counter(run.state for run in self.runs)
        return {"done": found["done"], "running": found["running"], "waiting": found["waiting"]}

    def as_json(self) -> Mapping[str, Any]:
        """For `--json`."""
        return {
            "complete": self.counts["done"] == len(self.runs),
            "joined": self.joined,
            "joining": self.joining,
            "counts": self.counts,
            "runs": [asdict(run) for run in self.runs],
        }


def status(folders: Sequence[Path]) -> Status:
    """How far the runs of one results folder are, or those of shards that have one each.

    Times are by this machine's clock: where clocks of machines differ, they do so as well.

    Raises
    ------
    ResultsError
        A folder is not there or was not planned by this raddle.
    """

    def rank(run: RunStatus) -> tuple[int, int]:
        """Where a run is further, or more is known of it."""
        return ("waiting", "running", "done").index(run.state), len(run.taken_over_from)

    best: dict[str, RunStatus] = {}
    for folder in folders:
        for run in _runs(folder):
            if run.key not in best or rank(run) > rank(best[run.key]):
                best[run.key] = run
    runs = list(best.values())
    join = Claims(folders[0]).last(JOIN)
    at_it = join is not None and not Claims(folders[0]).dead(join, time.time())
    joining = join.process.host if join is not None and join.process and at_it else None
    points = kept(folders[0])
    table = folders[0] / ("summary.json" if points[0].set is None else "sweep.json")
    joined = all(run.state == "done" for run in runs) and table.is_file()
    return Status(runs, joined, joining)


def _runs(folder: Path) -> list[RunStatus]:
    claims, now = Claims(folder), time.time()
    found = []
    for point in kept(folder):
        for state in states_of(point, folder):
            last = claims.last(state.key)
            died = _died(claims, state.key, last, done=state.stats is not None)
            if state.stats is not None:
                went = how_it_went(point.out, state.run.name)
                one = RunStatus(
                    state.key,
                    "done",
                    went.get("host"),
                    shard=went.get("shard"),
                    since_s=went.get("wall_s"),
                    share=1.0,
                    packet_hops=state.stats.packet_hops,
                    taken_over_from=died,
                )
            else:
                if last is None or last.process is None or claims.dead(last, now):
                    one = RunStatus(state.key, "waiting", taken_over_from=died)
                else:
                    one = RunStatus(
                        state.key,
                        "running",
                        last.process.host,
                        last.process.pid,
                        last.process.shard,
                        now - last.work.since if last.work else None,
                        max(now - last.beat, 0.0),
                        last.work.share if last.work else 0.0,
                        last.work.packet_hops if last.work else 0,
                        died,
                    )
            found.append(one)
    return found


def _died(claims: Claims, key: str, last: Claim | None, *, done: bool) -> list[str]:
    """The hosts of the processes that died on a run, in order."""
    hosts = [
        process.host if process is not None else "?"
        for process, released in claims.history(key)
        if not released
    ]
    return (
        hosts[:-1] if done or (last is not None and not claims.dead(last, time.time())) else hosts
    )
