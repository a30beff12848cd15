"""Runs that are done, as they lie in a results folder: taken as they are, refused, or deleted."""

import errno
import filecmp
import json
import shutil
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from raddle.errors import ResultsError
from raddle.files import write_json
from raddle.plan import Plan, RunStats
from raddle.results.differences import (
    Difference,
    experiment_differences,
    list_differences,
    read_experiment,
)
from raddle.version import __version__

__all__ = [
    "differing_file",
    "finished_run",
    "how_it_went",
    "part_folder",
    "publish",
    "refuse_others",
    "remove_leftovers",
    "remove_others",
    "working_folder",
]

TABLES = ("flows", "pauses", "ports", "throughput", "flow_throughput", "queues")
"""Tables that every run leaves."""
FILES = ("summary.json", "manifest.json", "report.html", "experiment.toml")
MAGIC = b"PAR1"
NEUTRAL = ("score.", "simulation.isolated")
"""Keys that decide which runs there are and how they are judged, not how one ends."""
PLACES = ("fabric.file", "traffic.file", "traffic.classes", "simulation.ecn_marks")
"""Keys that say where a file lies; what it holds is in the stamp."""


def part_folder(out: Path, name: str) -> Path:
    """The folder of what the run `name` left in the results folder `out`."""
    return out / ".runs" / name


def working_folder(out: Path, name: str, token: str) -> Path:
    """Where a process whose name is `token` works at a run, before it publishes it."""
    return out / ".runs" / f".{name}.{token}.tmp"


def remove_leftovers(out: Path) -> None:
    """Delete what killed processes left half done; nobody else may be at work."""
    for folder in out.glob(".runs/.*.tmp"):
        if folder.is_dir():
            shutil.rmtree(folder, ignore_errors=True)


def publish(work: Path, out: Path, stats: RunStats, went: Mapping[str, Any]) -> bool:
    """Give a run that is done under `work` its place in the results folder `out`, by one rename.

    The first one stays: whoever finishes the same run later drops what it has.

    Parameters
    ----------
    went
        How it went, which differs between machines: it becomes the part's `manifest.json`.

    Returns
    -------
    bool
        Whether it is ours that stays.
    """
    made, final = part_folder(work, stats.name), part_folder(out, stats.name)
    write_json(made / "manifest.json", went)
    for attempt in (1, 2):
        try:
            made.rename(final)
        except OSError as error:
            there = finished_run(out, stats.name)
            if there is not None and there.stamp == stats.stamp:
                return False
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST) or attempt == 2:
                error.filename, error.filename2 = str(final), None
                raise
            # Of another experiment, or damaged.
            aside = part_folder(work, f"{stats.name}.before")
            with suppress(FileNotFoundError):
                final.rename(aside)
        else:
            break
    return True


def how_it_went(out: Path, name: str) -> Mapping[str, Any]:
    """What a run's `manifest.json` says: host, time. Empty where there is none."""
    try:
        raw = json.loads((part_folder(out, name) / "manifest.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return raw if isinstance(raw, dict) else {}


def differing_file(a: Path, b: Path) -> str | None:
    """The first file in which two parts of one run differ, `manifest.json` left out."""
    names = {file.name for folder in (a, b) for file in folder.iterdir()} - {"manifest.json"}
    for name in sorted(names):
        one, other = a / name, b / name
        if not (one.is_file() and other.is_file() and filecmp.cmp(one, other, shallow=False)):
            return name
    return None


def finished_run(out: Path, name: str) -> RunStats | None:
    """What the run `name` says of itself; None if it is not done or a table of it is not whole."""
    folder = part_folder(out, name)
    try:
        stats = RunStats.from_json((folder / "stats.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return stats if all(_whole(folder / f"{table}.parquet") for table in TABLES) else None


def refuse_others(plan: Plan, out: Path) -> None:
    """Refuse a folder with runs of another experiment.

    Raises
    ------
    ResultsError
        It has some; the message says what differs.
    """
    differences = _differences(plan, out)
    if not differences:
        return
    msg = (
        f"{out} holds results of another experiment\n"
        f"{list_differences(differences, 'there', 'here')}\n"
        "  hint: name another folder with --out, or delete those results with --replace"
    )
    raise ResultsError(msg)


def remove_others(plan: Plan, out: Path) -> None:
    """Delete what another experiment left in `out`.

    Runs that are as planned stay, and so do files that are not ours.
    """
    if not _differences(plan, out):
        return
    planned, there = {run.name: run.stamp for run in plan.runs}, _stamps(out)
    for folder in [entry for entry in (out / ".runs").iterdir() if entry.is_dir()]:
        if planned.get(folder.name, "") != there.get(folder.name):
            shutil.rmtree(folder)
    for folder in (out, out / "isolated"):
        for file in (*folder.glob("*.parquet"), *(folder / name for name in FILES)):
            file.unlink(missing_ok=True)


def _differences(plan: Plan, out: Path) -> list[Difference]:
    """What the experiment whose runs lie in `out` differs in from `plan`; empty if in nothing."""
    there, here = _stamps(out), {run.name: run.stamp for run in plan.runs}
    shared = set(there) & set(here)
    if not there or (shared and all(there[name] == here[name] for name in shared)):
        return []
    old = read_experiment(out)
    found = [] if old is None else experiment_differences(old, tomllib.loads(plan.experiment))
    found = [one for one in found if not one.what.startswith(NEUTRAL)]
    keys = [one for one in found if one.what not in PLACES]
    if keys or not shared:
        return keys
    if (version := _version(out)) not in (None, __version__):
        return [Difference("raddle", version, __version__)]
    return found or [Difference("contents of a file that it reads", "as they were", "changed")]


def _version(out: Path) -> str | None:
    """The raddle that wrote `out`, where its manifest says so."""
    try:
        manifest = json.loads((out / "manifest.json").read_text(encoding="utf-8"))
        return str(manifest["versions"]["raddle"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _stamps(out: Path) -> dict[str, str]:
    """The stamp of each run that is done."""
    names = [file.parent.name for file in sorted(out.glob(".runs/*/stats.json"))]
    done = {name: finished_run(out, name) for name in names}
    return {name: stats.stamp for name, stats in done.items() if stats is not None}


def _whole(table: Path) -> bool:
    """Whether a Parquet file is there to its end."""
    try:
        with table.open("rb") as file:
            file.seek(-len(MAGIC), 2)
            return file.read() == MAGIC
    except OSError:
        return False
