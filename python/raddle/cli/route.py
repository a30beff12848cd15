"""`raddle route`: multicast groups on a fabric, routed by several engines side by side."""

from pathlib import Path
from typing import Annotated

import typer

from raddle.cli.talk import guarded, print_json, progress_wanted, say

__all__ = ["route"]


@guarded
def route(
    file: Annotated[Path, typer.Argument(help="The route file (TOML).", show_default=False)],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Results folder.", show_default="out/NAME-OF-FILE"),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check the file and describe fabric and groups only.")
    ] = False,
    no_report: Annotated[bool, typer.Option("--no-report", help="Leave out report.html.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No talk, no progress.")] = False,
    as_json: Annotated[
        bool,
        typer.Option("--json", help="Print JSON (schema 1) instead of text.", show_default=False),
    ] = False,
) -> None:
    """Route multicast groups: trees, switch tables and measures of each engine into a folder."""
    from raddle.route import check_file, execute

    checked = check_file(file)
    if not quiet:
        for warning in checked["warnings"]:
            say(f"warning: {warning}")
    if dry_run:
        from raddle.cli.show_route import show_check

        if as_json:
            print_json(checked)
        else:
            show_check(checked)
        return
    folder = out if out is not None else Path("out") / file.stem
    if progress_wanted(quiet=quiet or as_json):
        from raddle.cli.progress import RouteBar

        with RouteBar(checked["engines"]) as bar:
            summary = execute(file, folder, watch=bar.show)
    else:
        summary = execute(file, folder)
    if not no_report:
        from raddle.report import write_route_report

        write_route_report(folder)
    if as_json:
        print_json(summary)
    else:
        from raddle.cli.show_route import show_summary

        show_summary(summary)
    if not quiet:
        from raddle.cli.show_route import say_results

        say_results(folder, report=not no_report)
