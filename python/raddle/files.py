"""Files are replaced as a whole or not at all; a results folder has one writer at a time."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from raddle.errors import ResultsError

__all__ = ["claim_folder", "replacing", "write_json", "write_text"]

MARKERS = ("manifest.json", ".runs", "summary.json")


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


@contextmanager
def claim_folder(out: Path) -> Iterator[None]:
    """Make `out` ours to write while the block runs.

    Raises
    ------
    ResultsError
        `out` is a file, holds something that is not a results folder, or another raddle is
        writing it.
    """
    if out.exists() and not out.is_dir():
        msg = f"{out} is a file; give --out a folder"
        raise ResultsError(msg)
    if out.is_dir() and any(out.iterdir()) and not any((out / m).exists() for m in MARKERS):
        msg = (
            f"{out} holds other files and no raddle results\n"
            "  hint: name a new or empty folder with --out"
        )
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
