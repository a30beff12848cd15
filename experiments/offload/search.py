"""What the text of Li et al. leaves open: where do their sentences and tables hold together?

The costs of hosts are those that plain calls give for each binding and start (`hosts.toml`), the
switch's time that of its one cell.
"""

from pathlib import Path

import numpy as np

from experiments.offload.model import (
    BINDINGS,
    PPN,
    STARTS,
    Reading,
    Simulator,
    read_published,
    times,
    within,
)
from experiments.offload.reproduce import (
    CLAIMS,
    claimed,
    errors,
    predicted,
    published_us,
    saving_errors,
    savings,
    winners,
)
from raddle.services.reproduce.search import Point, Search

MOST = 0.8
"""The share of cells, or of winners, from which a table counts as reproduced."""
CELLS = "80 % of the predicted cells within 10 %"
CROWDED = "80 % of those with 64 processes per node within 10 %"
WINNERS = "80 % of the winners as published"
BEATS_SHARE = "savings nearer than by 0.8 x plain"
BEATS_COLUMN = "savings nearer than by the mean of the column"


def evaluate(point: Point, quick: bool, out: Path) -> dict[str, bool | None]:
    """Simulate all cells of a reading."""
    cells, simulate = read_published(), Simulator()
    found = times(Reading(**point), cells, simulate)
    simulate.close()
    logs, which = errors(cells, found.us), predicted(cells)
    crowded = which & np.array([c.ppn == max(PPN) for c in cells])
    saved = savings(cells, found.us)
    error = saving_errors(cells, found.us)
    pairs = list(zip(winners(cells, published_us(cells)), winners(cells, found.us), strict=True))
    return {
        CELLS: bool(within(logs[which]) >= MOST * which.sum()),
        CROWDED: bool(within(logs[crowded]) >= MOST * crowded.sum()),
        WINNERS: sum(a == b for a, b in pairs) >= MOST * len(pairs),
        BEATS_SHARE: error.ours < error.share,
        BEATS_COLUMN: error.ours < error.column,
        **{c.name: bool(c.low <= claimed(c, saved) <= c.high) for c in CLAIMS},
    }


SEARCH = Search(
    inputs={
        "binding": list(BINDINGS),
        "start": list(STARTS),
        "tree": ["text", "library"],
        "units": [1, 64],
        "protocol": ["published-rc", "native"],
    },
    quick_inputs={
        "binding": list(BINDINGS),
        "start": ["after a barrier"],
        "tree": ["text", "library"],
        "units": [1],
        "protocol": ["published-rc"],
    },
    findings=[
        CELLS,
        CROWDED,
        WINNERS,
        BEATS_SHARE,
        BEATS_COLUMN,
        *(claim.name for claim in CLAIMS),
    ],
    evaluate=evaluate,
)
