"""How many cells of Li et al. a model can come near: by the order of cells, and by knowing others.

The published cells are single measurements. What a model that has seen the offloaded cells beside
the one that it predicts comes near to, says how much of the tables can be told at all.
"""

from collections.abc import Sequence

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from experiments.offload.model import SIZES, Cell
from raddle.results.reproduction import CLOSE, Table

__all__ = ["interpolated", "most_monotone", "regressed", "table"]


def most_monotone(cells: Sequence[Cell]) -> int:
    """Give how many cells a model can hit in which more bytes, nodes or processes take no less.

    Two cells exclude each other if the lesser would have to be above the greater. That relation is
    transitive, so that the most cells without such a pair are an antichain (Dilworth 1950).
    """
    n = len(cells)
    links = np.zeros((n, n), dtype=bool)
    for i, a in enumerate(cells):
        for j, b in enumerate(cells):
            below = a.nodes <= b.nodes and a.ppn <= b.ppn and a.bytes <= b.bytes
            if i != j and a.mode == b.mode and below:
                links[i, j] = a.published_us * (1 - CLOSE) > b.published_us * (1 + CLOSE)
    matched = maximum_bipartite_matching(csr_array(links.astype(np.int8)), perm_type="column")
    return n - int(np.sum(matched >= 0))


def interpolated(cell: Cell, cells: Sequence[Cell]) -> float:
    """A cell in us, from the others of its column: a parabola of log time over the sizes."""
    column = [
        other
        for other in cells
        if (other.nodes, other.ppn, other.mode) == (cell.nodes, cell.ppn, cell.mode)
        and other != cell
    ]
    sizes = [SIZES.index(other.bytes) for other in column]
    logs = np.log([other.published_us for other in column])
    return float(np.exp(np.polyval(np.polyfit(sizes, logs, 2), SIZES.index(cell.bytes))))


def regressed(cell: Cell, cells: Sequence[Cell]) -> float:
    """A cell in us, from its plain cell and all other columns of its mode.

    Least squares of log time on log nodes, log processes, their product, the log of the plain time
    and the size: six numbers, fitted to offloaded cells.
    """
    plain = {(c.nodes, c.ppn, c.bytes): c.published_us for c in cells if c.mode == "plain"}

    def known(c: Cell) -> list[float]:
        nodes, processes = np.log(c.nodes), np.log(c.ppn)
        before = np.log(plain[c.nodes, c.ppn, c.bytes])
        return [1, nodes, processes, nodes * processes, before, SIZES.index(c.bytes)]

    others = [
        c for c in cells if c.mode == cell.mode and (c.nodes, c.ppn) != (cell.nodes, cell.ppn)
    ]
    logs = np.log([c.published_us for c in others])
    weights = np.linalg.lstsq(np.array([known(c) for c in others]), logs, rcond=None)[0]
    return float(np.exp(np.dot(weights, known(cell))))


def table(cells: Sequence[Cell], which: Sequence[bool]) -> Table:
    """What models come near to that know no offloaded cell, or all others."""
    offload = [c for c, chosen in zip(cells, which, strict=True) if chosen]

    def near(predicted: Sequence[float]) -> int:
        pairs = zip(predicted, offload, strict=True)
        return sum(abs(us / c.published_us - 1) <= CLOSE for us, c in pairs)

    rows = [
        (
            "more bytes, nodes or processes never take less time: at most",
            most_monotone(offload),
        ),
        (
            "a parabola goes through the column's other offloaded cells",
            near([interpolated(c, cells) for c in offload]),
        ),
        (
            "six numbers are fitted to all other offloaded columns of the mode",
            near([regressed(c, cells) for c in offload]),
        ),
    ]
    return Table(
        ("a model in which", "has within 10 %", "of"), [(*row, len(offload)) for row in rows]
    )
