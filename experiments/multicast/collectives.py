"""Collectives on multicast trees beside Table 1 and Figures 11 and 12 of Chen et al. (C-MR4LMS).

python3 -m experiments.multicast.collectives          print the tables of docs/results/offload.md
python3 -m experiments.multicast.collectives --run    simulate first what is missing in out/

Draws out/multicast-collectives/figure11.svg and figure12.svg.
"""

import itertools
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.compute as pc
from matplotlib.figure import Figure

import raddle
from experiments import command_line
from raddle.report.plots import save
from raddle.results import Results, load

HERE = Path(__file__).resolve().parent
BASE = HERE / "collectives.toml"
OUT = Path("out/multicast-collectives")
GRIDS = ((60, 60), (20, 180), (120, 30))
ENGINES = ("broadcast", "mr4lms", "c-mr4lms-fixed", "c-mr4lms-dynamic")
OPERATIONS = {
    "MPI_Barrier": ("barrier", "8B"),
    "MPI_Allreduce": ("allreduce", "8B"),
    "MPI_Bcast 8 B": ("bcast", "8B"),
    "MPI_Bcast 2 KB": ("bcast", "2KiB"),
}
PUBLISHED = {
    "MPI_Barrier": ((28.4, 24.3, 25.5, 26.6), (40.6, 27.0, 25.4, 26.8), (33.1, 24.2, 25.6, 26.0)),
    "MPI_Allreduce": ((37.4, 29.3, 28.4, 29.3), (46.0, 31.7, 30.9, 27.1), (30.5, 26.5, 26.9, 29.1)),
    "MPI_Bcast 8 B": ((31.3, 27.0, 27.2, 26.9), (50.2, 27.2, 30.0, 28.4), (33.8, 27.0, 26.7, 27.0)),
    "MPI_Bcast 2 KB": (
        (51.8, 44.8, 31.1, 31.1),
        (92.6, 39.6, 34.4, 32.6),
        (52.0, 45.0, 27.5, 33.8),
    ),
}
"""Table 1: medians in us, a row per grid, by engine."""
CLAIMS = {"MPI_Barrier": -10, "MPI_Allreduce": -24, "MPI_Bcast 8 B": -13, "MPI_Bcast 2 KB": -40}
"""C-MR4LMS fixed against the broadcast tree at 60 x 60, in per cent."""
CALIBRATED = ("MPI_Bcast 8 B", (60, 60), "mr4lms")
"""The one cell that the software's time is taken from; it is in none of the claims."""
WARM_UP = 5
FIXED = "c-mr4lms-fixed"


@dataclass(frozen=True, slots=True)
class Case:
    """One cell of Table 1, or of Figure 12."""

    operation: str
    grid: tuple[int, int]
    engine: str
    twice: bool = False

    @property
    def folder(self) -> Path:
        """Where its results are."""
        name = f"{self.grid[0]}x{self.grid[1]}-{self.engine}{'-ft' if self.twice else ''}"
        return OUT / self.operation.lower().replace(" ", "-") / name

    def experiment(self, overhead_ps: int) -> dict[str, Any]:
        """Give its experiment."""
        made = tomllib.loads(BASE.read_text())
        operation, size = OPERATIONS[self.operation]
        made["traffic"] |= {
            "dims": list(self.grid),
            "operation": operation,
            "size": size,
            "engine": self.engine,
            "fault_tolerant": self.twice,
            "overhead": f"{overhead_ps}ps",
        }
        return made


def all_cases() -> Iterator[Case]:
    """Yield the cells of the figures, then what Table 1 has beside them."""
    for operation, engine in itertools.product(OPERATIONS, ENGINES):
        yield Case(operation, GRIDS[0], engine)
    for operation in OPERATIONS:
        yield Case(operation, GRIDS[0], FIXED, twice=True)
    for grid, operation, engine in itertools.product(GRIDS[1:], OPERATIONS, ENGINES):
        yield Case(operation, grid, engine)


def rounds_us(results: Results) -> np.ndarray:
    """Give the times of process 0's rounds: from one message of its row to the next.

    It is the root of row 0, the first group; a round is a collective of the row and one of the
    column.
    """
    flows = results.flows
    own = flows.filter(pc.field("dst") == 1 << 31)
    starts = np.sort(own["start_ps"].to_numpy()) / 1e6
    return np.diff(starts)[WARM_UP:]


