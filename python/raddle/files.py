"""Files are replaced as a whole or not at all; a results folder has one writer at a time."""

import json
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

from raddle.errors import ExperimentError, ResultsError
from raddle.text import memory

__all__ = [
    "MOST_TEXT",
    "STREAM",
    "Kind",
    "claim_folder",
    "is_stream",
    "source_name",
    "kind_of",
    "read_text",
    "replacing",
    "write_json",
    "write_text",
]

MOST_TEXT = 1 << 30
"""Bytes of the largest text: a map of two million hosts has a tenth of that."""

STREAM = Path("stdin")
"""Name of what comes from standard input: files that it names are relative to where we are."""

Kind = Literal["run", "sweep", "route", "replay"]
BEGUN = frozenset({".runs", "experiment.toml"})
"""What a run leaves before any of its simulations is done."""


def is_stream(file: Path) -> bool:
    """Whether `file` stands for standard input."""
    return str(file) in ("-", "/dev/stdin")


def source_name(file: Path) -> Path:
    """The name of `file` in messages and as the place that other files are relative to."""
    return STREAM if is_stream(file) else file


def read_text(file: Path, *, stream: bool = False, missing: str = "") -> str:
    """Read the text of a file that the user named; with `stream` also standard input.

    Every command opens what it is given here or in the compiled part, which says the same.

    Parameters
    ----------
    stream
        `-` and `/dev/stdin` may be named.
    missing
        How to come by the file where it is not there.

    Raises
    ------
    ExperimentError
        The file is not there, is no regular file, cannot be read, is too large or no text.
    """
    if is_stream(file):
        if not stream:
            raise _unreadable(
                file, "standard input can be read once only, and this is read again", "name a file"
            )
        content = sys.stdin.buffer.read(MOST_TEXT + 1)
    else:
        content = _read_regular(file, missing)
    name = source_name(file)
    if len(content) > MOST_TEXT:
        raise _unreadable(name, f"it has more than {memory(MOST_TEXT)}: is this the right file?")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _unreadable(name, f"it is not UTF-8 text (byte {error.start})") from error


def _read_regular(file: Path, missing: str) -> bytes:
    kinds = (
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISCHR, "a device"),
        (stat.S_ISBLK, "a device"),
    )
    try:
        # A pipe is refused before it is opened: opening waits for whoever writes into it.
        mode = file.stat().st_mode
        other = next((what for holds, what in kinds if holds(mode)), None)
        if other is not None:
            cure = "" if other == "a folder" else "write it into a file"
            raise _unreadable(file, f"it is {other}, and only files are read here", cure)
        # One that takes a file's place meanwhile is not waited for either.
        with open(file, "rb", opener=_open_at_once) as opened:
            return opened.read(MOST_TEXT + 1)
    except FileNotFoundError as error:
        raise _unreadable(file, "no such file", missing) from error
    except OSError as error:
        raise _unreadable(file, (error.strerror or str(error)).lower()) from error
    except MemoryError as error:
        raise _unreadable(file, "it is more than there is memory for") from error
    except ValueError as error:
        raise _unreadable(file, f"that is no name of a file ({error})") from error


def _open_at_once(file: str, flags: int) -> int:
    return os.open(file, flags | os.O_NONBLOCK)


def _unreadable(file: Path, reason: str, cure: str = "") -> ExperimentError:
    hint = f"\n  hint: {cure}" if cure else ""
    return ExperimentError(f"{file}: {reason}{hint}")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield the file to write in place of `path`, whose name it gets when the block ends well.

    After an error nothing is left of it, and `path` is as it was.

    Raises
    ------
    ResultsError
        `path` is a folder.
    OSError
        The system refused; the error names `path`.
    """
    if path.is_dir():
        msg = f"{path} is a folder\n  hint: name a file in it"
        raise ResultsError(msg)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield temporary
        temporary.replace(path)
    except OSError as error:
        if error.filename in (None, str(temporary)):
            error.filename, error.filename2 = str(path), None
        raise
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 `text` to `path` by rename, so that no reader ever sees half of it."""
    with replacing(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: Path, value: Any) -> bool:  # noqa: ANN401 - any JSON value
    """Write `value` as indented JSON; NaN is refused, because JSON has none.

    Returns
    -------
    bool
        Whether the file is new or changed.
    """
    text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    if path.is_file() and path.read_bytes() == text.encode():
        return False
    write_text(path, text)
    return True


def kind_of(out: Path) -> Kind | Literal["other"] | None:
    """The command whose results lie in `out`; None if the folder is new, empty or only begun."""
    if not out.is_dir():
        return None
    names = {entry.name for entry in out.iterdir()}
    manifest, summary = (_read_json(out / f"{name}.json") for name in ("manifest", "summary"))
    found: Kind | Literal["other"] | None = None
    if "sweep.json" in names:
        found = "sweep"
    elif "route" in (manifest.get("kind"), summary.get("kind")):
        found = "route"
    elif "trace" in summary:
        found = "replay"
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
def claim_folder(out: Path, kind: Kind) -> Iterator[None]:
    """Make `out` ours to write results of one kind while the block runs.

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
    with file.open("a") as lock:
        try:
            import fcntl

            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:  # not a Unix: no lock, as before it existed
            pass
        except OSError as error:
            msg = f"another raddle is writing {out}: wait for it, or choose another --out"
            raise ResultsError(msg) from error
        try:
            os.ftruncate(lock.fileno(), 0)
            os.write(lock.fileno(), f"process {os.getpid()}\n".encode())
        except OSError as error:
            with suppress(OSError):
                file.unlink()
                file.parent.rmdir()
                out.rmdir()
            error.filename = str(out)
            raise
        yield
