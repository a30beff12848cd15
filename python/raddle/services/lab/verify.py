"""An advice beside what it gives: a program plain and with the advice in a lab, in turns."""

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from raddle.errors import LabError
from raddle.services.advice import Advice, read_advice
from raddle.services.lab.mpi import MpiRun, advised_hosts, prepared
from raddle.services.lab.topology import Backend, Host
from raddle.services.lab.virtual import Lab
from raddle.statistics.samples import mean_interval
from raddle.text import many

__all__ = ["Verified", "verify"]

EMPTY = ("true",)
"""A program that does nothing: what starting and ending one takes."""
STARTS = 3


@dataclass(frozen=True, slots=True)
class Verified:
    """Seconds of runs, less what starting and ending them takes; pairs stand side by side."""

    plain_s: Sequence[float]
    advised_s: Sequence[float]
    predicted: dict[str, float]

    def as_json(self) -> dict[str, Any]:
        """Predicted beside measured."""
        gains = mean_interval(
            [1 - own / plain for own, plain in zip(self.advised_s, self.plain_s, strict=True)]
        )
        time_s, plain_s = (self.predicted.get(key) for key in ("time_s", "plain_s"))
        return {
            "pairs": gains.n,
            "plain_s": {"predicted": plain_s, "measured": median(self.plain_s)},
            "advised_s": {"predicted": time_s, "measured": median(self.advised_s)},
            "gain_frac": {
                "predicted": 1 - time_s / plain_s if time_s is not None and plain_s else None,
                "measured": gains.mean,
                "ci95": None if gains.half_width is None else [gains.low, gains.high],
            },
            "runs": {"plain_s": list(self.plain_s), "advised_s": list(self.advised_s)},
        }


def verify(
    lab: Lab,
    program: Sequence[str],
    file: Path,
    *,
    hosts: tuple[Host, ...],
    ppn: tuple[int, ...],
    pairs: int,
    watch: Callable[[str], None] = lambda _: None,
) -> Verified:
    """Run a program `pairs` times plain and as often with an advice, in the order A B B A.

    The lab's switches then run again what they ran before.

    Parameters
    ----------
    watch
        Is told what runs.

    Raises
    ------
    ExperimentError
        The advice is wrong.
    LabError
        The lab cannot follow it, or the program fails.
    """
    advice = read_advice(file)
    plain = MpiRun(hosts=hosts, ppn=ppn, backend=Backend.OFF, program=tuple(program))
    places = advised_hosts(lab, advice)
    if places is not None and sum(places[1]) == sum(ppn):
        hosts, ppn = places
    advised = replace(
        plain,
        hosts=hosts,
        ppn=ppn,
        backend=_backend(lab, advice),
        profile=file,
        takes_messages=advice.takes_messages,
        has_protocol=advice.has_protocol,
    )
    before = lab.backend
    try:
        found = _measured(lab, {"plain": plain, "advised": advised}, pairs, watch)
    finally:
        lab.use(before)
    if not all(map(all, found.values())):
        msg = "the program takes no longer than starting it: give it more to do"
        raise LabError(msg)
    return Verified(found["plain"], found["advised"], dict(advice.predicted))


def _measured(
    lab: Lab, runs: Mapping[str, MpiRun], pairs: int, watch: Callable[[str], None]
) -> dict[str, list[float]]:
    """Seconds of each run, less those of a program that does nothing."""
    starts = {}
    for name, run in runs.items():
        watch(f"how long it takes to start, {name}")
        empty = replace(run, program=EMPTY)
        starts[name] = median(_seconds(lab, empty) for _ in range(STARTS))
    found: dict[str, list[float]] = {name: [] for name in runs}
    for pair in range(pairs):
        turn = list(runs.items())
        for name, run in turn if pair % 2 == 0 else reversed(turn):
            watch(f"pair {pair + 1} of {pairs}, {name}")
            found[name].append(max(0.0, _seconds(lab, run) - starts[name]))
    return found


def _backend(lab: Lab, advice: Advice) -> Backend:
    """What switches run for an advice."""
    if advice.rails > lab.topology.spec.rails:
        msg = (
            f"the advice uses {many(advice.rails, 'link')} of each host, and lab `{lab.name}` has "
            f"{lab.topology.spec.rails}\n"
            f"  hint: make a lab with `raddle lab up --rails {advice.rails}`"
        )
        raise LabError(msg)
    if not advice.offloads:
        return Backend.OFF
    return Backend.XDP if lab.backend is Backend.OFF else lab.backend


def _seconds(lab: Lab, run: MpiRun) -> float:
    with prepared(lab, run) as (command, environment):
        began = time.monotonic()
        done = subprocess.run(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
            check=False,
        )  # fmt: skip
        took = time.monotonic() - began
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
        msg = f"{' '.join(run.program)} ended with status {done.returncode}: {last[:200]}"
        raise LabError(msg)
    return took
