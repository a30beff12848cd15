"""`summary.json`: the figures of every scheme, as `raddle run --json` prints them.

Each figure is the mean over seeds of the figure of one seed; with two seeds or more `ci95` beside
it holds the half width of its 95 % interval (Student t), and `per_seed` has the figures of each
seed. `verdict` says who leads, and over which flows. Schema 1; null where a figure does not exist.
docs/reference/results.md has the words.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa

from raddle.plan import RunStats
from raddle.results.columns import floats, integers, select, take
from raddle.results.flows import Run
from raddle.results.folder import Results
from raddle.statistics import score as scoring
from raddle.statistics.flows import FlowFigures, fct_us, size_bins
from raddle.statistics.jobs import job_rows, judge_jobs
from raddle.statistics.pauses import pause_time_by_port_us
from raddle.statistics.samples import mean_interval, spread
from raddle.statistics.verdict import judge

__all__ = ["SUMMARY_SCHEMA", "figures_of", "score_runs", "summarise", "summary_of"]

SUMMARY_SCHEMA = 1
COUNTS = ("n", "unfinished")
"""Counts are summed over seeds, everything else is averaged."""
MESSAGE = ("seed", "src", "dst", "sport")
"""What names a message of one scheme, in flows and in members."""
Json = dict[str, Any]
Figures = Mapping[Run, FlowFigures]
"""The figures of the flows of each run."""


def summarise(
    results: Results,
    *,
    name: str,
    complete: bool,
    parameters: Mapping[str, Sequence[Mapping[str, Any]]],
    stats: Iterable[tuple[str, int, str, RunStats]] = (),
    rules: scoring.Rules | None = None,
) -> Json:
    """Build the summary of `results`.

    Parameters
    ----------
    parameters
        Per scheme the effective parameters: rows with key, value, source, warning.
    stats
        Scheme, seed, variant and stats of every finished run.
    rules
        How runs are judged; those of the manifest if not given.
    """
    rules = rules or scoring.Rules.from_json(results.manifest.get("score"))
    finished_runs = list(stats)
    figures = figures_of(results)
    alone = {} if results.isolated is None else figures_of(results.isolated)
    scores = {s: score_runs(results, s, rules, figures) for s in results.schemes}
    schemes: Json = {}
    for scheme in results.schemes:
        runs = [r for s, _, _, r in finished_runs if s == scheme]
        loaded = [r for s, _, v, r in finished_runs if s == scheme and v == "loaded"]
        schemes[scheme] = {
            **_scheme(results, scheme, figures, scores[scheme], rules),
            "impact": _impact(_of_scheme(figures, scheme), _of_scheme(alone, scheme)),
            **_multicast(results, scheme, loaded),
            "packet_hops": sum(r.packet_hops for r in runs),
            "simulated_ps": max((r.simulated_ps for r in loaded), default=None),
            "parameters": {
                row["key"]: {"value": row["value"], "source": row["source"]}
                for row in parameters.get(scheme, [])
            },
        }
    jobs = job_rows(results)
    for scheme, rows in jobs.items():
        schemes[scheme]["jobs"] = rows
    impacts = {scheme: row["impact"] for scheme, row in schemes.items()}
    if jobs:
        verdict = judge_jobs(jobs)
    else:
        verdict = judge(results, scores, rules, complete=complete, impacts=impacts)
    return {
        "schema": SUMMARY_SCHEMA,
        "name": name,
        "complete": complete,
        **({} if results.flow_file.fits else {"flow_sample": results.flow_file.share}),
        "verdict": verdict.as_json(),
        "schemes": schemes,
    }


def summary_of(results: Results) -> Json:
    """The summary of a folder; what it lacks, of an older raddle say, is computed from tables."""
    summary = results.summary
    schemes = summary.get("schemes") or {}
    if "verdict" in summary and all("per_seed" in row for row in schemes.values()):
        return dict(summary)
    complete = bool(results.manifest.get("complete", True))
    made = summarise(results, name=results.name, complete=complete, parameters={})
    rows = {name: {**row, **schemes.get(name, {})} for name, row in made["schemes"].items()}
    return {**made, **summary, "schemes": rows}


def figures_of(results: Results) -> Figures:
    """The figures of the flows of each run."""
    return {(s, n): FlowFigures.of(results, s, n) for s, n in results.runs}


def _of_scheme(figures: Figures, scheme: str) -> list[FlowFigures]:
    return [own for (name, _), own in figures.items() if name == scheme]


def end_of_run_ps(results: Results, scheme: str, seed: int, flows: FlowFigures) -> int:
    """The last time anything was seen in a run: a flow's start or end, or a sample."""
    last = flows.last_ps
    for table in (results.queues, results.throughput):
        times = floats(select(table, scheme=scheme, seed=seed), "time_ps")
        last = max(last, float(times.max()) if times.size else 0.0)
    return int(last)


