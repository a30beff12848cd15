"""Arrow columns as numpy arrays, in the two forms that statistics need."""

from collections.abc import Iterator
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["codes", "floats", "groups", "integers", "runs_of", "select", "take"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]
Number = TypeVar("Number", np.int64, np.float64)


def floats(table: pa.Table, name: str, scale: float = 1.0) -> Floats:
    """Column `name` times `scale`; null becomes NaN (integers are exact up to 2**53)."""
    column = table[name].cast(pa.float64(), safe=False)
    values = np.concatenate([_floats(chunk) for chunk in column.chunks] or [np.zeros(0)])
    return values * scale if scale != 1.0 else values


def integers(table: pa.Table, name: str) -> Integers:
    """Column `name` without nulls as int64."""
    column = table[name].cast(pa.int64(), safe=False)
    parts = [_values(chunk, np.int64) for chunk in column.chunks]
    return np.concatenate(parts or [np.zeros(0, dtype=np.int64)])


def codes(table: pa.Table, name: str) -> tuple[Integers, list[str]]:
    """Column `name` of few distinct values as small numbers, and the value of each number."""
    column = table[name]
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    chunks: list[Any] = column.unify_dictionaries().chunks
    if not chunks:
        return np.zeros(0, dtype=np.int64), []
    indices = [_values(chunk.indices.cast(pa.int64()), np.int64) for chunk in chunks]
    return np.concatenate(indices), [str(v) for v in chunks[0].dictionary.to_pylist()]


def groups(table: pa.Table, name: str) -> Iterator[tuple[str, Mask]]:
    """Each distinct value of `name`, sorted, with the mask of its rows."""
    indices, values = codes(table, name)
    for code in sorted(range(len(values)), key=values.__getitem__):
        yield values[code], indices == code


def runs_of(table: pa.Table) -> set[tuple[str, int]]:
    """Scheme and seed of the runs that have rows."""
    seeds = integers(table, "seed")
    return {
        (scheme, seed)
        for scheme, mask in groups(table, "scheme")
        for seed in np.unique(seeds[mask]).tolist()
    }


def take(table: pa.Table, rows: NDArray[np.int64]) -> pa.Table:
    """The rows at these places."""
    # `table.filter` and `pa.array` look for pandas and load it where it is installed: 0.2 s.
    places: Any = np.ascontiguousarray(rows, dtype=np.int64)
    buffers = [None, pa.py_buffer(places)]
    return table.take(pa.Array.from_buffers(pa.int64(), places.size, buffers))


def select(table: pa.Table, *, scheme: str, seed: int | None = None) -> pa.Table:
    """The rows of one scheme (and one seed)."""
    indices, values = codes(table, "scheme")
    if scheme not in values:
        return table.slice(0, 0)
    mask = indices == values.index(scheme)
    if seed is not None:
        mask &= integers(table, "seed") == seed
    rows = np.flatnonzero(mask)
    if rows.size and rows[-1] - rows[0] + 1 == rows.size:  # runs lie one after the other
        return table.slice(int(rows[0]), int(rows.size))
    return take(table, rows)


# Arrow's own `to_numpy` looks for pandas and loads it where it is installed: 0.2 s at every start.
def _values(array: Any, dtype: type[Number]) -> NDArray[Number]:  # noqa: ANN401 - any pa.Array
    data: Any = array.buffers()[1]
    if data is None:
        return np.zeros(len(array), dtype=dtype)
    return np.frombuffer(data, dtype=dtype)[array.offset : array.offset + len(array)]


def _floats(array: Any) -> Floats:  # noqa: ANN401 - any pa.Array of float64
    values = _values(array, np.float64)
    valid: Any = array.buffers()[0]
    if valid is None or array.null_count == 0:
        return values
    bits = np.unpackbits(np.frombuffer(valid, dtype=np.uint8), bitorder="little")
    return np.where(bits[array.offset : array.offset + len(array)] == 1, values, np.nan)
