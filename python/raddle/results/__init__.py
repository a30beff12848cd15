"""Folders of results: what lies in them, who may write them, and whether they are whole."""

from typing import TYPE_CHECKING

from raddle.lazy import attach

__all__ = ["TABLES", "Results", "claim", "faults", "load", "trace"]

if TYPE_CHECKING:
    from raddle.results import claim, faults, trace
    from raddle.results.folder import TABLES, Results, load
else:
    __getattr__, __dir__ = attach(
        __name__,
        modules=("claim", "faults", "trace"),
        names=dict.fromkeys(("TABLES", "Results", "load"), "raddle.results.folder"),
    )
