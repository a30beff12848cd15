"""Programs that measure speed against limits and other programs: `python3 -m bench.NAME`.

Run them in the repository's root. `make accept` runs all that has a limit.
"""

from scripts.own_python import PYTHON, ROOT, go_on_with_own_python

__all__ = ["OUT", "PYTHON", "ROOT", "SOURCES"]

OUT = ROOT / "out"
"""Where programs are built and results go."""

SOURCES = ROOT / "bench" / "programs"
"""MPI programs in C that only measurements use."""

go_on_with_own_python()
