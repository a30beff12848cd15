"""The page: what stands where, and the tables around the charts."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from raddle.report.chart import colour_of
from raddle.report.fabric_map import BusyLink, busiest_links, fabric_chart
from raddle.report.html import render_page
from raddle.report.series import queue_chart, throughput_chart, watched_chart
from raddle.report.spreads import (
    CONFIGURATION_NAMES,
    fct_chart,
    pause_chart,
    score_chart,
    slowdown_chart,
)
from raddle.report.why_run import why_of
from raddle.results.columns import integers, select
from raddle.results.faults import faults_of
from raddle.results.folder import Results
from raddle.statistics.pauses import PauseEdge, PauseNode, pause_edges, pause_tree
from raddle.statistics.readings import READING_WORDS, tie_within
from raddle.statistics.score import OWN, Weights, class_order
from raddle.statistics.summary import summary_of
from raddle.statistics.verdict import Verdict, label_of, verdict_of
from raddle.text import (
    count,
    first_few,
    fixed,
    join_words,
    many,
    map_words,
    significant,
    size,
    span_us,
)

__all__ = ["render"]

Json = Mapping[str, Any]
NO_MANIFEST: Json = {"runs": [], "versions": {}, "machine": {}, "written": "", "command": []}
ROUNDING = 1e-9
"""An interval so small beside its figure is the rounding of equal values."""
VARIANCE_WORDS = {
    "pvar": "population variance of the three parts",
    "var": "sample variance of the three parts",
    "std": "standard deviation of the three parts",
    "none": "left out",
}
MOST_TEXT = 200_000
"""Characters of the experiment that the page shows."""
MOST_RUNS = 1000
"""Rows of the list of runs."""
MOST_LINES = 300
"""Lines of a scheme's pause trees, unless three levels have more."""
UNITS = {"long": "Gb/s", "short": "µs", "allreduce": "µs"}


@dataclass(frozen=True, slots=True)
class Words:
    """How captions name the seeds: of a mean, and of flows put together."""

    over: str
    together: str
    many: bool

    @classmethod
    def of(cls, seeds: Sequence[int]) -> "Words":
        """The words for these seeds."""
        if len(seeds) == 1:
            return cls(f"seed {seeds[0]}", f"seed {seeds[0]}", many=False)
        seeds_words = many(len(seeds), "seed")
        return cls(f"mean over {seeds_words}", f"{seeds_words} together", many=True)


@dataclass(frozen=True, slots=True)
class TreeLine:
    """A line of the pause tree; `share` of the longest pause is drawn as a bar."""

    name: str
    detail: str
    share: float
    children: tuple["TreeLine", ...]
    more: int


def render(results: Results) -> str:
    """The whole page."""
    return render_page("report.html.j2", **_content(results))


def _content(results: Results) -> dict[str, Any]:
    manifest = results.manifest
    summary = summary_of(results)
    schemes: Json = summary["schemes"]
    seeds = results.seeds
    words = Words.of(seeds)
    simulated = _simulated(results, schemes)
    verdict = verdict_of(summary)
    charts = {
        "score": score_chart(schemes, words.over),
        "throughput": throughput_chart(results, words.over),
        "watched": watched_chart(results),
        "fct": fct_chart(results, words.together),
        "slowdown": slowdown_chart(results, schemes, words.together),
        "pauses": pause_chart(schemes, words.over),
        "queues": queue_chart(results, words.over),
        "fabric": fabric_chart(results, simulated),
    }
    shown = {key: chart for key, chart in charts.items() if chart is not None and chart.views}
    return {
        "name": results.name,
        "facts": _facts(results, manifest, seeds),
        "complete": summary.get("complete", True),
        "runs_shown": MOST_RUNS,
        "runs_done": sum(bool(r.get("done")) for r in manifest.get("runs", [])),
        "runs_all": len(manifest.get("runs", [])),
        "faults": [fault.words for fault in faults_of(results)],
        "verdict": verdict,
        "no_score": None if verdict.scored else _why_no_score(results),
        "score_rows": _score_rows(schemes, verdict),
        "score_meta": _score_meta(schemes),
        "reading_rows": _reading_rows(verdict),
        "glance": _glance(schemes),
        "sampled": _sampled(results),
        "unfinished": any(row["finished"] < row["flows"] for row in schemes.values()),
        "group_rows": _group_rows(schemes),
        "jobs": _jobs(schemes),
        "fct_tables": _fct_tables(schemes),
        "schemes": {
            name: {"label": label_of(name), "colour": colour_of(name, i)}
            for i, name in enumerate(schemes)
        },
        "charts": shown,
        "chart_json": [chart.to_json() for chart in shown.values()],
        "trees": _pause_trees(results),
        "busiest": _busiest(results, simulated),
        "why": why_of(results, leaders=verdict.leaders),
        "settings": manifest.get("settings", []),
        "parameters": manifest.get("parameters", {}),
        "warnings": manifest.get("warnings", []),
        "manifest": {**NO_MANIFEST, "seeds": list(seeds), **manifest},
        "experiment": _experiment(results),
        "words": words,
    }


