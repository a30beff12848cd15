"""`report.html` of `raddle replay`: times, gains, and what the ranks' time consists of."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go

from raddle.errors import ResultsError
from raddle.report.axes import value_axis
from raddle.report.chart import SPARE, Chart, View, colour_of, figure
from raddle.report.html import render_page
from raddle.report.why_replay import why_of_replay
from raddle.results.trace import SUFFIX
from raddle.statistics.calibration import named
from raddle.statistics.readings import apart, tie_within
from raddle.statistics.replay_notes import MEANING
from raddle.statistics.rule import PerSeed, difference, leaders, tie_words
from raddle.statistics.verdict import label_of
from raddle.text import count, elapsed_s, join_words, many, span_us

__all__ = ["render_replay"]

Json = Mapping[str, Any]
PROGRAM_ORDER = "none"


def render_replay(folder: Path) -> str:
    """The page of what `raddle replay` left in `folder`.

    Raises
    ------
    ResultsError
        There is no summary.json, or it is not one of a replay.
    """
    summary = _load(folder)
    hosts = summary["hosts"]
    name = Path(summary["trace"]).name.removesuffix(SUFFIX)
    charts = [chart for chart in (_times(summary), _gains(summary), _parts(summary)) if chart]
    return render_page(
        "replay.html.j2",
        name=name,
        facts=[
            f"{many(summary['ranks'], 'rank')} on {many(hosts['used'], 'host')} "
            f"of {hosts['of_map']:,}",
            f"fabric: {summary['fabric']}",
            f"placement: {summary['placement']}",
            many(summary["seeds"], "seed"),
        ],
        headline=headline(summary),
        compared=[f"{tie_words(summary['seeds']).capitalize()}."],
        charts=charts,
        chart_json=[chart.to_json() for chart in charts],
        rows=_rows(summary),
        recorded={key: span_us(1e6 * summary["recorded"][f"{key}_s"]) for key in ("time", "mpi")}
        if _has_times(summary)
        else None,
        notes=summary["notes"],
        settings={
            "Joined messages": f"scope {summary['scope']}",
            "Compute gaps vary by": f"{100 * summary['gap_share']:g} %",
            "Ranks start up to": f"{summary['start_skew']} later",
            # A summary of before there was a calibration has none.
            **({"Costs of hosts": named(source)} if (source := summary.get("calibration")) else {}),
            "Processors": summary["processors"] or "one for each rank",
            "Algorithms of collectives": _algorithms(summary),
        },
        why=why_of_replay(summary),
    )


def headline(summary: Json) -> str:
    """Which schedule and scheme serve the program best, or that it makes no difference."""
    times = {
        (scheme, schedule): _per_seed(row, "time_s")
        for scheme, found in summary["schemes"].items()
        for schedule, row in found["schedules"].items()
    }
    if len(times) < 2:
        ((scheme, _),) = times
        mean = summary["schemes"][scheme]["schedules"][PROGRAM_ORDER]["time_s"]
        return f"Under {label_of(scheme)} the program takes {span_us(1e6 * mean)}."
    best = leaders({json.dumps(key): values for key, values in times.items()})
    named = [tuple(json.loads(key)) for key in best]
    means = {json.dumps(key): float(np.mean(list(own.values()))) for key, own in times.items()}
    tie = tie_within(apart(means, best))
    plain = [key for key in named if key[1] == PROGRAM_ORDER]
    if len(named) == len(times):
        return f"No schedule and no scheme makes a difference: {tie}."
    if len(named) > 1 and plain:
        return (
            f"Program order under {join_words(label_of(scheme) for scheme, _ in plain)} is as fast "
            "as any schedule: scheduling gains nothing, {tie}."
        )
    words = _named(named)
    scheme, schedule = named[0]
    row = summary["schemes"][scheme]["schedules"][schedule]
    fast = f"{words} is the fastest" if len(named) == 1 else f"{words} are the fastest, {tie}"
    if schedule == PROGRAM_ORDER:
        return f"Program order under {label_of(scheme)} is the fastest: {_time(row)}."
    return (
        f"{fast[0].upper()}{fast[1:]}: {_time(row)}, {row['gain_pct']:.1f} % less than program "
        "order."
    )


def _named(pairs: Sequence[tuple[str, str]]) -> str:
    """Schedules under schemes; each said once where every schedule is there under every scheme."""
    schedules = dict.fromkeys(schedule for _, schedule in pairs)
    schemes = dict.fromkeys(label_of(scheme) for scheme, _ in pairs)
    if len(pairs) == len(schedules) * len(schemes):
        return f"{join_words(map(_order, schedules))} under {join_words(schemes)}"
    return join_words(f"{_order(schedule)} under {label_of(scheme)}" for scheme, schedule in pairs)


def _order(schedule: str) -> str:
    return "program order" if schedule == PROGRAM_ORDER else schedule


def _algorithms(summary: Json) -> str:
    """Those that were chosen; a summary of before there was a choice has none."""
    chosen = summary.get("algorithms", {}).items()
    named = [f"{kind}: {name}" for kind, name in chosen if name != "automatic"]
    return ", ".join(named) or "automatic"


def _load(folder: Path) -> Json:
    file = folder / "summary.json"
    try:
        summary: Json = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        msg = f"{folder} holds no replay: summary.json is missing"
        raise ResultsError(msg) from error
    except ValueError as error:
        msg = f"{file} is damaged: {error}\n  hint: replay the trace again"
        raise ResultsError(msg) from error
    if "trace" not in summary or "schemes" not in summary:
        msg = f"{file} is not of a replay"
        raise ResultsError(msg)
    return summary


def _per_seed(row: Json, key: str) -> PerSeed:
    return {str(run["seed"]): run[key] for run in row["runs"]}


def _time(row: Json) -> str:
    return span_us(1e6 * row["time_s"])


def _gain(row: Json) -> tuple[float, float | None]:
    """A gain in percent and half the width of its interval."""
    ends = row["gain_ci95_pct"]
    return row["gain_pct"], None if ends is None else (ends[1] - ends[0]) / 2


def _rows(summary: Json) -> list[dict[str, Any]]:
    rows = []
    for index, (scheme, found) in enumerate(summary["schemes"].items()):
        plain = found["schedules"][PROGRAM_ORDER]
        for schedule, row in found["schedules"].items():
            gain, half = _gain(row)
            tie = difference(_per_seed(plain, "time_s"), _per_seed(row, "time_s")).tie
            interval = "" if half is None else f" ± {half:.1f}"
            rows.append(
                {
                    "scheme": label_of(scheme),
                    "colour": colour_of(scheme, index),
                    "schedule": _order(schedule),
                    "time": _time(row),
                    "mpi": span_us(1e6 * row["mpi_s"]),
                    "gain": ""
                    if schedule == PROGRAM_ORDER
                    else f"{gain:.1f}{interval} %{', a tie' if tie else ''}",
                    "scheduling": "" if schedule == PROGRAM_ORDER else elapsed_s(row["schedule_s"]),
                    "parcels": count(row["parcels"]),
                    "network": count(row["network_messages"]),
                }
            )
    return rows


def _times(summary: Json) -> Chart:
    """Every run's time as a dot, the recorded time as a line."""
    data = []
    for index, (scheme, found) in enumerate(summary["schemes"].items()):
        points = [
            (_order(schedule), 1e3 * run["time_s"])
            for schedule, row in found["schedules"].items()
            for run in row["runs"]
        ]
        colour = colour_of(scheme, index)
        # A box without lines: dots of schemes stand beside each other.
        data.append(
            go.Box(
                x=[x for x, _ in points],
                y=[y for _, y in points],
                name=label_of(scheme),
                boxpoints="all",
                pointpos=0,
                jitter=0.4,
                fillcolor="rgba(0,0,0,0)",
                line={"color": colour, "width": 0},
                marker={"color": colour, "size": 8, "opacity": 0.8},
                hovertemplate=f"{label_of(scheme)}, %{{x}}: %{{y:.4g}} ms<extra></extra>",
            )
        )
    simulated = np.array([y for trace in data for y in trace.y])
    recorded = 1e3 * summary["recorded"]["time_s"]
    near = bool(_has_times(summary) and simulated.min() / 2 < recorded < 2 * simulated.max())
    shown = [simulated, np.array([recorded])] if near else [simulated]
    line = {"dash": "dash", "color": "#8a8f98"}
    shapes = [{"type": "line", "xref": "paper", "x0": 0, "x1": 1, "y0": recorded, "y1": recorded,
               "line": line}]  # fmt: skip
    view = figure(
        data,
        x={"title": {"text": "schedule"}, "type": "category"},
        y=value_axis("time, ms", shown),
        boxmode="group",
    )
    if near:
        view.update_layout(shapes=[*view.layout.shapes, *shapes])
    told = (
        ""
        if not _has_times(summary)
        else f" The dashed line is the recorded time, {span_us(1e3 * recorded)}."
        if near
        else f" The recorded time, {span_us(1e3 * recorded)}, is too far off to be shown."
    )
    return Chart("times", "Time of the program", [View("Time", view)], f"A dot per run.{told}")


