"""Options that several commands have."""

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["AsJson", "FaultTolerant", "GridLengths", "GroupFile", "Processes", "Quiet"]

AsJson = Annotated[
    bool, typer.Option("--json", help="Print JSON (schema 1) instead of text.", show_default=False)
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No talk, no progress.")]
GroupFile = Annotated[
    Path | None,
    typer.Option("--groups", help="Communicators: .toml or .csv.", show_default=False),
]
GridLengths = Annotated[
    str | None,
    typer.Option("--grid", metavar="XxY[xZ]", help="A grid of processes.", show_default=False),
]
Processes = Annotated[
    int, typer.Option("--processes", "-p", min=1, help="Processes per terminal (grid).")
]
FaultTolerant = Annotated[bool, typer.Option("--fault-tolerant", help="Two trees per group.")]
