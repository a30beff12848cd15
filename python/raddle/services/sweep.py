"""`raddle sweep`: one experiment at many settings, one results folder per point, one picture.

A point is the experiment with a few keys replaced. It is planned, stamped and simulated as any
other experiment is, so that a sweep resumes where it stopped and a point that stands already is
not simulated again.
"""

import itertools
import os
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raddle.errors import ExperimentError
from raddle.figures import FIGURES, HIGHER_IS_BETTER, of_finished, per_seed
from raddle.files import kind_of, write_json
from raddle.plan import Plan
from raddle.rule import leaders
from raddle.runner import Outcome, RunState, execute_all, plan_text
from raddle.text import many

__all__ = [
    "Point",
    "Setting",
    "overlays",
    "parse_setting",
    "plan_points",
    "run_sweep",
    "sweep_json",
]

SWEEP_SCHEMA = 1
MOST_POINTS = 1000
_KEY = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")


@dataclass(frozen=True, slots=True)
class Setting:
    """A key of the experiment and its values, each as the user wrote it."""

    key: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Point:
    """One combination of values: what was set, the folder's name, and what will run there."""

    set: Mapping[str, str]
    name: str
    plan: Plan


def parse_setting(text: str) -> Setting:
    """Read ``KEY=VALUE,VALUE,...``; commas inside brackets, braces and quotes do not part values.

    Examples
    --------
    >>> parse_setting("simulation.buffer=4MiB,8MiB")
    Setting(key='simulation.buffer', values=('4MiB', '8MiB'))
    >>> parse_setting("simulation.seeds=[1, 2],[3]").values
    ('[1, 2]', '[3]')
    """
    key, equals, rest = text.partition("=")
    key = key.strip()
    if not equals or not _KEY.fullmatch(key):
        msg = f"--set {text}: expected KEY=VALUE,VALUE,... as in simulation.buffer=4MiB,8MiB"
        raise ExperimentError(msg)
    values = tuple(_split(rest))
    if not all(values):
        msg = f"--set {text}: a value is missing"
        raise ExperimentError(msg)
    if len(set(values)) < len(values):
        msg = f"--set {text}: the same value stands there twice"
        raise ExperimentError(msg)
    return Setting(key, values)


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
        # Errors name this "file": the point, beside the experiment that it includes.
        folder = _folder_name(name)
        plan = plan_text(text, file.parent / f"--set {folder}")
        points.append(Point(chosen, folder, plan))
    return points


def overlays(
    file: Path, settings: Sequence[Setting], *, beside: bool = True
) -> list[tuple[Mapping[str, str], str]]:
    """Each combination of values and the experiment text that puts them on top of `file`.

    The text stands `beside` the file or anywhere.
    """
    keys = [setting.key for setting in settings]
    for key in keys:
        if keys.count(key) > 1:
            msg = f"--set {key} is given twice: put all of its values into one"
            raise ExperimentError(msg)
        above = next((k for k in keys if key.startswith(f"{k}.")), None)
        if above is not None:
            msg = f"--set {key} lies inside --set {above}: the two contradict each other"
            raise ExperimentError(msg)
    count = 1
    for setting in settings:
        count *= len(setting.values)
    if count > MOST_POINTS:
        msg = f"{many(count, 'point')} are too many (limit {MOST_POINTS:,}): make several sweeps"
        raise ExperimentError(msg)
    base = _read(file)
    included = file.name if beside else str(file.resolve())
    found: list[tuple[Mapping[str, str], str]] = []
    for values in itertools.product(*(setting.values for setting in settings)):
        chosen = dict(zip(keys, values, strict=True))
        found.append((chosen, _overlay(included, str(base.get("name", file.stem)), chosen)))
    return found


def run_sweep(
    points: Sequence[Point],
    out: Path,
    *,
    jobs: int | None = None,
    watch: Callable[[Sequence[RunState]], None] | None = None,
    replace: bool = False,
) -> tuple[list[Outcome], dict[str, Any]]:
    """Simulate what is missing of all points, and write `out`/sweep.json.

    With `replace`, results of other experiments in the points' folders are deleted.

    Returns
    -------
    tuple
        What each point did, and the table that `sweep.json` holds. After Ctrl-C the finished
        runs are kept and the table says ``complete: false``; the same call resumes.
    """
    if out.exists() and not out.is_dir():
        msg = f"{out} is a file; give --out a folder"
        raise ExperimentError(msg)
    held = kind_of(out)
    if held not in (None, "sweep", "other"):  # points of a sweep that was killed are other files
        msg = f"{out} holds results of `raddle {held}`\n  hint: name another folder with --out"
        raise ExperimentError(msg)
    outcomes = execute_all(
        [(p.plan, out / p.name) for p in points], jobs=jobs, watch=watch, replace=replace
    )
    table = sweep_json(points, outcomes)
    if write_json(out / "sweep.json", table):
        (out / "sweep.html").unlink(missing_ok=True)
    return outcomes, table


def sweep_json(points: Sequence[Point], outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """The sweep as one table: the main figures of every scheme at every point."""
    rows = []
    for point, outcome in zip(points, outcomes, strict=True):
        schemes = outcome.summary.get("schemes", {})
        verdict = outcome.summary.get("verdict") or {}
        rows.append(
            {
                "set": dict(point.set),
                "folder": point.name,
                "complete": outcome.complete,
                "best": verdict.get("best"),
                "verdict": {k: verdict.get(k) for k in ("headline", "compared", "comparison")},
                "leaders": _leaders(schemes, verdict),
                "schemes": {name: _figures(row) for name, row in schemes.items()},
            }
        )
    keys = list(points[0].set) if points else []
    return {
        "schema": SWEEP_SCHEMA,
        "name": points[0].plan.name if points else "",
        "complete": all(outcome.complete for outcome in outcomes),
        "keys": {key: list(dict.fromkeys(p.set[key] for p in points)) for key in keys},
        "seeds": list(points[0].plan.seeds) if points else [],
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


def _split(text: str) -> list[str]:
    parts, depth, quote, current = [], 0, "", ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in "[{":
            depth += 1
        elif letter in "]}":
            depth -= 1
        if letter == "," and depth <= 0 and not quote:
            parts.append(current.strip())
            current = ""
        else:
            current += letter
    return [*parts, current.strip()]


def _read(file: Path) -> Mapping[str, Any]:
    from raddle.files import read_text
    from raddle.runner import plan_file

    try:
        return tomllib.loads(read_text(file))
    except tomllib.TOMLDecodeError:
        plan_file(file)  # says what is wrong with it, and where
        return {}


def _overlay(included: str, name: str, chosen: Mapping[str, str]) -> str:
    """An experiment that includes another one and puts the point's values on top."""
    lines = [f"include = [{_literal(included)}]", f"name = {_literal(name)}"]
    lines += [f"{key} = {_value(value)}" for key, value in chosen.items() if key != "name"]
    return "\n".join(lines) + "\n"


def _value(text: str) -> str:
    """A value as TOML: numbers, truth values, lists, tables and quoted text as they are."""
    try:
        tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return _literal(text)
    return text


def _literal(text: object) -> str:
    import json

    return json.dumps(str(text), ensure_ascii=True)


def _folder_name(name: str) -> str:
    """`name` as a folder; what a file system may not take becomes `_`."""
    clean = re.sub(r"[^\w.,=+@%\[\]-]+", "_", name)
    if clean == name and len(os.fsencode(clean)) <= 200:
        return clean
    import hashlib

    return f"{clean[:150]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
