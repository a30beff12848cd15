"""Traces of MPI programs: described, assembled, read from and written for others, generated."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from raddle import _core
from raddle.core.answers import LEFT_OUT, Answer

__all__ = [
    "CollectiveCalls",
    "Pairs",
    "SizeBin",
    "Supersteps",
    "Trace",
    "assemble",
    "describe",
    "export_goal",
    "fabric_of",
    "generate",
    "generate_training",
    "import_goal",
]


@dataclass(frozen=True, slots=True)
class SizeBin(Answer):
    """Messages of at least so many bytes and less than twice as many."""

    from_bytes: int
    messages: int
    bytes: int
    """All of them together."""


@dataclass(frozen=True, slots=True)
class CollectiveCalls(Answer):
    """Calls of a kind of collective."""

    kind: str
    calls: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Supersteps(Answer):
    """Supersteps, and the messages that a rank sends in one; None where there are no ranks."""

    count: int
    messages_per_rank_mean: float | None
    messages_per_rank_max: int | None


@dataclass(frozen=True, slots=True)
class Pairs(Answer):
    """Who sends how much to whom, column by column."""

    source: Annotated[tuple[int, ...], Field(alias="from")]
    target: Annotated[tuple[int, ...], Field(alias="to")]
    messages: tuple[int, ...]
    bytes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Trace(Answer):
    """What a trace consists of; the fields stand in the order of `raddle trace show --json`."""

    program: str
    mpi: str
    """The MPI library, or what made the trace."""
    processors: int | None
    """Processors that all ranks shared when it was recorded; None: each had its own."""
    has_fabric: bool
    """Whether it carries a map."""
    ranks: int
    hosts: tuple[str, ...]
    communicators: int
    calls: int
    messages: int
    bytes: int
    messages_between_hosts: int
    bytes_between_hosts: int
    sizes: tuple[SizeBin, ...]
    collectives: tuple[CollectiveCalls, ...]
    supersteps: Supersteps
    duration_s: float
    mpi_share: float
    """Share of the ranks' time that they are in calls of MPI."""
    mpi_s: float
    """The mean over ranks of the time in calls of MPI."""
    host_matrix: Annotated[Pairs | None, LEFT_OUT] = None
    """Pairs of hosts; None where they were not asked for."""
    rank_matrix: Annotated[Pairs | None, LEFT_OUT] = None
    """Pairs of ranks; None also where there are too many."""


def describe(path: Path, *, matrix: bool = False) -> Trace:
    """What the trace `path` consists of; with `matrix` also who sends how much to whom.

    Raises
    ------
    TraceError
        The file is no trace, is damaged, or has messages without their other end.
    """
    return Trace.from_json(_core.trace_describe(path, matrix))


def fabric_of(path: Path) -> str:
    """The map that a trace is replayed on when no other is named, as TOML; empty: it has none.

    Raises
    ------
    TraceError
        The file is no trace, or is damaged.
    """
    return _core.trace_fabric(path)


def assemble(folder: Path, out: Path, fabric: str, processors: int | None = None) -> Trace:
    """Join the recordings `rank-N.rec` of `folder` into the trace `out`.

    `fabric` is the TOML of the map that it is replayed on by default, or empty; `processors` how
    many all ranks shared, rank r on r mod so many, None if each had its own.
    """
    return Trace.from_json(_core.assemble_trace(folder, out, fabric, processors))


def import_goal(goal: Path, out: Path, fabric: str) -> Trace:
    """Read a GOAL schedule into the trace `out`; `fabric` as for `assemble`."""
    return Trace.from_json(_core.trace_import(str(goal), out, fabric))


def import_chakra(files: Sequence[Path], out: Path, fabric: str) -> Trace:
    """Read the Chakra files of all ranks, in order, into the trace `out`; `fabric` as above."""
    return Trace.from_json(_core.trace_import_chakra([str(file) for file in files], out, fabric))


def export_goal(path: Path) -> str:
    """A trace as a GOAL schedule, its collectives as messages."""
    return _core.trace_export(path)


def generate(
    application: str,
    out: Path,
    *,
    sizes: str,
    ranks: int,
    per_host: int,
    exchanges: int,
    gap: str,
    seed: int,
    fabric: str,
) -> Trace:
    """Make a trace of a known kind of program; `raddle.services.trace.generate` says of what."""
    return Trace.from_json(
        _core.trace_generate(application, sizes, ranks, per_host, exchanges, gap, seed, fabric, out)
    )


def generate_training(text: str, name: Path, out: Path, fabric: str) -> Trace:
    """Make a trace of steps of training, as the TOML `text` of the file `name` says."""
    return Trace.from_json(_core.trace_training(text, str(name), fabric, out))
