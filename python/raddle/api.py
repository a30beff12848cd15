"""`raddle.run`: an experiment from Python; `raddle.schemes`: what it may compare."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli_w

from raddle import core
from raddle.errors import RunCancelled
from raddle.report import write_report
from raddle.results.folder import Results, load
from raddle.services.engines.choice import Engine
from raddle.services.run import execute, plan_file, plan_text

__all__ = ["Scheme", "run", "schemes"]


@dataclass(frozen=True, slots=True)
class Scheme:
    """A scheme of congestion control: its name in files and results, and what it does."""

    name: str
    about: str


def schemes() -> list[Scheme]:
    """List the schemes of congestion control, in the order in which reports show them.

    Examples
    --------
    >>> [scheme.name for scheme in schemes()][:3]
    ['none', 'dctcp', 'dcqcn']
    """
    return [Scheme(name, about) for name, about in core.build.schemes()]


def run(
    experiment: str | Path | Mapping[str, Any],
    out: str | Path,
    *,
    jobs: int | None = None,
    threads: int | None = None,
    report: bool = False,
    replace: bool = False,
) -> Results:
    """Simulate an experiment and return its results.

    Parameters
    ----------
    experiment
        An experiment file, or its tables as a mapping. In a mapping files are relative to the
        working folder, and quantities are strings with units as in a file.
    out
        The results folder; runs that it already holds are not simulated again.
    jobs
        Runs at the same time; the number of cores if not given.
    threads
        Threads of each run, which change its time and no byte; the cores left over by runs at the
        same time if not given.
    report
        Write `report.html` as well.
    replace
        Delete the results of another experiment that lie in `out`.

    Raises
    ------
    ExperimentError
        The experiment is not valid; the message names the place and the cure. Or `jobs` or
        `threads` is out of range.
    ResultsError
        `out` holds results of another experiment, and `replace` is not set.
    KeyboardInterrupt
        Ctrl-C: finished runs are kept in `out`, and the same call resumes.

    Examples
    --------
    >>> results = raddle.run("experiments/congestion/small.toml", "out/small")  # doctest: +SKIP
    >>> results.flows.to_pandas().groupby("scheme").fct_ps.median()  # doctest: +SKIP
    """
    folder = Path(out)
    if isinstance(experiment, Mapping):
        plan = plan_text(tomli_w.dumps(dict(experiment)), Path("experiment.toml"))
    else:
        plan = plan_file(Path(experiment))
    engine = Engine(jobs=jobs, threads=threads)
    try:
        outcome = execute(plan, folder, engine=engine, replace=replace)
    except RunCancelled as error:
        raise KeyboardInterrupt from error
    if outcome.interrupted:
        raise KeyboardInterrupt
    if report:
        write_report(folder)
    return load(folder)