KINDS = {
    "hosts": "at its hosts",
    "network": "in the network",
    "others": "behind others, or paused because of them",
}
"""What a job's time is spent on, in three kinds."""


def _jobs(schemes: Json) -> dict[str, Any] | None:
    """Times of jobs under each setup: a row per job, a cell per setup."""
    if not any(row.get("jobs") for row in schemes.values()):
        return None
    names = dict.fromkeys(job for row in schemes.values() for job in row.get("jobs", {}))
    first = next(iter(schemes))
    rows = []
    for job in names:
        cells: list[dict[str, Any] | None] = []
        for scheme, row in schemes.items():
            own = row.get("jobs", {}).get(job)
            if own is None or own["time_us"] is None:
                cells.append(None)
                continue
            saved = own.get("saved_frac") or 0.0
            slowdown = own.get("slowdown")
            cells.append(
                {
                    "time": span_us(own["time_us"]),
                    "share": max(0.0, 1 - saved),
                    "saved": "" if scheme == first else _change(saved),
                    "spent": [
                        (kind, share, KINDS[kind])
                        for kind, share in own.get("spent", {"network": 1.0}).items()
                    ],
                    "alone": "" if slowdown is None else f"{slowdown:.2f} × alone",
                }
            )
        widest = max((cell["share"] for cell in cells if cell), default=1.0)
        for cell in cells:
            if cell:
                cell["share"] /= widest
        found = next(row["jobs"][job] for row in schemes.values() if job in row.get("jobs", {}))
        rows.append({"name": job, "ranks": many(found["ranks"], "rank"), "cells": cells})
    heads = [
        {"label": label_of(name), "colour": colour_of(name, i)} for i, name in enumerate(schemes)
    ]
    taken_apart = any(job.get("spent") for row in schemes.values() for job in row["jobs"].values())
    kinds = KINDS if taken_apart else {}
    return {"heads": heads, "rows": rows, "first": label_of(first), "kinds": kinds}


def _change(saved: float) -> str:
    """How much longer or shorter a time is; nothing has no sign."""
    change = round(-100 * saved)
    return f"{change:+d} %" if change else "0 %"


def _facts(results: Results, manifest: Json, seeds: Sequence[int]) -> list[str]:
    facts = []
    fabric = manifest.get("fabric") or {}
    if fabric.get("hosts"):
        facts.append(map_words(*(fabric.get(key) or 0 for key in ("hosts", "switches", "links"))))
    traffic = manifest.get("traffic") or {}
    if traffic.get("flows"):
        facts.append(f"{many(traffic['flows'], 'flow')}, {size(traffic.get('bytes') or 0)}")
    if results.jobs is not None:
        jobs = list(dict.fromkeys(str(name) for name in results.jobs["job"].to_pylist()))
        facts.append(f"{many(len(jobs), 'job')}: {join_words(jobs)}")
    facts.append(join_words(label_of(s) for s in results.schemes))
    facts.append(f"seed {seeds[0]}" if len(seeds) == 1 else many(len(seeds), "seed"))
    if manifest.get("compat"):
        facts.append(f"semantics of {manifest['compat']}")
    return facts


def _sampled(results: Results) -> str:
    """What is of a sample where there are too many flows to hold them all."""
    file = results.flow_file
    if file.fits:
        return ""
    return (
        f"Counts, means and sums are of all {many(file.rows, 'flow')}, and percentiles are within "
        "0.05 %. Curves, the verdict and what is said of single flows are of a sample: one flow in "
        f"{file.share}, and all tested ones."
    )


def _simulated(results: Results, schemes: Json) -> dict[str, float]:
    """Simulated time per scheme, ps; from the queue samples where the summary has none."""
    found = {}
    for name, row in schemes.items():
        value = row.get("simulated_ps")
        if not value and results.queues.num_rows:
            value = int(integers(results.queues, "time_ps").max())
        found[name] = float(value or 0)
    return found