def overhead_ps(*, run: bool) -> int:
    """Give the software's time per collective with which the calibrated cell is as published."""
    case = Case(*CALIBRATED)
    folder = OUT / "no-overhead"
    if run and not (folder / "flows.parquet").exists():
        raddle.run(case.experiment(0), folder)
    operation, grid, engine = CALIBRATED
    target = PUBLISHED[operation][GRIDS.index(grid)][ENGINES.index(engine)]
    missing_us = target - float(np.median(rounds_us(load(folder))))
    return max(0, round(missing_us / 2 * 1e6))


def median(times: dict[Case, np.ndarray], case: Case) -> float:
    """Give the median of a case, NaN if it was not simulated."""
    return float(np.median(times[case])) if case in times else float("nan")


def tables(times: dict[Case, np.ndarray]) -> Iterator[str]:
    """Yield the lines of the page's tables."""
    yield "| operation | grid | " + " | ".join(ENGINES) + " |"
    yield "|---|---|" + "--:|" * len(ENGINES)
    for operation, grid in itertools.product(OPERATIONS, GRIDS):
        published = PUBLISHED[operation][GRIDS.index(grid)]
        row = [
            f"{median(times, Case(operation, grid, engine)):.1f} ({paper})"
            for engine, paper in zip(ENGINES, published, strict=True)
        ]
        yield f"| {operation} | {grid[0]} x {grid[1]} | " + " | ".join(row) + " |"
    yield "\n| C-MR4LMS fixed against the broadcast tree, 60 x 60 | the paper | here |"
    yield "|---|--:|--:|"
    for operation, claim in CLAIMS.items():
        tree = median(times, Case(operation, GRIDS[0], "broadcast"))
        fixed = median(times, Case(operation, GRIDS[0], FIXED))
        yield f"| {operation} | {claim} % | {(fixed / tree - 1) * 100:+.0f} % |"
    yield "\n| C-MR4LMS fixed, 60 x 60 | one tree: median, quartiles | two trees | change |"
    yield "|---|---|---|--:|"
    for operation in OPERATIONS:
        cases = [Case(operation, GRIDS[0], FIXED, twice=twice) for twice in (False, True)]
        if any(case not in times for case in cases):
            continue
        one, two = (times[case] for case in cases)
        change = (np.median(two) / np.median(one) - 1) * 100
        yield f"| {operation} | {quartiles(one)} | {quartiles(two)} | {change:+.1f} % |"


def quartiles(values: np.ndarray) -> str:
    """Write median and quartiles."""
    low, middle, high = np.percentile(values, (25, 50, 75))
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


def draw(times: dict[Case, np.ndarray], cases: dict[str, list[Case]], file: Path) -> None:
    """Draw violins of the rounds, a panel per operation."""
    figure = Figure(figsize=(3.2 * len(OPERATIONS), 3.2), layout="constrained")
    panels = figure.subplots(1, len(OPERATIONS))
    for axes, operation in zip(panels, OPERATIONS, strict=True):
        known = [case for case in cases[operation] if case in times]
        if not known:
            continue
        shown = [times[case] for case in known]
        axes.violinplot(shown, showmedians=True, quantiles=[[0.25, 0.75]] * len(shown))
        names = [case.engine + (" ft" if case.twice else "") for case in known]
        axes.set_xticks(range(1, len(names) + 1), names, rotation=30, ha="right", fontsize=7)
        axes.set_title(f"{operation}, n = {len(shown[0])}", fontsize=9)
        axes.set_ylabel("round [us]")
    save(figure, file)


def main() -> int:
    """Run and print."""
    parser = command_line(__file__, __doc__)
    parser.add_argument("--run", action="store_true", help="simulate what is missing in out/")
    options = parser.parse_args()
    overhead = overhead_ps(run=options.run)
    times = {}
    for case in all_cases():
        if options.run and not (case.folder / "flows.parquet").exists():
            raddle.run(case.experiment(overhead), case.folder)
        if (case.folder / "flows.parquet").exists():
            times[case] = rounds_us(load(case.folder))
    print(f"software per collective: {overhead / 1e6:.2f} us\n")
    print(*tables(times), sep="\n")
    grid = GRIDS[0]
    draw(
        times,
        {name: [Case(name, grid, engine) for engine in ENGINES] for name in OPERATIONS},
        OUT / "figure11.svg",
    )
    draw(
        times,
        {
            name: [Case(name, grid, FIXED, twice=twice) for twice in (False, True)]
            for name in OPERATIONS
        },
        OUT / "figure12.svg",
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
