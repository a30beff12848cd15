"""How long the jobs of an experiment took under each setup: `jobs` of `summary.json`.

A job's time is from its start until its last rank was through. `saved_frac` compares it, seed by
seed, with the first setup (or scheme) of the experiment, and `slowdown` with the job alone.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from raddle.results.folder import Results
from raddle.statistics.blame import kinds_of, parts_of
from raddle.statistics.rule import TIE_PERCENT
from raddle.statistics.samples import mean_interval
from raddle.statistics.verdict import NO_RUN, Verdict, label_of
from raddle.text import every, join_words, many, percent, verb

__all__ = ["job_rows", "judge_jobs"]

Rows = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""By scheme and job."""
CARRIERS = ("host", "multicast", "offload")
TIE = TIE_PERCENT / 100


def job_rows(results: Results) -> dict[str, dict[str, dict[str, Any]]]:
    """Per scheme and job its figures, as `summary.json` has them; empty without jobs."""
    if results.jobs is None:
        return {}
    found: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in results.jobs.to_pylist():
        found.setdefault((row["scheme"], row["job"]), []).append(row)
    names = dict.fromkeys(job for _, job in found)
    base = results.schemes[0] if results.schemes else ""
    rows: dict[str, dict[str, dict[str, Any]]] = {}
    spent: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in [] if results.blame is None else results.blame.to_pylist():
        spent.setdefault((row["scheme"], row["job"]), []).append(row)
    for scheme in results.schemes:
        own = {job: found[scheme, job] for job in names if (scheme, job) in found}
        rows[scheme] = {
            job: _figures(runs, found.get((base, job), [])) for job, runs in own.items()
        }
        for job, row in rows[scheme].items():
            if (scheme, job) in spent:
                row["spent"] = kinds_of(parts_of(spent[scheme, job]), job)
    return rows


def _figures(
    runs: Sequence[Mapping[str, Any]], base: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    times = {run["seed"]: run["time_ps"] for run in runs if run["time_ps"] is not None}
    plain = {run["seed"]: run["time_ps"] for run in base if run["time_ps"]}
    saved = [1 - time / plain[seed] for seed, time in times.items() if seed in plain]
    alone = [run["alone_ps"] / 1e6 for run in runs if run["alone_ps"] is not None]
    slowdown = [run["slowdown"] for run in runs if run["slowdown"] is not None]
    return {
        "ranks": runs[0]["ranks"],
        "seeds": len(runs),
        "unfinished": len(runs) - len(times),
        **_mean("time_us", [time / 1e6 for time in times.values()]),
        **_mean("alone_us", alone),
        **_mean("slowdown", slowdown),
        **_mean("saved_frac", saved),
        "calls": {carrier: runs[0][f"{carrier}_calls"] for carrier in CARRIERS},
    }


def _mean(key: str, values: Sequence[float]) -> dict[str, float | None]:
    if not values:
        return {key: None}
    found = mean_interval(values)
    more = {} if found.half_width is None else {f"{key}_ci95": found.half_width}
    return {key: found.mean, **more}


def _sure(row: Mapping[str, Any]) -> float | None:
    """What a setup saves a job; 0 where that is a tie."""
    saved: float | None = row.get("saved_frac")
    if saved is None:
        return None
    return saved if abs(saved) > max(row.get("saved_frac_ci95", 0.0), TIE) else 0.0


def judge_jobs(rows: Rows) -> Verdict:
    """Which setup serves the jobs best, and what each gives to each of them."""
    if not rows or not any(rows.values()):
        return Verdict((), NO_RUN)
    schemes = list(rows)
    base = schemes[0]
    names = list(dict.fromkeys(job for own in rows.values() for job in own))
    lost = sum(row["unfinished"] for own in rows.values() for row in own.values())
    missing = f"{many(lost, 'run')} of jobs did not end. " if lost else ""
    if len(schemes) == 1:
        worst = max(rows[base].items(), key=lambda item: item[1].get("slowdown") or 0.0)
        times = worst[1].get("slowdown")
        words = (
            f"{worst[0]} takes {times:.2f} times as long as alone" if times else "no job ran alone"
        )
        return Verdict((), f"{missing}Of {many(len(names), 'job')}, {words}.")
    shares = {scheme: _share(own, names) for scheme, own in rows.items()}
    together = {scheme: share for scheme, share in shares.items() if share is not None}
    details = tuple(_job_words(job, rows, base) for job in names)
    compared = (
        f"Compared: times of jobs with those under {label_of(base)}, seed by seed; "
        f"differences of up to {TIE_PERCENT:g} % are ties."
    )
    if not together:
        return Verdict((), f"{missing}No setup ran all jobs to their end.", compared, details)
    best = min(together.values())
    leaders = tuple(scheme for scheme, share in together.items() if share <= best * (1 + TIE))
    if base in leaders:
        headline = (
            f"{missing}No setup serves the {many(len(names), 'job')} better than {label_of(base)}."
        )
        return Verdict((), headline, compared, details)
    who = f"{join_words(map(label_of, leaders))} {verb(len(leaders), 'serves', 'serve')}"
    headline = (
        f"{missing}{who} the jobs best: {percent(1 - best)} less time than under "
        f"{label_of(base)}, over {every(len(names), 'job')}."
    )
    return Verdict(leaders, headline, compared, details)


def _share(own: Mapping[str, Mapping[str, Any]], names: Sequence[str]) -> float | None:
    """Geometric mean of the jobs' times over those of the first setup; None if one is missing."""
    saved = [own[job].get("saved_frac") for job in names if job in own]
    known = [1 - share for share in saved if share is not None]
    return float(np.exp(np.mean(np.log(known)))) if len(known) == len(names) else None


def _job_words(job: str, rows: Rows, base: str) -> str:
    """What the setups give to a job, the best first."""
    own = {scheme: _sure(jobs[job]) for scheme, jobs in rows.items() if job in jobs}
    saved = {scheme: share for scheme, share in own.items() if share is not None and scheme != base}
    gains = sorted(((v, s) for s, v in saved.items() if v > 0), reverse=True)
    losses = sorted((v, s) for s, v in saved.items() if v < 0)
    level = [s for s, v in saved.items() if v == 0]
    parts = []
    if gains:
        parts.append("saved by " + join_words(f"{label_of(s)} {percent(v)}" for v, s in gains))
    if losses:
        parts.append("lost by " + join_words(f"{label_of(s)} {percent(-v)}" for v, s in losses))
    if level:
        parts.append(f"no difference by {join_words(map(label_of, level))}")
    return f"{job}, against {label_of(base)}: {'; '.join(parts) or 'nothing to compare'}."
