"""Runs of experiments: planned, estimated, simulated, and their parts joined."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

from raddle import _core
from raddle.plan import Estimate, Plan, RunStats

__all__ = [
    "Exchange",
    "Progress",
    "SetUp",
    "measure",
    "merge",
    "new_progress",
    "new_set_up",
    "plan",
    "run",
    "run_following",
    "run_leading",
]

Exchange = Callable[[list[bytes]], Sequence[bytes]]
"""Gives each rank its bytes and takes some from each, by rank; all ranks call it equally often."""
Progress = _core.Progress
SetUp = _core.SetUp


def new_set_up() -> SetUp:
    """What tells what the planning of an experiment is at, from another thread."""
    return _core.SetUp()


def plan(text: str, path: Path, set_up: SetUp | None = None) -> Plan:
    """Judge the text of an experiment; files in it are relative to the folder of `path`.

    A large fabric takes its time; `set_up` tells what is done.

    Raises
    ------
    ExperimentError
        It is not valid; the message names the place and the cure.
    """
    return Plan.from_json(_core.validate(text, str(path), set_up))


def measure(planned: Plan, seconds: float) -> tuple[Estimate, ...]:
    """What each run will cost: a part of them is simulated for so many seconds of processor time.

    Setting up a large fabric takes its own time.
    """
    answers = json.loads(_core.measure(planned.text, seconds))
    return tuple(Estimate.from_json(answer) for answer in answers)


def new_progress() -> Progress:
    """What tells how far a run is, and stops it, from another thread."""
    return _core.Progress()


def run(planned: Plan, index: int, out: Path, threads: int, progress: Progress) -> RunStats:
    """Simulate a run of the plan on up to `threads` threads.

    `out`/.runs/NAME/ is written by one rename; it is the same for any number of threads.

    Raises
    ------
    RunCancelled
        It was asked to stop.
    """
    return RunStats.from_json(_core.run(planned.text, index, str(out), threads, progress))


def run_leading(
    planned: Plan,
    index: int,
    out: Path,
    threads: int,
    progress: Progress,
    ranks: int,
    exchange: Exchange,
) -> RunStats:
    """`run` as the first of several ranks that share the run; the others do `run_following`."""
    said = _core.run_in_ranks(planned.text, index, str(out), threads, progress, 0, ranks, exchange)
    return RunStats.from_json(said or "")


def run_following(
    plan_text: str, index: int, threads: int, rank: int, ranks: int, exchange: Exchange
) -> None:
    """Take part in a run as a rank other than the first; nothing is written.

    Raises
    ------
    RaddleError
        The run has failed, at this rank or at another; all ranks end it.
    """
    progress = _core.Progress()
    _core.run_in_ranks(plan_text, index, "", threads, progress, rank, ranks, exchange)


def merge(planned: Plan, out: Path) -> None:
    """Join the parts whose stamps are in the plan into the results folder, in plan order.

    Parts that are missing are left out. Loaded runs go to `out`, isolated ones to `out`/isolated;
    every file is replaced by rename.
    """
    _core.merge(planned.text, str(out))