def score_runs(
    results: Results, scheme: str, rules: scoring.Rules, figures: Figures
) -> dict[int, scoring.Score]:
    """The score of each seed of `scheme` whose loaded and isolated runs are both there."""
    twin = results.isolated
    if twin is None:
        return {}
    scores: dict[int, scoring.Score] = {}
    for seed in results.seeds:
        loaded = select(results.flow_sample, scheme=scheme, seed=seed)
        alone = select(twin.flow_sample, scheme=scheme, seed=seed)
        if loaded.num_rows == 0 or alone.num_rows == 0:
            continue
        found = scoring.score(
            loaded,
            alone,
            end_ps=end_of_run_ps(results, scheme, seed, figures[scheme, seed]),
            reading=rules.reading,
            mode=rules.variance,
            weights=rules.weights,
        )
        if found is not None:
            scores[seed] = found
    return scores


def _scheme(
    results: Results,
    scheme: str,
    flows: Figures,
    scores: Mapping[int, scoring.Score],
    rules: scoring.Rules,
) -> Json:
    seeds = [seed for name, seed in results.runs if name == scheme]
    per_seed = [_one_run(results, scheme, seed, flows[scheme, seed]) for seed in seeds]
    figures = _over_seeds(per_seed)
    return {
        "seeds": seeds,
        "flows": sum(r["flows"] for r in per_seed),
        "finished": sum(r["finished"] for r in per_seed),
        **{key: figures[key] for key in figures if key not in ("flows", "finished")},
        "per_seed": {
            str(seed): {**run, "score": _score_of_seed(scores.get(seed))}
            for seed, run in zip(seeds, per_seed, strict=True)
        },
        "slowdown_by_size": _bins(_of_scheme(flows, scheme)),
        "score": _score(scores, rules),
    }


def _score_of_seed(score: scoring.Score | None) -> Json | None:
    if score is None:
        return None
    return {
        "s": dict(score.totals),
        "parts": {role.value: part.ratio for role, part in score.parts.items()},
        "w": score.variance_term,
    }


def _multicast(results: Results, scheme: str, runs: Sequence[RunStats]) -> Json:
    """Messages to groups over all seeds: counts, who missed any, when the last member had them."""
    counts = [r.multicast for r in runs if r.multicast is not None]
    if not counts or results.members is None:
        return {}
    members = select(results.members, scheme=scheme)
    missed = members.filter(members["delivered_ps"].is_null())
    messages = members.group_by(list(MESSAGE)).aggregate(
        [("delivered_ps", "count"), ([], "count_all"), ("delivered_ps", "max")]
    )
    everywhere = integers(messages, "delivered_ps_count") == integers(messages, "count_all")
    starts = select(results.flow_sample, scheme=scheme).select([*MESSAGE, "start_ps"])
    whole = take(messages, np.flatnonzero(everywhere)).join(
        starts, list(MESSAGE), join_type="inner"
    )
    last = floats(whole, "delivered_ps_max")
    return {
        "multicast": {
            **{key: sum(run[key] for run in counts) for key in counts[0]},
            "missed_hosts": np.unique(integers(missed, "member")).tolist(),
            "messages": messages.num_rows,
            "messages_everywhere": int(everywhere.sum()),
            "last_member_us": asdict(spread((last - floats(whole, "start_ps")) / 1e6)),
        }
    }


