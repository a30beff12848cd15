"""`raddle route` below the command line: a route file checked, run and written to a folder."""

import os
import platform
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from raddle import core
from raddle.core.route import Progress, RouteSummary, check
from raddle.errors import ExperimentError
from raddle.files import read_text, source_name, write_json
from raddle.results.claim import claim_folder
from raddle.services.overlay import overlays, parse_setting
from raddle.version import __version__

__all__ = ["check", "execute", "points_of"]

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


def execute(text: str, path: Path, out: Path, *, watch: Watch | None = None) -> RouteSummary:
    """Route the groups of a route file with all its engines.

    Results go to the folder `out`, their summary returns.

    Parameters
    ----------
    watch
        Called some times a second with the engine at work and how many are done.
    """
    progress = core.route.new_progress()
    with claim_folder(out, "route"):
        summary = _in_thread(lambda: core.route.run(text, path, out, progress), progress, watch)
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


def _in_thread(
    work: Callable[[], RouteSummary], progress: Progress, watch: Watch | None
) -> RouteSummary:
    """Run `work` beside this thread, so that Ctrl-C is heard while engines are at work."""
    answer: list[RouteSummary] = []
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
