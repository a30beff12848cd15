"""Programs that take turns in labs, so that what disturbs the machine hits all of them alike."""

import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from threading import Timer
from typing import Self

from bench import OUT
from bench.comparison import Comparison, Verdict
from raddle.errors import LabError
from raddle.services.lab import Lab, Mode
from raddle.services.lab.mpi import MpiRun, prepared

PATIENCE_S = 600

MOST_TIMES = 6
"""Most pairs, in multiples of what is asked for."""

Times = dict[int, float]
Judge = Callable[[list[dict[str, Times]]], list[Comparison]]
Start = Callable[[], AbstractContextManager[Mapping[str, Callable[[], Times]]]]


@dataclass(frozen=True)
class Side:
    """One side of a comparison: a program of MPI, and how it is run."""

    lab: Lab
    hosts: int
    mpi_args: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    ppn: int = 1
    mode: Mode = Mode.NODE

    @property
    def ranks(self) -> int:
        """Ranks in all."""
        return self.hosts * self.ppn

    @contextmanager
    def command(self, words: list[str]) -> Iterator[tuple[list[str], dict[str, str]]]:
        """The command that runs a program so, and its environment."""
        run = MpiRun(
            hosts=self.lab.topology.hosts[: self.hosts],
            ppn=(self.ppn,) * self.hosts,
            backend=self.lab.backend,
            program=tuple(words),
            mode=self.mode,
            mpi_args=tuple(self.mpi_args.split()),
        )
        with prepared(self.lab, run) as (command, environment):
            yield command, {**environment, **self.variables}

    def run(self, words: list[str]) -> tuple[str, float]:
        """What a program prints under MPI, and how long mpirun took in seconds."""
        with self.command(words) as (command, environment):
            begun = time.monotonic()
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, check=False,
                timeout=PATIENCE_S,
            )  # fmt: skip
            seconds = time.monotonic() - begun
        if done.returncode != 0:
            msg = f"{' '.join(command)}\n{done.stdout[-500:]}{done.stderr[-1500:]}"
            raise LabError(msg)
        return done.stdout, seconds


class ProgramInTurns:
    """A program of bench/programs that measures when it is given a turn, and sleeps in between."""

    def __init__(
        self, side: Side, program: Path, iterations: int, sizes: tuple[int, ...], *words: str
    ) -> None:
        """Name what runs; it starts when the context is entered."""
        self.side, self.sizes = side, sizes
        self.fifo = OUT / f"turn-{secrets.token_hex(4)}"
        self.words = [str(program), "-n", str(iterations), "-t", str(self.fifo), *words]
        self.words += map(str, sizes)

    def __enter__(self) -> Self:
        """Start it."""
        with ExitStack() as stack:
            os.mkfifo(self.fifo)
            stack.callback(self.fifo.unlink)
            # Open for both, so that neither side waits for the other nor sees an end.
            self.pipe = os.open(self.fifo, os.O_RDWR)
            stack.callback(os.close, self.pipe)
            command, environment = stack.enter_context(self.side.command(self.words))
            self.said = stack.enter_context(tempfile.TemporaryFile("w+"))
            self.process = subprocess.Popen(
                command, env=environment, stdout=subprocess.PIPE, stderr=self.said, text=True
            )
            stack.callback(self._end)
            self.stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        """Let it end."""
        self.stack.close()

    def _end(self) -> None:
        os.write(self.pipe, b"q" * self.side.ranks)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.terminate()
            self.process.wait()

    def turn(self) -> Times:
        """Median of what is measured in us, by size."""
        os.write(self.pipe, b"." * self.side.ranks)
        times: Times = {}
        limit = Timer(PATIENCE_S, self.process.terminate)
        limit.start()
        try:
            while len(times) < len(self.sizes):
                line = self.process.stdout.readline() if self.process.stdout else ""
                if not line:
                    self.said.seek(0)
                    msg = f"{' '.join(self.words)} ended early:\n{self.said.read()[-1500:]}"
                    raise LabError(msg)
                if line.startswith("{"):
                    row = json.loads(line)
                    times[row["bytes"]] = row["median_us"]
        finally:
            limit.cancel()
        return times


def middle(times: Times) -> float:
    """The median of what a side measured."""
    return median(times.values())


def alternate(
    what: str,
    pairs: int,
    start: Start,
    together: int,
    judge: Judge,
    *,
    shown: Callable[[Times], float] = middle,
) -> list[Comparison]:
    """Let all sides measure in turns, every second time the other way round, until it is clear.

    `start` gives the sides, anew for every `together` rounds; `shown` is what is said of a side.
    """
    begun, rounds = time.monotonic(), list[dict[str, Times]]()
    while True:
        with start() as sides:
            for _ in range(together):
                names = list(sides)[:: 1 if len(rounds) % 2 == 0 else -1]
                rounds.append({name: sides[name]() for name in names})
                told = ", ".join(f"{name} {shown(rounds[-1][name]):.4g}" for name in sides)
                left = (pairs - len(rounds)) * (time.monotonic() - begun) / len(rounds)
                ahead = f" of {pairs}, {left:.0f} s left" if left > 0 else ""
                say(f"{what}: {len(rounds)}{ahead}: {told}")
        if len(rounds) < pairs:
            continue
        found = judge(rounds)
        unclear = any(c.fails and c.verdict is Verdict.NOT_MEASURED for c in found)
        if not unclear or len(rounds) >= MOST_TIMES * pairs:
            return found


def say(text: str) -> None:
    """Talk on stderr; figures go to stdout."""
    print(text, file=sys.stderr, flush=True)
