"""Flows of experiments and of flow files: written and counted.

Formats of sources are "auto", "experiment", "hpcc-ns3", "csv" and "parquet"; flows are written in
the last three.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import Field

from raddle import _core
from raddle.core.answers import LEFT_OUT, Answer

__all__ = ["ClassStats", "TrafficStats", "describe", "write"]


@dataclass(frozen=True, slots=True)
class ClassStats(Answer):
    """What a class of flows consists of."""

    name: Annotated[str, Field(alias="class")]
    tested: bool
    """Whether its flows are judged."""
    flows: int
    bytes: int
    share_of_flows: float
    share_of_bytes: float
    min_size_bytes: int
    mean_size_bytes: float
    max_size_bytes: int
    first_start_ps: int
    last_start_ps: int


@dataclass(frozen=True, slots=True)
class TrafficStats(Answer):
    """What traffic consists of, in the order of `raddle traffic describe --json`."""

    flows: int
    bytes: int
    first_start_ps: int
    last_start_ps: int
    large_share_of_flows: float
    """Share of the flows that have 1 MB or more."""
    large_share_of_bytes: float
    """Share of the bytes that they carry."""
    load: Annotated[float | None, LEFT_OUT] = field(default=None, kw_only=True)
    """Share of what all hosts can send; None for a flow file, which says nothing about hosts."""
    complete: bool
    """False if the traffic goes on beyond what was looked at."""
    closed_loop: bool
    """Whether starts depend on deliveries."""
    classes: tuple[ClassStats, ...]


def write(path: Path, out: Path, *, format: str, out_format: str, seed: int, isolated: bool) -> int:
    """Write the flows of `path` to `out` (by rename); return how many there are.

    With `isolated` only the tested flows. Columns of Parquet and CSV: start_ps, src, dst,
    size_bytes, class.
    """
    return _core.traffic_write(str(path), format, seed, isolated, str(out), out_format)


def describe(path: Path, *, format: str, seed: int) -> TrafficStats:
    """Count flows and bytes, in all and per class."""
    return TrafficStats.from_json(_core.traffic_describe(str(path), format, seed))
