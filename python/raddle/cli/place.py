"""`raddle place`: a queue of jobs onto a machine, so that no two jobs share a link."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from raddle import services
from raddle.cli.options import AsJson
from raddle.cli.talk import answer_no, guarded, print_json, print_table, say
from raddle.text import many

if TYPE_CHECKING:
    from raddle.core.groups import Placement

__all__ = ["place"]


@guarded
def place(
    file: Annotated[
        Path,
        typer.Argument(help="A job file (TOML): machine, running jobs, queue.", show_default=False),
    ],
    backfill: Annotated[
        bool, typer.Option("--backfill", help="Later jobs may start before one that waits.")
    ] = False,
    widen: Annotated[
        bool, typer.Option("--widen", help="A job may spread further than its class.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Place a queue of jobs so that no two share a link; exit 1 if a job has to wait."""
    found = services.groups.place(file, backfill=backfill, widen=widen)
    for warning in found.warnings:
        say(f"warning: {warning}")
    if as_json:
        print_json(found.as_json())
    else:
        _show(found)
    if found.placed < len(found.jobs):
        answer_no()


def _show(found: "Placement") -> None:
    rows = [
        (
            job.name,
            job.state,
            job.job_class or "",
            f"{job.terminals:,}",
            "" if job.l0s is None else f"{job.l0s:,}",
            _spans(job.cns),
            _ends(job.hosts),
        )
        for job in found.jobs
    ]
    print_table(("job", "", "class", "terminals", "L0s", "CNs", "hosts"), rows, left=3)
    for job in found.jobs:
        if job.reason:
            print(f"{job.name}: {job.reason}")
    print(
        f"\n{found.placed:,} of {many(len(found.jobs), 'job')} placed; {found.free:,} of "
        f"{many(found.fabric.hosts, 'terminal')} free"
    )


def _spans(numbers: Sequence[int]) -> str:
    """Numbers as runs: 0-3, 7."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][1] + 1 == number:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def _ends(hosts: Sequence[str]) -> str:
    if len(hosts) <= 2:
        return ", ".join(hosts)
    return f"{hosts[0]} to {hosts[-1]}"
