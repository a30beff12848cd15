"""Charts of distributions: scores, completion times, slowdown by size, pause time."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pyarrow as pa

from raddle.report.axes import log_axis, time_unit, value_axis
from raddle.report.chart import SYMBOLS, Chart, View, colour_of, dash_of, drawn_classes, figure
from raddle.results.columns import Floats, floats, groups, integers, select
from raddle.results.folder import Results
from raddle.statistics.samples import SizeBin
from raddle.statistics.score import Weights
from raddle.statistics.verdict import label_of
from raddle.text import size, span_us

__all__ = ["CONFIGURATION_NAMES", "fct_chart", "pause_chart", "score_chart", "slowdown_chart"]

Json = Mapping[str, Any]
MOST_POINTS = 240
WHISKER = "#7a828c"
CONFIGURATION_NAMES = {"own": "yours", "1": "equal", "2": "bandwidth", "3": "Allreduce"}


def score_chart(schemes: Json, seeds_words: str) -> Chart | None:
    """S at the three weightings (the paper's Figure 10), and the monotone score."""
    scored = {n: r["score"] for n, r in schemes.items() if r.get("score")}
    if not scored:
        return None
    weights = {c: Weights(**w) for c, w in next(iter(scored.values()))["weights"].items()}
    ticks = [CONFIGURATION_NAMES[c] for c in weights]
    views = []
    for key, label, title in (
        ("s", "Score S", "S (lower is better)"),
        ("monotone", "Monotone score", "weighted 2-norm (lower is better)"),
    ):
        points = []
        for index, (name, score) in enumerate(scored.items()):
            values = [score[key][c] for c in weights]
            halves = [v["ci95"] for v in values]
            points.append(
                go.Scatter(
                    x=ticks,
                    y=[v["mean"] for v in values],
                    name=label_of(name),
                    mode="markers",
                    offsetgroup=name,
                    marker={
                        "color": colour_of(name, index),
                        "size": 10,
                        "symbol": SYMBOLS[index % len(SYMBOLS)],
                    },
                    error_y=None if None in halves else _whiskers(halves),
                    hovertemplate=f"{label_of(name)}: %{{y:.2f}}<extra></extra>",
                )
            )
        y = _ratio_axis(title, [np.asarray(p.y, dtype=np.float64) for p in points])
        layout = {"scattermode": "group", "scattergap": 0.2}
        views.append(View(label, figure(points, x={"type": "category"}, y=y, **layout)))
    whiskers = "" if all(len(s["seeds"]) < 2 for s in scored.values()) else "; whiskers are 95 %"
    return Chart(
        "score",
        "Score at each weighting",
        views,
        f"How much worse tested flows fare under load; {seeds_words}{whiskers}. The scale is "
        "logarithmic, as for ratios. Weights: "
        + "; ".join(f"{CONFIGURATION_NAMES[c]} {w.label}" for c, w in weights.items())
        + ".",
    )


def fct_chart(results: Results, seeds_words: str) -> Chart | None:
    """Distribution of completion times per class; dotted: the same class alone."""
    flows = results.flow_sample
    if flows.num_rows == 0:
        return None
    twin = results.isolated
    parts = {s: dict(_samples(select(flows, scheme=s))) for s in results.schemes}
    alone = {
        s: dict(_samples(select(twin.flow_sample, scheme=s))) if twin else {}
        for s in results.schemes
    }
    names, left_out = drawn_classes({n for p in parts.values() for n in p})
    views = []
    for name in names:
        lines: list[go.Scatter] = []
        xs: list[Floats] = []
        unit, scale = time_unit([p[name] for p in parts.values() if name in p])
        for index, scheme in enumerate(results.schemes):
            for sample, dash in ((alone[scheme].get(name), "dot"), (parts[scheme].get(name), None)):
                if sample is None or np.isnan(sample).all():
                    continue
                x, y = _distribution(sample * scale)
                xs.append(x)
                words = label_of(scheme) + (" alone" if dash else "")
                lines.append(
                    go.Scatter(
                        x=x.astype(np.float32),
                        y=y.astype(np.float32),
                        name=label_of(scheme),
                        mode="lines",
                        opacity=0.7 if dash else 1.0,
                        line={
                            "color": colour_of(scheme, index),
                            "dash": dash or dash_of(scheme, index),
                            "width": 1.2 if dash else 2.0,
                            "shape": "hv",
                        },
                        hovertemplate=f"{words}: %{{y:.1%}} within %{{x:.4~g}} {unit}"
                        "<extra></extra>",
                    )
                )
        if lines:
            axis = {"title": {"text": "share of flows"}, "tickformat": ".0%", "range": [0, 1.01]}
            x_axis = log_axis(f"completion time, {unit}", xs)
            views.append(View(name, figure(lines, x=x_axis, y=axis)))
    dotted = "; dotted: the same flows alone on the fabric" if twin else ""
    return Chart(
        "fct",
        "Flow completion times",
        views,
        f"Cumulative share of the flows of a class, {seeds_words}{dotted}. A curve that "
        f"ends below 100 % has flows that never finished.{left_out}",
        height=380,
    )


def slowdown_chart(results: Results, schemes: Json, seeds_words: str) -> Chart | None:
    """Slowdown per size bin at several percentiles, as the summary's `schemes` have them."""
    bins = {s: [SizeBin.of(row) for row in schemes[s]["slowdown_by_size"]] for s in results.schemes}
    edges = sorted({(b.low_bytes, b.high_bytes) for rows in bins.values() for b in rows})
    if not edges:
        return None
    labels = _size_labels(results, edges)
    kinds = {"slowdown": None, "over the lowest": bins} if len(bins) > 1 else {"slowdown": None}
    views = []
    for key, label in (("p50", "p50"), ("p95", "p95"), ("p99", "p99"), ("p99_9", "p99.9")):
        for kind, others in kinds.items():
            lines = [
                _size_line(scheme, index, bins[scheme], key, labels, _lowest(others, key))
                for index, scheme in enumerate(results.schemes)
            ]
            ys = [np.asarray(line.y, dtype=np.float64) for line in lines]
            if not any(y.size for y in ys):
                continue
            x = {
                "type": "category",
                "title": {"text": "message size"},
                "categoryorder": "array",
                "categoryarray": [labels[e] for e in edges],
            }
            title = "slowdown, ×" if others is None else "slowdown over the lowest, ×"
            view = figure(lines, x=x, y=log_axis(title, ys, including=[1.0]))
            views.append(View((label, kind), view))
    return Chart(
        "slowdown",
        "Slowdown by message size",
        views,
        "Completion time over that of the same flow on an idle fabric (1 × is ideal); over the "
        "lowest: each scheme's over that of the scheme with the least at this size; "
        f"{seeds_words}; n counts the flows of one run.",
    )


Bins = Sequence[SizeBin]


def _lowest(bins: Mapping[str, Bins] | None, key: str) -> dict[int, float]:
    """The least slowdown of any scheme in each bin; nothing where none is asked for."""
    least: dict[int, float] = {}
    for row in (row for rows in (bins or {}).values() for row in rows):
        value = getattr(row.slowdown, key)
        if value is not None:
            least[row.low_bytes] = min(value, least.get(row.low_bytes, np.inf))
    return least


def _size_line(
    scheme: str,
    index: int,
    rows: Bins,
    key: str,
    labels: Mapping[tuple[int, int], str],
    lowest: Mapping[int, float],
) -> go.Scatter:
    rows = [b for b in rows if getattr(b.slowdown, key) is not None]
    return go.Scatter(
        x=[labels[b.low_bytes, b.high_bytes] for b in rows],
        y=[getattr(b.slowdown, key) / lowest.get(b.low_bytes, 1.0) for b in rows],
        customdata=[b.slowdown.n for b in rows],
        name=label_of(scheme),
        mode="lines+markers",
        line={"color": colour_of(scheme, index), "dash": dash_of(scheme, index)},
        marker={"size": 8, "symbol": SYMBOLS[index % len(SYMBOLS)]},
        hovertemplate=f"{label_of(scheme)}: %{{y:.3~f}} × (n = %{{customdata:,}})<extra></extra>",
    )


def _size_labels(results: Results, edges: list[tuple[int, int]]) -> dict[tuple[int, int], str]:
    """Each bin by its bounds, or by its one size; and how many flows of a run are in it."""
    counts = dict.fromkeys(edges, 0)
    least, largest = dict.fromkeys(edges, 2**63), dict.fromkeys(edges, 0)
    for batch in results.flow_batches(results.schemes[0], results.seeds[0], ["size_bytes"]):
        sizes = integers(batch, "size_bytes")
        for edge in edges:
            inside = sizes[(sizes >= edge[0]) & (sizes < edge[1])]
            counts[edge] += inside.size
            least[edge] = min(least[edge], int(inside.min(initial=2**63 - 1)))
            largest[edge] = max(largest[edge], int(inside.max(initial=0)))
    labels = {}
    for low, high in edges:
        if least[low, high] == largest[low, high]:
            label = size(float(least[low, high]))
        else:
            label = f"≥ {size(low)}" if high >= 2**62 else f"{size(low)}–{size(high)}"
        labels[low, high] = f"{label}<br>n = {counts[low, high]:,}"
    return labels


def pause_chart(schemes: Json, seeds_words: str) -> Chart | None:
    """Total pause time per scheme; None if nothing was ever paused."""
    values = {n: float(r.get("pause_us") or 0) / 1e3 for n, r in schemes.items()}
    if not any(values.values()):
        return None
    names = list(values)[::-1]
    halves = [((schemes[n].get("ci95") or {}).get("pause_us") or 0) / 1e3 for n in names]
    bars = go.Bar(
        y=[_with_time(n, values[n]) for n in names],
        x=[values[n] for n in names],
        orientation="h",
        marker={"color": [colour_of(n, i) for i, n in enumerate(names)]},
        error_x=_whiskers(halves) if any(halves) else None,
        hovertemplate="%{y}: %{x:.4~g} ms<extra></extra>",
    )
    x = {"title": {"text": "pause time, all ports together, ms"}, "rangemode": "tozero"}
    return Chart(
        "pauses",
        "Pause time",
        [View("Total", figure([bars], x=x, y={"type": "category"}))],
        f"Time that ports were silenced by PFC, summed over ports; {seeds_words}.",
        height=90 + 38 * len(names),
    )


def _with_time(scheme: str, pause_ms: float) -> str:
    time = span_us(pause_ms * 1e3) if pause_ms else "none"
    return f"{label_of(scheme)}  <b>{time}</b>"


def _samples(flows: pa.Table) -> list[tuple[str, Floats]]:
    fct = floats(flows, "fct_ps", 1e-6)
    return [(name, fct[mask]) for name, mask in groups(flows, "class")]


def _distribution(sample: Floats) -> tuple[Floats, Floats]:
    """Points of the cumulative distribution, denser in the tail."""
    finished = np.sort(sample[~np.isnan(sample)])
    n = finished.size
    share = np.concatenate([np.linspace(0, 0.95, MOST_POINTS), np.linspace(0.95, 1, 80)])
    index = np.unique(np.clip(np.ceil(share * n) - 1, 0, n - 1).astype(np.int64))
    x, y = finished[index], (index + 1) / sample.size
    return np.concatenate([[x[0]], x]), np.concatenate([[0.0], y])


def _whiskers(halves: Sequence[float]) -> dict[str, Any]:
    return {"type": "data", "array": halves, "thickness": 1, "width": 3, "color": WHISKER}


def _ratio_axis(title: str, values: Sequence[Floats]) -> dict[str, Any]:
    """Scores are ratios: logarithmic, with 1 (load does not hurt) where it is near."""
    least = min(float(v.min()) for v in values)
    if least <= 0:
        return value_axis(title, values)
    return log_axis(title, values, including=[1.0] if least < 2 else [])
