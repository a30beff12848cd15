"""What `raddle` runs."""

import sys

import typer

from raddle.cli.app import app
from raddle.cli.streams import open_streams
from raddle.cli.talk import EXIT_USAGE, system_words

__all__ = ["main", "status_of"]


def main() -> None:
    """Run the command line and leave with its exit code (0, 1, 2, 70 or 130)."""
    sys.exit(status_of(app, "raddle"))


def status_of(commands: typer.Typer, name: str) -> str | int | None:
    """Run the commands of the program `name`; what it is to leave with."""
    stdout = open_streams()
    status: str | int | None = 0
    try:
        try:
            commands(prog_name=name)
        except SystemExit as leaving:
            # Help into a closed pipe is 1 to typer.
            status = 0 if stdout.closed_by_reader and leaving.code == 1 else leaving.code
        sys.stdout.flush()
    except OSError as error:  # of help and version, too, which no command prints
        if not stdout.closed_by_reader:
            sys.stderr.write(f"error: {system_words(error)}\n")
            status = EXIT_USAGE
    return status
