"""Jobs in threads: how many at a time, what a failure stops, what Ctrl-C does."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from raddle.errors import ResultsError, RunCancelled
from raddle.services.runner import Job, Look, first_failure, run_jobs


class Flag:
    """Asked to stop or not."""

    def __init__(self) -> None:
        self.cancelled = threading.Event()

    def cancel(self) -> None:
        self.cancelled.set()


def job(name: str, work: Callable[[Flag], str]) -> Job[str]:
    flag = Flag()
    return Job(name, lambda: work(flag), flag, lambda: Look(0.0))


def until_cancelled(flag: Flag) -> str:
    assert flag.cancelled.wait(10)
    raise RunCancelled


def fail(_: Flag) -> str:
    msg = "broken"
    raise ResultsError(msg)


def press_once() -> Callable[[Sequence[Job[Any]]], None]:
    """What presses Ctrl-C when a job has begun, and never again."""
    pressed: list[bool] = []

    def watch(jobs: Sequence[Job[Any]]) -> None:
        if not pressed and any(each.started is not None for each in jobs):
            pressed.append(True)
            raise KeyboardInterrupt

    return watch


@pytest.mark.parametrize("threads", [1, 3, 20])
def test_every_job_is_run_once_and_no_more_at_a_time_than_asked(threads: int) -> None:
    lock, under_way, most = threading.Lock(), [0], [0]

    def work(_: Flag) -> str:
        with lock:
            under_way[0] += 1
            most[0] = max(most[0], under_way[0])
        time.sleep(0.001)
        with lock:
            under_way[0] -= 1
        return "done"

    jobs = [job(str(number), work) for number in range(12)]
    seen: list[int] = []
    assert not run_jobs(
        jobs, threads, watch=lambda all_: seen.append(sum(each.done for each in all_))
    )
    assert [each.answered() for each in jobs] == ["done"] * 12
    assert most[0] <= threads
    assert seen == sorted(seen)
    assert seen[-1] == 12


def test_no_jobs_are_no_threads() -> None:
    assert not run_jobs([], 4)


def test_the_first_failure_stops_the_others() -> None:
    jobs = [job("hangs", until_cancelled), job("fails", fail), job("never begins", fail)]
    assert not run_jobs(jobs, 2)
    failed = first_failure(jobs)
    assert failed is not None
    assert failed[0].name == "fails"
    assert jobs[2].started is None
    with pytest.raises(ResultsError, match="broken"):
        jobs[1].answered()


def test_ctrl_c_waits_for_jobs_under_way_and_keeps_finished_ones() -> None:
    jobs = [job("done", lambda _: "kept"), job("hangs", until_cancelled), job("waits", fail)]
    assert run_jobs(jobs, 1, watch=press_once())
    assert jobs[0].answered() == "kept" or jobs[0].started is None
    assert jobs[2].started is None
    assert first_failure(jobs) is None


def test_ctrl_c_twice_leaves_at_once() -> None:
    def press(_: Sequence[Job[Any]]) -> None:
        raise KeyboardInterrupt

    ended = threading.Event()
    stubborn = job("stubborn", lambda _: "late" if ended.wait(10) else "")
    with pytest.raises(KeyboardInterrupt):
        run_jobs([stubborn], 1, watch=press)
    assert not stubborn.done
    ended.set()


def test_what_stops_late_is_left_behind() -> None:
    ended = threading.Event()
    stubborn = job("stubborn", lambda _: "late" if ended.wait(10) else "")
    assert run_jobs([stubborn], 1, watch=press_once(), leave=True)
    assert not stubborn.done
    ended.set()
