"""Replay of traces: how long a program would take elsewhere, and what scheduling gains.

A replay keeps what each rank does and what it waits for, and simulates how long calls take
(docs/traces.md). Seeds vary compute gaps and starts a little, the same for every schedule, so that
a gain is a mean over pairs of runs with a 95 % interval (Student t).
"""

import json
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from raddle.errors import TraceError
from raddle.stats import Interval, mean_interval
from raddle.text import many, suggest
from raddle.trace import SUFFIX

if TYPE_CHECKING:
    from raddle import _core

__all__ = ["SCHEDULES", "Settings", "draw_gains", "replay"]

SCHEDULES = ("none", "reorder", "aggregate", "both")


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
        Which messages may be joined: "process", those of one rank to one host, whose leader hands
        them on (the paper's); "pair", those of one rank to one other.
    scheme
        Congestion control.
    sockets
        Sockets of a host; its ranks are spread over them in order.
    costs
        Costs of hosts that differ from the usual ones, by the names of `_core.replay_costs()`.
    seeds
        Runs of each schedule.
    gap_share
        Every compute gap is longer or shorter by up to this share.
    start_skew
        Ranks start up to this much later.
    processors
        Processors that all hosts share, as those of a lab do: rank r runs on r mod so many; None:
        each rank has one.
    """

    fabric: Path | None = None
    placement: str = "recorded"
    scope: str = "process"
    scheme: str = "none"
    sockets: int = 2
    costs: dict[str, Any] = field(default_factory=dict)
    seeds: int = 5
    gap_share: float = 0.02
    start_skew: str = "1us"
    processors: int | None = None


def replay(
    trace: Path,
    schedules: Sequence[str] = SCHEDULES,
    settings: Settings | None = None,
    *,
    jobs: int | None = None,
    watch: Callable[[int, int], None] | None = None,
    traces: Path | None = None,
) -> dict[str, Any]:
    """Replay a trace with each of `schedules`, and in program order to compare with.

    Parameters
    ----------
    trace
        The trace.
    schedules
        Of "none", "reorder", "aggregate", "both".
    settings
        How.
    jobs
        Runs at the same time; the number of cores if not given.
    watch
        Is told how many runs are done, of how many.
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
    """
    from raddle import _core

    settings = settings or Settings()
    for name in schedules:
        if name not in SCHEDULES:
            msg = f"`{name}` is no schedule: {suggest(name, SCHEDULES)}"
            raise TraceError(msg)
    session = _core.Replay(
        trace,
        None if settings.fabric is None else str(settings.fabric),
        settings.placement,
        settings.scheme,
        settings.sockets,
        json.dumps(_costs(settings.costs)),
        settings.gap_share,
        settings.start_skew,
        settings.processors,
    )
    names = [name for name in SCHEDULES if name == "none" or name in schedules]
    planned = {name: _schedule(session, name, settings.scope) for name in names}
    runs = _run_all(session, {n: made for n, (made, _) in planned.items()}, settings, jobs, watch)
    if traces is not None:
        for name, (made, _) in planned.items():
            session.retell(made, 0, _core.Progress(), traces / f"{name}{SUFFIX}")
    recorded_s, recorded_mpi_s = session.recorded()
    return {
        "trace": str(trace),
        "fabric": "the trace's own" if settings.fabric is None else str(settings.fabric),
        "placement": settings.placement,
        "scope": settings.scope,
        "scheme": settings.scheme,
        "seeds": settings.seeds,
        "gap_share": settings.gap_share,
        "start_skew": settings.start_skew,
        "processors": settings.processors,
        "costs": _costs(settings.costs),
        "recorded": {"time_s": recorded_s, "mpi_s": recorded_mpi_s},
        "schedules": {name: _summary(runs[name], runs["none"], *planned[name]) for name in names},
    }


def _costs(changed: dict[str, Any]) -> dict[str, Any]:
    from raddle import _core

    costs: dict[str, Any] = json.loads(_core.replay_costs())
    for key, value in changed.items():
        table = costs["host"] if key in costs["host"] else costs
        if key not in table or key == "host":
            known = [*costs["host"], *(name for name in costs if name != "host")]
            msg = f"costs: `{key}` is no cost of a host: {suggest(key, known)}"
            raise TraceError(msg)
        table[key] = value
    return costs


def _schedule(
    session: "_core.Replay", name: str, scope: str
) -> tuple["_core.ReplaySchedule", float]:
    """The schedule, and the processor's time that making it took."""
    start = time.thread_time()
    plan = session.plan(name, scope)
    took = time.thread_time() - start
    return session.scheduled(plan), took


def _run_all(
    session: "_core.Replay",
    schedules: dict[str, "_core.ReplaySchedule"],
    settings: Settings,
    jobs: int | None,
    watch: Callable[[int, int], None] | None,
) -> dict[str, list[dict[str, Any]]]:
    from raddle import _core

    total = len(schedules) * settings.seeds
    results: dict[str, list[dict[str, Any]]] = {name: [{}] * settings.seeds for name in schedules}
    progress = _core.Progress()
    with ThreadPoolExecutor(jobs or os.cpu_count() or 1) as pool:
        futures = {
            pool.submit(session.run, schedule, seed, progress): (name, seed)
            for name, schedule in schedules.items()
            for seed in range(settings.seeds)
        }
        try:
            for done, future in enumerate(as_completed(futures), 1):
                name, seed = futures[future]
                results[name][seed] = json.loads(future.result())
                if watch:
                    watch(done, total)
        except BaseException:
            progress.cancel()
            pool.shutdown(cancel_futures=True)
            raise
    return results


def _summary(
    runs: list[dict[str, Any]],
    base: list[dict[str, Any]],
    schedule: "_core.ReplaySchedule",
    schedule_s: float,
) -> dict[str, Any]:
    times = mean_interval(run["time_s"] for run in runs)
    gains = mean_interval(
        100 * (1 - run["time_s"] / plain["time_s"]) if plain["time_s"] > 0 else 0.0
        for run, plain in zip(runs, base, strict=True)
    )
    return {
        "time_s": times.mean,
        "time_ci95_s": _ends(times),
        "mpi_s": fmean(run["mpi_s"] for run in runs),
        "gain_pct": gains.mean,
        "gain_ci95_pct": _ends(gains),
        "schedule_s": schedule_s,
        "messages": schedule.messages,
        "parcels": schedule.parcels,
        "joined": schedule.joined,
        "network_messages": runs[0]["network_messages"],
        "network_bytes": runs[0]["network_bytes"],
        "runs": [{"seed": seed, **run} for seed, run in enumerate(runs)],
    }


def _ends(interval: Interval) -> list[float | None] | None:
    return None if interval.half_width is None else [interval.low, interval.high]


def draw_gains(summary: dict[str, Any]) -> Figure:
    """The gain of every schedule over program order as a labelled bar, with its interval."""
    rows = {name: row for name, row in summary["schedules"].items() if name != "none"}
    figure = Figure(figsize=(1.6 + 1.3 * max(1, len(rows)), 3.6), layout="constrained")
    axis = figure.subplots()
    for place, row in enumerate(rows.values()):
        low, high = row["gain_ci95_pct"] or (row["gain_pct"], row["gain_pct"])
        error = [[row["gain_pct"] - low], [high - row["gain_pct"]]]
        bar = axis.bar(place, row["gain_pct"], color="#0072B2", yerr=error, capsize=4)
        axis.bar_label(bar, fmt="{:.1f} %", padding=3)
    # A gain of nothing has a bar without height: the line and the label are what is seen of it.
    axis.axhline(0, color="black", linewidth=1.2)
    axis.set_xlim(-0.6, max(1, len(rows)) - 0.4)
    axis.margins(y=0.2)
    axis.set_xticks(range(len(rows)), list(rows))
    axis.set_ylabel("time saved in %")
    axis.set_title(
        f"{Path(summary['trace']).name.removesuffix('.trace.parquet')}, "
        f"{many(summary['seeds'], 'seed')}",
        fontsize=9,
    )
    return figure
