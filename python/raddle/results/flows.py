"""Flows of a results folder, read so that any number of them fits in memory.

Up to `AT_ONCE` flows are one table. Of more, what is counted and summed goes through all of them in
batches, and what compares flows one by one, or draws them, takes a sample: every n-th flow, the
same ones under every scheme, and all tested flows (a score is about few of them).
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from raddle.results.columns import codes, groups, integers, select, take
from raddle.results.parquet import opened

__all__ = ["AT_ONCE", "FlowFile", "Run", "is_tested"]

AT_ONCE = 1 << 20
"""Flows that are held at once; so many are about 100 MB."""
Run = tuple[str, int]
"""Scheme and seed."""
NAME = ("src", "dst", "sport", "size_bytes")
"""What names a flow under every scheme; start times differ where messages wait for others."""
MIX = np.uint64(0x9E37_79B9_7F4A_7C15)


def is_tested(class_name: str) -> bool:
    """Whether flows of the class are judged; those of other classes are there to disturb."""
    return class_name.lower().startswith(("t_", "t-", "tested"))


@dataclass(frozen=True)
class FlowFile:
    """The file `flows.parquet` of a folder."""

    file: Path

    @property
    def counts(self) -> Mapping[Run, Mapping[str, int]]:
        """How many flows of each class a run has."""
        return self._counted[0]

    @property
    def unfinished(self) -> Mapping[Run, int]:
        """How many flows of a run did not finish."""
        return self._counted[1]

    @cached_property
    def _counted(self) -> tuple[Mapping[Run, Counter[str]], Counter[Run]]:
        counts: dict[Run, Counter[str]] = {}
        unfinished: Counter[Run] = Counter()
        for rows in self._groups(columns=["scheme", "seed", "fct_ps", "class"]):
            seeds = integers(rows, "seed")
            for scheme, of_scheme in groups(rows, "scheme"):
                for seed in np.unique(seeds[of_scheme]).tolist():
                    own = take(rows, np.flatnonzero(of_scheme & (seeds == seed)))
                    counter = counts.setdefault((scheme, seed), Counter())
                    counter.update({name: int(mask.sum()) for name, mask in groups(own, "class")})
                    unfinished[scheme, seed] += own["fct_ps"].null_count
        return counts, unfinished

    @cached_property
    def rows(self) -> int:
        """Flows of all runs."""
        with opened(self.file) as parquet:
            return int(parquet.metadata.num_rows)

    @property
    def fits(self) -> bool:
        """Whether all flows may be held at once."""
        return self.rows <= AT_ONCE

    @property
    def share(self) -> int:
        """One of how many flows a sample has; 1 where it has all."""
        return max(1, -(-self.rows // AT_ONCE))

    def batches(self, run: Run, columns: list[str] | None = None) -> Iterator[pa.Table]:
        """The flows of a run, in tables of `AT_ONCE` rows or fewer: all columns, or these."""
        columns = None if columns is None else ["scheme", "seed", *columns]
        parts: list[pa.Table] = []
        held = 0
        for rows in self._groups(run, columns):
            own = select(rows, scheme=run[0], seed=run[1])
            if held and held + own.num_rows > AT_ONCE:
                yield pa.concat_tables(parts)
                parts, held = [], 0
            if own.num_rows:
                parts.append(own)
                held += own.num_rows
        if parts:
            yield pa.concat_tables(parts)

    def sample(self) -> pa.Table:
        """Every `share`-th flow, and all tested ones if they are no more than `AT_ONCE`.

        A flow's name decides, so that all schemes have the same flows in it.
        """
        tested = {name for run in self.counts.values() for name in run if is_tested(name)}
        judged = sum(run.get(name, 0) for run in self.counts.values() for name in tested)
        kept = tested if judged <= AT_ONCE else set()
        parts = [take(rows, np.flatnonzero(self._drawn(rows, kept))) for rows in self._groups()]
        return pa.concat_tables(parts)

    def _drawn(self, rows: pa.Table, whole: Collection[str]) -> NDArray[np.bool_]:
        key = np.zeros(rows.num_rows, dtype=np.uint64)
        with np.errstate(over="ignore"):
            for name in NAME:
                key = (key ^ integers(rows, name).astype(np.uint64)) * MIX
                key ^= key >> np.uint64(29)
        drawn: NDArray[np.bool_] = key % np.uint64(self.share) == 0
        indices, names = codes(rows, "class")
        return drawn | np.isin(indices, [i for i, name in enumerate(names) if name in whole])

    def _groups(
        self, run: Run | None = None, columns: list[str] | None = None
    ) -> Iterator[pa.Table]:
        """Row groups, those left out of which is known that `run` has no flows there."""
        with opened(self.file) as parquet:
            for group in range(parquet.num_row_groups):
                if run is None or _may_have(parquet.metadata.row_group(group), run):
                    yield parquet.read_row_group(group, columns=columns)


def _may_have(group: Any, run: Run) -> bool:  # noqa: ANN401 - pyarrow's metadata of a row group
    wanted: dict[str, Any] = dict(zip(("scheme", "seed"), run, strict=True))
    for place in range(group.num_columns):
        column = group.column(place)
        limits = column.statistics
        if column.path_in_schema not in wanted or limits is None or not limits.has_min_max:
            continue
        if not limits.min <= wanted[column.path_in_schema] <= limits.max:
            return False
    return True
