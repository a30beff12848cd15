"""The command line: it parses and prints, and leaves the work to services."""

from typing import TYPE_CHECKING

from raddle.lazy import attach

__all__ = ["main"]

if TYPE_CHECKING:
    from raddle.cli.entry import main
else:
    __getattr__, __dir__ = attach(__name__, names={"main": "raddle.cli.entry"})
