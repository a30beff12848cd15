"""`raddle reproduce`: the papers' figures beside ours.

`run` reproduces papers and leaves a folder, `papers` says which there are and where their programs
lie, `context` is what such a program is given, `measured` has what labs gave, `search` goes over
inputs that a paper's text has lost, `markdown` writes the page of a paper. A paper's program needs
no more than the names here.
"""

from typing import TYPE_CHECKING

from raddle.lazy import attach

__all__ = [
    "Context",
    "Outcome",
    "Row",
    "Search",
    "Table",
    "cell",
    "finding",
    "lost",
    "reproduce",
]

if TYPE_CHECKING:
    from raddle.results.reproduction import Outcome, Row, Table, cell, finding, lost
    from raddle.services.reproduce.context import Context
    from raddle.services.reproduce.run import reproduce
    from raddle.services.reproduce.search import Search
else:
    __getattr__, __dir__ = attach(
        __name__,
        modules=("context", "markdown", "measured", "papers", "run", "search"),
        names={
            "Context": "raddle.services.reproduce.context",
            "Search": "raddle.services.reproduce.search",
            "reproduce": "raddle.services.reproduce.run",
            **dict.fromkeys(
                ("Outcome", "Row", "Table", "cell", "finding", "lost"),
                "raddle.results.reproduction",
            ),
        },
    )
