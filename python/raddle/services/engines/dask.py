"""Runs as tasks of a Dask cluster: one of this machine's processes, or one that exists.

Workers need the results folder, and the files that the experiment names, under the same paths.
They write what they simulate into the folder themselves. If a worker dies, Dask gives its runs to
others; each run is claimed like those of shards, so that one that Dask only believed dead gives
up, and whoever finishes second drops what it has.
"""

import logging
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import distributed

from raddle.errors import ExperimentError, RaddleError, ResultsError, RunFailed
from raddle.results.owners import Claims
from raddle.results.planned import kept_plan
from raddle.services.engines.choice import Engine
from raddle.services.engines.work import (
    Ended,
    RunState,
    claimed_run,
    failure_of,
    job_of,
    longest_first,
)
from raddle.services.runner import Job, Look, Watch
from raddle.version import __version__

if TYPE_CHECKING:
    from raddle.plan import RunStats

__all__ = ["simulate"]

POLL_S = 0.1
LOOK_S = 1.0
"""The progress of the workers is read so often."""
BEAT_S = 2.0
"""A worker gives a sign of life so often."""
VISIBLE_S = 90.0
"""What a worker wrote is seen here after so long at the latest: NFS clients keep what they know of
a folder for up to 60 s."""


def simulate(
    states: Sequence[RunState], claims: Claims, engine: Engine, watch: Watch | None
) -> Ended:
    """Have the workers of a cluster simulate what is missing.

    A run that fails stops the others, as does Ctrl-C. A worker that dies is no failure, unless
    Dask gives up on a run after several died on it.
    """
    left = longest_first([state for state in states if state.stats is None])
    if not left:
        return Ended()
    try:
        with _cluster(engine, most=len(left)) as client:
            threads = engine.threads_of_run(len(left))
            tasks = [_Task(client, state, claims, threads) for state in left]
            try:
                failure = _attend(tasks, claims, watch)
            except KeyboardInterrupt:
                return Ended(interrupted=True)
            finally:
                client.cancel([task.future for task in tasks], force=True)
                claims.clear()  # who is still at work stops
            return Ended(failure, cpu_s=sum(task.cpu_s for task in tasks))
    except KeyboardInterrupt:
        return Ended(interrupted=True)


class _Task:
    """A run that was given to the cluster."""

    def __init__(
        self,
        client: Any,  # noqa: ANN401
        state: RunState,
        claims: Claims,
        threads: int,
    ) -> None:
        self.state = state
        self.cpu_s = 0.0
        self.job: Job[RunStats | None] = Job(state.run.name, lambda: None, _Nothing(), self.look)
        self.ended: float | None = None
        self._now = Look(0.0)
        words = (str(claims.folder.parents[1].absolute()), str(state.out.absolute()))
        self.future = client.submit(
            _work, *words, state.run.name, state.key, threads, __version__,
            key=f"raddle-{state.run.stamp}-{time.time_ns()}", pure=False,
        )  # fmt: skip

    def look(self) -> Look:
        """How far it is, as its worker said last."""
        return self._now

    def saw(self, share: float, hops: int) -> None:
        """Take what its worker says."""
        self._now = Look(share, "", hops)
        self.job.started = self.job.started or time.monotonic()

    def over(self) -> bool:
        """Whether the cluster is done with it and what it wrote is seen here.

        Raises
        ------
        RaddleError
            It failed.
        """
        if self.job.done:
            return True
        if not self.future.done():
            return False
        self.ended = self.ended or time.monotonic()
        name = self.state.run.name
        try:
            cpu_s = self.future.result()
        except distributed.KilledWorker as error:
            msg = (
                f"run {name}: the Dask workers that had it died, one after the other\n"
                f"  cause: {str(error).splitlines()[0]}\n"
                "  hint: memory that is not enough is the usual reason (--dry-run estimates it); "
                "what has finished is kept, and the same command goes on from it"
            )
            raise RunFailed(msg) from error
        except distributed.client.FutureCancelledError as error:
            msg = (
                f"run {name} was lost: the Dask scheduler is gone or cancelled it\n"
                "  hint: what has finished is kept, and the same command goes on from it"
            )
            raise ResultsError(msg) from error
        except Exception as error:
            raise failure_of(name, error) from error
        if self.state.refresh():
            self.state.reused, self.cpu_s = False, cpu_s
            self.job.answer, self.job.done = self.state.stats, True
        elif time.monotonic() - self.ended > VISIBLE_S:
            msg = (
                f"run {name} was done by a Dask worker, and is not in {self.state.out}\n"
                "  hint: workers need the results folder under the same path as this process"
            )
            raise ResultsError(msg)
        return self.job.done


class _Nothing:
    """What stops a task: the cluster does, and not the job."""

    def cancel(self) -> None:
        """Do nothing."""


def _attend(tasks: Sequence[_Task], claims: Claims, watch: Watch | None) -> RaddleError | None:
    """Wait for all tasks, and show how far they are; the error of the first that failed."""
    looked = 0.0
    jobs = [task.job for task in tasks]
    while True:
        try:
            left = [task for task in tasks if not task.over()]
        except RaddleError as error:
            return error
        if watch is not None:
            if time.monotonic() - looked > LOOK_S:
                looked = time.monotonic()
                at = {key: work for *_, runs in claims.processes() for key, work in runs.items()}
                for task in left:
                    if (work := at.get(task.state.key)) is not None:
                        task.saw(work.share, work.packet_hops)
            watch(jobs)
        if not left:
            return None
        time.sleep(POLL_S)


@contextmanager
def _cluster(engine: Engine, most: int) -> Iterator[Any]:
    """A client of the scheduler that was named, or of a cluster on this machine."""
    if engine.scheduler is not None:
        try:
            client = distributed.Client(engine.scheduler, timeout="30s")
        except (OSError, ValueError, TypeError) as error:
            reason = str(error).partition("\n")[0] or type(error).__name__
            msg = f"no Dask scheduler at {engine.scheduler}: {reason}"
            raise ExperimentError(msg) from error
        with client:
            yield client
        return
    with (
        distributed.LocalCluster(
            n_workers=engine.at_once(most),
            threads_per_worker=1,
            processes=True,
            memory_limit=0,  # a run takes what it takes, as it does without Dask
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def _work(top: str, out: str, name: str, key: str, threads: int, version: str) -> float:
    """Simulate a run; runs in a worker. Gives the processor time that it took, in seconds.

    0 if it had several threads: the time of the process would be that of other runs too.
    """
    host = socket.gethostname()
    if version != __version__:
        msg = f"the Dask worker on {host} has raddle {__version__}, and this is {version}"
        raise ResultsError(msg)
    if not Path(out).is_dir():
        msg = (
            f"the Dask worker on {host} sees no folder {out}\n"
            "  hint: workers need the results folder under the same path as this process"
        )
        raise ResultsError(msg)
    plan = kept_plan(Path(out))
    run = next(run for run in plan.runs if run.name == name)
    state = RunState.of(plan, Path(out), run, key)
    with Claims(Path(top)).owner(beat_s=BEAT_S) as owner:
        # Dask says who does what: another owner's worker is gone, or believed to be.
        job = job_of(state, partial(claimed_run, state, owner, threads, force=True))
        before = time.thread_time()
        job.run()
        job.answered()
        taken = time.thread_time() - before
    return taken if threads == 1 else 0.0
