"""Charts over time: throughput per class, watched flows, queues."""

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
import pyarrow as pa

from raddle.report.chart import FLOWS, Chart, View, colour_of, dash_of, drawn_classes, figure
from raddle.results.columns import Floats, codes, floats, integers, select, take
from raddle.results.folder import Results
from raddle.statistics.score import Role, role_of
from raddle.statistics.verdict import label_of

__all__ = ["queue_chart", "throughput_chart", "watched_chart"]

MOST_POINTS = 400
MOST_FLOWS = 8
PS_PER_MS = 1e9


def throughput_chart(results: Results, seeds_words: str) -> Chart | None:
    """Delivered payload per class over time, the mean over seeds."""
    table = results.throughput
    if table.num_rows == 0:
        return None
    _, names = codes(table, "class")
    step, edges = _bins(table)
    views = []
    drawn, left_out = drawn_classes(names)
    for name in drawn:
        lines = []
        for index, scheme in enumerate(results.schemes):
            rows = select(table, scheme=scheme)
            which, found = codes(rows, "class")
            if name not in found:
                continue
            rows = take(rows, np.flatnonzero(which == found.index(name)))
            if rows.num_rows == 0:
                continue
            seeds = len(set(integers(rows, "seed").tolist()))
            rate = _binned(rows, edges, "delivered_bytes") * 8e3 / (step * seeds)
            lines.append(_line(scheme, index, edges[1:] / PS_PER_MS, rate, "Gb/s"))
        if lines:
            views.append(View(name, _over_time(lines, "delivered, Gb/s")))
    return Chart(
        "throughput",
        "Throughput over time",
        views,
        f"Payload delivered per class, all flows together; {seeds_words}, in bins of "
        f"{step / 1e6:,.3g} µs.{left_out}",
    )


def watched_chart(results: Results) -> Chart | None:
    """Each watched long flow on its own; one seed, because flows differ between seeds."""
    table = results.flow_throughput
    if table.num_rows == 0:
        return None
    seed = results.seeds[0]
    table = take(table, np.flatnonzero(integers(table, "seed") == seed))
    tested = _tested_long(results, seed)
    flows = sorted(_watched_flows(table), key=lambda f: f not in tested)[:MOST_FLOWS]
    if not flows:
        return None
    step, edges = _bins(table)
    views = []
    for flow in flows[:4]:
        lines = [
            _line(s, i, edges[1:] / PS_PER_MS, rate, "Gb/s")
            for i, s in enumerate(results.schemes)
            if (rate := _flow_rate(table, s, flow, edges, step)) is not None
        ]
        views.append(View(_flow_name(flow), _over_time(lines, "goodput of the flow, Gb/s")))
    for scheme in results.schemes:
        lines = [
            _line(_flow_name(flow), i, edges[1:] / PS_PER_MS, rate, "Gb/s", FLOWS[i])
            for i, flow in enumerate(flows)
            if (rate := _flow_rate(table, scheme, flow, edges, step)) is not None
        ]
        if lines:
            figure_ = _over_time(lines, "goodput of the flow, Gb/s")
            views.append(View(f"{label_of(scheme)}: all", figure_))
    return Chart(
        "watched",
        "Long flows one by one",
        views,
        f"Flows named source → destination: the first {len(flows)} by start of those that were "
        f"watched{', tested ones first' if tested else ''}; seed {seed}, bins of "
        f"{step / 1e6:,.3g} µs.",
    )


def queue_chart(results: Results, seeds_words: str) -> Chart | None:
    """Fullest port, all switches, and paused ports over time: the largest in each bin."""
    table = results.queues
    if table.num_rows == 0:
        return None
    step, edges = _bins(table)
    views = []
    for column, label, title, scale in (
        ("max_port_bytes", "Fullest port", "longest queue of a port, MB", 1e-6),
        ("buffered_bytes", "All switches", "buffered in all switches, MB", 1e-6),
        ("paused_ports", "Paused ports", "ports paused at once", 1.0),
    ):
        lines = []
        for index, scheme in enumerate(results.schemes):
            rows = select(table, scheme=scheme)
            seeds = sorted(set(integers(rows, "seed").tolist()))
            if not seeds:
                continue
            peaks = [
                _binned(select(rows, scheme=scheme, seed=s), edges, column, peak=True)
                for s in seeds
            ]
            value = np.mean(peaks, axis=0) * scale
            unit = "MB" if scale != 1.0 else "ports"
            lines.append(_line(scheme, index, edges[1:] / PS_PER_MS, value, unit))
        if lines and (column != "paused_ports" or any(np.any(li.y > 0) for li in lines)):
            views.append(View(label, _over_time(lines, title)))
    return Chart(
        "queues",
        "Queues over time",
        views,
        f"The largest sample in each bin of {step / 1e6:,.3g} µs; {seeds_words}.",
    )


