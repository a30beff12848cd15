"""Papers reproduced into a folder."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from raddle.files import write_json, write_text
from raddle.report.reproduction import render_paper
from raddle.results.claim import claim_folder
from raddle.results.reproduction import Outcome, count_rows, of_paper, write_parquet
from raddle.services.reproduce.context import Context, Say, Step
from raddle.services.reproduce.markdown import FIGURES, keep_figures, page_of
from raddle.services.reproduce.markdown import keep as keep_outcome
from raddle.services.reproduce.measured import last_measured, read_measurements
from raddle.services.reproduce.measured import measure as take
from raddle.services.reproduce.papers import PAPERS, Paper, find_repository
from raddle.services.reproduce.search import run_search
from raddle.version import __version__

__all__ = ["Reproduced", "reproduce"]


@dataclass(frozen=True, slots=True)
class Reproduced:
    """What `reproduce` left."""

    out: Path
    summary: Mapping[str, Any]
    """As `summary.json` has it."""
    pages: Mapping[str, Path]
    """The page of each paper."""


def reproduce(
    papers: Sequence[str] = (),
    *,
    out: Path,
    quick: bool = False,
    keep: bool = False,
    search: bool = True,
    measure: bool = False,
    jobs: int | None = None,
    say: Say | None = None,
    step: Step | None = None,
    start: Path | None = None,
) -> Reproduced:
    """Reproduce papers: `out` gets results.parquet, summary.json and a page for each.

    What is in `out` already is used again, so that a call that was stopped goes on.

    Parameters
    ----------
    papers
        Names of `PAPERS`; all if there are none.
    quick
        Fewer seeds, rounds and points.
    keep
        Also write what docs/results is made of, into the repository.
    search
        Also search over the inputs that the papers' texts have lost.
    measure
        First take the papers' measurements in labs, which need root and a quiet machine.
    start
        Where to look for the repository; the present folder by default.

    Raises
    ------
    ResultsError
        There is no repository here, or `out` holds something else.
    """
    repository = find_repository((start or Path.cwd()).resolve())
    chosen = [PAPERS[name] for name in dict.fromkeys(papers)] or list(PAPERS.values())
    context = Context(out, quick=quick, jobs=jobs or os.cpu_count() or 1)
    if say is not None:
        context = replace(context, say=say)
    if step is not None:
        context = replace(context, step=step)
    out = out.resolve()
    with claim_folder(out, "reproduce"):
        found = {}
        for paper in chosen:
            context.say(f"{paper.name}: {paper.title}")
            home = paper.home(repository)
            for measurement in read_measurements(repository) if measure else ():
                if measurement.paper == paper.name:
                    context.say(f"measuring {measurement.name}, {measurement.minutes:.0f} min")
                    take(measurement, repository, home)
            own = replace(context, out=out / paper.name, measured=last_measured(home))
            found[paper.name] = _one(paper, repository, own, search=search)
        rows = [row for name, outcome in found.items() for row in of_paper(name, outcome.rows)]
        write_parquet(out / "results.parquet", rows)
        summary = {
            "schema": 1,
            "kind": "reproduce",
            "raddle": __version__,
            "quick": quick,
            "papers": {
                name: {**count_rows(outcome.rows), **outcome.facts}
                for name, outcome in found.items()
            },
        }
        write_json(out / "summary.json", summary)
        pages = {}
        for name, outcome in found.items():
            pages[name] = out / f"{name}.html"
            write_text(pages[name], render_paper(PAPERS[name].title, name, outcome, quick=quick))
            template = PAPERS[name].home(repository) / "page.md"
            if template.is_file():
                write_text(out / f"{name}.md", page_of(template, outcome))
            if keep:
                command = f"raddle reproduce {name}{' --quick' if quick else ''}"
                keep_outcome(outcome, PAPERS[name].home(repository) / "results", command)
                keep_figures(out / name / FIGURES, repository / "docs" / "results" / FIGURES)
    return Reproduced(out, summary, pages)


def _one(paper: Paper, repository: Path, context: Context, *, search: bool) -> Outcome:
    """Run the program of a paper, and search over its lost inputs."""
    context.out.mkdir(parents=True, exist_ok=True)
    outcome = paper.program(repository)(context)
    lost = paper.search(repository) if search else None
    if lost is None:
        return outcome
    found = run_search(lost, context)
    return Outcome(
        outcome.rows,
        {**outcome.tables, **found.tables()},
        {**outcome.facts, "search": json.loads(json.dumps(found.facts()))},
    )
