"""What a time was spent on, as a picture."""

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from raddle.statistics.blame import Part, words_of
from raddle.text import percent, span_us

__all__ = ["draw_parts"]

OWN, OTHERS, QUIET = "#0072B2", "#D55E00", "#8a8f98"
MOST = 12
"""Parts that have a bar of their own."""


def draw_parts(told: Mapping[str, Any]) -> Figure:
    """A bar for each of the largest parts of what `raddle why` says.

    What others did has one colour, what the job did to itself another; the rest is grey.
    """
    own = told.get("job") or told["class"]
    parts = [
        Part(it["cause"], it["culprit"], it["port"], 0, it["share"]) for it in told["parts"][:MOST]
    ]
    rest = 1 - sum(part.share for part in parts)
    words = [words_of(part, own) for part in parts]
    shares = [part.share for part in parts]
    colours = [
        QUIET if part.culprit is None else OWN if part.culprit == own else OTHERS for part in parts
    ]
    if len(told["parts"]) > MOST:
        words.append(f"{len(told['parts']) - MOST} smaller parts")
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