def _why_no_score(results: Results) -> str:
    variants = {run["variant"] for run in results.manifest.get("runs", []) if run.get("done")}
    if results.isolated is None and "isolated" in variants:
        return "The score needs the tested flows alone (isolated/), which these results have lost."
    if results.isolated is None:
        return (
            "The score compares tested flows under load with the same flows alone. This traffic "
            "has no tested classes, so there is no twin run to compare with and no score. "
            "Generators with tested classes (hpc-mix) have one."
        )
    return (
        "The score needs tested long, short and Allreduce flows, each under load and alone. "
        "These results lack at least one of them, so there is no score."
    )


def _score_rows(schemes: Json, verdict: Verdict) -> list[dict[str, Any]]:
    """The paper's Table 3: S, and each kind of tested flows under load and alone."""
    rows = []
    scored = {n: r["score"] for n, r in schemes.items() if r.get("score")}
    weightings = list(next(iter(scored.values()))["weights"]) if scored else []
    best = {c: _marked((verdict.leaders_at or {}).get(c, ()), scored) for c in weightings}
    winners = _marked(verdict.leaders, scored)
    for index, (name, score) in enumerate(scored.items()):
        parts = score["parts"]
        mark = "≥ " if score["lower_bound"] else ""
        rows.append(
            {
                "label": label_of(name),
                "colour": colour_of(name, index),
                "best": name in winners,
                "means": [(_number(parts[r]["loaded"]), _number(parts[r]["alone"])) for r in UNITS],
                "ratios": [_plain(parts[r]["ratio"]) for r in UNITS],
                "w": _plain(score["w"]),
                "totals": [
                    {"text": Markup(mark) + _plain(score["s"][c]), "best": name in best[c]}
                    for c in weightings
                ],
                "monotone": Markup(mark) + _plain(score["monotone"][score["primary"]]),
            }
        )
    return rows


def _reading_rows(verdict: Verdict) -> list[dict[str, Any]]:
    """Who leads by each reading of the score, a cell for each weighting."""
    rows: dict[tuple[str, str], list[str]] = {}
    for one in verdict.readings:
        names = join_words(label_of(s) for s in one["leaders"]) or "none is named"
        tie = f": {tie_within(one['apart_percent'])}" if len(one["leaders"]) > 1 else ""
        rows.setdefault((one["reading"], one["variance"]), []).append(f"{names}{tie}")
    return [
        {"ratios": READING_WORDS[reading], "w": VARIANCE_WORDS[variance], "cells": cells}
        for (reading, variance), cells in rows.items()
    ]


def _marked(leaders: Sequence[str], all_: Json) -> Sequence[str]:
    """Who is marked as leading: nobody where all tie."""
    return leaders if len(leaders) < len(all_) else ()


def _score_meta(schemes: Json) -> dict[str, Any] | None:
    scores = [r["score"] for r in schemes.values() if r.get("score")]
    if not scores:
        return None
    parts = [p for s in scores for p in s["parts"].values()]
    return {
        "reading": "a ratio per flow, then the mean"
        if scores[0]["reading"] == "per-flow"
        else "a ratio of means",
        "mode": f"{VARIANCE_WORDS[scores[0]['variance_mode']]} "
        "(rebuilt: the paper's formula is lost)",
        "pairs": {r: sum(s["parts"][r]["pairs"] for s in scores) for r in UNITS},
        "unfinished": sum(p["unfinished"] for p in parts),
        "unpaired": sum(p["unpaired"] for p in parts),
        "configurations": [
            {
                "key": "" if c == OWN else c,
                "name": CONFIGURATION_NAMES[c],
                "label": Weights(**w).label,
            }
            for c, w in scores[0]["weights"].items()
        ],
        "primary": CONFIGURATION_NAMES[scores[0]["primary"]],
    }


GLANCE = (
    ("finished", "flows"),
    ("slowdown p50", "×"),
    ("slowdown p99", "×"),
    ("goodput", "Gb/s"),
    ("flows ≥ 1 MB", "Gb/s each"),
    ("their fairness", "Jain"),
    ("paused", "all ports"),
    ("fullest port", ""),
    ("ECN marks", ""),
    ("drops", ""),
)


