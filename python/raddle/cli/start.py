"""`raddle init`, `schema` and `doctor`: what one begins with."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from raddle import services
from raddle.cli.options import AsJson
from raddle.cli.talk import answer_no, guarded, print_json, print_table, say
from raddle.errors import ExperimentError
from raddle.files import write_text

__all__ = ["doctor", "init", "schema"]


class SchemaOf(StrEnum):
    """Files that have a schema."""

    EXPERIMENT = "experiment"
    ROUTE = "route"


@guarded
def init(
    file: Annotated[
        Path | None, typer.Argument(help="Where to write it; stdout if left out.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a commented experiment that runs as it is."""
    if file is None:
        if as_json:
            print_json({"experiment": services.template.EXPERIMENT})
        else:
            sys.stdout.write(services.template.EXPERIMENT)
        return
    if file.exists() and not force:
        msg = f"{file} exists already\n  hint: choose another name, or --force to replace it"
        raise ExperimentError(msg)
    write_text(file, services.template.EXPERIMENT)
    if as_json:
        print_json({"file": str(file)})
    else:
        say(f"wrote {file}; next: raddle run {file}")


@guarded
def schema(
    of: Annotated[SchemaOf, typer.Argument(help="The kind of file.")] = SchemaOf.EXPERIMENT,
    as_json: AsJson = False,
) -> None:
    """Print the JSON Schema of an experiment or a route file, for editors."""
    print(services.settings.schema("route" if of is SchemaOf.ROUTE else "experiment"))


@guarded
def doctor(as_json: AsJson = False) -> None:
    """Say what works on this machine, and what to install for the rest."""
    checks = services.doctor.examine()
    healthy = all(c.works for c in checks if c.needed)
    if as_json:
        print_json({"healthy": healthy, "checks": [c.as_json() for c in checks]})
    else:
        rows = [
            ("ok" if c.works else "MISSING" if c.needed else "absent", c.what, c.found)
            for c in checks
        ]
        print_table(("", "what", "found"), rows, left=3)
        for check in checks:
            if not check.works:
                print(f"\n{check.what}: {check.cure}")
        print(
            "\nEverything that raddle needs works here."
            if healthy
            else "\nraddle does not work here yet."
        )
    if not healthy:
        answer_no()
