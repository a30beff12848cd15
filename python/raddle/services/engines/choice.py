"""Which engine simulates, and which part of the runs."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, TypeVar

from raddle.errors import ExperimentError
from raddle.machine import cores, cores_of_each

__all__ = ["LOCAL", "Engine", "EngineName", "Shard", "chosen", "parse_shard"]

if TYPE_CHECKING:
    from raddle.services.engines.work import Simulate

T = TypeVar("T")


class EngineName(StrEnum):
    """Who simulates."""

    LOCAL = "local"
    """Threads of this process, which has the folder for itself."""
    DASK = "dask"
    """The workers of a Dask cluster."""
    SHARDS = "shards"
    """Threads of this process and of all others that share the folder."""


@dataclass(frozen=True, slots=True)
class Shard:
    """The `number`-th of `of` parts of the runs, from 1."""

    number: int
    of: int

    def __str__(self) -> str:
        return f"{self.number}/{self.of}"

    def part(self, runs: Sequence[T]) -> list[T]:
        """Every `of`-th of the runs: with the long ones first, parts take about equally long."""
        return list(runs[self.number - 1 :: self.of])


@dataclass(frozen=True, slots=True)
class Engine:
    """Who simulates the runs."""

    name: EngineName = EngineName.LOCAL
    jobs: int | None = None
    """Runs at the same time, of this process or of its own cluster; as many as cores if None."""
    shard: Shard | None = None
    """The part of the runs that this process does; all that are free if None."""
    scheduler: str | None = None
    """Address of a Dask scheduler; a cluster of processes on this machine if None."""
    simulate: "Simulate | None" = None
    """What simulates a run; `raddle.core.runs.run` if None."""
    threads: int | None = None
    """Threads of each run, which change its time and no byte; as `threads_of_run` says if None."""

    @property
    def shares(self) -> bool:
        """Whether other processes may write the same folder."""
        return self.name == EngineName.SHARDS

    def at_once(self, runs: int) -> int:
        """How many of so many runs go on at the same time, of this process or its own cluster."""
        return min(self.jobs or cores(), runs)

    def threads_of_run(self, runs: int) -> int:
        """Threads of each of the `runs` that are to be done.

        As many as were asked for; else the cores left over by runs at the same time. Where others
        may be at work on the same cores, of whom this process knows nothing, a run has one.
        """
        if self.threads is not None:
            return self.threads
        if self.shares or self.scheduler is not None:
            return 1
        return cores_of_each(self.at_once(runs))


LOCAL = Engine()


def chosen(
    name: EngineName | None,
    *,
    jobs: int | None = None,
    shard: str | None = None,
    scheduler: str | None = None,
    threads: int | None = None,
) -> Engine:
    """The engine that options ask for.

    Raises
    ------
    ExperimentError
        They contradict each other.
    """
    if shard is not None and name not in (None, EngineName.SHARDS):
        msg = f"--shard {shard} needs --engine shards, not {name}"
        raise ExperimentError(msg)
    if scheduler is not None and name != EngineName.DASK:
        msg = f"--scheduler {scheduler} needs --engine dask"
        raise ExperimentError(msg)
    part = None if shard is None else parse_shard(shard)
    usual = EngineName.SHARDS if part else EngineName.LOCAL
    return Engine(name or usual, jobs, part, scheduler, threads=threads)


def parse_shard(text: str) -> Shard:
    """Read `i/n`.

    Examples
    --------
    >>> parse_shard("2/8")
    Shard(number=2, of=8)
    """
    found = re.fullmatch(r"(\d{1,9})/(\d{1,9})", text.strip())
    if found is None:
        msg = f"--shard {text}: expected I/N, as in 2/8: the second of eight parts"
        raise ExperimentError(msg)
    number, of = map(int, found.groups())
    if not 1 <= number <= of:
        msg = (
            f"--shard {text}: parts are numbered from 1 to {max(of, 1)}\n"
            f"  hint: a job array has to begin with 1: sbatch --array=1-{max(of, 1)}"
        )
        raise ExperimentError(msg)
    return Shard(number, of)
