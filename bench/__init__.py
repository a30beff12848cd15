"""Importing this goes on with the project's own Python, where raddle and its packages are.

A script that needs them imports this first, so that it runs as `scripts/NAME.py` from any shell.
Where the project is not built, the script ends and says how to build it.
"""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = ROOT / ".venv" / "bin" / "python"
NEEDED = ("raddle", "numpy", "pyarrow", "scipy")
"""The package itself, and what `make setup` installs for scripts."""


def _missing() -> list[str]:
    return [name for name in NEEDED if find_spec(name) is None]


if _missing():
    script = Path(sys.argv[0])
    if PYTHON.exists() and Path(sys.prefix) != ROOT / ".venv":
        os.execv(PYTHON, [str(PYTHON), *sys.argv])
    sys.exit(
        f"error: {script} needs the Python packages {', '.join(_missing())}\n"
        f"run `make setup build` in {ROOT}, then the same command again"
    )
