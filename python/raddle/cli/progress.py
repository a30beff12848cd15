"""Progress displays: of `raddle run` with packet-hops a second and time left, of `raddle route`."""

import time
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from raddle.text import count, duration_s, many, span_us

if TYPE_CHECKING:
    from raddle.services.run import RunState

__all__ = ["CountBar", "RouteBar", "RunProgress"]

REFRESH_PER_S = 8


class _Shown:
    """Bars that are on the terminal while the block runs."""

    _bars: Progress

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bars.stop()


class RunProgress(_Shown):
    """A line per active run and one for all of them, on stderr."""

    def __init__(self) -> None:
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.percentage:>3.0f} %"),
            TextColumn("{task.fields[talk]}"),
            console=Console(stderr=True),
            refresh_per_second=REFRESH_PER_S,
            transient=True,
        )
        self._tasks: dict[str, TaskID] = {}
        self._all: TaskID | None = None
        self._started = time.monotonic()

    def show(self, states: Sequence["RunState"]) -> None:
        """Bring the display up to date."""
        hops = 0
        fractions: list[float] = []
        fresh = [s for s in states if not s.reused]
        for state in fresh:
            fraction, run_hops = self._one(state)
            fractions.append(fraction)
            hops += run_hops
        elapsed = time.monotonic() - self._started
        done = sum(s.stats is not None for s in states)
        share = sum(fractions) / len(fractions) if fractions else 1.0
        left = f"{duration_s(elapsed / share - elapsed)} left" if share > 0.02 else ""
        rate = f"{count(hops / elapsed)} packet-hops/s" if elapsed > 0 else ""
        if self._all is None:
            self._all = self._bars.add_task("", total=1.0, talk="")
        self._bars.update(
            self._all,
            description=f"[bold]{done}/{many(len(states), 'run')}",
            completed=share,
            talk="  ".join(t for t in (rate, left) if t),
        )

    def _one(self, state: "RunState") -> tuple[float, int]:
        name = state.run.name
        if state.stats is not None:
            task = self._tasks.pop(name, None)
            if task is not None:
                self._bars.remove_task(task)
            return 1.0, state.stats.packet_hops
        progress = state.progress
        if progress is None or state.started is None:
            return 0.0, 0
        hops, total = progress.packet_hops, progress.flows_total
        expected = state.run.estimate.packet_hops
        # Packet-hops are the better measure of work done; flows end in a rush.
        fraction = hops / expected if expected else progress.flows_done / total if total else 0.0
        fraction = min(fraction, 0.99)
        elapsed = time.monotonic() - state.started
        words = [f"{span_us(progress.simulated_ps / 1e6)} simulated"]
        if elapsed > 0.5:
            words.append(f"{count(hops / elapsed)} packet-hops/s")
        if name not in self._tasks:
            self._tasks[name] = self._bars.add_task(name, total=1.0, talk="")
        self._bars.update(self._tasks[name], completed=fraction, talk="  ".join(words))
        return fraction, hops


class CountBar(_Shown):
    """A line with how many of something are done, and the time since it began."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._bars = Progress(
            BarColumn(bar_width=24),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            refresh_per_second=REFRESH_PER_S,
            transient=True,
        )
        self._task = self._bars.add_task("", total=None)

    def show(self, done: int, total: int) -> None:
        """Bring the display up to date."""
        words = f"{done} of {total} {self._what}"
        self._bars.update(self._task, description=words, completed=done, total=total)


class RouteBar(_Shown):
    """A line with the engine at work and the time since it began."""

    def __init__(self, engines: Sequence[str]) -> None:
        self._engines = len(engines)
        self._bars = Progress(
            BarColumn(bar_width=24),
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            refresh_per_second=REFRESH_PER_S,
            transient=True,
        )
        self._task = self._bars.add_task("", total=max(1, self._engines))

    def show(self, phase: str, done: int) -> None:
        """Bring the display up to date: what is at work, and engines done."""
        words = f"{phase} ({min(done + 1, self._engines)} of {self._engines})"
        self._bars.update(self._task, description=words, completed=done)
