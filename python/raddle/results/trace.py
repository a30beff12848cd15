"""A trace of an MPI program as a file: its name, and what it consists of."""

import json
from pathlib import Path
from typing import Any

from raddle import _core
from raddle.errors import TraceError

__all__ = ["SUFFIX", "check_name", "describe"]

SUFFIX = ".trace.parquet"


def describe(path: Path, *, matrix: bool = False) -> dict[str, Any]:
    """What a trace consists of: ranks, messages, sizes, supersteps, collectives, times.

    Parameters
    ----------
    path
        The trace, `NAME.trace.parquet`.
    matrix
        Also who sends how much to whom: `host_matrix`, and `rank_matrix` where it is not too
        large, with the columns from, to, messages, bytes.

    Raises
    ------
    TraceError
        The file is no trace, is damaged, or has messages without their other end.
    """
    found: dict[str, Any] = json.loads(_core.trace_describe(path, matrix))
    return found


def check_name(path: Path) -> None:
    """Refuse a name that no trace has, before the work that it would need."""
    if not path.name.endswith(SUFFIX):
        msg = f"{path}: a trace is called NAME{SUFFIX}"
        raise TraceError(msg)
