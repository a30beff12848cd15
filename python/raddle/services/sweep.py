"""`raddle sweep`: one experiment at many settings, one results folder per point, one picture.

A point is the experiment with a few keys replaced. It is planned, stamped and simulated as any
other experiment is, so that a sweep resumes where it stopped and a point that stands already is
not simulated again.
"""

import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raddle.errors import ExperimentError
from raddle.files import write_json
from raddle.plan import Plan
from raddle.results.claim import kind_of
from raddle.results.planned import Planned
from raddle.services.engines.choice import LOCAL, Engine
from raddle.services.overlay import Setting, naming_the_setting, overlays
from raddle.services.run import Outcome, execute_all, plan_text
from raddle.services.runner import Watch
from raddle.statistics.figures import FIGURES, HIGHER_IS_BETTER, of_finished, per_seed
from raddle.statistics.rule import leaders

__all__ = [
    "Point",
    "plan_points",
    "refuse_no_sweep",
    "run_sweep",
    "sweep_json",
    "write_table",
]

SWEEP_SCHEMA = 1
VERDICT = ("headline", "compared", "readings", "comparison")
"""What a point keeps of its verdict."""


@dataclass(frozen=True, slots=True)
class Point:
    """One combination of values: what was set, the folder's name, and what will run there."""

    set: Mapping[str, str]
    name: str
    plan: Plan


def plan_points(file: Path, settings: Sequence[Setting]) -> list[Point]:
    """Plan every combination of the settings' values, the last setting varying fastest.

    Raises
    ------
    ExperimentError
        The experiment or a value is not valid; the message names the point.
    """
    points = []
    for chosen, text in overlays(file, settings):
        name = ",".join(f"{key}={value}" for key, value in chosen.items())
        folder = _folder_name(name)
        # Beside the experiment that it includes.
        path = file.parent / f"--set {folder}"
        with naming_the_setting(path, chosen):
            plan = plan_text(text, path)
        points.append(Point(chosen, folder, plan))
    return points


def run_sweep(
    points: Sequence[Point],
    out: Path,
    *,
    engine: Engine = LOCAL,
    watch: Watch | None = None,
    replace: bool = False,
) -> tuple[list[Outcome], dict[str, Any]]:
    """Simulate what is missing of all points, and write `out`/sweep.json if it is ours to join.

    With `replace`, results of other experiments in the points' folders are deleted.

    Returns
    -------
    tuple
        What each point did, and the table that `sweep.json` holds. After Ctrl-C the finished
        runs are kept and the table says ``complete: false``; the same call resumes.
    """
    refuse_no_sweep(out)
    planned = [Planned(p.plan, out / p.name, p.set) for p in points]
    outcomes = execute_all(planned, out, engine=engine, watch=watch, replace=replace)
    table: dict[str, Any] = {}
    if all(outcome.joined for outcome in outcomes):
        table = write_table([p.set for p in points], outcomes, out)
    return outcomes, table


def refuse_no_sweep(out: Path) -> None:
    """Refuse a folder that no sweep may be written into.

    Raises
    ------
    ExperimentError
        It is a file, or holds results of another command.
    """
    if out.exists() and not out.is_dir():
        msg = f"{out} is a file; give --out a folder"
        raise ExperimentError(msg)
    held = kind_of(out)
    if held not in (None, "sweep", "other"):
        msg = f"{out} holds results of `raddle {held}`\n  hint: name another folder with --out"
        raise ExperimentError(msg)


def write_table(
    sets: Sequence[Mapping[str, str]], outcomes: Sequence[Outcome], out: Path
) -> dict[str, Any]:
    """Write `out`/sweep.json, and give what it holds: what came of each point."""
    table = sweep_json(sets, outcomes, out)
    if write_json(out / "sweep.json", table):
        (out / "sweep.html").unlink(missing_ok=True)
    return table


def sweep_json(
    sets: Sequence[Mapping[str, str]], outcomes: Sequence[Outcome], out: Path
) -> dict[str, Any]:
    """The sweep as one table: the main figures of every scheme at every point."""
    rows = []
    for chosen, outcome in zip(sets, outcomes, strict=True):
        schemes = outcome.summary.get("schemes", {})
        verdict = outcome.summary.get("verdict") or {}
        rows.append(
            {
                "set": dict(chosen),
                "folder": outcome.out.relative_to(out).as_posix(),
                "complete": outcome.complete,
                "best": verdict.get("best"),
                "verdict": {key: verdict.get(key) for key in VERDICT},
                "leaders": _leaders(schemes, verdict),
                "schemes": {name: _figures(row) for name, row in schemes.items()},
            }
        )
    keys = list(sets[0]) if sets else []
    return {
        "schema": SWEEP_SCHEMA,
        "name": outcomes[0].plan.name if outcomes else "",
        "complete": all(outcome.complete for outcome in outcomes),
        "keys": {key: list(dict.fromkeys(chosen[key] for chosen in sets)) for key in keys},
        "seeds": list(outcomes[0].plan.seeds) if outcomes else [],
        "figures": dict(FIGURES),
        "points": rows,
    }


def _leaders(
    schemes: Mapping[str, Mapping[str, Any]], verdict: Mapping[str, Any]
) -> dict[str, list[str]]:
    """By figure, the scheme that leads at a point, or those that tie; none where none is named."""
    decides = (verdict.get("comparison") or {}).get("figure")
    found = {name: per_seed(row) for name, row in schemes.items()}
    unfinished = any(row["finished"] < row["flows"] for row in schemes.values())
    table: dict[str, list[str]] = {}
    for key in FIGURES:
        if key == decides:
            table[key] = list(verdict["leaders"])
            continue
        values = {name: own[key] for name, own in found.items() if own.get(key)}
        comparable = len(values) > 1 and not (unfinished and of_finished(key))
        lower = key not in HIGHER_IS_BETTER
        table[key] = list(leaders(values, lower_is_better=lower)) if comparable else []
    return table


def _figures(row: Mapping[str, Any]) -> dict[str, Any]:
    score = row.get("score")
    slowdown = row.get("slowdown") or {}
    spreads = row.get("ci95") or {}
    slow = slowdown.get("ci95") or {}
    figures: dict[str, tuple[Any, Any]] = {}
    if score:
        total = score["s"][score["primary"]]
        figures["s"] = total["mean"], total["ci95"]
        for role in ("long", "short", "allreduce"):
            ratio = score["parts"][role]["ratio"]
            figures[f"s_{role}"] = ratio["mean"], ratio["ci95"]
    figures["slowdown_p50"] = slowdown.get("p50"), slow.get("p50")
    figures["slowdown_p99"] = slowdown.get("p99"), slow.get("p99")
    for key in (
        "goodput_gbps", "long_flow_rate_gbps", "pause_us", "max_port_queue_bytes", "drops",
    ):  # fmt: skip
        figures[key] = row.get(key), spreads.get(key)
    return {
        "flows": row["flows"],
        "finished": row["finished"],
        **{key: value for key, (value, _) in figures.items()},
        "fct_p50_us": {n: v.get("p50") for n, v in row["fct_us"].items()},
        "fct_p99_us": {n: v.get("p99") for n, v in row["fct_us"].items()},
        "lower_bound": bool(score and score["lower_bound"]),
        "ci95": {key: half for key, (_, half) in figures.items() if half is not None},
    }


def _folder_name(name: str) -> str:
    """`name` as a folder; what a file system may not take becomes `_`."""
    clean = re.sub(r"[^\w.,=+@%\[\]-]+", "_", name)
    if clean == name and len(os.fsencode(clean)) <= 200:
        return clean
    return f"{clean[:150]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
