"""`raddle sweep`: an experiment at many settings."""

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from raddle import services
from raddle.cli.merge import write_sweep_pages
from raddle.cli.options import (
    AsJson,
    EngineChoice,
    ExperimentFile,
    Jobs,
    Quiet,
    Replace,
    Scheduler,
    Shard,
    Threads,
    check_only,
    key_values,
    results_folder,
)
from raddle.cli.progress import shown_progress
from raddle.cli.show import say_sweep, show_sweep, show_sweep_plan
from raddle.cli.status import show_shared
from raddle.cli.talk import (
    EXIT_INTERRUPTED,
    guarded,
    print_json,
    say,
    say_one_thread,
    terminate_like_interrupt,
)

__all__ = ["sweep"]


@guarded
def sweep(
    file: ExperimentFile,
    settings: Annotated[
        list[str],
        key_values(
            "--set",
            "-s",
            help="A key of the experiment and its values; several make all combinations.",
        ),
    ],
    out: Annotated[
        Path | None, results_folder("out/NAME-OF-FILE-sweep", help="Folder of the points.")
    ] = None,
    dry_run: Annotated[bool, check_only("all points, and estimate time and memory.")] = False,
    no_report: Annotated[bool, typer.Option("--no-report", help="Leave out sweep.html.")] = False,
    reports: Annotated[
        bool, typer.Option("--reports", help="Also write a report.html for every point.")
    ] = False,
    replace: Replace = False,
    jobs: Jobs = None,
    threads: Threads = None,
    engine: EngineChoice = None,
    shard: Shard = None,
    scheduler: Scheduler = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run an experiment at many settings: a results folder per point, one table, one picture."""
    by = services.engines.choice.chosen(
        engine, jobs=jobs, shard=shard, scheduler=scheduler, threads=threads
    )
    chosen = [services.overlay.parse_setting(text) for text in settings]
    points = services.sweep.plan_points(file, chosen)
    folder = out if out is not None else Path("out") / f"{file.stem}-sweep"
    if not quiet:
        for warning in dict.fromkeys(w for p in points for w in p.plan.warnings):
            say(f"warning: {warning}")
        say_one_thread(threads, [p.plan.one_thread for p in points])
    if dry_run:
        found = services.estimate.measured([p.plan for p in points])
        points = [dataclasses.replace(p, plan=q) for p, q in zip(points, found, strict=True)]
        if as_json:
            plans = [
                {
                    "set": dict(p.set),
                    "folder": p.name,
                    **services.estimate.plan_as_json(p.plan, jobs),
                }
                for p in points
            ]
            total = services.estimate.estimate_total(found, jobs)
            print_json({"points": plans, "estimate": total})
        else:
            show_sweep_plan(points, jobs)
        return
    terminate_like_interrupt()
    with shown_progress(quiet=quiet or as_json) as watch:
        outcomes, table = services.sweep.run_sweep(
            points, folder, engine=by, watch=watch, replace=replace
        )
    if not outcomes[0].joined:
        show_shared(outcomes, folder, quiet=quiet, as_json=as_json)
        return
    page = write_sweep_pages(outcomes, folder, table, picture=not no_report, reports=reports)
    if as_json:
        print_json(table)
    else:
        show_sweep(table)
    if not quiet:
        say_sweep(outcomes, folder, report=page)
    if outcomes[0].interrupted:
        raise typer.Exit(EXIT_INTERRUPTED)