def _glance(schemes: Json) -> dict[str, Any]:
    """The main figures; a column that says the same of all schemes is a sentence instead."""
    rows = _glance_rows(schemes)
    said = []
    if all(row["finished"] == row["flows"] for row in schemes.values()):
        said.append(("finished", "All flows finished."))
    for name, key, sentence in (
        ("paused", "pause_us", "No port was paused."),
        ("ECN marks", "ecn_marks", "No packet was marked."),
        ("drops", "drops", "No packet was dropped."),
    ):
        if all(row.get(key) == 0 for row in schemes.values()):
            said.append((name, sentence))
    left_out = {name for name, _ in said}
    kept = [place for place, (name, _) in enumerate(GLANCE) if name not in left_out]
    for row in rows:
        row["cells"] = [row["cells"][place] for place in kept]
    sentences = " ".join(sentence for _, sentence in said)
    return {"heads": [GLANCE[place] for place in kept], "rows": rows, "said": sentences}


def _glance_rows(schemes: Json) -> list[dict[str, Any]]:
    rows = []
    for index, (name, row) in enumerate(schemes.items()):
        slowdown = row.get("slowdown") or {}
        ci = row.get("ci95") or {}
        slow_ci = slowdown.get("ci95") or {}
        queue, drops = row.get("max_port_queue_bytes"), row.get("drops")
        rows.append(
            {
                "label": label_of(name),
                "colour": colour_of(name, index),
                "cells": [
                    f"{row['finished']:,} / {row['flows']:,}",
                    _pm(slowdown.get("p50"), slow_ci.get("p50")),
                    _pm(slowdown.get("p99"), slow_ci.get("p99")),
                    _pm(row.get("goodput_gbps"), ci.get("goodput_gbps")),
                    _pm(row.get("long_flow_rate_gbps"), ci.get("long_flow_rate_gbps")),
                    _pm(row.get("jain_long_flows"), ci.get("jain_long_flows")),
                    _pause(row),
                    "–" if queue is None else size(queue),
                    "–" if row.get("ecn_marks") is None else count(row["ecn_marks"]),
                    "–" if drops is None else f"{drops:,.0f}",
                ],
            }
        )
    return rows


def _group_rows(schemes: Json) -> list[dict[str, Any]]:
    """Messages to groups; no rows where there are none."""
    rows = []
    for index, (name, row) in enumerate(schemes.items()):
        found = row.get("multicast")
        if not found:
            continue
        reached, missed = found["members_reached"], found["members_missed"]
        # Results from before these figures were kept do not have them.
        last = found.get("last_member_us") or {}
        whole = found.get("messages_everywhere")
        rows.append(
            {
                "label": label_of(name),
                "colour": colour_of(name, index),
                "cells": [
                    "–" if whole is None else f"{whole:,} / {found['messages']:,}",
                    f"{reached:,} / {reached + missed:,}",
                    f"{missed:,}",
                    first_few(found["missed_hosts"]) or "–",
                    _pm(last.get("p50"), None),
                    _pm(last.get("p99"), None),
                    f"{found['second_copies']:,}",
                    f"{found['foreign_copies']:,}",
                    f"{found['late_copies']:,}",
                    f"{found['dead_ends']:,}",
                ],
                "missed": missed > 0,
            }
        )
    return rows


def _fct_tables(schemes: Json) -> list[dict[str, Any]]:
    classes = dict.fromkeys(c for row in schemes.values() for c in (row.get("fct_us") or {}))
    tables = []
    for name in sorted(classes, key=class_order):
        rows = []
        for index, (scheme, row) in enumerate(schemes.items()):
            found = row["fct_us"].get(name)
            if not found:
                continue
            ci = found.get("ci95") or {}
            rows.append(
                {
                    "label": label_of(scheme),
                    "colour": colour_of(scheme, index),
                    "n": found["n"],
                    "unfinished": found["unfinished"],
                    "impact": _impact_cells((row.get("impact") or {}).get(name)),
                    "cells": [
                        _pm(found.get(key), ci.get(key))
                        for key in ("mean", "p50", "p95", "p99", "p99_9")
                    ],
                }
            )
        tables.append(
            {
                "name": name,
                "rows": rows,
                "twin": any(r["impact"] for r in rows),
                "unfinished": any(r["unfinished"] for r in rows),
            }
        )
    return tables


def _impact_cells(impact: Json | None) -> list[str]:
    """Mean and p99 under load over those alone (GPCNeT's congestion impact)."""
    return [] if impact is None else [fixed(impact["mean"]), fixed(impact["p99"])]


