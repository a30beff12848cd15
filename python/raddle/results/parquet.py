"""Parquet files of a results folder: opened, or refused with the way out."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from raddle.errors import ResultsError

__all__ = ["AGAIN", "opened", "read"]

AGAIN = "`raddle run` with the same experiment and --out joins it anew from the parts in .runs"
"""What makes a folder whole again."""


@contextmanager
def opened(file: Path) -> Iterator[pq.ParquetFile]:
    """Open a file to read it in parts.

    Raises
    ------
    ResultsError
        It cannot be read; also where that shows only while it is read.
    """
    # Not `pq.read_table`: it loads the dataset layer and with it pandas, 0.25 s at every start.
    try:
        with pq.ParquetFile(file) as parquet:
            yield parquet
    except (pa.ArrowException, OSError) as error:
        reason = str(error).partition("\n")[0]
        msg = f"{file} is not a readable Parquet file: {reason}\n  hint: {AGAIN}"
        raise ResultsError(msg) from error


def read(file: Path) -> pa.Table:
    """Read the whole file."""
    with opened(file) as parquet:
        return parquet.read()
