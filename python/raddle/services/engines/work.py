"""One run, from claim to place: what every engine does with it."""

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from raddle import core
from raddle.errors import RaddleError, ResultsError, RunCancelled, RunFailed
from raddle.plan import Plan, PlannedRun, RunStats
from raddle.results.owners import Owner
from raddle.results.parts import finished_run, publish, working_folder
from raddle.services.runner import Job, Look
from raddle.text import span_us

__all__ = ["Ended", "RunState", "Simulate", "claimed_run", "failure_of", "job_of", "longest_first"]

Simulate = Callable[[Plan, int, Path, int, "core.runs.Progress"], RunStats]
"""Simulates a run of a plan into a folder, as `raddle.core.runs.run`."""


@dataclass(slots=True)
class RunState:
    """A run of a plan, and what came of it."""

    run: PlannedRun
    plan: Plan
    out: Path
    key: str
    """Its name in the folder that all points share."""
    stats: RunStats | None = None
    """None if it was not done."""
    reused: bool = False
    """Whether it was done by others or before."""

    @classmethod
    def of(cls, plan: Plan, out: Path, run: PlannedRun, key: str = "") -> "RunState":
        """The run as it stands in the results folder `out`."""
        state = cls(run, plan, out, key or run.name)
        state.refresh()
        return state

    def refresh(self) -> bool:
        """See whether it has been done; tell whether it is."""
        if self.stats is None:
            stats = finished_run(self.out, self.run.name)
            if stats is not None and stats.stamp == self.run.stamp:
                self.stats, self.reused = stats, True
        return self.stats is not None


@dataclass(frozen=True, slots=True)
class Ended:
    """How an engine ended."""

    failure: RaddleError | None = None
    """Why a run failed."""
    interrupted: bool = False
    """Whether Ctrl-C stopped it."""
    elsewhere: Sequence[RunState] = field(default_factory=list)
    """Runs that others are at."""
    cpu_s: float = 0.0
    """Processor time of the simulations, with all their threads; 0 if it is not known."""


def longest_first(states: Sequence[RunState]) -> list[RunState]:
    """In the order in which they are begun: the last core to finish then has the least left."""
    return sorted(states, key=lambda s: -(s.run.estimate.seconds or 0.0))


def claimed_run(
    state: RunState,
    owner: Owner,
    threads: int,
    progress: core.runs.Progress,
    *,
    force: bool = False,
    simulate: Simulate | None = None,
) -> RunStats | None:
    """Claim a run and simulate it, unless it is done meanwhile; None if it is another's.

    It may use so many `threads`. With `force` it is taken from an owner that lives, too.
    """
    key, run = state.key, state.run
    claim = owner.take(key, lambda: _how_far(run, progress), progress.cancel, force=force)
    if claim is None:
        return None
    done = False
    try:
        if not state.refresh():
            for other, _ in owner.claims.history(key):
                if other is not None and other != owner.process:
                    left = working_folder(state.out, run.name, other.token)
                    shutil.rmtree(left, ignore_errors=True)
            state.stats = _simulate(state, owner, threads, progress, simulate or core.runs.run)
        done = True
    except Exception:
        if owner.lost(key):
            return None  # our working folder may be gone, which is no failure
        raise
    finally:
        owner.release(key, done=done)
    return state.stats


def _simulate(
    state: RunState,
    owner: Owner,
    threads: int,
    progress: core.runs.Progress,
    simulate: Simulate,
) -> RunStats:
    work = working_folder(state.out, state.run.name, owner.process.token)
    started = time.monotonic()
    try:
        stats = simulate(state.plan, state.run.index, work, threads, progress)
        if not owner.wanted:
            msg = f"run {state.run.name} was given up while it was simulated"
            raise RunCancelled(msg)
        went = {
            "schema": 1,
            "host": owner.process.host,
            "shard": owner.process.shard,
            "threads": threads,
            "wall_s": round(time.monotonic() - started, 6),
        }
        publish(work, state.out, stats, went)
    except OSError as error:
        if error.filename:
            error.filename = str(error.filename).replace(str(work), str(state.out))
        raise
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return stats


def job_of(
    state: RunState, work: Callable[[core.runs.Progress], RunStats | None]
) -> Job[RunStats | None]:
    """The work at a run as a job of this process."""
    run, progress = state.run, core.runs.new_progress()

    def look() -> Look:
        share, hops = _how_far(run, progress)
        return Look(share, f"{span_us(progress.simulated_ps / 1e6)} simulated", hops)

    return Job(run.name, lambda: work(progress), progress, look)


def _how_far(run: PlannedRun, progress: core.runs.Progress) -> tuple[float, int]:
    """The share of a run that is done, and its packet-hops."""
    hops, flows, expected = progress.packet_hops, progress.flows_total, run.estimate.packet_hops
    # Packet-hops are the better measure of work done; flows end in a rush.
    share = hops / expected if expected else progress.flows_done / flows if flows else 0.0
    return share, hops


def failure_of(name: str, error: BaseException) -> RaddleError:
    """The error that ended the run `name`, in words for the user."""
    if isinstance(error, RaddleError):
        return error
    wrapped: RaddleError
    if isinstance(error, OSError):
        file = f"{error.filename}: " if error.filename else ""
        msg = (
            f"{file}{error.strerror or error}\n"
            f"  hint: run {name} stopped there; what has finished is kept, and the same "
            "command goes on from it"
        )
        wrapped = ResultsError(msg)
    else:
        msg = f"run {name} stopped: {error}"
        wrapped = RunFailed(msg)
    wrapped.__cause__ = error
    return wrapped