def _pause_trees(results: Results) -> list[dict[str, Any]]:
    if results.pauses.num_rows == 0:
        return []
    nodes = results.nodes
    names = dict(zip(integers(nodes, "node").tolist(), nodes["name"].to_pylist(), strict=True))
    trees = []
    for index, scheme in enumerate(results.schemes):
        rows = select(results.pauses, scheme=scheme, seed=results.seeds[0])
        edges = pause_edges(rows, results.links) if rows.num_rows else []
        roots, levels = _trees_of(edges)
        if not roots:
            continue
        longest = max(edge.paused_us for edge in edges)
        trees.append(
            {
                "label": label_of(scheme),
                "colour": colour_of(scheme, index),
                "roots": [_root_line(r, names, longest, edges) for r in roots],
                "pauses": rows.num_rows,
                "levels": levels,
            }
        )
    return trees


def _trees_of(edges: list[PauseEdge]) -> tuple[list[PauseNode], int]:
    """The trees, with fewer levels where they have very many lines; and how many levels."""

    def lines(nodes: Sequence[PauseNode]) -> int:
        return sum(1 + lines(node.children) for node in nodes)

    for levels in (5, 4):
        roots = pause_tree(edges, deepest=levels)
        if lines(roots) <= MOST_LINES:
            return roots, levels
    return pause_tree(edges, deepest=3), 3


def _root_line(
    root: PauseNode, names: Mapping[int, Any], longest_us: float, edges: Sequence[PauseEdge]
) -> TreeLine:
    children = tuple(_tree_line(c, names, longest_us) for c in root.children)
    out = [edge for edge in edges if edge.pauser == root.node]
    silenced = join_words(str(names.get(edge.paused, edge.paused)) for edge in out)
    if len(out) > 3:
        silenced = many(len(out), "neighbour")
    total = span_us(sum(edge.paused_us for edge in out))
    name = str(names.get(root.node, root.node))
    return TreeLine(name, f"silences {silenced}, {total}", 0.0, children, root.more)


def _tree_line(node: PauseNode, names: Mapping[int, Any], longest_us: float) -> TreeLine:
    children = tuple(_tree_line(c, names, longest_us) for c in node.children)
    name = str(names.get(node.node, node.node))
    detail = f"{span_us(node.paused_us)}, {many(node.pauses, 'pause')}"
    if node.repeats:
        detail += ", closes a cycle"
    share = node.paused_us / longest_us if longest_us else 0.0
    return TreeLine(name, detail, min(share, 1.0), children, node.more)


def _busiest(results: Results, simulated: Mapping[str, float]) -> list[tuple[str, list[BusyLink]]]:
    """The busiest links under each scheme that the map shows."""
    if results.ports.num_rows == 0:
        return []
    return [
        (label_of(scheme), busiest_links(results, scheme, simulated[scheme]))
        for scheme in results.schemes
        if simulated.get(scheme)
    ]


def _experiment(results: Results) -> str:
    file = results.path / "experiment.toml"
    if not file.is_file():
        return ""
    with file.open(encoding="utf-8") as opened:
        text = opened.read(MOST_TEXT + 1)
    if len(text) <= MOST_TEXT:
        return text
    begin = text[:MOST_TEXT].rpartition("\n")[0]
    return f"{begin}\n... (experiment.toml has all {size(file.stat().st_size)} of it)\n"


def _pause(row: Json) -> str:
    value = row.get("pause_us")
    return "–" if value is None else "none" if value == 0 else span_us(value)


def _number(figure: Json) -> str:
    return _pm(figure["mean"], figure["ci95"])


def _plain(figure: Json) -> Markup:
    """A ratio or score: always two decimals, so that columns line up."""
    text = Markup(fixed(figure["mean"]))
    if figure["ci95"] is None:
        return text
    return text + Markup(" <small>± {}</small>").format(fixed(figure["ci95"]))


def _pm(value: float | None, half: float | None) -> str:
    if value is None:
        return "–"
    text = significant(value)
    if half is None:
        return text
    half = 0 if half < ROUNDING * abs(value) else half
    return Markup("{} <small>± {}</small>").format(text, significant(half, 2))


def charts_of(page: str) -> list[Json]:
    """The charts in a rendered page (for tests)."""
    found = re.findall(r'<script type="application/json" class="chart">(.*?)</script>', page, re.S)
    return [json.loads(text) for text in found]