def _has_times(summary: Json) -> bool:
    """Whether the trace's calls take time: those of a generated one do not."""
    return bool(summary["recorded"]["mpi_s"] > 0)


def _gains(summary: Json) -> Chart | None:
    """The time that each schedule saves, with its interval."""
    data = []
    for index, (scheme, found) in enumerate(summary["schemes"].items()):
        rows = {n: row for n, row in found["schedules"].items() if n != PROGRAM_ORDER}
        gains = [_gain(row) for row in rows.values()]
        data.append(
            go.Bar(
                x=list(rows),
                y=[gain for gain, _ in gains],
                name=label_of(scheme),
                marker={"color": colour_of(scheme, index)},
                error_y={"type": "data", "array": [half or 0.0 for _, half in gains]},
                hovertemplate=f"{label_of(scheme)}, %{{x}}: %{{y:.2f}} %<extra></extra>",
            )
        )
    if not data[0].x:
        return None
    return Chart(
        "gains",
        "Gain of scheduling",
        [
            View(
                "Gain",
                figure(
                    data,
                    x={"title": {"text": "schedule"}, "type": "category"},
                    y={"title": {"text": "time saved, % of program order"}, "zeroline": True},
                    barmode="group",
                ),
            )
        ],
        "Time saved against program order under the same scheme: the mean over "
        f"{many(summary['seeds'], 'seed')}, with its 95 % interval. A joined message also has a "
        "cost; a gain below zero is a loss.",
    )


