"""`raddle trace`: what a trace consists of, and other formats of it."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from raddle import report, services, statistics
from raddle.cli.options import AsJson, Quiet, Seed, quantity, whole
from raddle.cli.talk import Commands, examples, guarded, print_json, print_table, say
from raddle.files import write_text
from raddle.text import count, duration_s, many, size, span_us

if TYPE_CHECKING:
    from raddle.core.trace import Trace

__all__ = ["app"]

app = typer.Typer(
    cls=Commands,
    help="Traces of MPI programs: show, import, export and generate them.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

TraceFile = Annotated[
    Path, typer.Argument(help="The trace, NAME.trace.parquet.", show_default=False)
]
Out = Annotated[Path, typer.Option("--out", "-o", help="The trace to write.", show_default=False)]
OwnFabric = Annotated[
    Path | None,
    typer.Option(
        "--fabric",
        help="A map to keep in the trace, on which it is replayed by default.",
        show_default=False,
    ),
]


MOST_CALLS_SPLIT = 1_000_000
"""Beyond it a picture says nothing about late ranks: that would take longer than all else."""


class Sizes(StrEnum):
    """How long most messages are."""

    SMALL = "small"
    LARGE = "large"


@app.command(
    epilog=examples(
        "raddle trace show lammps.trace.parquet",
        "raddle trace show lammps.trace.parquet --plot lammps.svg   matrix and sizes",
        "raddle trace show lammps.trace.parquet --json | jq .supersteps",
    )
)
@guarded
def show(
    trace: TraceFile,
    plot: Annotated[
        Path | None,
        typer.Option(
            "--plot",
            help="Draw who sends how much to whom, and sizes (.svg, .png, .pdf).",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show ranks, messages by size, supersteps, collectives and times of a trace."""
    if plot is not None:
        report.plots.check_ending(plot)
        found = services.trace.describe(trace, matrix=True)
        small = found.calls <= MOST_CALLS_SPLIT
        times = statistics.waits.split_time(trace) if small else None
        report.plots.save(report.trace.draw(found, title=trace.name, times=times), plot)
    else:
        found = services.trace.describe(trace, matrix=as_json)
    if as_json:
        print_json(found.as_json())
        return
    _show(found)
    if plot is not None:
        say(f"plot      {plot}")


@app.command(
    epilog=examples(
        "raddle trace times lammps.trace.parquet",
        "raddle trace times lammps.trace.parquet out/none.trace.parquet   recorded, replayed",
        "raddle trace times lammps.trace.parquet --json | jq '.traces[0].ranks'   of each rank",
    )
)
@guarded
def times(
    traces: Annotated[
        list[Path], typer.Argument(help="Traces, a column each.", show_default=False)
    ],
    as_json: AsJson = False,
) -> None:
    """Show where time goes, as the mean over ranks: computing, sending, waiting.

    A wait counts as late until the message it waits for is sent, and as wire from then on.
    """
    found = [statistics.waits.split_time(trace) for trace in traces]
    if as_json:
        named = zip(traces, found, strict=True)
        print_json({"traces": [{"file": str(trace), **split} for trace, split in named]})
        return
    parts = [split["parts"] for split in found]
    rows = [(part, *(_milliseconds(of[part]) for of in parts)) for part in statistics.waits.PARTS]
    totals = [sum(of.values()) for of in parts]
    in_mpi = (_milliseconds(all_ - of["compute"]) for all_, of in zip(totals, parts, strict=True))
    rows += [("in MPI", *in_mpi), ("all", *map(_milliseconds, totals))]
    print_table(("ms", *(trace.name.removesuffix(".trace.parquet") for trace in traces)), rows)


@app.command(
    "import",
    epilog=examples(
        "raddle trace import stencil.goal --out stencil.trace.parquet",
        "raddle trace import stencil.goal --out stencil.trace.parquet --fabric map.toml",
        "raddle trace import gpt/ --out gpt.trace.parquet   gpt.0.et, gpt.1.et, ... of Chakra",
    ),
)
@guarded
def import_(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="A GOAL schedule (text), or Chakra files NAME.RANK.et, or their folder.",
            show_default=False,
        ),
    ],
    out: Out,
    fabric: OwnFabric = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Read a GOAL schedule of LogGOPSim, or Chakra's execution traces, as a trace."""
    _made(services.trace.import_files(files, out, fabric=fabric), out, quiet, as_json)


