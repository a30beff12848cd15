"""`raddle run`: an experiment simulated into a folder."""

from pathlib import Path
from typing import Annotated

import typer

from raddle import report, services
from raddle.cli.options import (
    AsJson,
    EngineChoice,
    ExperimentFile,
    Jobs,
    NoReport,
    Quiet,
    Replace,
    Scheduler,
    Shard,
    Threads,
    check_only,
    results_folder,
)
from raddle.cli.progress import shown_progress
from raddle.cli.show import say_outcome, show_plan, show_summary
from raddle.cli.status import show_shared
from raddle.cli.talk import (
    EXIT_INTERRUPTED,
    guarded,
    print_json,
    say,
    say_one_thread,
    terminate_like_interrupt,
)
from raddle.files import source_name
from raddle.plan import Plan
from raddle.services.engines.choice import Engine

__all__ = ["execute", "planned", "run", "usual_folder"]


@guarded
def run(
    file: ExperimentFile,
    out: Annotated[Path | None, results_folder("out/NAME-OF-FILE")] = None,
    dry_run: Annotated[bool, check_only("it, and estimate time and memory.")] = False,
    no_report: NoReport = False,
    replace: Replace = False,
    jobs: Jobs = None,
    threads: Threads = None,
    engine: EngineChoice = None,
    shard: Shard = None,
    scheduler: Scheduler = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Simulate an experiment: every scheme and seed, results and a report into a folder."""
    chosen = services.engines.choice.chosen(
        engine, jobs=jobs, shard=shard, scheduler=scheduler, threads=threads
    )
    plan = planned(file, quiet=quiet, as_json=as_json)
    if not quiet:
        say_one_thread(threads, [plan.one_thread])
    if dry_run:
        (plan,) = services.estimate.measured([plan])
        if as_json:
            print_json(services.estimate.plan_as_json(plan, jobs))
        else:
            show_plan(plan, jobs)
        return
    execute(
        plan,
        out if out is not None else usual_folder(file),
        chosen,
        no_report=no_report,
        replace=replace,
        quiet=quiet,
        as_json=as_json,
    )


def usual_folder(file: Path) -> Path:
    """Where the results of an experiment go if nothing is said."""
    return Path("out") / source_name(file).stem


def planned(file: Path, *, quiet: bool, as_json: bool) -> Plan:
    """Plan the experiment `file` and say what it warns of."""
    with shown_progress(quiet=quiet or as_json) as watch:
        plan = services.run.plan_file(file, watch=watch)
    if not quiet:
        for warning in plan.warnings:
            say(f"warning: {warning}")
        for scheme, rows in plan.parameters.items():
            for row in rows:
                if row.warning:
                    say(f"warning: [schemes.{scheme}] {row.key} = {row.value}: {row.warning}")
    return plan


def execute(
    plan: Plan,
    folder: Path,
    engine: Engine,
    *,
    no_report: bool,
    replace: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Simulate a plan into a folder and say what came of it."""
    terminate_like_interrupt()
    with shown_progress(quiet=quiet or as_json) as watch:
        outcome = services.run.execute(plan, folder, engine=engine, watch=watch, replace=replace)
    if not outcome.joined:
        show_shared([outcome], folder, quiet=quiet, as_json=as_json)
        return
    if not no_report and outcome.summary.get("schemes"):
        report.write_report(folder)
    if as_json:
        print_json(outcome.summary)
    else:
        show_summary(outcome.summary)
    if not quiet:
        say_outcome(outcome, report=not no_report)
    if outcome.interrupted:
        raise typer.Exit(EXIT_INTERRUPTED)
