"""Replay of traces: how long a program would take elsewhere, and what scheduling gains.

A replay keeps what each rank does and what it waits for, and simulates how long calls take
(docs/reference/replay.md). Seeds vary compute gaps and starts a little, the same for every
schedule, so that a gain is a mean over pairs of runs with a 95 % interval (Student t).
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

import tomli_w

from raddle import core
from raddle.core.replay import ReplayTime, Schedule, Session
from raddle.core.runs import Progress
from raddle.errors import TraceError
from raddle.machine import cores, cores_of_each
from raddle.results.trace import SUFFIX
from raddle.services.costs import Costs
from raddle.services.runner import Job, Look, Watch, check_counts, first_failure, run_jobs
from raddle.statistics.replay_notes import notes
from raddle.statistics.samples import Interval, mean_interval
from raddle.statistics.waits import split_time
from raddle.text import span_us, suggest

__all__ = [
    "ALL_SCHEDULES",
    "APPLICABLE_SCHEDULES",
    "SCHEDULES",
    "Settings",
    "preview",
    "replay",
    "replay_schemes",
]

SCHEDULES = ("none", "reorder", "aggregate", "both")
"""What is replayed unless it is said."""

APPLICABLE_SCHEDULES = ("published", "library")
"""What `libraddle_mpi.so` does with `RADDLE_SCHEDULE=published` and `on`.

