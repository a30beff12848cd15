"""Runs an experiment: plans it, simulates what is missing, joins the parts, writes the summary.

Independent runs share the machine as threads (the core releases the GIL). A run that is done lies
in ``OUT/.runs/NAME/`` with its stamp, the hash of everything that decides its outcome; a later
call with the same stamp takes it as it is. So an interrupted command resumes when it is called
again, and adding a seed or a scheme simulates only what is new. Runs of another experiment are
never mixed with or deleted unless the caller says so.
"""

import dataclasses
import platform
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from raddle import core, results, statistics
from raddle.errors import ExperimentError, RaddleError, ResultsError, RunFailed
from raddle.files import read_text, source_name, write_json, write_text
from raddle.machine import cores, cpu_name
from raddle.plan import Plan, PlannedRun, RunStats
from raddle.results.claim import claim_folder
from raddle.results.digests import digests
from raddle.results.parts import finished_run, refuse_others, remove_others
from raddle.services.runner import Job, Look, Watch, first_failure, run_jobs
from raddle.text import span_us
from raddle.version import __version__

__all__ = [
    "Outcome",
    "RunState",
    "execute",
    "execute_all",
    "plan_file",
    "plan_text",
]


@dataclass(slots=True)
class RunState:
    """A run of a plan, and what came of it."""

    run: PlannedRun
    plan: Plan
    out: Path
    stats: RunStats | None = None
    """None if it was not done."""
    reused: bool = False
    """Whether it was done before."""
    cpu_s: float = 0.0
    """Processor time that it took now."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What `execute` did."""

    plan: Plan
    out: Path
    states: Sequence[RunState]
    wall_s: float
    interrupted: bool = False
    summary: Mapping[str, Any] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether every run of the plan is done."""
        return all(state.stats is not None for state in self.states)


def plan_file(file: Path) -> Plan:
    """Read and judge the experiment `file`.

    Raises
    ------
    ExperimentError
        The file cannot be read or is not a valid experiment; the message names the place.
    """
    missing = f"`raddle init {file}` writes an experiment to start from"
    text = read_text(file, stream=True, missing=missing)
    return plan_text(text, source_name(file))


def plan_text(text: str, path: Path) -> Plan:
    """Judge experiment `text`; files in it are relative to the folder of `path`."""
    before = time.thread_time()
    plan = core.runs.plan(text, path)
    return dataclasses.replace(plan, set_up_s=time.thread_time() - before)


def execute(
    plan: Plan,
    out: Path,
    *,
    jobs: int | None = None,
    watch: Watch | None = None,
    replace: bool = False,
) -> Outcome:
    """Simulate what is missing and leave the results folder `out` in order.

    Parameters
    ----------
    jobs
        Runs at the same time; the number of cores if not given.
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
    return execute_all([(plan, out)], jobs=jobs, watch=watch, replace=replace)[0]


def execute_all(
    points: Sequence[tuple[Plan, Path]],
    *,
    jobs: int | None = None,
    watch: Watch | None = None,
    replace: bool = False,
) -> list[Outcome]:
    """`execute` for several plans at once: their runs share the cores."""
    if jobs is not None and jobs < 1:
        msg = f"jobs must be 1 or more, got {jobs}"
        raise ExperimentError(msg)
    started = time.monotonic()
    outcomes = []
    with ExitStack() as claims:
        for _, out in points:
            claims.enter_context(claim_folder(out, "run"))
        for plan, out in points:
            (remove_others if replace else refuse_others)(plan, out)
        parts = [[_state(plan, out, run) for run in plan.runs] for plan, out in points]
        states = [state for part in parts for state in part]
        missing = [s for s in states if s.stats is None]
        failure, interrupted = _simulate(missing, jobs or cores(), watch)
        for (plan, out), part in zip(points, parts, strict=True):
            summary: Mapping[str, Any] = {}
            if any(s.stats is not None for s in part):
                summary = _finish(plan, out, part)
            wall_s = time.monotonic() - started
            outcomes.append(Outcome(plan, out, part, wall_s, interrupted, summary))
        if failure is not None:
            raise failure
    return outcomes


def _state(plan: Plan, out: Path, run: PlannedRun) -> RunState:
    fresh = RunState(run, plan, out)
    stats = finished_run(out, run.name)
    if stats is not None and stats.stamp == run.stamp:
        fresh.stats, fresh.reused = stats, True
    return fresh


