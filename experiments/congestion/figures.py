"""Figures 2 to 4, 8 and 10 of Sun et al., drawn from our runs."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.congestion.runs import FIVE, SCHEMES
from experiments.congestion.scores import CONFIGURED, PARTS, Scores
from experiments.congestion.small import Small
from raddle.statistics.samples import mean_interval

COLOURS = dict(
    zip(SCHEMES, ("#999999", "#E69F00", "#D55E00", "#CC79A7", "#0072B2", "#009E73"), strict=True)
)
FLOWS = ((0, "F0", "#0072B2"), (1, "F1", "#D55E00"))


def long_throughput(small: Small) -> Figure:
    """Figure 2: goodput of both long flows over time."""
    figure = Figure(figsize=(7.2, 3.6), layout="constrained")
    axes = figure.subplots(2, 3, sharex=True, sharey=True)
    edges = np.arange(0, 14, 0.1)
    for axis, scheme in zip(axes.flat, SCHEMES, strict=True):
        burst = small.bursts[scheme][0]
        for flow, name, colour in FLOWS:
            axis.plot(edges, burst.bins(flow, 0, 14), color=colour, linewidth=0.8, label=name)
        axis.set_title(scheme, fontsize=9)
    _labels(figure, "ms", "Gbit/s")
    axes.flat[0].legend(fontsize=7, frameon=False)
    return figure


def short_times(small: Small) -> Figure:
    """Figure 3: distribution of the short flows' completion times."""
    figure = Figure(figsize=(4.4, 3.0), layout="constrained")
    axis = figure.subplots()
    for scheme in SCHEMES:
        times = np.sort(np.concatenate([burst.short_us for burst in small.bursts[scheme]]))
        share = np.arange(1, times.size + 1) / times.size
        step = max(1, times.size // 224)
        axis.plot(times[::step], share[::step], color=COLOURS[scheme], linewidth=1, label=scheme)
    axis.legend(fontsize=7, frameon=False)
    _labels(figure, "completion time, us", "share of short flows")
    return figure


def pause_times(runs: Sequence[tuple[str, Small]]) -> Figure:
    """Figure 4: pause time of all ports, by buffer."""
    figure = Figure(figsize=(6.4, 2.8), layout="constrained")
    axis = figure.subplots()
    for index, scheme in enumerate(SCHEMES):
        pauses = [small.of(lambda run: run.pause_us)[scheme].mean() / 1000 for _, small in runs]
        places = np.arange(len(runs)) + 0.13 * (index - 2.5)
        axis.bar(places, pauses, 0.12, color=COLOURS[scheme], label=scheme)
    axis.set_yscale("symlog", linthresh=0.1)
    axis.set_xticks(range(len(runs)), [name for name, _ in runs], fontsize=7)
    axis.legend(fontsize=7, frameon=False, ncols=3)
    _labels(figure, "", "pause time, ms")
    return figure


def parts(scores: Scores) -> Figure:
    """Figure 8: the three parts of the score."""
    figure = Figure(figsize=(4.4, 2.8), layout="constrained")
    axis = figure.subplots()
    schemes = tuple(scores.scores)
    _bars(axis, schemes, [(PARTS[role], scores.part(role)) for role in PARTS])
    return figure


def totals(scores: Scores) -> Figure:
    """Figure 10: S in three configurations."""
    figure = Figure(figsize=(5.4, 2.8), layout="constrained")
    axis = figure.subplots()
    _bars(axis, FIVE, [(name, scores.total(key)) for key, name in CONFIGURED.items()])
    return figure


def _bars(axis: Axes, schemes: Sequence[str], groups: Sequence[tuple[str, object]]) -> None:
    """Means with their 95 % intervals."""
    width = 0.8 / len(schemes)
    for index, scheme in enumerate(schemes):
        found = [mean_interval(values[scheme]) for _, values in groups]  # type: ignore[index]
        axis.bar(
            np.arange(len(groups)) + width * (index - (len(schemes) - 1) / 2),
            [one.mean for one in found],
            0.9 * width,
            yerr=[one.half_width or 0.0 for one in found],
            error_kw={"linewidth": 0.8},
            color=COLOURS[scheme],
            label=scheme,
        )
    axis.set_xticks(range(len(groups)), [name for name, _ in groups], fontsize=8)
    axis.set_ylabel("1: as without congestion", fontsize=8)
    axis.legend(fontsize=7, frameon=False, ncols=3)


def _labels(figure: Figure, x: str, y: str) -> None:
    figure.supxlabel(x, fontsize=8)
    figure.supylabel(y, fontsize=8)
