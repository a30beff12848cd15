"""The papers, and where the programs that reproduce them lie: in Raddle's repository."""

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from raddle.errors import ResultsError
from raddle.results.reproduction import Outcome
from raddle.services.reproduce.context import Context
from raddle.services.reproduce.search import Search

__all__ = ["PAPERS", "Paper", "find_repository"]


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper that Raddle reproduces."""

    name: str
    """On the command line."""
    folder: str
    """Of its programs and files, below experiments/."""
    page: str
    """Of its results, below docs/results/."""
    title: str

    def home(self, repository: Path) -> Path:
        """The folder of its programs."""
        return repository / "experiments" / self.folder

    def program(self, repository: Path) -> Callable[[Context], Outcome]:
        """The function that reproduces it."""
        found: Callable[[Context], Outcome] = self._module("reproduce", repository).reproduce
        return found

    def search(self, repository: Path) -> Search | None:
        """The search over its lost inputs; None where it has none."""
        if not (self.home(repository) / "search.py").is_file():
            return None
        found: Search = self._module("search", repository).SEARCH
        return found

    def _module(self, name: str, repository: Path) -> ModuleType:
        if str(repository) not in sys.path:
            sys.path.insert(0, str(repository))
        return importlib.import_module(f"experiments.{self.folder}.{name}")


PAPERS = {
    paper.name: paper
    for paper in (
        Paper("multicast", "multicast", "multicast.md", "Chen et al., C-MR4LMS"),
        Paper("congestion", "congestion", "congestion.md", "Sun et al., congestion control"),
        Paper("offload", "offload", "offload.md", "Li et al., in-network Allreduce"),
        Paper("scheduling", "scheduling", "scheduling.md", "Peng et al., message scheduling"),
        Paper("multirail", "rails", "rails.md", "Zhang et al., MNC"),
    )
}
"""By their names, in the order of the command's output."""


def find_repository(start: Path) -> Path:
    """Raddle's repository: `start` or the nearest folder above it that has the programs.

    Raises
    ------
    ResultsError
        There is none.
    """
    marks = [Path("experiments") / paper.folder for paper in PAPERS.values()]
    for folder in (start, *start.parents):
        if (folder / "Cargo.toml").is_file() and all((folder / m).is_dir() for m in marks):
            return folder
    msg = (
        f"{start} is not in a clone of Raddle's repository, which has the papers' programs\n"
        "  hint: run `raddle reproduce` in a clone, after `make build`"
    )
    raise ResultsError(msg)
