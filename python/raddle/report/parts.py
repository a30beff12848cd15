"""What a time was spent on, as a picture."""

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from raddle.statistics.blame import Part, groups_of, split_small
from raddle.text import percent, span_us

__all__ = ["draw_parts"]

OWN, OTHERS, QUIET = "#0072B2", "#D55E00", "#8a8f98"
MOST = 12
"""Groups of parts that have a bar of their own."""


def draw_parts(told: Mapping[str, Any]) -> Figure:
    """A bar for each of the largest groups of parts of what `raddle why` says.

    What others did has one colour, what the job did to itself another; the rest is grey.
    """
    own = told.get("job") or told["class"]
    groups = groups_of([Part.of_json(part) for part in told["parts"]])
    shown, rest = split_small(groups, MOST)
    words = [group.words(own) for group in shown]
    shares = [group.share for group in shown]
    colours = [
        QUIET if group.culprit is None else OWN if group.culprit == own else OTHERS
        for group in shown
    ]
    if rest:
        words.append("everything else")
        shares.append(rest)
        colours.append(QUIET)
    figure = Figure(figsize=(8, 1.2 + 0.32 * len(words)), layout="constrained")
    axis = figure.subplots()
    places = range(len(words))
    bars = axis.barh(places, [100 * share for share in shares], color=colours)
    axis.bar_label(bars, [percent(share) for share in shares], padding=3, fontsize=8)
    axis.set_yticks(places, words, fontsize=8)
    axis.invert_yaxis()
    axis.margins(x=0.12)
    axis.set_xlabel("share of its time in %")
    who = told.get("job") or f"flow {told['flow']}"
    axis.set_title(f"{who} under {told['setup']}: {span_us(told['time_us'])}", fontsize=10)
    axis.spines[["top", "right"]].set_visible(False)
    return figure
