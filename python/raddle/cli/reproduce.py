"""`raddle reproduce`: the papers' figures beside ours."""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from raddle import services
from raddle.cli.options import AsJson, Jobs, Quiet, results_folder
from raddle.cli.talk import (
    guarded,
    print_json,
    print_table,
    progress_wanted,
    say,
    terminate_like_interrupt,
)

__all__ = ["reproduce"]


class PaperName(StrEnum):
    """Papers by their names."""

    multicast = "multicast"
    congestion = "congestion"
    offload = "offload"
    scheduling = "scheduling"
    multirail = "multirail"


@guarded
def reproduce(
    papers: Annotated[
        list[PaperName] | None,
        typer.Argument(help="Which papers.", show_default="all"),
    ] = None,
    out: Annotated[Path | None, results_folder("out/reproduce")] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="Fewer seeds, rounds and points: under 15 minutes a paper on two cores.",
        ),
    ] = False,
    no_search: Annotated[
        bool,
        typer.Option("--no-search", help="Leave out the search over inputs that papers have lost."),
    ] = False,
    measure: Annotated[
        bool,
        typer.Option(
            "--measure", help="First measure real programs in labs: root, and a quiet machine."
        ),
    ] = False,
    keep: Annotated[
        bool,
        typer.Option("--keep", help="Also write the figures that docs/results is made of."),
    ] = False,
    jobs: Jobs = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Run the papers' experiments and compare every figure and sentence with ours.

    Works in a clone of Raddle's repository. A call that was stopped goes on.
    """
    terminate_like_interrupt()
    with _shown(quiet=quiet) as step:
        found = services.reproduce.reproduce(
            [paper.value for paper in papers or ()],
            out=out if out is not None else Path("out") / "reproduce",
            quick=quick,
            keep=keep,
            search=not no_search,
            measure=measure,
            jobs=jobs,
            say=None if quiet else say,
            step=step,
        )
    if as_json:
        print_json(found.summary)
        return
    header = (
        "paper",
        "holds",
        "misses",
        "not shown",
        "lost",
        "within 10 %",
        "best point",
        "points",
    )
    lines = []
    models = [
        (f"{paper}, {variant}" if variant else paper, counts)
        for paper, first in found.summary["papers"].items()
        for variant, counts in {"": first, **first.get("variants", {})}.items()
    ]
    for name, counts in models:
        verdicts, search = counts["verdicts"], counts.get("search")
        within = f"{counts['predicted_within']} of {counts['predicted_cells']}"
        best = f"{search['best_holds']} of {search['findings']}" if search else ""
        points = str(search["points"]) if search else ""
        words = (str(verdicts[key]) for key in ("holds", "misses", "not_shown", "lost"))
        lines.append((name, *words, within, best, points))
    print_table(header, lines)
    if not quiet:
        for page in found.pages.values():
            say(f"wrote {page}")


@contextmanager
def _shown(*, quiet: bool) -> Iterator[services.reproduce.context.Step | None]:
    """What shows how far each piece of work is; None where nobody watches."""
    if not progress_wanted(quiet=quiet):
        yield None
        return
    tasks: dict[str, TaskID] = {}
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as bars:

        def step(label: str, done: int, total: int) -> None:
            if label not in tasks:
                tasks[label] = bars.add_task(label, total=total)
            bars.update(tasks[label], completed=done, total=total)
            if done >= total:
                bars.remove_task(tasks.pop(label))

        yield step
