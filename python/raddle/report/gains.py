"""What scheduling the messages of a trace gains, as a picture."""

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from raddle.results.trace import SUFFIX
from raddle.text import many

__all__ = ["draw_gains"]

PALETTE = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#8a8f98")


def draw_gains(summary: dict[str, Any]) -> Figure:
    """The gain of every schedule over program order as a labelled bar, with its interval.

    Parameters
    ----------
    summary
        Of `raddle replay`: a group of bars for each schedule, a bar in it for each scheme.
    """
    schemes = summary["schemes"]
    names = [n for n in next(iter(schemes.values()))["schedules"] if n != "none"]
    width = 0.8 / len(schemes)
    figure = Figure(
        figsize=(1.6 + 1.3 * max(1, len(names) * len(schemes) ** 0.5), 3.6), layout="constrained"
    )
    axis = figure.subplots()
    for index, (scheme, found) in enumerate(schemes.items()):
        rows = [found["schedules"][name] for name in names]
        gains = [row["gain_pct"] for row in rows]
        ends = [row["gain_ci95_pct"] or (row["gain_pct"], row["gain_pct"]) for row in rows]
        error = [
            [gain - low for gain, (low, _) in zip(gains, ends, strict=True)],
            [high - gain for gain, (_, high) in zip(gains, ends, strict=True)],
        ]
        places = [place + (index - (len(schemes) - 1) / 2) * width for place in range(len(names))]
        bar = axis.bar(
            places, gains, width, color=PALETTE[index % len(PALETTE)], yerr=error, capsize=4,
            label=scheme,
        )  # fmt: skip
        axis.bar_label(bar, fmt="{:.1f} %", padding=3, fontsize=8)
    # A gain of nothing has a bar without height: the line and the label are what is seen of it.
    axis.axhline(0, color="black", linewidth=1.2)
    axis.set_xlim(-0.6, max(1, len(names)) - 0.4)
    axis.margins(y=0.2)
    axis.set_xticks(range(len(names)), names)
    axis.set_ylabel("time saved in %")
    if len(schemes) > 1:
        axis.legend(fontsize=8, frameon=False)
    axis.set_title(
        f"{Path(summary['trace']).name.removesuffix(SUFFIX)}, {many(summary['seeds'], 'seed')}",
        fontsize=9,
    )
    return figure
