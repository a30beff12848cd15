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

from raddle import _core
from raddle.errors import ExperimentError
from raddle.files import read_text, source_name, write_json
from raddle.results.claim import claim_folder
from raddle.services.overlay import overlays, parse_setting
from raddle.version import __version__

__all__ = ["check_file", "execute", "points_of"]

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
