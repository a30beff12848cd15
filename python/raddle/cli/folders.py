"""`raddle report` and `raddle compare`: what is done with folders of results."""

from pathlib import Path
from typing import Annotated

import typer

from raddle import report as pages
from raddle import results, services
from raddle.cli.options import AsJson, real
from raddle.cli.show_compare import comparison_json, show_comparison
from raddle.cli.talk import answer_no, guarded, print_json, say
from raddle.text import many, verb

__all__ = ["compare", "report"]


@guarded
def report(
    folder: Annotated[Path, typer.Argument(help="A results folder.", show_default=False)],
    explorer: Annotated[
        bool,
        typer.Option(
            "--explorer", help="Write explorer.html instead: what `raddle view` shows, as one file."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Write the page of a results folder of `raddle run`, `sweep` or `route` again."""
    file = pages.explorer.write_explorer(folder) if explorer else pages.write_page(folder)
    faults = (
        results.faults.faults_of(results.load(folder))
        if (folder / "flows.parquet").is_file()
        else ()
    )
    for fault in faults:
        say(f"warning: {folder}/{fault.words}")
    if as_json:
        described = [fault.as_json() for fault in faults]
        print_json({"report": str(file), "bytes": file.stat().st_size, "faults": described})
    else:
        print(file)


@guarded
def compare(
    a: Annotated[Path, typer.Argument(metavar="A", help="A results folder.", show_default=False)],
    b: Annotated[
        Path, typer.Argument(metavar="B", help="A second results folder.", show_default=False)
    ],
    tolerance: Annotated[
        float | None,
        real(help="Largest allowed difference in %; exit 1 if one is larger.", show_default="none"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Compare two results folders: differences of the experiments, then of the figures."""
    found = services.compare.compare_folders(a, b)
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
