"""What a results folder is to hold: the plan of its runs, and the points of a sweep.

Every process that writes the folder leaves the same, so that the folder says by itself what is
missing, and `raddle merge` and `raddle status` need no experiment file.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from raddle.errors import ResultsError
from raddle.files import write_json, write_text
from raddle.plan import Plan

__all__ = ["POINTS", "Planned", "keep", "kept", "kept_plan", "plan_changes"]

PLAN = ".runs/plan.json"
POINTS = ".runs/points.json"


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan, and the folder of its results."""

    plan: Plan
    out: Path
    set: Mapping[str, str] | None = None
    """The point of a sweep: keys and their values. None if the folder is no point of a sweep."""


def plan_changes(planned: Planned) -> bool:
    """Whether the folder was to hold other runs up to now."""
    file = planned.out / PLAN
    return file.is_file() and file.read_bytes() != planned.plan.text.encode()


def keep(points: Sequence[Planned], top: Path) -> None:
    """Write each plan into its folder, and the list of points into that of a sweep."""
    for one in points:
        if plan_changes(one) or not (one.out / PLAN).is_file():
            write_text(one.out / PLAN, one.plan.text)
    if points[0].set is not None:
        rows = [
            {"folder": one.out.relative_to(top).as_posix(), "set": dict(one.set or {})}
            for one in points
        ]
        write_json(top / POINTS, {"schema": 1, "points": rows})


def kept(out: Path) -> list[Planned]:
    """What `out` is to hold: one plan, or that of each point of a sweep.

    Raises
    ------
    ResultsError
        It is not there, or no raddle of this version planned anything there.
    """
    if not out.is_dir():
        msg = f"no results folder at {out}"
        raise ResultsError(msg)
    if not (out / POINTS).is_file():
        return [Planned(kept_plan(out), out)]
    try:
        points = json.loads((out / POINTS).read_text(encoding="utf-8"))["points"]
        folders = [(out / str(point["folder"]), dict(point["set"])) for point in points]
    except (ValueError, KeyError, TypeError) as error:
        msg = f"{out / POINTS} is not a list of points: {error}"
        raise ResultsError(msg) from error
    return [Planned(kept_plan(folder), folder, chosen) for folder, chosen in folders]


def kept_plan(out: Path) -> Plan:
    """The plan of the runs in `out`.

    Raises
    ------
    ResultsError
        No raddle of this version planned anything there.
    """
    file = out / PLAN
    try:
        return Plan.from_json(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        msg = (
            f"{out} has no {PLAN}: no `raddle run` or `raddle sweep` of this version wrote it\n"
            "  hint: call that command once more with this folder as --out"
        )
        raise ResultsError(msg) from error
    except (ValueError, KeyError, TypeError) as error:
        msg = f"{file} is not a plan: {error}\n  hint: delete it and call the command once more"
        raise ResultsError(msg) from error
