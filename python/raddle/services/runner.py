"""Jobs in threads: run, watched and stopped, for every command that simulates or routes.

The compiled core releases the GIL, so that threads share the cores of the machine. What a job
gives does not depend on how many there are.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar, cast

from raddle.errors import ExperimentError, RunCancelled

__all__ = [
    "MOST_THREADS",
    "Job",
    "Look",
    "Stoppable",
    "Watch",
    "check_counts",
    "first_failure",
    "run_jobs",
]

POLL_S = 0.1
MOST_THREADS = 1024
"""Threads of a run; the core uses no more."""

T = TypeVar("T")


class Stoppable(Protocol):
    """What stops a job, from another thread; also one that has not begun."""

    def cancel(self) -> None:
        """Ask the job to stop; it ends with `RunCancelled`."""


@dataclass(frozen=True, slots=True)
class Look:
    """How far a job is that is under way."""

    share: float
    """From 0 to 1; 0 where it is not known."""
    words: str = ""
    """What it is at."""
    packet_hops: int = 0


@dataclass(slots=True)
class Job(Generic[T]):
    """A piece of work for one thread."""

    name: str
    work: Callable[[], T]
    progress: Stoppable
    look: Callable[[], Look]
    """Is called from another thread than `work`."""
    started: float | None = None
    """When it began, by `time.monotonic`."""
    done: bool = False
    answer: T | None = None
    """What `work` gave; None as long as it is not done, and if it failed."""
    error: BaseException | None = None

    def run(self) -> None:
        """Do the work; an error is kept."""
        self.started = time.monotonic()
        try:
            self.answer = self.work()
        except BaseException as error:
            self.error = error
        self.done = True

    def answered(self) -> T:
        """What the work gave; the error that it ended with is raised."""
        if self.error is not None:
            raise self.error
        return cast("T", self.answer)


Watch = Callable[[Sequence[Job[Any]]], None]
"""Is shown all jobs about ten times a second."""


def check_counts(jobs: int | None, threads: int | None) -> None:
    """Refuse what cannot be a number of runs at the same time, or of a run's threads.

    Raises
    ------
    ExperimentError
        It is not a whole number in range; None, what is usual, is.
    """
    for name, count, most in (("jobs", jobs, None), ("threads", threads, MOST_THREADS)):
        if count is None:
            continue
        whole = isinstance(count, int) and not isinstance(count, bool)
        if not whole or count < 1 or (most is not None and count > most):
            end = " or more" if most is None else f" to {most}"
            msg = f"{name} must be a whole number, 1{end}, got {count!r}"
            raise ExperimentError(msg)


def run_jobs(
    jobs: Sequence[Job[T]], threads: int, *, watch: Watch | None = None, leave: bool = False
) -> bool:
    """Run jobs in their order, so many at a time; tell whether Ctrl-C stopped them.

    The first job that fails stops the others, and so does Ctrl-C: those that have begun are waited
    for, unless they `leave` their threads behind, for work that stops late. Ctrl-C a second time
    is raised at once.
    """
    waiting = deque(jobs)
    stopped, news = threading.Event(), threading.Event()

    def serve() -> None:
        while waiting and not stopped.is_set():
            try:
                job = waiting.popleft()
            except IndexError:
                return  # another thread took the last one
            job.run()
            if job.error is not None:
                stop()
            news.set()

    def stop() -> None:
        stopped.set()
        for job in jobs:
            job.progress.cancel()

    # Python does not wait for daemons: whoever asks twice is gone at once.
    pool = [
        threading.Thread(target=serve, name=f"raddle-{number}", daemon=True)
        for number in range(min(threads, len(jobs)))
    ]
    interrupted = False
    while True:
        try:
            for thread in pool:
                if thread.ident is None:
                    thread.start()
            while any(thread.is_alive() for thread in pool):
                news.wait(POLL_S)
                news.clear()
                if watch is not None:
                    watch(jobs)
            if watch is not None:
                watch(jobs)
        except KeyboardInterrupt:
            if interrupted:
                raise
            interrupted = True
            stop()
            if not leave:
                continue
        return interrupted


def first_failure(jobs: Sequence[Job[Any]]) -> tuple[Job[Any], BaseException] | None:
    """The first job that failed by itself, and why; None if all that ended did so well."""
    return next(
        (
            (job, job.error)
            for job in jobs
            if job.error is not None and not isinstance(job.error, RunCancelled)
        ),
        None,
    )
