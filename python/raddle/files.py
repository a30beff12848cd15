"""Files of the user: read with errors that name them, replaced as a whole or not at all."""

import json
import os
import secrets
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from raddle.errors import ExperimentError, ResultsError
from raddle.text import memory

__all__ = [
    "MOST_TEXT",
    "STREAM",
    "is_stream",
    "read_text",
    "replacing",
    "source_name",
    "write_json",
    "write_text",
]

MOST_TEXT = 1 << 30
"""Bytes of the largest text: a map of two million hosts has a tenth of that."""

STREAM = Path("stdin")
"""Name of what comes from standard input: files that it names are relative to where we are."""


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
        raise _unreadable(file, f"that cannot be the name of a file ({error})") from error


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
    # A process of another machine may have the same number.
    temporary = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
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
