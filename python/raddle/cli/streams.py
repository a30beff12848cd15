"""The standard streams: a write that fails has a name, and a closed stream swallows."""

import errno
import io
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

__all__ = ["Stdout", "open_streams"]


class Stdout(io.FileIO):
    """Standard output, whose errors say that it was standard output.

    Attributes
    ----------
    closed_by_reader
        Whether the reader (`head`, `less`) went away: it has what it wanted.
    """

    closed_by_reader = False

    def write(self, data: "ReadableBuffer", /) -> int:
        """Write, as any file does."""
        try:
            return super().write(data)
        except OSError as error:
            self.closed_by_reader = error.errno == errno.EPIPE
            # What is still in buffers has no reader, and must not fail again when Python ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self.fileno())
            error.filename = "standard output"
            raise


def open_streams() -> Stdout:
    """Put named streams in place of Python's; give closed ones a place where to write to.

    Returns
    -------
    Stdout
        What is below `sys.stdout` from now on.
    """
    for stream, number in ((sys.stdin, 0), (sys.stdout, 1), (sys.stderr, 2)):
        if stream is None:
            # A file that is opened next would get the number, and what is printed.
            null = os.open(os.devnull, os.O_RDWR)
            if null != number:
                os.dup2(null, number)
                os.close(null)
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    raw = Stdout(1, "wb", closefd=False)
    before = sys.stdout
    sys.stdout = io.TextIOWrapper(
        io.BufferedWriter(raw),
        encoding=before.encoding if before else "utf-8",
        errors=before.errors if before else None,
        line_buffering=raw.isatty(),
    )
    return raw