`published`: both by the paper's window, which begins with the first message and joins all;
`library`: messages are joined as the program sends them.
"""

ALL_SCHEDULES = (*SCHEDULES, *APPLICABLE_SCHEDULES)

MOST_CALLS = 2_000_000
"""A longer trace is not taken apart call by call."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How a trace is replayed.

    Attributes
    ----------
    fabric
        A map (any format that `raddle fabric check` reads); None: the trace's own.
    placement
        "recorded", "blocks:N" (N ranks per host, in order) or "in-turn".
    scope
        Which messages may be joined: "rank-to-node", those of one rank to one host, whose leader
        hands them on (the paper's); "rank-to-rank", those of one rank to one other. None: as the
        schedule does, "rank-to-rank" for "library", else "rank-to-node".
    leaders
        Ranks of a host, spread over it, that take messages for several of its ranks apart.
    scheme
        Congestion control.
    sockets
        Sockets of a host; its ranks are spread over them in order.
    costs
        Costs of hosts that differ from the usual ones, by the names of `core.replay.Costs`.
    costs_from
        Where they come from, as `services.costs.Costs.as_json` gives it.
    seeds
        Runs of each schedule.
    gap_share
        Every compute gap is longer or shorter by up to this share.
    start_skew
        Ranks start up to this much later.
    processors
        Processors that all hosts share, as those of a lab do: rank r runs on r mod so many; None:
        each rank has one.
    algorithms
        Algorithms of collectives, such as "allreduce=double-tree"; the others are automatic.
    """

    fabric: Path | None = None
    placement: str = "recorded"
    scope: str | None = None
    leaders: int = 1
    scheme: str = "none"
    sockets: int = 2
    costs: dict[str, Any] = field(default_factory=dict)
    costs_from: Mapping[str, Any] = field(default_factory=lambda: Costs({}).as_json())
    seeds: int = 5
    gap_share: float = 0.02
    start_skew: str = "1us"
    processors: int | None = None
    algorithms: tuple[str, ...] = ()


def replay(
    trace: Path,
    schedules: Sequence[str] = SCHEDULES,
    settings: Settings | None = None,
    *,
    jobs: int | None = None,
    threads: int | None = None,
    watch: Watch | None = None,
    traces: Path | None = None,
) -> dict[str, Any]:
    """Replay a trace with each of `schedules`, and in program order to compare with.

    Parameters
    ----------
    trace
        The trace.
    schedules
        Of `ALL_SCHEDULES`.
    settings
        How.
    jobs
        Runs at the same time; the number of cores if not given.
    threads
        Threads of each run, which change no figure; the cores left over by runs at the same time
        if not given.
    watch
        Is shown all runs about ten times a second.
    traces
        A folder for `NAME.trace.parquet` of each schedule: the trace's calls with the times of
        the first run.

    Returns
    -------
    dict
        `recorded` has `time_s` and `mpi_s`, the ranks' mean of the time in MPI, as recorded.
        `schedules.NAME` has `time_s` and `time_ci95_s`, `mpi_s`; `gain_pct`, the time saved in
        percent of program order's, and `gain_ci95_pct` (None with one seed); `schedule_s`, the
        processor's time that scheduling all ranks took; messages, parcels, joined parcels, and
        what went through the network.

    Raises
    ------
    TraceError
        The trace is broken, its ranks find no place or wait for each other.
    ExperimentError
        `jobs` or `threads` is out of range.
    KeyboardInterrupt
        Ctrl-C.
    """
    settings = settings or Settings()
    under = _prepare(trace, [settings.scheme], schedules, settings)
    folders = {} if traces is None else dict.fromkeys(under.product(), traces)
    found = under.replayed(settings.seeds, folders, jobs, threads, watch)
    return {
        **_what(under.session, trace, settings),
        "scheme": settings.scheme,
        "schedules": found[settings.scheme],
    }


def replay_schemes(
    trace: Path,
    schemes: Sequence[str],
    schedules: Sequence[str] = SCHEDULES,
    settings: Settings | None = None,
    *,
    jobs: int | None = None,
    threads: int | None = None,
    watch: Watch | None = None,
    traces: Path | None = None,
) -> dict[str, Any]:
    """Replay a trace under each of `schemes`, as `replay` does under one.

    Returns
    -------
    dict
        As `replay`, but `schemes.NAME.schedules` in place of `schedules`. `recorded.parts` and
        `schemes.NAME.parts` have what the ranks' time consists of in program order
        (`statistics.waits.split_time`; None for a trace of more than `MOST_CALLS` calls). `notes`
        says what a reader should know of the placement, and why the times differ from the
        recorded ones.

    Raises
    ------
    TraceError
        As `replay`; a scheme that is not known or named twice.
    """
    settings = settings or Settings()
    under = _prepare(trace, schemes, schedules, settings)
    small = core.trace.describe(trace).calls <= MOST_CALLS
    with TemporaryDirectory(prefix="raddle-replay-") as temporary:
        base = traces or Path(temporary)
        folder = {name: base / (name if len(schemes) > 1 else "") for name in schemes}
        wanted = [
            pair for pair in under.product() if traces is not None or (small and pair[1] == "none")
        ]
        found = under.replayed(
            settings.seeds, {pair: folder[pair[0]] for pair in wanted}, jobs, threads, watch
        )
        rows = {
            name: {
                "schedules": found[name],
                "parts": split_time(folder[name] / f"none{SUFFIX}")["parts"] if small else None,
            }
            for name in schemes
        }
    told = _what(under.session, trace, settings)
    told["recorded"]["parts"] = split_time(trace)["parts"] if small else None
    summary = {**told, "schemes": rows}
    return {**summary, "notes": notes(summary)}


def preview(
    trace: Path,
    schemes: Sequence[str],
    schedules: Sequence[str] = SCHEDULES,
    settings: Settings | None = None,
) -> dict[str, Any]:
    """Check what `replay_schemes` would be asked, and say what it would run.

    Raises
    ------
    TraceError
        As `replay_schemes`.
    """
    settings = settings or Settings()
    under = _prepare(trace, schemes, schedules, settings)
    summary = {
        **_what(under.session, trace, settings),
        "schedules": {
            name: {"messages": made.messages, "parcels": made.parcels}
            for name, made in under.schedules.items()
        },
        "schemes": list(schemes),
        "runs": len(under.product()) * settings.seeds,
    }
    return {**summary, "notes": notes(summary)}


@dataclass(frozen=True, slots=True)
class _Prepared:
    """A trace on its hosts under each scheme, and its schedules, which are the same under all."""

    sessions: Mapping[str, Session]
    schedules: Mapping[str, Schedule]

    @property
    def session(self) -> Session:
        """One of them: where ranks are and what was recorded is the same in all."""
        return next(iter(self.sessions.values()))

    def product(self) -> list[tuple[str, str]]:
        """Each scheme with each schedule."""
        return [(scheme, name) for scheme in self.sessions for name in self.schedules]

    def replayed(
        self,
        seeds: int,
        traces: Mapping[tuple[str, str], Path],
        jobs: int | None,
        threads: int | None,
        watch: Watch | None,
    ) -> dict[str, dict[str, Any]]:
        """Run everything: by scheme and schedule, what came of it.

        `traces` names the folder of a scheme's and schedule's trace, where one is wanted.
        """
        check_counts(jobs, threads)
        todo = len(self.product()) * seeds + len(traces)
        at_once = min(jobs or cores(), todo)
        threads = threads or cores_of_each(at_once)
        runs = {
            (*pair, seed): self._run(*pair, seed, threads)
            for pair in self.product()
            for seed in range(seeds)
        }
        for folder in traces.values():
            folder.mkdir(parents=True, exist_ok=True)
        told = [self._retell(*pair, threads, folder) for pair, folder in traces.items()]
        waiting: list[Job[Any]] = [*runs.values(), *told]
        if run_jobs(waiting, at_once, watch=watch):
            raise KeyboardInterrupt
        if (failed := first_failure(waiting)) is not None:
            raise failed[1]
        times = {
            pair: [runs[(*pair, seed)].answered() for seed in range(seeds)]
            for pair in self.product()
        }
        return {
            scheme: {
                name: _summary(times[scheme, name], times[scheme, "none"], schedule)
                for name, schedule in self.schedules.items()
            }
            for scheme in self.sessions
        }

    def _run(self, scheme: str, name: str, seed: int, threads: int) -> Job[ReplayTime]:
        session, schedule = self.sessions[scheme], self.schedules[name]
        progress = core.runs.new_progress()
        return Job(
            f"{scheme} {name} seed {seed}",
            lambda: session.run(schedule, seed, threads, progress),
            progress,
            partial(_look, progress),
        )

    def _retell(self, scheme: str, name: str, threads: int, folder: Path) -> Job[None]:
        session, schedule = self.sessions[scheme], self.schedules[name]
        progress = core.runs.new_progress()
        return Job(
            f"{scheme} {name} trace",
            lambda: session.retell(schedule, 0, threads, progress, folder / f"{name}{SUFFIX}"),
            progress,
            partial(_look, progress),
        )


def _look(progress: Progress) -> Look:
    words = f"{span_us(progress.simulated_ps / 1e6)} simulated"
    return Look(0.0, words, progress.packet_hops)


def _prepare(
    trace: Path, schemes: Sequence[str], schedules: Sequence[str], settings: Settings
) -> _Prepared:
    """Say what is wrong before anything runs."""
    if len(set(schemes)) < len(schemes) or not schemes:
        msg = "--scheme: each scheme once, and at least one"
        raise TraceError(msg)
    names = _ordered(schedules)
    first, *others = schemes
    session = _session(trace, replace(settings, scheme=first))
    sessions = {first: session, **{name: session.under(name) for name in others}}
    made = {name: session.schedule(name, settings.scope, settings.leaders) for name in names}
    return _Prepared(sessions, made)


def _ordered(schedules: Sequence[str]) -> list[str]:
    for name in schedules:
        if name not in ALL_SCHEDULES:
            msg = f"--schedule: `{name}` is not a schedule: {suggest(name, ALL_SCHEDULES)}"
            raise TraceError(msg)
    return [name for name in ALL_SCHEDULES if name == "none" or name in schedules]


def _session(trace: Path, settings: Settings) -> Session:
    return Session.open(
        trace,
        fabric=settings.fabric,
        placement=settings.placement,
        scheme=settings.scheme,
        sockets=settings.sockets,
        costs=_costs(settings.costs),
        gap_share=settings.gap_share,
        start_skew=settings.start_skew,
        processors=settings.processors,
        algorithms=settings.algorithms,
    )


def _what(session: Session, trace: Path, settings: Settings) -> dict[str, Any]:
    """What is replayed, where and how."""
    recorded_s, recorded_mpi_s = session.recorded()
    occupied = session.occupied()
    found = core.trace.describe(trace)
    return {
        "trace": str(trace),
        "fabric": "the trace's own" if settings.fabric is None else str(settings.fabric),
        "placement": settings.placement,
        "ranks": found.ranks,
        "hosts": {
            "recorded": len(found.hosts),
            "used": occupied.hosts,
            "of_map": occupied.of_map,
            "most_ranks": occupied.most_ranks,
        },
        "scope": settings.scope,
        "leaders": settings.leaders,
        "seeds": settings.seeds,
        "gap_share": settings.gap_share,
        "start_skew": settings.start_skew,
        "processors": settings.processors,
        "algorithms": session.algorithms(),
        "one_thread": session.one_thread(),
        "costs": _costs(settings.costs).as_json(),
        "calibration": dict(settings.costs_from),
        "recorded": {"time_s": recorded_s, "mpi_s": recorded_mpi_s},
    }


def _costs(changed: dict[str, Any]) -> core.replay.Costs:
    return core.replay.costs(tomli_w.dumps(changed))


def _summary(
    runs: list[ReplayTime],
    base: list[ReplayTime],
    schedule: Schedule,
) -> dict[str, Any]:
    times = mean_interval(run.time_s for run in runs)
    gains = mean_interval(
        100 * (1 - run.time_s / plain.time_s) if plain.time_s > 0 else 0.0
        for run, plain in zip(runs, base, strict=True)
    )
    return {
        "time_s": times.mean,
        "time_ci95_s": _ends(times),
        "mpi_s": fmean(run.mpi_s for run in runs),
        "gain_pct": gains.mean,
        "gain_ci95_pct": _ends(gains),
        "schedule_s": schedule.took_s,
        "messages": schedule.messages,
        "parcels": schedule.parcels,
        "joined": schedule.joined,
        "network_messages": runs[0].network_messages,
        "network_bytes": runs[0].network_bytes,
        "runs": [{"seed": seed, **asdict(run)} for seed, run in enumerate(runs)],
    }


def _ends(interval: Interval) -> list[float | None] | None:
    return None if interval.half_width is None else [interval.low, interval.high]
