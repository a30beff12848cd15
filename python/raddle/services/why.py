"""`raddle why`: what the time of a job or a flow was spent on, and whether that is so."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import tomli_w

from raddle.errors import ResultsError
from raddle.files import read_text
from raddle.results.folder import Results, load
from raddle.services.engines.choice import LOCAL, Engine
from raddle.services.run import execute, plan_text
from raddle.services.runner import Watch
from raddle.statistics.blame import culprits_of, parts_of
from raddle.statistics.samples import mean_interval
from raddle.text import suggest

__all__ = ["prove", "why_flow", "why_job"]


def why_job(folder: Path, job: str, setup: str | None = None) -> dict[str, Any]:
    """Say what a job's time was spent on under a setup (the first one, if none is named).

    Returns
    -------
    dict
        `time_us` and `alone_us`, means over the seeds in which the job ended; `parts`, each with
        `cause`, `culprit`, `port`, `time_us` and `share`, the largest first, whose shares add up to
        1; `culprits`, the shares of others.

    Raises
    ------
    ResultsError
        The folder has no such job or setup, or does not say.
    """
    results = load(folder)
    blame, jobs = results.blame, results.jobs
    if blame is None or jobs is None:
        msg = (
            f"{folder}: it does not say what the time of jobs was spent on\n"
            "  hint: an experiment with [[job]] does, unless it has `blame = false` in [record]"
        )
        raise ResultsError(msg)
    setup = _known(setup, results.schemes, "setup", folder)
    names = list(dict.fromkeys(map(str, jobs["job"].to_pylist())))
    job = _known(job, names, "job", folder)
    rows = _rows(blame, scheme=setup, job=job)
    if not rows:
        msg = f"{folder}: {job} did not end under {setup} in any run"
        raise ResultsError(msg)
    runs = [row for row in _rows(jobs, scheme=setup, job=job) if row["time_ps"] is not None]
    alone = [row["alone_ps"] / 1e6 for row in runs if row["alone_ps"] is not None]
    return {
        "job": job,
        "setup": setup,
        "seeds": [row["seed"] for row in runs],
        "time_us": mean_interval([row["time_ps"] / 1e6 for row in runs]).mean,
        "alone_us": mean_interval(alone).mean if alone else None,
        **_told(rows, job),
    }


def why_flow(folder: Path, flow: str, setup: str | None = None) -> dict[str, Any]:
    """Say what a flow's time was spent on: `flow` is SRC:DST or SRC:DST:SPORT.

    Raises
    ------
    ResultsError
        The folder has no such flow, or does not say.
    """
    results = load(folder)
    delays = results.delays
    if delays is None:
        msg = (
            f"{folder}: it does not say what the time of flows was spent on\n"
            "  hint: run the experiment with `delays = true` in [record]"
        )
        raise ResultsError(msg)
    setup = _known(setup, results.schemes, "setup", folder)
    numbers = flow.split(":")
    if len(numbers) not in (2, 3) or not all(number.isdecimal() for number in numbers):
        msg = f"--flow: `{flow[:60]}` is not SRC:DST or SRC:DST:SPORT, all of them numbers"
        raise ResultsError(msg)
    ends = dict(zip(("src", "dst", "sport"), map(int, numbers), strict=False))
    rows = _rows(delays, scheme=setup, **ends)
    if not rows:
        msg = f"{folder}: no flow {flow} was delivered under {setup}"
        raise ResultsError(msg)
    flows = {(row["seed"], row["sport"]) for row in rows}
    return {
        "flow": flow,
        "class": rows[0]["class"],
        "setup": setup,
        "flows": len(flows),
        "time_us": sum(row["time_ps"] for row in rows) / 1e6 / len(flows),
        **_told(rows, rows[0]["class"]),
    }


def prove(
    folder: Path,
    told: Mapping[str, Any],
    *,
    engine: Engine = LOCAL,
    watch: Watch | None = None,
) -> dict[str, Any]:
    """Run the experiment again without the first culprit of `why_job`, all else as it was.

    Returns
    -------
    dict
        `without`; `time_us`, the job's mean time then; `saved_frac`, the share of its time that
        it saves, seed by seed, with `saved_frac_ci95` where there are several; `blamed_share`.

    Raises
    ------
    ResultsError
        Nobody else stood in the way, or the folder does not have its experiment.
    ExperimentError
        The culprit cannot be left out.
    """
    if not told["culprits"]:
        msg = f"nobody else stood in the way of {told['job']}: there is nothing to prove"
        raise ResultsError(msg)
    culprit, job = next(iter(told["culprits"])), told["job"]
    file = folder / "experiment.toml"
    changed = _without(tomllib.loads(read_text(file)), told["setup"], culprit)
    plan = plan_text(tomli_w.dumps(changed), file)
    with TemporaryDirectory(prefix="raddle-why-") as temporary:
        out = Path(temporary) / "without"
        if execute(plan, out, engine=engine, watch=watch).interrupted:
            raise KeyboardInterrupt
        after = _times(load(out), None, job)
    before = _times(load(folder), told["setup"], job)
    both = [seed for seed in before if seed in after]
    saved = mean_interval([1 - after[seed] / before[seed] for seed in both])
    interval = {} if saved.half_width is None else {"saved_frac_ci95": saved.half_width}
    return {
        "without": culprit,
        "blamed_share": told["culprits"][culprit],
        "time_us": mean_interval([after[seed] / 1e6 for seed in both]).mean,
        "saved_frac": saved.mean,
        **interval,
    }


def _without(experiment: dict[str, Any], setup: str, culprit: str) -> dict[str, Any]:
    """The experiment with one setup, which leaves the culprit out."""
    setups = experiment.get("setup") or [{"name": setup, "scheme": setup}]
    own = next(it for it in setups if it["name"] == setup)
    simulation = {**experiment.get("simulation", {}), "alone": False}
    simulation.pop("schemes", None)
    left_out = [*own.get("without", []), culprit]
    return {**experiment, "simulation": simulation, "setup": [{**own, "without": left_out}]}


def _times(results: Results, setup: str | None, job: str) -> dict[int, int]:
    """The job's time by seed."""
    wanted = {"job": job} if setup is None else {"job": job, "scheme": setup}
    rows = _rows(results.jobs, **wanted) if results.jobs is not None else []
    return {row["seed"]: row["time_ps"] for row in rows if row["time_ps"]}


def _told(rows: list[dict[str, Any]], own: str) -> dict[str, Any]:
    parts = parts_of(rows)
    return {"parts": [part.as_json() for part in parts], "culprits": culprits_of(parts, own)}


def _rows(table: pa.Table, **wanted: object) -> list[dict[str, Any]]:
    rows = table.to_pylist()
    return [row for row in rows if all(row[key] == value for key, value in wanted.items())]


def _known(name: str | None, names: list[str] | tuple[str, ...], what: str, folder: Path) -> str:
    if name is None:
        return names[0]
    if name not in names:
        msg = f"{folder}: it has no {what} `{name[:60]}`: {suggest(name, names)}"
        raise ResultsError(msg)
    return name
