"""`report.html`: one file that works offline, made from a results folder."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from raddle.faults import refuse_changed
from raddle.files import write_text
from raddle.results import load

__all__ = ["write_report", "write_route_report", "write_sweep"]


def write_report(folder: str | Path) -> Path:
    """Write `folder`/report.html and return its path.

    What is left out because a file is missing stands in the page; `raddle.faults` tells it, too.

    Raises
    ------
    ResultsError
        `folder` is not a results folder, or one of its files cannot be read or is not as the run
        wrote it.
    """
    from raddle.report.page import render

    results = load(folder)
    refuse_changed(results)
    file = results.path / "report.html"
    write_text(file, render(results))
    return file


def write_route_report(folder: Path) -> Path:
    """Write `folder`/report.html of what `raddle route` left there, and return its path."""
    from raddle.report.routes import render_routes

    file = folder / "report.html"
    write_text(file, render_routes(folder))
    return file


def write_sweep(folder: Path, table: Mapping[str, Any]) -> Path:
    """Write `folder`/sweep.html of the table that `run_sweep` gives, and return its path."""
    from raddle.report.sweep import render_sweep

    reports = all((folder / p["folder"] / "report.html").is_file() for p in table["points"])
    file = folder / "sweep.html"
    write_text(file, render_sweep(table, reports=reports))
    return file
