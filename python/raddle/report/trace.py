"""A trace of an MPI program as a picture, and what it shows in three sentences."""

from collections.abc import Sequence
from textwrap import wrap
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter
from numpy.typing import NDArray

from raddle.core.trace import Pairs, SizeBin, Trace
from raddle.text import many, memory, percent, size, span_us

__all__ = ["draw", "why"]

# More squares than a picture has points.
MOST_RANKS_DRAWN = 2048
MOST_TIMES = 30
"""Largest ratio of two bars that still shows the shorter one."""
BAR = "#0072B2"
WIDTH = 150


def draw(found: Trace, *, title: str, times: dict[str, Any] | None = None) -> Figure:
    """Who sends how much to whom, how much goes in messages of which size, and why time goes by.

    Parameters
    ----------
    found
        What `raddle.core.trace.describe` gives with `matrix`.
    title
        Above the picture.
    times
        What `raddle.statistics.waits.split_time` gives, for a sentence on where time goes.
    """
    figure = Figure(figsize=(10, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    ranks = found.ranks
    what, count, pairs = _resolution(found)
    matrix = _dense(pairs, count)
    picture = left.imshow(matrix, norm=LogNorm(), cmap="viridis", aspect="equal")
    for axis, label in ((left.xaxis, f"to {what}"), (left.yaxis, f"from {what}")):
        axis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
        axis.set_label_text(label)
    bar = figure.colorbar(picture, ax=left, label="together (blank: nothing)")
    narrow = np.nanmax(matrix, initial=1) < 100 * np.nanmin(matrix, initial=np.inf)
    bar.ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if narrow else (1,)))
    bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: size(value)))
    bar.ax.yaxis.set_minor_formatter(NullFormatter())
    _draw_sizes(right, found.sizes)
    figure.suptitle(
        f"{title}: {many(ranks, 'rank')} on {many(len(found.hosts), 'host')}, "
        f"{many(found.messages, 'message')}"
    )
    lines = [wrapped for sentence in why(found, times) for wrapped in wrap(sentence, WIDTH)]
    figure.text(0.02, -0.03, "\n".join(lines), fontsize=9, color="#444444", ha="left", va="top")
    return figure


def why(found: Trace, times: dict[str, Any] | None = None) -> list[str]:
    """Three sentences: who sends most, in which messages, and where ranks lose time.

    Parameters are those of `draw`.
    """
    return [_who(found), _sizes(found), _times(found, times)]


def _resolution(found: Trace) -> tuple[str, int, Pairs]:
    """Whether ranks are drawn or hosts, how many, and their pairs."""
    if found.rank_matrix is not None and found.ranks <= MOST_RANKS_DRAWN:
        return "rank", found.ranks, found.rank_matrix
    return "host", len(found.hosts), found.host_matrix or Pairs((), (), (), ())


def _draw_sizes(axis: Axes, bins: Sequence[SizeBin]) -> None:
    """Messages per size: bars from zero, or where these would vanish points on a log axis."""
    places = [row.from_bytes.bit_length() for row in bins]
    counts = [row.messages for row in bins]
    if counts and max(counts) > MOST_TIMES * min(counts):
        axis.vlines(places, 0.8, counts, color=BAR, alpha=0.35)
        axis.plot(places, counts, "o", color=BAR)
        axis.set_yscale("log")
        axis.set_ylim(bottom=0.8)
    else:
        axis.bar(places, counts, width=0.85, color=BAR)
    axis.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axis.yaxis.set_minor_formatter(NullFormatter())
    shown = range(min(places, default=0), max(places, default=0) + 1)
    step = len(shown) // 9 + 1
    axis.set_xticks(shown[::step], [_from(place) for place in shown[::step]])
    axis.set_xlabel("message size, up to twice as much")
    axis.set_ylabel("messages")


def _from(place: int) -> str:
    """The least size of the bin that sizes of so many bits are in."""
    if place == 0:
        return "0 B"
    text = memory(2 ** (place - 1))
    return text.replace(".00 ", " ").replace(".0 ", " ")


def _who(found: Trace) -> str:
    what, _, pairs = _resolution(found)
    if not found.messages:
        return "Messages: there are none."
    sent = np.asarray(pairs.bytes, dtype=np.float64)
    order = np.argsort(-sent, kind="stable")
    first = int(order[0])
    inside = 1 - found.messages_between_hosts / found.messages
    text = f"Messages: {percent(1 - inside)} of them go between hosts"
    if sent.sum() > 0:
        half = int(np.searchsorted(np.cumsum(sent[order]), sent.sum() / 2)) + 1
        text += (
            f"; half of the bytes between {half:,} of {many(sent.size, 'pair')} of {what}s, most "
            f"from {pairs.source[first]:,} to {pairs.target[first]:,} ({size(sent[first])} in "
            f"{many(pairs.messages[first], 'message')})"
        )
    return text + "."


def _sizes(found: Trace) -> str:
    bins = found.sizes
    if not bins:
        return "Sizes: there are no messages."
    often = max(bins, key=lambda row: row.messages)
    heavy = max(bins, key=lambda row: row.bytes)
    share = often.messages / found.messages
    text = f"Sizes: {percent(share)} of the messages have {_range(often)}"
    if found.bytes:
        which = "these carry" if heavy is often else f"those of {_range(heavy)} carry"
        text += f"; {which} {percent(heavy.bytes / found.bytes)} of the bytes"
    return text + "."


def _range(row: SizeBin) -> str:
    low = row.from_bytes
    return (
        f"{low} B"
        if low < 2
        else f"{_from(low.bit_length())} to under {_from(low.bit_length() + 1)}"
    )


def _times(found: Trace, times: dict[str, Any] | None) -> str:
    if found.mpi_share == 0:
        return "Time: calls take none in this trace."
    if times is None:
        return f"Time: {percent(found.mpi_share)} of it is spent in MPI."
    parts = times["parts"]
    total = sum(parts.values())
    longest = max(list(parts)[1:], key=lambda part: float(parts[part]))
    late = [rank["late"] + rank["collective late"] for rank in times["ranks"]]
    least, most = int(np.argmin(late)), int(np.argmax(late))
    text = (
        f"Time: {percent(found.mpi_share)} of it is spent in MPI, most in "
        f"“{longest}” ({percent(parts[longest] / total)})"
    )
    if late[most] > late[least]:
        text += (
            f"; rank {most:,} waits longest for others ({span_us(1e6 * late[most])}), rank "
            f"{least:,} least ({span_us(1e6 * late[least])})"
        )
    return text + "."


def _dense(pairs: Pairs, count: int) -> NDArray[np.float64]:
    """Bytes by (from, to); pairs without any stay blank."""
    matrix = np.full((count, count), np.nan)
    source, target = (np.asarray(ends, np.int64) for ends in (pairs.source, pairs.target))
    matrix[source, target] = np.maximum(pairs.bytes, 1)
    return matrix
