"""Runs an experiment: plans it, simulates what is missing, joins the parts, writes the summary.

A run that is done lies in ``OUT/.runs/NAME/`` with its stamp, the hash of everything that decides
its outcome; a later call with the same stamp takes it as it is. So an interrupted command resumes
when it is called again, and adding a seed or a scheme simulates only what is new. Runs of another
experiment are never mixed with or deleted unless the caller says so.

Who simulates is an engine's business (`raddle.services.engines`). One process has the folder for
itself, or several share it; then the one that finds all done joins.
"""

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from raddle import core
from raddle.errors import ExperimentError, ResultsError
from raddle.files import read_text, source_name
from raddle.plan import Plan
from raddle.results.claim import claim_folder
from raddle.results.owners import Claims, Process
from raddle.results.parts import refuse_others, remove_leftovers, remove_others
from raddle.results.planned import Planned, keep, plan_changes
from raddle.services import engines
from raddle.services.engines.choice import LOCAL, Engine, EngineName
from raddle.services.engines.work import Ended, RunState
from raddle.services.join import join
from raddle.services.runner import Job, Look, Watch, check_counts, run_jobs
from raddle.text import many, verb

__all__ = [
    "JOIN",
    "Outcome",
    "alone",
    "execute",
    "execute_all",
    "join_states",
    "joining",
    "plan_file",
    "plan_text",
    "states_of",
]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What `execute` did."""

    plan: Plan
    out: Path
    states: Sequence[RunState]
    wall_s: float
    cpu_s: float = 0.0
    """Processor time of all simulations of the command, with all their threads; 0 if not known."""
    interrupted: bool = False
    summary: Mapping[str, Any] = field(default_factory=dict)
    joined: bool = True
    """Whether tables and summary were written: not by a process that shares the folder, as long
    as others have runs to do."""

    @property
    def complete(self) -> bool:
        """Whether every run of the plan is done."""
        return all(state.stats is not None for state in self.states)


def plan_file(file: Path, *, watch: Watch | None = None) -> Plan:
    """Read and judge the experiment `file`.

    Parameters
    ----------
    watch
        Is shown what is done as long as it lasts, for fabrics that take longer than a moment.

    Raises
    ------
    ExperimentError
        The file cannot be read or is not a valid experiment; the message names the place.
    """
    missing = f"`raddle init {file}` writes an experiment to start from"
    text = read_text(file, stream=True, missing=missing)
    return plan_text(text, source_name(file), watch=watch)


def plan_text(text: str, path: Path, *, watch: Watch | None = None) -> Plan:
    """Judge experiment `text`; files in it are relative to the folder of `path`."""
    set_up = core.runs.new_set_up()

    def work() -> Plan:
        before = time.thread_time()
        plan = core.runs.plan(text, path, set_up)
        return dataclasses.replace(plan, set_up_s=time.thread_time() - before)

    if watch is None:
        return work()
    began = time.monotonic()
    job = Job("set-up", work, NeverStops(), lambda: _look(set_up, began))

    def patient(jobs: Sequence[Job[Any]]) -> None:
        if time.monotonic() - began > MOMENT_S:
            watch(jobs)

    if run_jobs([job], 1, watch=patient, leave=True):
        raise KeyboardInterrupt
    return job.answered()


class NeverStops:
    """The progress of work that is left alone when it should stop."""

    def cancel(self) -> None:
        """Nothing can be done."""


def _look(set_up: core.runs.SetUp, began: float) -> Look:
    step, hosts = set_up.step
    words = f"{step}: {many(hosts, 'host')}" if hosts else step
    return Look(0.0, f"{words}  {time.monotonic() - began:.0f} s")


def execute(
    plan: Plan,
    out: Path,
    *,
    engine: Engine = LOCAL,
    watch: Watch | None = None,
    replace: bool = False,
) -> Outcome:
    """Simulate what is missing and leave the results folder `out` in order.

    Parameters
    ----------
    engine
        Who simulates; threads of this process, as many as cores, if not given.
    watch
        Is shown the runs that are simulated, about ten times a second.
    replace
        Delete the results of another experiment that lie in `out`.

    Returns
    -------
    Outcome
        With `interrupted` set if Ctrl-C (or SIGTERM) came: finished runs are kept and joined, and
        the summary says `complete: false`.

    Raises
    ------
    ResultsError
        `out` holds results of another experiment, which may not be replaced.
    RaddleError
        A run failed. Finished runs are kept, and the others of the plan were cancelled.
    """
    points = [Planned(plan, out)]
    return execute_all(points, out, engine=engine, watch=watch, replace=replace)[0]


def execute_all(
    points: Sequence[Planned],
    top: Path,
    *,
    engine: Engine = LOCAL,
    watch: Watch | None = None,
    replace: bool = False,
) -> list[Outcome]:
    """`execute` for several plans at once, whose folders lie in `top`: they share the cores."""
    check_counts(engine.jobs, engine.threads)
    if replace and engine.shares:
        msg = (
            "--replace would delete what other processes of --engine shards write\n"
            "  hint: delete the folder, or name another one with --out"
        )
        raise ExperimentError(msg)
    started = time.monotonic()
    simulate = _simulator(engine)
    claims = Claims(top)
    with ExitStack() as held:
        for point in points:
            held.enter_context(claim_folder(point.out, "run", shared=engine.shares))
        for point in points:
            (remove_others if replace else refuse_others)(point.plan, point.out)
        if not engine.shares:
            alone(points, claims)
        _keep(points, top, claims)
        parts = [states_of(point, top) for point in points]
        states = [state for part in parts for state in part]
        ended = simulate(states, claims, engine, watch)
        ours = True
        if not engine.shares:
            claims.clear()
        left = [state for state in states if not state.refresh()]  # others may have done them
        if not engine.shares:
            made = [join_states(point, part) for point, part in zip(points, parts, strict=True)]
        elif not left:
            with joining(claims) as ours:
                if ours:
                    made = [
                        join_states(point, part) for point, part in zip(points, parts, strict=True)
                    ]
        else:
            ours = False
        if ended.failure is not None:
            raise ended.failure
    wall_s = time.monotonic() - started
    return [
        Outcome(point.plan, point.out, part, wall_s, ended.cpu_s, ended.interrupted, summary, ours)
        for point, part, summary in zip(
            points, parts, made if ours else [{}] * len(points), strict=True
        )
    ]


def states_of(point: Planned, top: Path) -> list[RunState]:
    """The runs of a plan as they stand in its folder, which lies in `top`."""
    folder = point.out.relative_to(top)
    return [
        RunState.of(point.plan, point.out, run, (folder / run.name).as_posix())
        for run in point.plan.runs
    ]


@contextmanager
def joining(claims: Claims, *, complete: bool = True) -> Iterator[bool]:
    """Be the one process that joins a shared folder; yields whether it is this one.

    Where all runs are `complete`, nobody needs the claims any more afterwards.
    """
    with claims.owner() as owner:
        ours = owner.take(JOIN, lambda: (0.0, 0), lambda: None) is not None
        try:
            yield ours
        finally:
            owner.release(JOIN, done=False)
    if ours and complete:
        claims.clear()


MOMENT_S = 1.0
"""A set-up that takes less is not shown."""
JOIN = "join"
"""What the joining of all runs is called among the claims of runs."""


def _simulator(
    engine: Engine,
) -> Callable[[Sequence[RunState], Claims, Engine, Watch | None], Ended]:
    if engine.name != EngineName.DASK:
        return engines.threads.simulate
    try:
        return engines.dask.simulate
    except ImportError as error:
        msg = (
            f"--engine dask needs the package distributed ({error})\n"
            "  hint: pip install 'raddle[dask]'"
        )
        raise ExperimentError(msg) from error


def alone(points: Sequence[Planned], claims: Claims) -> None:
    """Clear what processes left that were killed: the folders are ours alone.

    Raises
    ------
    ResultsError
        A process that shares the folder is at work; a file system without locks does not say so.
    """
    at_work = claims.at_work()
    if at_work:
        msg = (
            f"{claims.folder.parents[1]}: {_names(at_work)} at work there by --engine shards\n"
            "  hint: wait, or join in with --engine shards; `raddle status` shows who does what"
        )
        raise ResultsError(msg)
    claims.clear()
    for point in points:
        remove_leftovers(point.out)


def _keep(points: Sequence[Planned], top: Path, claims: Claims) -> None:
    """Write what the folder is to hold.

    Raises
    ------
    ResultsError
        Others are working there at something else.
    """
    others = claims.at_work()
    if others and any(plan_changes(point) for point in points):
        msg = (
            f"{top}: {_names(others)} at work there at other runs\n"
            "  hint: all processes that share a folder need the same command"
        )
        raise ResultsError(msg)
    keep(points, top)


def _names(processes: Sequence[Process]) -> str:
    first = processes[0]
    words = f"process {first.pid} of {first.host}"
    if len(processes) > 1:
        words += f" and {many(len(processes) - 1, 'other process')}"
    return f"{words} {verb(len(processes), 'is', 'are')}"


def join_states(point: Planned, states: Sequence[RunState]) -> Mapping[str, Any]:
    """Join the runs of a point that are done; the summary, empty if none is."""
    if all(state.stats is None for state in states):
        return {}
    return join(point.plan, point.out, states)
