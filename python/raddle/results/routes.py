"""What `raddle route` leaves in a folder."""

import json
from pathlib import Path
from typing import Any

from raddle.core.route import RouteSummary
from raddle.errors import RaddleError, ResultsError

__all__ = ["load_drawn", "load_summary"]

Json = dict[str, Any]


def load_summary(folder: Path) -> RouteSummary:
    """`summary.json` of a folder that `raddle route` wrote.

    Raises
    ------
    ResultsError
        There is none, it is of something else, or another version wrote it.
    """
    file = folder / "summary.json"
    try:
        text = file.read_text(encoding="utf-8")
        kind = json.loads(text).get("kind")
    except FileNotFoundError as error:
        msg = f"{folder} is not a results folder: it has no summary.json"
        raise ResultsError(msg) from error
    except ValueError as error:
        msg = f"{file} is damaged ({error}); delete it and route again"
        raise ResultsError(msg) from error
    if kind != "route":
        msg = f"{folder} holds results of a simulation, not of `raddle route`"
        raise ResultsError(msg)
    try:
        return RouteSummary.from_json(text)
    except RaddleError as error:
        msg = f"{file} is of another version of raddle; route again"
        raise ResultsError(msg) from error


def load_drawn(folder: Path) -> Json:
    """One tree of each engine for the map, from `drawn.json`."""
    file = folder / "drawn.json"
    try:
        drawn: Json = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        msg = f"{file} cannot be read ({error}); route again"
        raise ResultsError(msg) from error
    return drawn
