"""`raddle merge`: folders of shards joined to one."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from raddle import report, services
from raddle.cli.options import AsJson, Quiet, results_folder
from raddle.cli.show import show_summary, show_sweep
from raddle.cli.talk import answer_no, guarded, print_json, say
from raddle.text import many, verb

if TYPE_CHECKING:
    from raddle.services.merge import Merged
    from raddle.services.run import Outcome

__all__ = ["merge", "write_sweep_pages"]

MOST_NAMED = 10
"""So many missing runs are named; `--json` has all."""


@guarded
def merge(
    folders: Annotated[
        list[Path],
        typer.Argument(metavar="DIR...", help="Results folders of shards.", show_default=False),
    ],
    out: Annotated[Path | None, results_folder("the folder, if it is one; else out/merged")] = None,
    no_report: Annotated[bool, typer.Option("--no-report", help="Leave out the pages.")] = False,
    reports: Annotated[
        bool, typer.Option("--reports", help="Of a sweep, also write every point's report.html.")
    ] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Join the results of shards to one folder, equal to that of one machine.

    Exit status 1 if runs are missing: they are named, and the rest is joined.
    """
    folder = out or (folders[0] if len(folders) == 1 else Path("out/merged"))
    merged = services.merge.merge(folders, folder)
    if merged.table is not None:
        write_sweep_pages(
            merged.outcomes, folder, merged.table, picture=not no_report, reports=reports
        )
    elif not no_report and merged.outcomes[0].summary.get("schemes"):
        report.write_report(folder)
    document = merged.outcomes[0].summary if merged.table is None else merged.table
    if as_json:
        missing = [state.key for state in merged.missing]
        print_json({**document, "complete": merged.complete, "missing": missing})
    elif merged.table is None:
        show_summary(document)
    else:
        show_sweep(document)
    if not quiet:
        runs = sum(len(outcome.states) for outcome in merged.outcomes)
        say(f"\n{runs - len(merged.missing):,} of {many(runs, 'run')} joined")
        say(f"results   {folder}")
    if not merged.complete:
        _say_missing(merged, folders)
        answer_no()


def write_sweep_pages(
    outcomes: "Sequence[Outcome]",
    folder: Path,
    table: Mapping[str, Any],
    *,
    picture: bool,
    reports: bool,
) -> bool:
    """Write the pages of a sweep that are asked for; tell whether there is a picture."""
    begun = any(point["schemes"] for point in table["points"])
    if reports and begun:
        for outcome in outcomes:
            if outcome.summary.get("schemes"):
                report.write_report(outcome.out)
    if picture and begun:
        report.write_sweep(folder, table)
    return picture and begun


def _say_missing(merged: "Merged", folders: "Sequence[Path]") -> None:
    """Which runs are missing, and the way to go on."""
    missing = [state.key for state in merged.missing]
    say(f"{many(len(missing), 'run')} {verb(len(missing), 'is', 'are')} missing:")
    for key in missing[:MOST_NAMED]:
        say(f"  {key}")
    if len(missing) > MOST_NAMED:
        say(f"  and {len(missing) - MOST_NAMED:,} more (--json names all)")
    command = "run" if merged.table is None else "sweep"
    again = f"--engine shards --out {folders[0]}" if len(folders) == 1 else f"--out {merged.out}"
    say(
        f"  hint: the same `raddle {command} ... {again}` simulates these alone; so does each "
        "shard's own command, in its folder, and then `raddle merge` again"
    )
