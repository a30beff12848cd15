"""`raddle route`: multicast groups on a fabric, routed by several engines side by side."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from raddle import report, services
from raddle.cli.options import AsJson, NoReport, Quiet, check_only, key_values, results_folder
from raddle.cli.progress import shown_progress
from raddle.cli.show_route import say_results, show_check, show_summary
from raddle.cli.talk import answer_no, guarded, print_json, say
from raddle.files import source_name

if TYPE_CHECKING:
    from raddle.core.route import RouteSummary

__all__ = ["route"]


@guarded
def route(
    file: Annotated[Path, typer.Argument(help="The route file (TOML).", show_default=False)],
    out: Annotated[Path | None, results_folder("out/NAME-OF-FILE")] = None,
    settings: Annotated[
        list[str] | None,
        key_values("--set", "-s", help="A key of the file and its values, a folder each."),
    ] = None,
    dry_run: Annotated[bool, check_only("the file, and describe fabric and groups.")] = False,
    check_loops: Annotated[
        bool,
        typer.Option(
            "--check-loops", help="Check whether unicast and an engine's trees can deadlock."
        ),
    ] = False,
    no_report: NoReport = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Route multicast groups: trees, switch tables and measures of each engine into a folder."""
    points = services.route.points_of(file, settings or (), check_loops=check_loops)
    checks = [services.route.check_point(*point) for point in points]
    if not quiet:
        for warning in dict.fromkeys(w for checked in checks for w in checked.warnings):
            say(f"warning: {warning}")
    base = out if out is not None else Path("out") / source_name(file).stem
    answers: list[dict[str, Any]] = []
    routed = dry_run
    for (chosen, path, text), checked in zip(points, checks, strict=True):
        folder = base / path.name if chosen else base
        if chosen and not as_json:
            print(f"{', '.join(f'{k} = {v}' for k, v in chosen.items())}")
        if dry_run:
            answers.append({"set": dict(chosen), **checked.as_json()})
            if not as_json:
                show_check(checked)
            continue
        with shown_progress(quiet=quiet or as_json) as watch:
            summary = services.route.execute(
                text, path, folder, engines=len(checked.engines), watch=watch
            )
        routed |= bool(summary.routed)
        if not no_report:
            report.write_route_report(folder)
        answers.append({"set": dict(chosen), "folder": str(folder), **summary.as_json()})
        if not as_json:
            _show(summary, folder, report=not no_report, quiet=quiet)
    if as_json:
        if settings:
            print_json({"points": answers})
        else:
            print_json({k: v for k, v in answers[0].items() if k not in ("set", "folder")})
    if not routed:
        answer_no()


def _show(summary: "RouteSummary", folder: Path, *, report: bool, quiet: bool) -> None:
    show_summary(summary)
    if not quiet:
        say_results(folder, report=report)