@app.command(
    epilog=examples("raddle trace export lammps.trace.parquet --out lammps.goal"),
)
@guarded
def export(
    trace: TraceFile,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="The file to write.", show_default="stdout"),
    ] = None,
) -> None:
    """Write a trace as a GOAL schedule, its collectives as messages."""
    text = services.trace.export_goal(trace)
    if out is None:
        sys.stdout.write(text)
    else:
        write_text(out, text)


@app.command(
    epilog=examples(
        "raddle trace generate electromagnetics --ranks 96 --per-host 24 --out em.trace.parquet",
        "raddle trace generate transport --ranks 384 --sizes large --out sn.trace.parquet",
        "raddle trace generate training --settings gpt.toml --out gpt.trace.parquet",
    )
)
@guarded
def generate(
    context: typer.Context,
    application: Annotated[
        str,
        typer.Argument(
            help="particle-in-cell, electromagnetics, transport, laser-fusion, "
            "radiation-hydrodynamics or molecular-dynamics; training: of a neural network.",
            show_default=False,
        ),
    ],
    out: Out,
    ranks: Annotated[int, whole(most=1_000_000, help="Number of ranks.")] = 96,
    per_host: Annotated[int, whole(help="Ranks on each host, in order.")] = 24,
    sizes: Annotated[Sizes, typer.Option(help="How long most messages are.")] = Sizes.SMALL,
    exchanges: Annotated[
        int, whole(most=1_000_000, help="Number of exchanges (of transport: sweeps).")
    ] = 10,
    gap: Annotated[str, quantity("time", help="Time of computing before each superstep.")] = "10us",
    seed: Seed = 1,
    settings: Annotated[
        Path | None,
        typer.Option(
            "--settings",
            help="Of training: the model, how it is shared out, and times (TOML); in place of "
            "the options about ranks, sizes, exchanges, gap and seed.",
            show_default=False,
        ),
    ] = None,
    fabric: OwnFabric = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Make a trace of one of six kinds of programs, or of steps of training."""
    if application == services.trace.TRAINING:
        _refuse_others(context)
        if settings is None:
            msg = "training needs --settings FILE.toml (docs/concepts/training.md has an example)"
            raise typer.BadParameter(msg)
        made = services.trace.generate_training(settings, out, fabric=fabric)
        _made(made, out, quiet, as_json)
        return
    if settings is not None:
        msg = f"--settings is for training, not for {application}"
        raise typer.BadParameter(msg)
    found = services.trace.generate(
        application,
        out,
        sizes=sizes.value,
        ranks=ranks,
        per_host=per_host,
        exchanges=exchanges,
        gap=gap,
        seed=seed,
        fabric=fabric,
    )
    _made(found, out, quiet, as_json)


def _refuse_others(context: typer.Context) -> None:
    """Training has these in its settings."""
    for name in ("ranks", "per_host", "sizes", "exchanges", "gap", "seed"):
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            option = name.replace("_", "-")
            msg = f"--{option} is not for training: its --settings say all that"
            raise typer.BadParameter(msg)


def _milliseconds(seconds: float) -> str:
    return f"{1e3 * seconds:,.3f}"


def _made(found: "Trace", out: Path, quiet: bool, as_json: bool) -> None:
    if as_json:
        print_json({"out": str(out), **found.as_json()})
    elif not quiet:
        _show(found)
        say(f"trace     {out}")


def _show(found: "Trace") -> None:
    """A few lines, then tables of sizes and collectives."""
    steps = found.supersteps
    print(f"program   {found.program} ({found.mpi})")
    print(
        f"ranks     {found.ranks:,} on {many(len(found.hosts), 'host')}, "
        f"{many(found.communicators, 'communicator')}"
    )
    print(
        f"messages  {found.messages:,} with {size(found.bytes)}; between hosts "
        f"{found.messages_between_hosts:,} with {size(found.bytes_between_hosts)}"
    )
    if steps.messages_per_rank_mean is not None and steps.messages_per_rank_max is not None:
        print(
            f"supersteps {steps.count:,}; a rank sends {steps.messages_per_rank_mean:.1f} "
            f"messages in one, at most {steps.messages_per_rank_max:,}"
        )
    took = (
        span_us(1e6 * found.duration_s) if found.duration_s < 60 else duration_s(found.duration_s)
    )
    print(f"time      {took}, {100 * found.mpi_share:.1f} % of it in MPI")
    print()
    rows = [
        (f"{size(row.from_bytes)} on", f"{row.messages:,}", size(row.bytes)) for row in found.sizes
    ]
    print_table(("messages of", "number", "together"), rows)
    if found.collectives:
        print()
        rows = [(row.kind, count(row.calls), size(row.bytes)) for row in found.collectives]
        print_table(("collective", "calls", "together"), rows)
