"""Recorded programs that the repository holds, and how they lie on four nodes."""

from dataclasses import dataclass
from pathlib import Path

__all__ = ["RECORDED", "Recorded"]

TRACES = Path(__file__).resolve().parents[2] / "tests" / "data" / "traces"


@dataclass(frozen=True, slots=True)
class Recorded:
    """A trace of a program that ran."""

    name: str
    trace: Path
    per_node: int
    """Ranks of a node, so that there are four nodes."""
    note: str


RECORDED = (
    Recorded("LAMMPS", TRACES / "melt.trace.parquet", 2, "melt, 864 atoms, 20 steps"),
    Recorded("OpenFOAM", TRACES / "openfoam.trace.parquet", 1, "cavity, 20 x 20 cells, 3 steps"),
    Recorded("GROMACS", TRACES / "gromacs.trace.parquet", 1, "4 nm of water, 3 steps"),
)
