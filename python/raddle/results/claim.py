"""Whose results a folder holds, and who may write it: one process, or several that share it."""

import errno
import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

from raddle.errors import ResultsError
from raddle.results.planned import POINTS

__all__ = ["Kind", "claim_folder", "kind_of"]

Kind = Literal["run", "sweep", "route", "replay", "reproduce", "advise"]
BEGUN = frozenset({".runs", "experiment.toml"})
"""What a run leaves before any of its simulations is done."""

LOCK = "locked while a process writes this folder\n"
"""What the lock's file says: a disk that is full is found before anything is simulated."""

NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP})
"""A file system has no locks."""

ADVISES = ".runs/advise"
"""Stands in a folder that `raddle advise` has begun."""
REPRODUCES = ".runs/reproduce"
"""Stands in a folder that `raddle reproduce` has begun, long before its summary."""


def kind_of(out: Path) -> Kind | Literal["other"] | None:
    """The command whose results lie in `out`; None if the folder is new, empty or only begun."""
    if not out.is_dir():
        return None
    names = {entry.name for entry in out.iterdir()}
    manifest, summary = (_read_json(out / f"{name}.json") for name in ("manifest", "summary"))
    found: Kind | Literal["other"] | None = None
    if "sweep.json" in names or (out / POINTS).is_file():
        found = "sweep"
    elif "route" in (manifest.get("kind"), summary.get("kind")):
        found = "route"
    elif "trace" in summary:
        found = "replay"
    elif summary.get("kind") == "advise" or (out / ADVISES).is_file():
        found = "advise"
    elif summary.get("kind") == "reproduce" or (out / REPRODUCES).is_file():
        found = "reproduce"
    elif (
        "flows.parquet" in names
        or "runs" in manifest
        or "schemes" in summary
        or any(out.glob(".runs/*/stats.json"))
    ):
        found = "run"
    elif names - BEGUN:
        found = "other"
    return found


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


@contextmanager
def claim_folder(out: Path, kind: Kind, *, shared: bool = False) -> Iterator[None]:
    """Make `out` ours to write results of one kind while the block runs.

    With `shared` others may hold it as well that also share it: they agree by
    `raddle.results.owners` on who does what, which works where a file system has no locks, too.

    Raises
    ------
    ResultsError
        `out` is a file, holds something else than such results, or another raddle is writing it.
    """
    if out.exists() and not out.is_dir():
        msg = f"{out} is a file; give --out a folder"
        raise ResultsError(msg)
    held = kind_of(out)
    if held not in (None, kind):
        what = (
            "other files and no raddle results"
            if held == "other"
            else f"results of `raddle {held}`"
        )
        msg = f"{out} holds {what}\n  hint: name a new or empty folder with --out"
        raise ResultsError(msg)
    (out / ".runs").mkdir(parents=True, exist_ok=True)
    file = out / ".runs" / "lock"
    with file.open("a+") as lock:
        try:
            fcntl.flock(lock, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError as error:
            if not (shared and error.errno in NO_LOCKS):
                msg = f"another raddle is writing {out}: wait for it, or choose another --out"
                raise ResultsError(msg) from error
        try:
            if os.fstat(lock.fileno()).st_size != len(LOCK):
                os.ftruncate(lock.fileno(), 0)
                os.write(lock.fileno(), LOCK.encode())
        except OSError as error:
            with suppress(OSError):
                file.unlink()
                file.parent.rmdir()
                out.rmdir()
            error.filename = str(out)
            raise
        if kind == "reproduce":
            (out / REPRODUCES).touch()
        if kind == "advise":
            (out / ADVISES).touch()
        yield
