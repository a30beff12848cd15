"""Experiments, a folder per paper or question: files for raddle, programs that print our tables.

A program runs in the repository's root as `python3 -m experiments.PAPER.NAME`.
"""

import argparse
import subprocess
import sys
from pathlib import Path

from scripts.own_python import go_on_with_own_python

__all__ = ["call_raddle", "command_line"]

go_on_with_own_python()


def command_line(file: str, about: str | None) -> argparse.ArgumentParser:
    """The parser of a program's words, from its `__file__` and what it says of itself."""
    paper, name = Path(file).with_suffix("").parts[-2:]
    return argparse.ArgumentParser(
        prog=f"python3 -m experiments.{paper}.{name}", description=(about or "").partition("\n")[0]
    )


def call_raddle(*words: str | Path) -> None:
    """Run a command of Raddle to its end; one that fails ends the program."""
    subprocess.run([sys.executable, "-m", "raddle", *map(str, words)], check=True)
