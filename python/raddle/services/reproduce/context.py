"""What the program that reproduces a paper is given."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Context", "Say", "Step"]

Say = Callable[[str], None]
"""Tells whoever watches a line of text."""
Step = Callable[[str, int, int], None]
"""Tells how far a piece of work is: its name, what is done, how much there is."""


def _silent(_text: str) -> None:
    pass


def _unwatched(_label: str, _done: int, _total: int) -> None:
    pass


@dataclass(frozen=True, slots=True)
class Context:
    """How much to do, where to leave it, and whom to tell."""

    out: Path
    """A folder of this paper: what runs leave in it lets a second call go on."""
    quick: bool = False
    """Fewer seeds, rounds and points: under 15 minutes on two cores."""
    jobs: int = 1
    """Runs at the same time."""
    say: Say = _silent
    step: Step = _unwatched
    measured: Mapping[str, Any] = field(default_factory=dict)
    """By name: what `measured.measure` kept of this paper's measurements in labs."""
