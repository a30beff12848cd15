"""`report.html`: one file that works offline, made from a results folder."""

from pathlib import Path

from raddle.files import write_text
from raddle.results import load

__all__ = ["write_report"]


def write_report(folder: str | Path) -> Path:
    """Write `folder`/report.html and return its path.

    Raises
    ------
    ResultsError
        `folder` is not a results folder, or one of its files cannot be read.
    """
    from raddle.report.page import render

    results = load(folder)
    file = results.path / "report.html"
    write_text(file, render(results))
    return file
