"""raddle: simulate HPC fabrics under congestion control, and see which scheme serves them best.

>>> import raddle
>>> results = raddle.run("experiment.toml", "out")  # doctest: +SKIP
>>> results.flows.to_pandas()  # doctest: +SKIP

The package has layers, and imports point down: `cli` parses and prints, `services` do what a
command asks for, `report` makes pages, `statistics` make figures of results, `results` are folders
of tables, `core` calls the compiled core (`_core`). Errors, texts and files are below all of them.
"""

from typing import TYPE_CHECKING

from raddle.errors import (
    ExperimentError,
    RaddleError,
    ResultsError,
    RunCancelled,
    RunFailed,
)
from raddle.lazy import attach
from raddle.version import __version__

__all__ = [
    "ExperimentError",
    "RaddleError",
    "Results",
    "ResultsError",
    "RunCancelled",
    "RunFailed",
    "Scheme",
    "__version__",
    "load",
    "run",
    "schemes",
]

if TYPE_CHECKING:
    from raddle.api import Scheme, run, schemes
    from raddle.results import Results, load
else:
    __getattr__, __dir__ = attach(
        __name__,
        names={
            "Results": "raddle.results.folder",
            "Scheme": "raddle.api",
            "load": "raddle.results.folder",
            "run": "raddle.api",
            "schemes": "raddle.api",
        },
    )
