"""`raddle replay`: a trace on another fabric or placement, and with scheduled messages."""

import tomllib
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from raddle.cli.options import AsJson, Quiet
from raddle.cli.talk import guarded, print_json, print_table, progress_wanted, say
from raddle.errors import TraceError
from raddle.text import count, elapsed_s, span_us

__all__ = ["replay"]


@guarded
def replay(
    trace: Annotated[
        Path, typer.Argument(help="The trace, NAME.trace.parquet.", show_default=False)
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", help="Folder for summary.json and gains.svg.", show_default=False
        ),
    ],
    fabric: Annotated[
        Path | None,
        typer.Option("--fabric", help="The map.", show_default="the trace's own"),
    ] = None,
    placement: Annotated[
        str, typer.Option(help="recorded, blocks:N (N ranks per host) or in-turn.")
    ] = "recorded",
    schedule: Annotated[
        list[str] | None,
        typer.Option(
            "--schedule",
            help="none, reorder, aggregate or both; may be repeated.",
            show_default="all",
        ),
    ] = None,
    scope: Annotated[
        str,
        typer.Option(help="Join messages of one rank to one host (process) or rank (pair)."),
    ] = "process",
    scheme: Annotated[str, typer.Option(help="Congestion control.")] = "none",
    seeds: Annotated[int, typer.Option(min=1, help="Runs of each schedule.")] = 5,
    sockets: Annotated[int, typer.Option(min=1, help="Sockets of a host.")] = 2,
    processors: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Processors that all hosts share, as in a lab; rank r runs on r mod so many.",
            show_default="one for each rank",
        ),
    ] = None,
    costs: Annotated[
        Path | None,
        typer.Option("--costs", help="Costs of hosts (TOML).", show_default="usual ones"),
    ] = None,
    gap_share: Annotated[
        float, typer.Option(min=0, max=1, help="Seeds vary compute gaps by up to this share.")
    ] = 0.02,
    start_skew: Annotated[str, typer.Option(help="Ranks start up to this much later.")] = "1us",
    traces: Annotated[
        bool,
        typer.Option("--traces", help="Also write NAME.trace.parquet: the calls as replayed."),
    ] = False,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, help="Runs at the same time.", show_default="cores"),
    ] = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Simulate a recorded program, and say what scheduling its messages gains."""
    from raddle.files import claim_folder, write_json
    from raddle.plots import save
    from raddle.replay import SCHEDULES, Settings, draw_gains
    from raddle.replay import replay as replay_trace

    settings = Settings(
        fabric=fabric,
        placement=placement,
        scope=scope,
        scheme=scheme,
        sockets=sockets,
        costs=_costs(costs),
        seeds=seeds,
        gap_share=gap_share,
        start_skew=start_skew,
        processors=processors,
    )
    run = partial(
        replay_trace, trace, schedule or SCHEDULES, settings,
        jobs=jobs, traces=out if traces else None,
    )  # fmt: skip
    with claim_folder(out, "replay"):
        if progress_wanted(quiet=quiet):
            from raddle.cli.progress import CountBar

            with CountBar("runs") as bar:
                summary = run(watch=bar.show)
        else:
            summary = run()
        write_json(out / "summary.json", {"schema": 1, **summary})
        save(draw_gains(summary), out / "gains.svg")
    if as_json:
        print_json(summary)
    elif not quiet:
        _show(summary)
        say(f"\nresults   {out}")


def _costs(file: Path | None) -> dict[str, Any]:
    if file is None:
        return {}
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        msg = f"{file}: {error}"
        raise TraceError(msg) from error


def _show(summary: dict[str, Any]) -> None:
    recorded = (span_us(1e6 * summary["recorded"][key]) for key in ("time_s", "mpi_s"))
    rows = [("(recorded)", *recorded, *("",) * 5)]
    for name, row in summary["schedules"].items():
        ends = row["gain_ci95_pct"]
        rows.append(
            (
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
    times = ("time", "in MPI", "gain", "95 %", "scheduling")
    header = ("schedule", *times, "parcels", "through the network")
    print_table(header, rows)