def _simulate(
    states: Sequence[RunState], threads: int, watch: Watch | None
) -> tuple[RaddleError | None, bool]:
    """Run what is missing: why a run failed, and whether Ctrl-C came."""
    # Long runs first: the last core to finish then has the least left over.
    order = sorted(states, key=lambda s: -(s.run.estimate.seconds or 0.0))
    jobs = [_job(state) for state in order]
    interrupted = run_jobs(jobs, threads, watch=watch)
    for state, job in zip(order, jobs, strict=True):
        state.stats, state.cpu_s = job.answer, job.cpu_s
    failed = first_failure(jobs)
    return (None if failed is None else _failure(*failed)), interrupted


def _job(state: RunState) -> Job[RunStats]:
    run, progress = state.run, core.runs.new_progress()

    def look() -> Look:
        hops, flows, expected = progress.packet_hops, progress.flows_total, run.estimate.packet_hops
        # Packet-hops are the better measure of work done; flows end in a rush.
        share = hops / expected if expected else progress.flows_done / flows if flows else 0.0
        return Look(share, f"{span_us(progress.simulated_ps / 1e6)} simulated", hops)

    return Job(
        run.name,
        lambda: core.runs.run(state.plan, run.index, state.out, progress),
        progress,
        look,
    )


def _failure(job: Job[RunStats], error: BaseException) -> RaddleError:
    """An error of a run, in words for the user."""
    if isinstance(error, RaddleError):
        return error
    wrapped: RaddleError
    if isinstance(error, OSError):
        name = f"{error.filename}: " if error.filename else ""
        msg = (
            f"{name}{error.strerror or error}\n"
            f"  hint: run {job.name} stopped there; what has finished is kept, and the same "
            "command goes on from it"
        )
        wrapped = ResultsError(msg)
    else:
        msg = f"run {job.name} stopped: {error}"
        wrapped = RunFailed(msg)
    wrapped.__cause__ = error
    return wrapped


def _finish(plan: Plan, out: Path, states: Sequence[RunState]) -> Mapping[str, Any]:
    complete = all(s.stats is not None for s in states)
    _drop_stale(out, states)
    write_text(out / "experiment.toml", plan.experiment)
    core.runs.merge(plan, out)
    parameters = {name: [asdict(p) for p in rows] for name, rows in plan.parameters.items()}
    manifest = _manifest(plan, states, parameters, complete=complete)
    write_json(out / "manifest.json", {**manifest, "files": digests(out)})
    done = [
        (s.run.scheme, s.run.seed, s.run.variant, s.stats) for s in states if s.stats is not None
    ]
    if not any(variant == "loaded" for _, _, variant, _ in done):
        summary: dict[str, Any] = {
            "schema": 1,
            "name": plan.name,
            "complete": complete,
            "schemes": {},
        }
    else:
        summary = statistics.summary.summarise(
            results.Results(out),
            name=plan.name,
            complete=complete,
            parameters=parameters,
            stats=done,
        )
    if write_json(out / "summary.json", summary):
        (out / "report.html").unlink(missing_ok=True)  # it shows other figures
    return summary


def _drop_stale(out: Path, states: Sequence[RunState]) -> None:
    """Remove what an earlier experiment left in `out` and this one does not write anew."""
    if all(s.reused for s in states):
        return
    done = {s.run.variant for s in states if s.stats is not None}
    for variant, folder in (("loaded", out), ("isolated", out / "isolated")):
        if variant not in done and folder.is_dir():
            for file in folder.glob("*.parquet"):
                file.unlink()


def _manifest(
    plan: Plan,
    states: Sequence[RunState],
    parameters: Mapping[str, Sequence[Mapping[str, Any]]],
    *,
    complete: bool,
) -> Mapping[str, Any]:
    return {
        "schema": 1,
        "name": plan.name,
        "complete": complete,
        "compat": plan.compat,
        "schemes": list(plan.schemes),
        "seeds": list(plan.seeds),
        "fabric": asdict(plan.fabric),
        "traffic": asdict(plan.traffic),
        "score": dict(plan.score),
        "settings": [asdict(p) for p in plan.settings],
        "parameters": parameters,
        "warnings": list(plan.warnings),
        "runs": [
            {
                "name": s.run.name,
                "scheme": s.run.scheme,
                "seed": s.run.seed,
                "variant": s.run.variant,
                "stamp": s.run.stamp,
                "done": s.stats is not None,
                **(
                    {}
                    if s.stats is None
                    else {
                        "wall_s": s.stats.wall_s,
                        "packet_hops": s.stats.packet_hops,
                        "simulated_ps": s.stats.simulated_ps,
                        "flows": s.stats.flows,
                        "finished": s.stats.finished,
                    }
                ),
            }
            for s in states
        ],
        "versions": {
            "raddle": __version__,
            "core": core.build.version(),
            "python": platform.python_version(),
        },
        "machine": {
            "system": f"{platform.system()} {platform.release()}",
            "architecture": platform.machine(),
            "cpu": cpu_name(),
            "cores": cores(),
        },
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "written": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
