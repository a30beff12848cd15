"""Traces of MPI programs: what they are made of, and pictures of it."""

import json
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from numpy.typing import NDArray

from raddle.errors import TraceError
from raddle.text import many

__all__ = ["APPLICATIONS", "SUFFIX", "check_name", "describe", "draw"]

SUFFIX = ".trace.parquet"
APPLICATIONS = (
    "particle-in-cell",
    "electromagnetics",
    "transport",
    "laser-fusion",
    "radiation-hydrodynamics",
    "molecular-dynamics",
)
# More squares than a picture has points.
MOST_RANKS_DRAWN = 2048


def describe(path: Path, *, matrix: bool = False) -> dict[str, Any]:
    """What a trace consists of: ranks, messages, sizes, supersteps, collectives, times.

    Parameters
    ----------
    path
        The trace, `NAME.trace.parquet`.
    matrix
        Also who sends how much to whom: `host_matrix`, and `rank_matrix` where it is not too
        large, with the columns from, to, messages, bytes.

    Raises
    ------
    TraceError
        The file is no trace, is damaged, or has messages without their other end.
    """
    from raddle import _core

    found: dict[str, Any] = json.loads(_core.trace_describe(path, matrix))
    return found


def check_name(path: Path) -> None:
    """Refuse a name that no trace has, before the work that it would need."""
    if not path.name.endswith(SUFFIX):
        msg = f"{path}: a trace is called NAME{SUFFIX}"
        raise TraceError(msg)


def draw(found: dict[str, Any], *, title: str) -> Figure:
    """Who sends how much to whom, and how much goes in messages of which size.

    Parameters
    ----------
    found
        What `describe` gives with `matrix`.
    title
        Above the picture.
    """
    figure = Figure(figsize=(10, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    ranks = found["ranks"]
    by_rank = "rank_matrix" in found and ranks <= MOST_RANKS_DRAWN
    what, count = ("rank", ranks) if by_rank else ("host", len(found["hosts"]))
    picture = left.imshow(
        _dense(found[f"{what}_matrix"], count), norm=LogNorm(), cmap="viridis", aspect="equal"
    )
    left.set_xlabel(f"to {what}")
    left.set_ylabel(f"from {what}")
    figure.colorbar(picture, ax=left, label="bytes")
    sizes = [max(1, row["from_bytes"]) for row in found["sizes"]]
    widths = [max(1, row["from_bytes"]) for row in found["sizes"]]
    right.bar(sizes, [row["messages"] for row in found["sizes"]], widths, align="edge")
    right.set_xscale("log", base=2)
    right.set_yscale("log")
    right.set_xlabel("message size in bytes (below 1: 0 and 1)")
    right.set_ylabel("messages")
    figure.suptitle(
        f"{title}: {many(ranks, 'rank')} on {many(len(found['hosts']), 'host')}, "
        f"{many(found['messages'], 'message')}"
    )
    return figure


def _dense(pairs: dict[str, list[int]], count: int) -> NDArray[np.float64]:
    """Bytes by (from, to); pairs without any stay blank."""
    matrix = np.full((count, count), np.nan)
    matrix[pairs["from"], pairs["to"]] = np.maximum(pairs["bytes"], 1)
    return matrix
