"""`report.html`: one file that works offline, made from a results folder."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from raddle.errors import ResultsError
from raddle.files import write_text
from raddle.report.page import render
from raddle.report.replay import render_replay
from raddle.report.routes import render_routes
from raddle.report.sweep import render_sweep
from raddle.results.faults import refuse_changed
from raddle.results.folder import load

__all__ = [
    "write_page",
    "write_replay_report",
    "write_report",
    "write_route_report",
    "write_sweep",
]


def write_page(folder: Path) -> Path:
    """Write the page of what `raddle run`, `sweep`, `route` or `replay` left; return its path.

    Raises
    ------
    ResultsError
        `folder` is none of these, or one of its files cannot be read.
    """
    if not (folder / "flows.parquet").is_file():
        sweep, summary = (_read(folder / name) for name in ("sweep.json", "summary.json"))
        if sweep is not None:
            return write_sweep(folder, sweep)
        if summary is not None and summary.get("kind") == "route":
            return write_route_report(folder)
        if summary is not None and "trace" in summary:
            return write_replay_report(folder)
    return write_report(folder)


def write_report(folder: str | Path) -> Path:
    """Write `folder`/report.html and return its path.

    What is left out because a file is missing stands in the page; `results.faults` tells it, too.

    Raises
    ------
    ResultsError
        `folder` is not a results folder, or one of its files cannot be read or is not as the run
        wrote it.
    """
    results = load(folder)
    refuse_changed(results)
    file = results.path / "report.html"
    write_text(file, render(results))
    return file


def write_route_report(folder: Path) -> Path:
    """Write `folder`/report.html of what `raddle route` left there, and return its path."""
    file = folder / "report.html"
    write_text(file, render_routes(folder))
    return file


def write_replay_report(folder: Path) -> Path:
    """Write `folder`/report.html of what `raddle replay` left there, and return its path."""
    file = folder / "report.html"
    write_text(file, render_replay(folder))
    return file


def write_sweep(folder: Path, table: Mapping[str, Any]) -> Path:
    """Write `folder`/sweep.html of the table that `run_sweep` gives, and return its path."""
    reports = all((folder / p["folder"] / "report.html").is_file() for p in table["points"])
    file = folder / "sweep.html"
    write_text(file, render_sweep(table, reports=reports))
    return file


def _read(file: Path) -> dict[str, Any] | None:
    if not file.is_file():
        return None
    try:
        value: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        msg = f"{file} cannot be read: {error}"
        raise ResultsError(msg) from error
    return value
