"""`raddle route` below the command line: a route file checked, run and written to a folder."""

import json
import os
import platform
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from raddle.errors import ExperimentError, ResultsError
from raddle.files import claim_folder, read_text, source_name, write_json
from raddle.text import join_words, many, verb

__all__ = ["check_file", "execute", "headline", "load_drawn", "load_summary", "points_of"]

Json = dict[str, Any]
Watch = Callable[[str, int], None]
WATCH_PERIOD_S = 0.1
CREDIT_CHECK = "multicast.credit_check"


def points_of(
    file: Path, settings: Sequence[str], *, check_loops: bool = False
) -> list[tuple[Mapping[str, str], Path, str]]:
    """Each combination of ``KEY=VALUE,...`` settings: what is set, a name, the route file's text.

    Without settings the file itself. Files in the text are relative to the folder of the name.
    With `check_loops` the check is set on top, and not named.
    """
    check = [f"{CREDIT_CHECK}=true"] if check_loops else []
    if not settings and not check:
        return [({}, source_name(file), read_text(file, stream=True))]
    from raddle.sweep import overlays, parse_setting

    points: list[tuple[Mapping[str, str], Path, str]] = []
    for chosen, text in overlays(file, [parse_setting(s) for s in (*settings, *check)]):
        named = {k: v for k, v in chosen.items() if not check or k != CREDIT_CHECK}
        name = ",".join(f"{key}={value}" for key, value in named.items()) or check[0]
        points.append((named, file.parent / name.replace("/", "_"), text))
    return points


def check_file(text: str, path: Path) -> Json:
    """Judge a route file: its fabric, groups and engines, without routing.

    Raises
    ------
    ExperimentError
        The file is not valid; the message names the place and the cure.
    """
    from raddle import _core

    checked: Json = json.loads(_core.route_check(text, str(path)))
    return checked


def execute(text: str, path: Path, out: Path, *, watch: Watch | None = None) -> Json:
    """Route the groups of a route file with all its engines.

    Results go to the folder `out`, their summary returns.

    Parameters
    ----------
    watch
        Called some times a second with the engine at work and how many are done.
    """
    from raddle import __version__, _core

    progress = _core.RouteProgress()
    with claim_folder(out, "route"):
        answer = _in_thread(
            lambda: _core.route(text, str(path), str(out), progress), progress, watch
        )
        summary: Json = json.loads(answer)
        manifest = {
            "schema": 1,
            "kind": "route",
            "file": str(path),
            "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
            "versions": {"raddle": __version__, "python": platform.python_version()},
            "machine": {"cpu": platform.processor() or platform.machine(), "cores": os.cpu_count()},
            "written": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        write_json(out / "manifest.json", manifest)
    return summary


def headline(summary: Mapping[str, Any]) -> str:
    """Which engine loads its busiest link least, and who merges."""
    routed = {n: row for n, row in summary["engines"].items() if row["error"] is None}
    if not routed:
        return "No engine could route these groups."
    least = min(row["max_efi"] for row in routed.values())
    best = [name for name, row in routed.items() if row["max_efi"] == least]
    words = (
        f"{join_words(best)} {verb(len(best), 'puts', 'put')} at most {many(least, 'group')} on a "
        "link"
    )
    apart = [name for name, row in routed.items() if row["merges"] == 0]
    if len(apart) == len(routed):
        return f"{words}; no engine merges groups."
    if apart:
        return f"{words}; {join_words(apart)} {verb(len(apart), 'merges', 'merge')} nothing."
    fewest = min(routed, key=lambda name: routed[name]["merges"])
    return f"{words}; fewest merges: {fewest} ({routed[fewest]['merges']:,})."


def load_summary(folder: Path) -> Json:
    """`summary.json` of a folder that `raddle route` wrote.

    Raises
    ------
    ResultsError
        There is none, or it is of something else.
    """
    file = folder / "summary.json"
    try:
        summary: Json = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        msg = f"{folder} is no results folder: it has no summary.json"
        raise ResultsError(msg) from error
    except ValueError as error:
        msg = f"{file} is damaged ({error}); delete it and route again"
        raise ResultsError(msg) from error
    if summary.get("kind") != "route":
        msg = f"{folder} holds results of a simulation, not of `raddle route`"
        raise ResultsError(msg)
    return summary


def load_drawn(folder: Path) -> Json:
    """One tree of each engine for the map, from `drawn.json`."""
    file = folder / "drawn.json"
    try:
        drawn: Json = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        msg = f"{file} cannot be read ({error}); route again"
        raise ResultsError(msg) from error
    return drawn


def _in_thread(work: Callable[[], str], progress: Any, watch: Watch | None) -> str:  # noqa: ANN401
    """Run `work` beside this thread, so that Ctrl-C is heard while engines are at work."""
    answer: list[str] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            answer.append(work())
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(WATCH_PERIOD_S)
            if watch is not None:
                watch(progress.phase, progress.engines_done)
    except KeyboardInterrupt:
        progress.cancel()
        raise
    if failure:
        raise failure[0]
    if not answer:
        msg = "routing ended without an answer"
        raise ExperimentError(msg)
    return answer[0]
