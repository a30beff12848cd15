"""Options that several commands have, and what numbers and quantities may be on all of them."""

import math
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from raddle import services
from raddle.services.engines.choice import EngineName
from raddle.services.runner import MOST_THREADS

__all__ = [
    "AsJson",
    "Colours",
    "EngineChoice",
    "ExperimentFile",
    "FaultTolerant",
    "GridLengths",
    "GroupFile",
    "Jobs",
    "NoReport",
    "Processes",
    "Quiet",
    "Replace",
    "Scheduler",
    "Seed",
    "Shard",
    "Threads",
    "check_only",
    "quantity",
    "real",
    "results_folder",
    "key_values",
    "whole",
]

MOST_COUNT = 2**31 - 1
"""The largest number of things: no command has more, and the compiled part counts in 32 bits."""


def whole(*names: str, help: str, least: int = 1, most: int = MOST_COUNT, **more: Any) -> Any:  # noqa: ANN401 - what typer gives and takes
    """An option that is a whole number from `least` to `most`."""
    return typer.Option(*names, min=least, max=most, help=help, **more)


def real(*names: str, help: str, least: float = 0, most: float = math.inf, **more: Any) -> Any:  # noqa: ANN401
    """An option that is a number with a value, from `least` to `most`."""

    def check(value: float | None) -> float | None:
        if value is not None and not (math.isfinite(value) and least <= value <= most):
            end = f" to {most:g}" if math.isfinite(most) else ""
            msg = f"`{value:g}`: it must be a number from {least:g}{end}"
            raise typer.BadParameter(msg)
        return value

    return typer.Option(*names, help=help, callback=check, **more)


def quantity(kind: Literal["time", "size", "rate"], *names: str, help: str, **more: Any) -> Any:  # noqa: ANN401
    """An option that is a number with its unit, as in a file; the text is handed on."""

    def check(value: str | None) -> str | None:
        if value is not None:
            try:
                services.settings.parse_quantity(kind, value)
            except ValueError as error:
                raise typer.BadParameter(str(error)) from None
        return value

    return typer.Option(*names, help=help, callback=check, metavar=kind.upper(), **more)


def check_only(help: str) -> Any:  # noqa: ANN401
    """The option that only checks; `help` says what it tells."""
    return typer.Option("--dry-run", help=f"Only check {help}")


def results_folder(default: str, help: str = "Results folder.") -> Any:  # noqa: ANN401
    """The option that names the folder of results, in words if it is not given."""
    return typer.Option("--out", "-o", help=help, show_default=default)


def key_values(*names: str, help: str) -> Any:  # noqa: ANN401
    """The option that sets keys of a file, to several values each."""
    return typer.Option(*names, metavar="KEY=VALUE,...", help=help, show_default=False)


AsJson = Annotated[
    bool, typer.Option("--json", help="Print JSON (schema 1) instead of text.", show_default=False)
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print neither notes nor progress.")]
Jobs = Annotated[
    int | None,
    whole(
        "--jobs",
        "-j",
        envvar="RADDLE_JOBS",
        show_envvar=False,
        help="Runs at the same time.",
        show_default="cores",
    ),
]
Threads = Annotated[
    int | None,
    whole(
        "--threads",
        most=MOST_THREADS,
        envvar="RADDLE_THREADS",
        show_envvar=False,
        help="Threads of each run; they change its time and no result.",
        show_default="cores that runs at the same time leave over; 1 where others share the work",
    ),
]
EngineChoice = Annotated[
    EngineName | None,
    typer.Option(
        "--engine",
        help="Who simulates. local: threads of this process. dask: workers of a Dask cluster. "
        "shards: all processes that share the folder, each taking what is free.",
        show_default="local, or shards with --shard",
    ),
]
Shard = Annotated[
    str | None,
    typer.Option(
        "--shard",
        metavar="I/N",
        help="Only the I-th of N parts of the runs, as in a job array.",
        show_default="all that are free",
    ),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler",
        metavar="ADDRESS",
        help="Scheduler of a Dask cluster.",
        show_default="a cluster of --jobs processes here",
    ),
]
NoReport = Annotated[bool, typer.Option("--no-report", help="Leave out report.html.")]
ExperimentFile = Annotated[Path, typer.Argument(help="The experiment (TOML).", show_default=False)]
Replace = Annotated[
    bool,
    typer.Option("--replace", help="Delete the results of another experiment in the folder."),
]
Seed = Annotated[int, whole("--seed", "-s", least=0, most=2**63 - 1, help="Random seed.")]
GroupFile = Annotated[
    Path | None,
    typer.Option("--groups", help="A file of groups: .toml or .csv.", show_default=False),
]
GridLengths = Annotated[
    str | None,
    typer.Option("--grid", metavar="XxY[xZ]", help="A grid of processes.", show_default=False),
]
Processes = Annotated[int, whole("--processes", "-p", help="Processes of a terminal (grid).")]
Colours = Annotated[
    int | None,
    whole(
        "--colours",
        "-c",
        most=65_535,
        help="Multicast entries of a table.",
        show_default="32, or the file's",
    ),
]
FaultTolerant = Annotated[
    bool, typer.Option("--fault-tolerant", help="Two link-disjoint trees for each group.")
]