def _one_run(results: Results, scheme: str, seed: int, flows: FlowFigures) -> Json:
    def part(table: pa.Table) -> pa.Table:
        return select(table, scheme=scheme, seed=seed)

    ports, queues = part(results.ports), part(results.queues)
    end_ps = end_of_run_ps(results, scheme, seed, flows)
    pause = pause_time_by_port_us(part(results.pauses), end_ps)
    return {
        "flows": flows.flows,
        "finished": flows.finished,
        "fct_us": {name: asdict(value) for name, value in flows.fct_us.items()},
        "slowdown": asdict(flows.slowdown.spread()),
        "goodput_gbps": flows.goodput_gbps,
        "long_flow_rate_gbps": flows.long_flow_rate_gbps,
        "jain_long_flows": flows.jain_long_flows,
        "pause_us": sum(pause.values()),
        "paused_ports": len(pause),
        "pauses": part(results.pauses).num_rows,
        "ecn_marks": _total(ports, "ecn_marks"),
        "drops": _total(ports, "drops"),
        "max_port_queue_bytes": _largest(ports, "max_queue_bytes"),
        "max_buffered_bytes": _largest(queues, "buffered_bytes"),
    }


def _total(table: pa.Table, column: str) -> int | None:
    return int(floats(table, column).sum()) if table.num_rows else None


def _largest(table: pa.Table, column: str) -> int | None:
    return int(floats(table, column).max()) if table.num_rows else None


def _over_seeds(runs: list[Json]) -> Json:
    """Means of the figures of one run each; nested mappings gain a `ci95` of the same keys."""
    merged: Json = {}
    spreads: Json = {}
    for key in dict.fromkeys(k for run in runs for k in run):
        values = [run[key] for run in runs if run.get(key) is not None]
        if not values:
            merged[key] = None
        elif key in COUNTS:
            merged[key] = sum(values)
        elif isinstance(values[0], dict):
            merged[key] = _over_seeds(values)
        else:
            interval = mean_interval(values)
            whole = all(isinstance(v, int) for v in values)
            mean = interval.mean
            merged[key] = int(mean) if whole and mean == int(mean) else mean
            if interval.half_width is not None:
                spreads[key] = interval.half_width
    if spreads:
        merged["ci95"] = spreads
    return merged


def _bins(runs: Sequence[FlowFigures]) -> list[Json]:
    return [
        {"low_bytes": b.low_bytes, "high_bytes": b.high_bytes, **asdict(b.slowdown)}
        for b in size_bins(runs)
    ]


def _score(scores: Mapping[int, scoring.Score], rules: scoring.Rules) -> Json | None:
    if not scores:
        return None
    runs = list(scores.values())

    def figure(of: Callable[[scoring.Score], float]) -> Json:
        interval = mean_interval(of(run) for run in runs)
        return {"mean": interval.mean, "ci95": interval.half_width}

    parts = {}
    for role in scoring.Role:
        parts[role.value] = {
            "ratio": figure(lambda s, r=role: s.parts[r].ratio),  # type: ignore[misc]
            "alone": figure(lambda s, r=role: s.parts[r].alone),  # type: ignore[misc]
            "loaded": figure(lambda s, r=role: s.parts[r].loaded),  # type: ignore[misc]
            "unit": "Gb/s" if role is scoring.Role.LONG else "us",
            "pairs": sum(s.parts[role].pairs for s in runs),
            "unfinished": sum(s.parts[role].unfinished for s in runs),
            "unpaired": sum(s.parts[role].unpaired for s in runs),
        }
    return {
        "reading": runs[0].reading,
        "variance_mode": runs[0].mode,
        "primary": rules.primary,
        "weights": {name: asdict(weights) for name, weights in rules.weights.items()},
        "seeds": sorted(scores),
        "lower_bound": any(s.lower_bound for s in runs),
        "parts": parts,
        "w": figure(lambda s: s.variance_term),
        "s": {c: figure(lambda s, c=c: s.totals[c]) for c in runs[0].totals},  # type: ignore[misc]
        "monotone": {
            c: figure(lambda s, c=c: s.monotone[c])  # type: ignore[misc]
            for c in runs[0].monotone
        },
    }


def _impact(under_load: Sequence[FlowFigures], idle_runs: Sequence[FlowFigures]) -> Json | None:
    """GPCNeT's congestion impact per class: FCT under load over FCT alone, mean and p99."""
    alone, loaded = fct_us(idle_runs), fct_us(under_load)
    impact: Json = {}
    for name, idle in alone.items():
        under = loaded.get(name)
        if under is None or not idle.mean or not idle.p99 or under.mean is None:
            continue
        impact[name] = {
            "mean": under.mean / idle.mean,
            "p99": (under.p99 or 0.0) / idle.p99,
            "n": under.n,
            "unfinished": under.unfinished + idle.unfinished,
        }
    return impact or None
