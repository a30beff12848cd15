"""The commands. Each one checks its words, calls one function of the package, and prints."""

import dataclasses
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from raddle.cli import fabric, lab, trace, traffic
from raddle.cli.capacity import capacity
from raddle.cli.config import config
from raddle.cli.mgid import mgid
from raddle.cli.options import AsJson, Jobs, Quiet, real
from raddle.cli.place import place
from raddle.cli.record import record
from raddle.cli.replay import replay
from raddle.cli.route import route
from raddle.cli.talk import (
    EXIT_INTERRUPTED,
    Commands,
    examples,
    guarded,
    print_json,
    print_table,
    progress_wanted,
    say,
    terminate_like_interrupt,
)
from raddle.errors import ExperimentError
from raddle.text import many, verb

__all__ = ["app"]

Replace = Annotated[
    bool,
    typer.Option("--replace", help="Delete results of another experiment that the folder holds."),
]

app = typer.Typer(
    name="raddle",
    cls=Commands,
    help="Simulate HPC fabrics, route multicast, replay MPI programs, run a virtual cluster.",
    epilog=examples(
        "raddle init my.toml            write a commented experiment that runs as it is",
        "raddle run my.toml             simulate it, write results and report.html",
        "raddle run my.toml --dry-run   what would run, and what it would cost",
        "raddle doctor                  what works on this machine",
    ),
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
app.add_typer(fabric.app, name="fabric")
app.add_typer(traffic.app, name="traffic")
app.add_typer(lab.app, name="lab")
app.add_typer(trace.app, name="trace")
app.command(
    name="route",
    epilog=examples(
        "raddle route experiments/multicast-grid-64x32x16.toml",
        "raddle route my.toml --out out/first --json | jq '.engines[].max_efi'",
        "raddle route my.toml --set multicast.colours=8,16,32,64,256 --out out/colours",
        "raddle route my.toml --dry-run   check the file, count the groups",
        "raddle route my.toml --check-loops   can unicast and the trees together deadlock?",
    ),
)(route)
app.command(
    name="mgid",
    epilog=examples(
        "raddle mgid my-routes.toml --csv mgids.csv",
        "raddle mgid --fabric map.toml --groups communicators.csv --colours 32",
        "raddle mgid --fabric map.toml --grid 64x32x16 --json | jq .sharing",
    ),
)(mgid)
app.command(
    name="capacity",
    epilog=examples(
        "raddle capacity --m 20 --colours 256                 groups that 40-port switches carry",
        "raddle capacity --m 20 --count 10000                 table entries for 10,000 groups",
        "raddle capacity --m 16 --grid 64x32x16 --processes 4 --colours 32",
        "raddle capacity my-routes.toml --json | jq .fewest_colours",
    ),
)(capacity)
app.command(
    name="place",
    epilog=examples(
        "raddle place jobs.toml",
        "raddle place jobs.toml --backfill --json | jq '.jobs[] | {name, state, reason}'",
    ),
)(place)
app.command(
    name="record",
    epilog=examples(
        "raddle record --out melt.trace.parquet -- mpirun -np 8 lmp -in in.melt",
        "raddle record -o my.trace.parquet -- ./job.sh     whatever starts the ranks",
        "raddle lab mpirun --record my.trace.parquet -- ./solver     between hosts of a lab",
    ),
    context_settings={"allow_interspersed_args": False},
)(record)
app.command(
    name="replay",
    epilog=examples(
        "raddle replay lammps.trace.parquet --out out/lammps",
        "raddle replay lammps.trace.parquet --fabric big.toml --dry-run",
        "raddle replay lammps.trace.parquet --scheme none --scheme hpcc --schedule both",
        "raddle replay lammps.trace.parquet --fabric big.toml --placement blocks:24 --out out/big",
        "raddle replay em.trace.parquet --schedule both --scheme hpcc --seeds 10 --out out/em",
        "raddle replay em.trace.parquet --json | jq .schemes.none.schedules.both.gain_pct",
    ),
)(replay)
app.command(
    name="config",
    epilog=examples(
        "raddle config                       every RADDLE_* variable; exit 1 if a value is invalid",
        "raddle config --json | jq '.settings[] | select(.set)'",
    ),
)(config)


def _version(value: bool) -> None:
    if not value:
        return
    from raddle import __version__

    print(f"raddle {__version__}")
    raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Simulate HPC fabrics, route multicast, replay MPI programs, run a virtual cluster."""


@app.command(
    epilog=examples(
        "raddle run experiments/congestion-small.toml",
        "raddle run my.toml --out out/first --jobs 4",
        "raddle run my.toml --json --no-report | jq .verdict.leaders",
        "Ctrl-C keeps finished runs; the same command resumes.",
    )
)
@guarded
def run(
    file: Annotated[Path, typer.Argument(help="The experiment (TOML).", show_default=False)],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Results folder.", show_default="out/NAME-OF-FILE"),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only check it, and estimate time and memory.")
    ] = False,
    no_report: Annotated[bool, typer.Option("--no-report", help="Leave out report.html.")] = False,
    replace: Replace = False,
    jobs: Jobs = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Simulate an experiment: every scheme and seed, results and a report into a folder."""
    from raddle import runner
    from raddle.files import source_name

    plan = runner.plan_file(file)
    folder = out if out is not None else Path("out") / source_name(file).stem
    if not quiet:
        for warning in plan.warnings:
            say(f"warning: {warning}")
        for scheme, rows in plan.parameters.items():
            for row in rows:
                if row.warning:
                    say(f"warning: [schemes.{scheme}] {row.key} = {row.value}: {row.warning}")
    if dry_run:
        from raddle.cli.show import show_plan
        from raddle.estimate import measured, plan_as_json

        (plan,) = measured([plan])
        if as_json:
            print_json(plan_as_json(plan, jobs))
        else:
            show_plan(plan, jobs)
        return
    terminate_like_interrupt()
    if progress_wanted(quiet=quiet or as_json):
        from raddle.cli.progress import RunProgress

        with RunProgress() as bars:
            outcome = runner.execute(plan, folder, jobs=jobs, watch=bars.show, replace=replace)
    else:
        outcome = runner.execute(plan, folder, jobs=jobs, replace=replace)
    if not no_report and outcome.summary.get("schemes"):
        from raddle.report import write_report

        write_report(folder)
    if as_json:
        print_json(outcome.summary)
    else:
        from raddle.cli.show import show_summary

        show_summary(outcome.summary)
    if not quiet:
        from raddle.cli.show import say_outcome

        say_outcome(outcome, report=not no_report)
    if outcome.interrupted:
        raise typer.Exit(EXIT_INTERRUPTED)


@app.command(
    epilog=examples(
        "raddle sweep my.toml --set simulation.buffer=4MiB,8MiB,16MiB,32MiB",
        "raddle sweep my.toml --set traffic.load_factor=0.3,0.6,0.9 --set simulation.buffer=8MiB,"
        "32MiB --out out/sweep",
        "raddle sweep my.toml --set schemes.hpcc.target_utilisation=0.9,0.95 --json",
        "Ctrl-C keeps finished runs; the same command resumes.",
    )
)
@guarded
def sweep(
    file: Annotated[Path, typer.Argument(help="The experiment (TOML).", show_default=False)],
    settings: Annotated[
        list[str],
        typer.Option(
            "--set",
            "-s",
            metavar="KEY=VALUE,...",
            help="A key of the experiment and its values; several make all combinations.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="Folder of the points.", show_default="out/NAME-OF-FILE-sweep"
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only check all points, and estimate time and memory.")
    ] = False,
    no_report: Annotated[bool, typer.Option("--no-report", help="Leave out sweep.html.")] = False,
    reports: Annotated[
        bool, typer.Option("--reports", help="Also write a report.html for every point.")
    ] = False,
    replace: Replace = False,
    jobs: Jobs = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run an experiment at many settings: a results folder per point, one table, one picture."""
    from raddle.cli.show import show_sweep, show_sweep_plan
    from raddle.sweep import parse_setting, plan_points, run_sweep

    points = plan_points(file, [parse_setting(text) for text in settings])
    folder = out if out is not None else Path("out") / f"{file.stem}-sweep"
    if not quiet:
        for warning in dict.fromkeys(w for p in points for w in p.plan.warnings):
            say(f"warning: {warning}")
    if dry_run:
        from raddle.estimate import estimate_total, measured, plan_as_json

        found = measured([p.plan for p in points])
        points = [dataclasses.replace(p, plan=q) for p, q in zip(points, found, strict=True)]
        if as_json:
            plans = [
                {"set": dict(p.set), "folder": p.name, **plan_as_json(p.plan, jobs)} for p in points
            ]
            total = estimate_total(found, jobs)
            print_json({"points": plans, "estimate": total})
        else:
            show_sweep_plan(points, jobs)
        return
    terminate_like_interrupt()
    if progress_wanted(quiet=quiet or as_json):
        from raddle.cli.progress import RunProgress

        with RunProgress() as bars:
            outcomes, table = run_sweep(points, folder, jobs=jobs, watch=bars.show, replace=replace)
    else:
        outcomes, table = run_sweep(points, folder, jobs=jobs, replace=replace)
    begun = any(p["schemes"] for p in table["points"])
    if reports and begun:
        from raddle.report import write_report

        for outcome in outcomes:
            if outcome.summary.get("schemes"):
                write_report(outcome.out)
    if not no_report and begun:
        from raddle.report import write_sweep

        write_sweep(folder, table)
    if as_json:
        print_json(table)
    else:
        show_sweep(table)
    if not quiet:
        from raddle.cli.show import say_sweep

        say_sweep(outcomes, folder, report=not no_report and begun)
    if outcomes[0].interrupted:
        raise typer.Exit(EXIT_INTERRUPTED)


@app.command(epilog=examples("raddle report out/my"))
@guarded
def report(
    folder: Annotated[Path, typer.Argument(help="A results folder.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Make the page of a results folder of `raddle run`, `sweep` or `route` anew."""
    from raddle.faults import faults_of
    from raddle.report import write_page
    from raddle.results import load

    file = write_page(folder)
    faults = faults_of(load(folder)) if (folder / "flows.parquet").is_file() else ()
    for fault in faults:
        say(f"warning: {folder}/{fault.words}")
    if as_json:
        described = [fault.as_json() for fault in faults]
        print_json({"report": str(file), "bytes": file.stat().st_size, "faults": described})
    else:
        print(file)


@app.command(
    epilog=examples(
        "raddle compare out/before out/after",
        "raddle compare out/a out/b --tolerance 2   exit 1 if a figure differs by more than 2 %",
    )
)
@guarded
def compare(
    a: Annotated[Path, typer.Argument(metavar="A", help="A results folder.", show_default=False)],
    b: Annotated[Path, typer.Argument(metavar="B", help="Another one.", show_default=False)],
    tolerance: Annotated[
        float | None,
        real(help="Largest difference in %; exit 1 if one is larger.", show_default="none"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare two results folders: differences of the experiments, then of the figures."""
    from raddle.cli.show_compare import comparison_json, show_comparison
    from raddle.cli.talk import answer_no
    from raddle.compare import compare_folders

    found = compare_folders(a, b)
    if as_json:
        print_json(comparison_json(found, tolerance))
    else:
        show_comparison(found, tolerance)
    over = [r for r in found.rows if tolerance is not None and r.exceeds(tolerance)]
    if over:
        figures = many(len(found.rows), "figure")
        say(
            f"{len(over):,} of {figures} {verb(len(over), 'differs', 'differ')} by more than "
            f"{tolerance:g} %"
        )
        answer_no()


@app.command(
    epilog=examples("raddle init my.toml", "raddle init | raddle run /dev/stdin --out out/first")
)
@guarded
def init(
    file: Annotated[
        Path | None, typer.Argument(help="Where to write it; stdout if left out.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write a commented experiment that runs as it is."""
    from raddle.cli.template import EXPERIMENT
    from raddle.files import write_text

    if file is None:
        if as_json:
            print_json({"experiment": EXPERIMENT})
        else:
            sys.stdout.write(EXPERIMENT)
        return
    if file.exists() and not force:
        msg = f"{file} exists already\n  hint: choose another name, or --force to replace it"
        raise ExperimentError(msg)
    write_text(file, EXPERIMENT)
    if as_json:
        print_json({"file": str(file)})
    else:
        say(f"wrote {file}; next: raddle run {file}")


class SchemaOf(StrEnum):
    """Files that have a schema."""

    EXPERIMENT = "experiment"
    ROUTE = "route"


@app.command(
    epilog=examples(
        "raddle schema > experiment.schema.json", "raddle schema route > route.schema.json"
    )
)
@guarded
def schema(
    of: Annotated[SchemaOf, typer.Argument(help="Which kind of file.")] = SchemaOf.EXPERIMENT,
    as_json: AsJson = False,
) -> None:
    """Print the JSON Schema of an experiment or a route file, for editors."""
    from raddle import _core

    print(_core.route_schema() if of is SchemaOf.ROUTE else _core.experiment_schema())


@app.command(epilog=examples("raddle doctor", "raddle doctor --json"))
@guarded
def doctor(as_json: AsJson = False) -> None:
    """Say what works on this machine, and what to install for the rest."""
    from raddle.cli.doctor import examine
    from raddle.cli.talk import answer_no

    checks = examine()
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