def _parts(summary: Json) -> Chart | None:
    """What the ranks' time consists of, recorded and replayed in program order."""
    columns = {"recorded": summary["recorded"]["parts"]} if _has_times(summary) else {}
    columns |= {label_of(name): row["parts"] for name, row in summary["schemes"].items()}
    if None in columns.values():
        return None
    data = [
        go.Bar(
            y=list(columns),
            x=[1e3 * parts[part] for parts in columns.values()],
            name=part,
            orientation="h",
            marker={"color": SPARE[index % len(SPARE)]},
            hovertemplate=f"%{{y}}: {words} %{{x:.4g}} ms<extra></extra>",
        )
        for index, (part, words) in enumerate(MEANING.items())
    ]
    return Chart(
        "parts",
        "What the time consists of",
        [
            View(
                "Parts",
                figure(
                    data,
                    x={"title": {"text": "time, ms (mean of ranks)"}},
                    y={"type": "category", "autorange": "reversed"},
                    barmode="stack",
                    margin={"l": 90, "r": 12, "t": 12, "b": 48},
                ),
            )
        ],
        ("As recorded, and as" if _has_times(summary) else "As")
        + " replayed in program order (first seed): "
        + "; ".join(f"{part}: {words}" for part, words in MEANING.items())
        + ".",
        height=160 + 40 * len(columns),
    )