def _bins(table: pa.Table) -> tuple[float, Floats]:
    """Bin width and edges in ps: whole sampling steps, at most `MOST_POINTS` bins."""
    times = np.unique(integers(table, "time_ps"))
    # The commonest distance: the last sample of a run comes when the run ends, not on the grid.
    gaps, counts = np.unique(np.diff(times), return_counts=True)
    sample = float(gaps[np.argmax(counts)] if gaps.size else max(int(times[0]), 1))
    last = float(times[-1])
    step = sample * max(1, int(np.ceil(last / sample / MOST_POINTS)))
    return step, np.arange(0, int(np.ceil(last / step)) + 1, dtype=np.float64) * step


def _binned(table: pa.Table, edges: Floats, column: str, *, peak: bool = False) -> Floats:
    times = floats(table, "time_ps")
    # A sample at `time_ps` ends its interval, so it belongs to the bin that ends at or after it.
    place = np.clip(np.searchsorted(edges, times, side="left") - 1, 0, edges.size - 2)
    values = floats(table, column)
    out = np.zeros(edges.size - 1)
    if peak:
        np.maximum.at(out, place, values)
    else:
        np.add.at(out, place, values)
    return out


def _line(
    name: str, index: int, x: Floats, y: Floats, unit: str, colour: str | None = None
) -> go.Scatter:
    """A line of a scheme, or in a `colour` of its own."""
    label = label_of(name)
    active = np.flatnonzero(y)
    # Nothing happens before the first and after the last value: draw one zero on each side.
    first, last = (max(active[0] - 1, 0), active[-1] + 2) if active.size else (0, y.size)
    return go.Scatter(
        x=x[first:last].astype(np.float32),
        y=y[first:last].astype(np.float32),
        name=label,
        mode="lines",
        line={
            "color": colour or colour_of(name, index),
            "dash": "solid" if colour else dash_of(name, index),
            "width": 1.8,
        },
        hovertemplate=f"{label}: %{{y:.3~g}} {unit}<extra></extra>",
    )


def _over_time(lines: Sequence[go.Scatter], title: str) -> go.Figure:
    return figure(
        lines,
        x={"title": {"text": "simulated time, ms"}, "rangemode": "tozero"},
        y={"title": {"text": title}, "rangemode": "tozero"},
        hovermode="x unified",
    )


Flow = tuple[int, int, int]


def _watched_flows(table: pa.Table) -> list[Flow]:
    columns = (integers(table, c).tolist() for c in ("time_ps", "src", "dst", "sport"))
    first: dict[Flow, int] = {}
    for time, src, dst, sport in zip(*columns, strict=True):
        key = (src, dst, sport)
        first[key] = min(time, first.get(key, time))
    return sorted(first, key=lambda f: (first[f], f))


def _tested_long(results: Results, seed: int) -> set[Flow]:
    """The long flows that the score judges."""
    rows = select(results.flow_sample, scheme=results.schemes[0], seed=seed)
    which, names = codes(rows, "class")
    long = [i for i, name in enumerate(names) if role_of(name) is Role.LONG]
    rows = take(rows, np.flatnonzero(np.isin(which, long)))
    return set(zip(*(integers(rows, c).tolist() for c in ("src", "dst", "sport")), strict=True))


def _flow_name(flow: Flow) -> str:
    return f"{flow[0]} → {flow[1]}"


def _flow_rate(
    table: pa.Table, scheme: str, flow: Flow, edges: Floats, step: float
) -> Floats | None:
    rows = select(table, scheme=scheme)
    src, dst, sport = flow
    mask = (
        (integers(rows, "src") == src)
        & (integers(rows, "dst") == dst)
        & (integers(rows, "sport") == sport)
    )
    if not mask.any():
        return None
    return _binned(take(rows, np.flatnonzero(mask)), edges, "delivered_bytes") * 8e3 / step
