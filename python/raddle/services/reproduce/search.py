"""A search over what a paper's text has lost: where do all of its findings hold together?

Every combination of the inputs is a point. A point is evaluated in a process of its own and kept in
a file, so that a search that was stopped goes on. Which points there are is fixed before; none is
left out afterwards.
"""

import itertools
import json
import multiprocessing
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raddle.results.reproduction import Table
from raddle.services.reproduce.context import Context

__all__ = ["Found", "Search", "run_search"]

Point = dict[str, Any]
Holds = dict[str, bool | None]
Evaluate = Callable[[Point, bool, Path], Holds]


@dataclass(frozen=True, slots=True)
class Search:
    """The lost inputs of a paper, and how to tell which of its findings hold for a choice."""

    inputs: Mapping[str, Sequence[Any]]
    """The values of each; of any type that JSON has."""
    findings: Sequence[str]
    evaluate: Evaluate
    """From a point, whether to be quick, and the paper's folder: which findings hold; None: not
    shown. A function of a module, since it runs in another process; it keeps nothing there."""
    quick_inputs: Mapping[str, Sequence[Any]] | None = None

    def points(self, *, quick: bool) -> list[Point]:
        """All combinations, in order."""
        inputs = self.quick_inputs if quick and self.quick_inputs is not None else self.inputs
        names = list(inputs)
        return [
            dict(zip(names, values, strict=True)) for values in itertools.product(*inputs.values())
        ]


@dataclass(frozen=True, slots=True)
class Found:
    """What a search found."""

    findings: Sequence[str]
    points: Sequence[Point]
    holds: Sequence[Holds]
    """In the order of the points."""

    @property
    def best(self) -> int:
        """The point at which most findings hold; the first of several."""
        return max(range(len(self.points)), key=lambda i: (self._count(i), -i))

    @property
    def best_count(self) -> int:
        """How many hold there."""
        return self._count(self.best)

    @property
    def region(self) -> list[int]:
        """The points at which all findings hold."""
        return [i for i in range(len(self.points)) if self._count(i) == len(self.findings)]

    def _count(self, index: int) -> int:
        return sum(self.holds[index].get(name) is True for name in self.findings)

    def _where(self, name: str) -> frozenset[int]:
        return frozenset(i for i, holds in enumerate(self.holds) if holds.get(name) is True)

    def never_together(self) -> list[tuple[str, str]]:
        """Pairs of findings each of which holds somewhere, but never both at one point."""
        where = {name: self._where(name) for name in self.findings}
        return [
            (a, b)
            for a, b in itertools.combinations(self.findings, 2)
            if where[a] and where[b] and not where[a] & where[b]
        ]

    def elsewhere(self, name: str) -> tuple[int, int]:
        """What the search predicts of a finding that it was not chosen by.

        Returns
        -------
        holds, points
            The points at which most of the other findings hold, and at how many of them this one
            holds too.
        """
        others = [other for other in self.findings if other != name]
        counts = [sum(holds.get(other) is True for other in others) for holds in self.holds]
        chosen = {i for i, count in enumerate(counts) if count == max(counts)}
        return len(chosen & self._where(name)), len(chosen)

    def predicted(self) -> list[str]:
        """The findings that hold at all points at which most of the others hold."""
        found = {name: self.elsewhere(name) for name in self.findings}
        return [name for name, (holds, points) in found.items() if holds == points]

    def facts(self) -> dict[str, Any]:
        """For `summary.json`."""
        return {
            "points": len(self.points),
            "findings": len(self.findings),
            "best_holds": self.best_count,
            "best_point": self.points[self.best],
            "points_where_all_hold": len(self.region),
            "hold_nowhere": [name for name in self.findings if not self._where(name)],
            "never_together": [list(pair) for pair in self.never_together()],
            "predicted_by_the_others": self.predicted(),
        }

    def tables(self) -> dict[str, Table]:
        """The tables of the page: what was searched, and which finding holds where."""
        chosen = [self.points[i] for i in self.region] or [
            point for i, point in enumerate(self.points) if self._count(i) == self.best_count
        ]
        head = "where all hold" if self.region else f"where {self.best_count} hold"
        inputs = [
            (
                name,
                _listed(point[name] for point in self.points),
                _listed(point[name] for point in chosen),
                _word(self.points[self.best][name]),
            )
            for name in self.points[0]
        ]
        best = self.holds[self.best]
        pairs = self.never_together()
        findings = [
            (
                name,
                _yes(best.get(name)),
                f"{len(self._where(name)) / len(self.points):.0%}".replace("%", " %"),
                _share(*self.elsewhere(name)),
                ", ".join(a if b == name else b for a, b in pairs if name in (a, b)) or "",
            )
            for name in self.findings
        ]
        return {
            "search-inputs": Table(("input", "searched", head, "at the best point"), inputs),
            "search-findings": Table(
                (
                    "finding",
                    "at the best point",
                    "of all points",
                    "where most of the others hold",
                    "never together with",
                ),
                findings,
            ),
            "search-points": Table(
                ("points", "findings", "most at a point", "points of all", "predicted"),
                [
                    (
                        len(self.points),
                        len(self.findings),
                        self.best_count,
                        len(self.region),
                        len(self.predicted()),
                    )
                ],
            ),
        }


def _listed(values: Iterator[Any]) -> str:
    return ", ".join(dict.fromkeys(map(_word, values)))


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _share(holds: int, points: int) -> str:
    if holds in {0, points}:
        return _yes(holds > 0)
    return f"at {holds} of {points}"


def _yes(holds: bool | None) -> str:
    return "not shown" if holds is None else "holds" if holds else "no"


def run_search(search: Search, context: Context) -> Found:
    """Evaluate all points that the paper's folder does not have yet.

    Raises
    ------
    Exception
        What `evaluate` raised; points that are done stay done.
    """
    points = search.points(quick=context.quick)
    folder = context.out / ("search-quick" if context.quick else "search")
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "points.jsonl"
    done = _read(file, search.findings)
    waiting = [point for point in points if _key(point) not in done]
    label = "lost inputs"
    context.step(label, len(points) - len(waiting), len(points))
    if waiting:
        # Threads of this process hold locks that a forked child would wait for.
        spawn = multiprocessing.get_context("spawn")
        workers = max(1, min(context.jobs, len(waiting)))
        with file.open("a", encoding="utf-8") as kept:
            pool = ProcessPoolExecutor(workers, mp_context=spawn)
            try:
                started = {
                    pool.submit(search.evaluate, point, context.quick, folder): point
                    for point in waiting
                }
                for future in as_completed(started):
                    point = started[future]
                    holds = {name: future.result().get(name) for name in search.findings}
                    done[_key(point)] = holds
                    kept.write(json.dumps({"point": point, "holds": holds}) + "\n")
                    kept.flush()
                    left = sum(_key(p) not in done for p in points)
                    context.step(label, len(points) - left, len(points))
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
    return Found(search.findings, points, [done[_key(point)] for point in points])


def _key(point: Point) -> str:
    return json.dumps(point, sort_keys=True)


def _read(file: Path, findings: Sequence[str]) -> dict[str, Holds]:
    """What an earlier call kept; a line that was cut short, or is of other findings, is not."""
    done: dict[str, Holds] = {}
    if not file.is_file():
        return done
    for line in file.read_text(encoding="utf-8").splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and set(entry.get("holds", ())) == set(findings):
            done[_key(entry["point"])] = entry["holds"]
    return done
