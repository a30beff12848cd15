"""Arrow columns as numpy arrays, in the two forms that statistics need."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

__all__ = ["codes", "floats", "groups", "integers", "select"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]


def floats(table: pa.Table, name: str, scale: float = 1.0) -> Floats:
    """Column `name` times `scale`; null becomes NaN (integers are exact up to 2**53)."""
    column = table[name].cast(pa.float64(), safe=False)
    values = np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)
    return values * scale if scale != 1.0 else values


def integers(table: pa.Table, name: str) -> Integers:
    """Column `name` without nulls as int64."""
    return np.asarray(table[name].to_numpy(zero_copy_only=False)).astype(np.int64)


def codes(table: pa.Table, name: str) -> tuple[Integers, list[str]]:
    """Column `name` of few distinct values as small numbers, and the value of each number."""
    column = table[name]
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    chunks = column.unify_dictionaries().chunks
    if not chunks:
        return np.zeros(0, dtype=np.int64), []
    encoded: Any = pa.concat_arrays(chunks)
    indices = np.asarray(encoded.indices.to_numpy(zero_copy_only=False)).astype(np.int64)
    return indices, [str(v) for v in encoded.dictionary.to_pylist()]


def groups(table: pa.Table, name: str) -> Iterator[tuple[str, Mask]]:
    """Each distinct value of `name`, sorted, with the mask of its rows."""
    indices, values = codes(table, name)
    for code in sorted(range(len(values)), key=values.__getitem__):
        yield values[code], indices == code


def select(table: pa.Table, *, scheme: str, seed: int | None = None) -> pa.Table:
    """The rows of one scheme (and one seed)."""
    mask = pc.equal(table["scheme"], pa.scalar(scheme, table["scheme"].type))
    if seed is not None:
        mask = pc.and_(mask, pc.equal(table["seed"], pa.scalar(seed, table["seed"].type)))
    return table.filter(mask)
