"""`raddle-mpi-run`: an experiment simulated by all ranks that `mpirun` has started."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from raddle import services
from raddle.cli.entry import status_of
from raddle.cli.options import (
    AsJson,
    ExperimentFile,
    NoReport,
    Quiet,
    Replace,
    results_folder,
    whole,
)
from raddle.cli.run import execute, planned, usual_folder
from raddle.cli.talk import examples, guarded
from raddle.errors import ExperimentError
from raddle.services.engines.choice import Engine
from raddle.services.runner import MOST_THREADS

__all__ = ["commands", "main"]


def main() -> None:
    """Run the command line at rank 0 and take part in its runs at the others."""
    try:
        group = services.ranks.RankGroup(services.ranks.world())
    except ExperimentError as error:
        sys.exit(status_of(commands(error), "raddle-mpi-run"))  # help needs no MPI
    if group.rank > 0:
        group.serve()
        return
    try:
        status = status_of(commands(group), "raddle-mpi-run")
    finally:
        group.dismiss()
    sys.exit(status)


def commands(group: services.ranks.RankGroup | ExperimentError) -> typer.Typer:
    """The command line for a group of ranks, or for none: then the command ends with the error."""
    app = typer.Typer(
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
        pretty_exceptions_enable=False,
        add_completion=False,
    )

    @app.command(
        epilog=examples(
            "mpirun -n 4 raddle-mpi-run large.toml --out out/large",
            "mpirun -n 8 --map-by node raddle-mpi-run huge.toml --threads 16",
            "All ranks read the same files; rank 0 writes.",
            "Ctrl-C keeps finished runs; the same command resumes.",
        )
    )
    @guarded
    def mpi_run(
        file: ExperimentFile,
        out: Annotated[Path | None, results_folder("out/NAME-OF-FILE")] = None,
        no_report: NoReport = False,
        replace: Replace = False,
        threads: Annotated[
            int,
            whole(
                "--threads",
                most=MOST_THREADS,
                envvar="RADDLE_THREADS",
                show_envvar=False,
                help="Threads of each rank; they change its time and no result.",
            ),
        ] = 1,
        quiet: Quiet = False,
        as_json: AsJson = False,
    ) -> None:
        """Simulate an experiment, each run shared out over all ranks of an MPI job.

        Results are those of `raddle run`, byte for byte.
        """
        if isinstance(group, ExperimentError):
            raise group
        execute(
            planned(file, quiet=quiet, as_json=as_json),
            out if out is not None else usual_folder(file),
            Engine(jobs=1, threads=threads, simulate=group.run),
            no_report=no_report,
            replace=replace,
            quiet=quiet,
            as_json=as_json,
        )

    return app
