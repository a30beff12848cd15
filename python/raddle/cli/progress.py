"""The progress of jobs: a line for each that is under way, and one for all of them, on stderr."""

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from raddle.cli.talk import progress_wanted
from raddle.text import count, duration_s, many

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from raddle.services.runner import Job, Watch

__all__ = ["shown_progress"]

REFRESH_PER_S = 8
SHORT_S = 0.5
"""A rate of less time says nothing."""


@contextmanager
def shown_progress(*, quiet: bool) -> "Iterator[Watch | None]":
    """What shows jobs as long as the block runs; None where nobody watches."""
    if not progress_wanted(quiet=quiet):
        yield None
        return
    bars = Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.percentage:>3.0f} %"),
        TextColumn("{task.fields[talk]}"),
        console=Console(stderr=True),
        refresh_per_second=REFRESH_PER_S,
        transient=True,
    )
    with bars:
        yield _Lines(bars).show


class _Lines:
    """The lines of jobs."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._tasks: dict[int, TaskID] = {}
        """By the identity of jobs: in a sweep several have one name."""
        self._all: TaskID | None = None
        self._started = time.monotonic()

    def show(self, jobs: "Sequence[Job[Any]]") -> None:
        """Bring the display up to date."""
        shares = [self._one(job) for job in jobs]
        if len(jobs) < 2:
            return
        elapsed = time.monotonic() - self._started
        share = sum(shares) / len(shares)
        words = [_rate(sum(job.look().packet_hops for job in jobs), elapsed)]
        if share > 0.02:
            words.append(f"{duration_s(elapsed / share - elapsed)} left")
        if self._all is None:
            self._all = self._bars.add_task("", total=1.0, talk="")
        self._bars.update(
            self._all,
            description=f"[bold]{sum(job.done for job in jobs)} of {many(len(jobs), 'run')}",
            completed=share,
            talk="  ".join(filter(None, words)),
        )

    def _one(self, job: "Job[Any]") -> float:
        """Show one job; its share."""
        if job.done:
            task = self._tasks.pop(id(job), None)
            if task is not None:
                self._bars.remove_task(task)
            return 1.0
        if job.started is None:
            return 0.0
        look = job.look()
        elapsed = time.monotonic() - job.started
        if id(job) not in self._tasks:
            self._tasks[id(job)] = self._bars.add_task(job.name, total=1.0, talk="")
        share = min(look.share, 0.99)
        words = filter(None, (look.words, _rate(look.packet_hops, elapsed)))
        self._bars.update(self._tasks[id(job)], completed=share, talk="  ".join(words))
        return share


def _rate(hops: int, elapsed_s: float) -> str:
    return f"{count(hops / elapsed_s)} packet-hops/s" if hops and elapsed_s > SHORT_S else ""
