"""`raddle replay`: a trace on another fabric or placement, and with scheduled messages."""

from pathlib import Path
from typing import Annotated, Any

import typer

from raddle import report, results, services, statistics
from raddle.cli.options import (
    AsJson,
    Jobs,
    NoReport,
    Quiet,
    Threads,
    check_only,
    quantity,
    real,
    results_folder,
    whole,
)
from raddle.cli.progress import shown_progress
from raddle.cli.run import execute
from raddle.cli.show import show_plan
from raddle.cli.talk import guarded, print_json, print_table, say, say_one_thread
from raddle.files import write_json
from raddle.services.engines.choice import Engine
from raddle.text import count, elapsed_s, many, span_us

__all__ = ["replay"]


@guarded
def replay(
    traces_given: Annotated[
        list[Path],
        typer.Argument(
            metavar="TRACE...",
            help="The trace, NAME.trace.parquet; several run side by side.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None,
        results_folder(
            "out/NAME-OF-TRACE-replay", help="Folder for summary.json, report.html and gains.svg."
        ),
    ] = None,
    fabric: Annotated[
        Path | None,
        typer.Option("--fabric", help="The map.", show_default="the trace's own"),
    ] = None,
    placement: Annotated[
        str,
        typer.Option(
            help="Hosts of the ranks: recorded, blocks:N (N ranks on each host) or in-turn."
        ),
    ] = "recorded",
    schedule: Annotated[
        list[str] | None,
        typer.Option(
            "--schedule",
            help="Message schedule: none, reorder, aggregate, both (our window), published "
            "(both, by the paper's window) or library (as libraddle_mpi.so joins messages); may be "
            "repeated.",
            show_default="none, reorder, aggregate and both",
        ),
    ] = None,
    collectives: Annotated[
        list[str] | None,
        typer.Option(
            "--collectives",
            help="Who carries collectives: host, multicast (Bcast, Barrier) or offload (Allreduce, "
            "Reduce, Barrier in switches); may be repeated.",
            show_default="host",
        ),
    ] = None,
    rails: Annotated[
        int, whole(least=1, most=8, help="Links of each host that are used as one.")
    ] = 1,
    scope: Annotated[
        str | None,
        typer.Option(
            help="Which messages may be joined: of a rank to one other (rank-to-rank) or to all "
            "ranks of a host (rank-to-node).",
            show_default="rank-to-rank for library, else rank-to-node",
        ),
    ] = None,
    leaders: Annotated[
        int,
        whole(
            least=1,
            most=4096,
            help="Ranks of a host, spread over it, that take messages for several of its ranks "
            "apart.",
        ),
    ] = 1,
    scheme: Annotated[
        list[str] | None,
        typer.Option("--scheme", help="Congestion control; may be repeated.", show_default="none"),
    ] = None,
    seeds: Annotated[
        int, whole(most=100_000, help="Runs of each schedule, with varied gaps and starts.")
    ] = 5,
    sockets: Annotated[int, whole(help="CPU sockets of a host; its ranks fill them in order.")] = 2,
    processors: Annotated[
        int | None,
        whole(
            help="Processors that all hosts share, as in a lab; rank r runs on processor r mod N.",
            show_default="one for each rank",
        ),
    ] = None,
    costs: Annotated[
        Path | None,
        typer.Option(
            "--costs",
            help="Costs of hosts that differ from the defaults (TOML).",
            show_default="none",
        ),
    ] = None,
    algorithm: Annotated[
        list[str] | None,
        typer.Option(
            "--algorithm",
            help="Algorithm of a collective, such as allreduce=double-tree, bcast=ring, "
            "allgather=recursive-doubling or alltoall=linear; may be repeated.",
            show_default="automatic: by bytes and ranks",
        ),
    ] = None,
    gap_share: Annotated[
        float, real(most=1, help="Each seed varies compute gaps by up to this share.")
    ] = 0.02,
    start_skew: Annotated[
        str, quantity("time", help="Each seed delays the start of ranks by up to this.")
    ] = "1us",
    traces: Annotated[
        bool,
        typer.Option(
            "--traces",
            help="Also write the replayed calls of each schedule: SCHEDULE.trace.parquet.",
        ),
    ] = False,
    dry_run: Annotated[bool, check_only("it, and say what would run.")] = False,
    no_report: NoReport = False,
    jobs: Jobs = None,
    threads: Threads = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Replay recorded programs on a simulated fabric; say what scheduling, switches, rails gain."""
    given = services.costs.Costs({}) if costs is None else services.costs.read_file(costs)
    settings = services.replay.Settings(
        fabric=fabric,
        placement=placement,
        scope=scope,
        leaders=leaders,
        sockets=sockets,
        costs=given.changed,
        costs_from=given.as_json(),
        seeds=seeds,
        gap_share=gap_share,
        start_skew=start_skew,
        processors=processors,
        algorithms=tuple(algorithm or ()),
    )
    trace = traces_given[0]
    folder = out or Path("out") / f"{trace.name.removesuffix(results.trace.SUFFIX)}-replay"
    if len(traces_given) > 1 or rails > 1 or {*(collectives or ())} - {"host"}:
        shared = services.replay_shared.Shared(
            traces=traces_given,
            schemes=scheme or ["none"],
            collectives=collectives or ["host"],
            schedules=schedule or ["none"],
            rails=rails,
            costs=costs,
        )
        services.replay_shared.refuse_what_is_not_shared(settings, traces=traces)
        text = services.replay_shared.experiment(shared, settings)
        plan = services.run.plan_text(text, Path(f"{folder.name}.toml"))
        if dry_run:
            (plan,) = services.estimate.measured([plan])
            if as_json:
                print_json(services.estimate.plan_as_json(plan, jobs))
            else:
                show_plan(plan, jobs)
            return
        engine = Engine(jobs=jobs, threads=threads)
        execute(
            plan, folder, engine, no_report=no_report, replace=True, quiet=quiet, as_json=as_json
        )
        return
    asked = trace, scheme or ["none"], schedule or services.replay.SCHEDULES, settings
    planned = services.replay.preview(*asked)  # what is wrong is said before anything is written
    if dry_run:
        if as_json:
            print_json(planned)
        else:
            _show_plan(planned)
        return
    if not quiet:
        say_one_thread(threads, [planned["one_thread"]])
    with results.claim.claim_folder(folder, "replay"):
        with shown_progress(quiet=quiet) as watch:
            summary = services.replay.replay_schemes(
                *asked,
                jobs=jobs,
                threads=threads,
                watch=watch,
                traces=folder if traces else None,
            )
        write_json(folder / "summary.json", {"schema": 1, **summary})
        report.plots.save(report.gains.draw_gains(summary), folder / "gains.svg")
        if not no_report:
            report.write_replay_report(folder)
    if as_json:
        print_json(summary)
    elif not quiet:
        _show(summary)
        say(f"\nresults   {folder}")
        if not no_report:
            say(f"report    {folder / 'report.html'}")


def _show_plan(planned: dict[str, Any]) -> None:
    hosts = planned["hosts"]
    say(f"{planned['trace']}: {many(planned['runs'], 'run')}")
    say(
        f"ranks     {planned['ranks']:,} on {many(hosts['used'], 'host')} of {hosts['of_map']:,}, "
        f"at most {hosts['most_ranks']:,} on one"
    )
    say(f"fabric    {planned['fabric']}")
    say(f"costs     {statistics.calibration.told(planned['calibration'])}")
    say(f"schemes   {', '.join(planned['schemes'])}")
    _show_algorithms(planned)
    say()
    rows = [
        (name, count(row["messages"]), count(row["parcels"]))
        for name, row in planned["schedules"].items()
    ]
    print_table(("schedule", "messages between hosts", "parcels"), rows)
    _show_notes(planned)


def _show(summary: dict[str, Any]) -> None:
    recorded = summary["recorded"]
    rows = []
    if recorded["mpi_s"] > 0:  # the calls of a generated trace take no time
        times = (span_us(1e6 * recorded[key]) for key in ("time_s", "mpi_s"))
        rows.append(("(recorded)", "", *times, *("",) * 5))
    for scheme, found in summary["schemes"].items():
        for name, row in found["schedules"].items():
            ends = row["gain_ci95_pct"]
            rows.append(
                (
                    scheme,
                    name,
                    span_us(1e6 * row["time_s"]),
                    span_us(1e6 * row["mpi_s"]),
                    "" if name == "none" else f"{row['gain_pct']:.2f} %",
                    "" if name == "none" or ends is None else f"{ends[0]:.2f} to {ends[1]:.2f}",
                    "" if name == "none" else elapsed_s(row["schedule_s"]),
                    count(row["parcels"]),
                    count(row["network_messages"]),
                )
            )
    header = (
        "scheme", "schedule", "time", "in MPI", "gain", "95 %", "scheduling", "parcels",
        "through the network",
    )  # fmt: skip
    print_table(header, rows, left=2)
    say(f"\nhost costs {statistics.calibration.told(summary['calibration'])}")
    _show_algorithms(summary)
    _show_notes(summary)


def _show_algorithms(told: dict[str, Any]) -> None:
    """Those that were chosen."""
    chosen = {kind: name for kind, name in told["algorithms"].items() if name != "automatic"}
    if chosen:
        say("algorithms " + ", ".join(f"{kind}={name}" for kind, name in chosen.items()))


def _show_notes(summary: dict[str, Any]) -> None:
    for note in summary["notes"]:
        say(f"\nnote: {note}")
