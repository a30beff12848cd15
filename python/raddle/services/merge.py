"""`raddle merge`: folders of shards become one, equal to that of one machine.

Each folder says what it is to hold (`raddle.results.planned`), and its runs say by their stamps
what they are. Nothing is simulated.
"""

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from raddle.errors import ResultsError
from raddle.results.claim import claim_folder
from raddle.results.owners import Claims, Process
from raddle.results.parts import (
    differing_file,
    finished_run,
    how_it_went,
    part_folder,
    publish,
    refuse_others,
    working_folder,
)
from raddle.results.planned import Planned, keep, kept
from raddle.services.engines.work import RunState
from raddle.services.run import Outcome, alone, join_states, joining, states_of
from raddle.services.sweep import refuse_no_sweep, write_table

__all__ = ["Merged", "merge"]


@dataclass(frozen=True, slots=True)
class Merged:
    """What `merge` did."""

    out: Path
    outcomes: Sequence[Outcome]
    """What came of each point; one if the folders are no sweeps."""
    table: Mapping[str, Any] | None
    """What `sweep.json` holds; None if the folders are no sweeps."""

    @property
    def missing(self) -> list[RunState]:
        """Runs that no folder has."""
        return [s for outcome in self.outcomes for s in outcome.states if s.stats is None]

    @property
    def complete(self) -> bool:
        """Whether every run is there."""
        return not self.missing


def merge(folders: Sequence[Path], out: Path) -> Merged:
    """Join what lies in `folders` into `out`, which may be the only one of them.

    Runs that are missing are left out, as after Ctrl-C; runs that several folders have must agree
    in every byte.

    Raises
    ------
    ResultsError
        A folder is no results folder or of another experiment, `out` is in use, or two folders
        have another result of the same run.
    """
    started = time.monotonic()
    plans = [kept(folder) for folder in folders]
    for folder, other in zip(folders[1:], plans[1:], strict=True):
        _refuse_another(folders[0], plans[0], folder, other)
    first = folders[0]
    points = [replace(one, out=out / one.out.relative_to(first)) for one in plans[0]]
    sweep = points[0].set is not None
    if sweep:
        refuse_no_sweep(out)
    with ExitStack() as held:
        in_place = [folder.resolve() for folder in folders] == [out.resolve()]
        for point in points:
            held.enter_context(claim_folder(point.out, "run", shared=in_place))
            refuse_others(point.plan, point.out)
        claims = Claims(out)
        if not in_place:
            alone(points, claims)
            keep(points, out)
            _gather([(folder, kept(folder)) for folder in folders], points, out)
        parts = [states_of(point, out) for point in points]
        complete = all(state.stats is not None for part in parts for state in part)
        with _joining(claims, complete=complete, shared=in_place):
            summaries = [join_states(one, part) for one, part in zip(points, parts, strict=True)]
            wall_s = time.monotonic() - started
            outcomes = [
                Outcome(point.plan, point.out, part, wall_s, summary=summary)
                for point, part, summary in zip(points, parts, summaries, strict=True)
            ]
            sets = [point.set or {} for point in points]
            table = write_table(sets, outcomes, out) if sweep else None
    return Merged(out, outcomes, table)


@contextmanager
def _joining(claims: Claims, *, complete: bool, shared: bool) -> Iterator[None]:
    """As `joining`, for those who must be the one."""
    if not shared:
        yield
        return
    with joining(claims, complete=complete) as ours:
        if not ours:
            msg = f"another raddle is joining {claims.folder.parents[1]}: wait for it"
            raise ResultsError(msg)
        yield


def _gather(
    folders: Sequence[tuple[Path, Sequence[Planned]]], points: Sequence[Planned], out: Path
) -> None:
    """Copy each run from the first folder that has it; others that have it must agree."""
    process = Process.this()
    for place, point in enumerate(points):
        for run in point.plan.runs:
            having = [
                source
                for source in (point.out, *(planned[place].out for _, planned in folders))
                if (stats := finished_run(source, run.name)) and stats.stamp == run.stamp
            ]
            if not having:
                continue
            source, *others = having
            for other in others:
                a, b = part_folder(source, run.name), part_folder(other, run.name)
                if (file := differing_file(a, b)) is not None:
                    where = f" of {point.out.relative_to(out)}" if point.set is not None else ""
                    msg = (
                        f"{a / file} and {b / file} differ: two results of run {run.name}{where}\n"
                        "  hint: one of them comes from another build of raddle or from a fault "
                        "of a machine; delete one folder, and simulate the run once more"
                    )
                    raise ResultsError(msg)
            stats = finished_run(source, run.name)
            if source == point.out or stats is None:
                continue
            work = working_folder(point.out, run.name, process.token)
            try:
                shutil.copytree(part_folder(source, run.name), part_folder(work, run.name))
                publish(work, point.out, stats, how_it_went(source, run.name))
            except shutil.Error as error:  # a list of what happened to each file
                name, _, reason = error.args[0][0]
                msg = f"{name}: {reason}"
                raise ResultsError(msg) from error
            finally:
                shutil.rmtree(work, ignore_errors=True)


def _refuse_another(
    a: Path, planned: Sequence[Planned], b: Path, others: Sequence[Planned]
) -> None:
    """Refuse folders that are not to hold the same runs."""

    def runs(of: Path, points: Sequence[Planned]) -> dict[str, str]:
        return {
            f"{point.out.relative_to(of)}/{run.name}".removeprefix("./"): run.stamp
            for point in points
            for run in point.plan.runs
        }

    here, there = runs(a, planned), runs(b, others)
    if here == there:
        return
    for key in dict.fromkeys((*here, *there)):
        if key not in there or key not in here:
            has, lacks = (a, b) if key in here else (b, a)
            msg = f"{has} is to hold the run {key}, and {lacks} is not"
            break
        if here[key] != there[key]:
            msg = f"{a} and {b} are of different experiments: their runs {key} are not the same"
            break
    else:
        msg = f"{a} and {b} hold the same runs in another order"
    msg += "\n  hint: all shards need the same experiment and the same words, but for --shard"
    raise ResultsError(msg)
