"""`raddle route` below the command line: a route file checked, run and written to a folder."""

import os
import platform
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from raddle import core
from raddle.core.route import RouteCheck, RouteSummary, check
from raddle.files import read_text, source_name, write_json
from raddle.results.claim import claim_folder
from raddle.services.overlay import naming_the_setting, overlays, parse_setting
from raddle.services.runner import Job, Look, Watch, run_jobs
from raddle.version import __version__

__all__ = ["check_point", "execute", "points_of"]

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


def check_point(chosen: Mapping[str, str], path: Path, text: str) -> RouteCheck:
    """Check one of `points_of`; an error in what is set on top names the setting."""
    with naming_the_setting(path, chosen):
        return check(text, path)


def execute(
    text: str, path: Path, out: Path, *, engines: int, watch: Watch | None = None
) -> RouteSummary:
    """Route the groups of a route file with all its engines, one after another.

    Results go to the folder `out`, their summary returns.

    Parameters
    ----------
    engines
        How many there are, for those who watch.
    watch
        Is shown the job about ten times a second.

    Raises
    ------
    KeyboardInterrupt
        Ctrl-C: `out` is as it was. The engine at work is left behind.
    """
    progress = core.route.new_progress()

    def look() -> Look:
        done = progress.engines_done
        words = f"{progress.phase} ({min(done + 1, engines)} of {engines})"
        return Look(done / max(engines, 1), words)

    job = Job(path.stem, lambda: core.route.run(text, path, out, progress), progress, look)
    with claim_folder(out, "route"):
        if run_jobs([job], 1, watch=watch, leave=True):
            raise KeyboardInterrupt
        summary = job.answered()
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
