"""`raddle record`: run an MPI program and keep what it called as a trace."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from raddle import services
from raddle.cli.options import AsJson, Quiet
from raddle.cli.talk import guarded_launcher, print_json, say
from raddle.errors import TraceError
from raddle.text import elapsed_s, many, size

if TYPE_CHECKING:
    from raddle.core.trace import Trace

__all__ = ["record", "say_recorded"]


@guarded_launcher
def record(
    command: Annotated[
        list[str],
        typer.Argument(
            help="mpirun with its arguments, or a script that starts it.", show_default=False
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="NAME.trace.parquet",
            help="The trace to write.",
            show_default=False,
        ),
    ],
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run an MPI program and record its messages, collectives and compute gaps.

    The exit status is the command's. All hosts must see the folder of the trace.
    """
    recorded = services.record.record(command, out, _run)
    say_recorded(recorded.trace, out, quiet=quiet, as_json=as_json)
    if recorded.status:
        raise typer.Exit(recorded.status)


def say_recorded(trace: "Trace | None", out: Path, *, quiet: bool, as_json: bool = False) -> None:
    """Tell what was recorded; None: a command that failed left no trace."""
    if as_json:
        print_json({"trace": None if trace is None else {"file": str(out), **trace.as_json()}})
    elif trace is None:
        say("the command failed and left no trace")
    elif not quiet:
        calls = sum(kind.calls for kind in trace.collectives)
        say(
            f"wrote {out}: {elapsed_s(trace.duration_s)} of {many(trace.ranks, 'rank')} on "
            f"{many(len(trace.hosts), 'host')}, {many(trace.messages, 'message')} "
            f"({size(trace.bytes)}), {many(calls, 'call')} of collectives"
        )


def _run(words: Sequence[str], environment: Mapping[str, str]) -> int:
    try:
        status = subprocess.run(list(words), env=dict(environment), check=False).returncode
    except OSError as error:
        msg = f"{words[0]}: {error.strerror}"
        raise TraceError(msg) from error
    return status if status >= 0 else 128 - status
