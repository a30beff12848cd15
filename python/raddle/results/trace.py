"""A trace of an MPI program as a file: its name."""

from pathlib import Path

from raddle.errors import TraceError

__all__ = ["SUFFIX", "check_name"]

SUFFIX = ".trace.parquet"


def check_name(path: Path) -> None:
    """Refuse a name that no trace has, before the work that it would need."""
    if not path.name.endswith(SUFFIX):
        msg = f"{path}: a trace is called NAME{SUFFIX}"
        raise TraceError(msg)
