"""Programs of this repository run with its own Python, where raddle and its packages are."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = ROOT / ".venv" / "bin" / "python"
NEEDED = ("raddle", "numpy", "pyarrow", "scipy")
"""The package itself, and what `make setup` installs for measurements."""


def _missing() -> list[str]:
    return [name for name in NEEDED if find_spec(name) is None]


def _asked() -> list[str]:
    """What Python was asked to run: `-m MODULE` or a file, with its words."""
    words = sys.orig_argv
    return words[words.index("-m") :] if sys.argv[0] == "-m" else sys.argv


def go_on_with_own_python() -> None:
    """Start the program again with the project's own Python if this one lacks packages.

    Where the project is not built, the program ends and says how to build it.
    """
    if not _missing():
        return
    if PYTHON.exists() and Path(sys.prefix) != ROOT / ".venv":
        os.execv(PYTHON, [str(PYTHON), *_asked()])
    program = _asked()[1] if sys.argv[0] == "-m" else sys.argv[0]
    sys.exit(
        f"error: {program} needs the Python packages {', '.join(_missing())}\n"
        f"run `make setup build` in {ROOT}, then the same command again"
    )
