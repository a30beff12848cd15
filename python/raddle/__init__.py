"""raddle: simulate HPC fabrics under congestion control, and see which scheme serves them best.

>>> import raddle
>>> results = raddle.run("experiment.toml", "out")  # doctest: +SKIP
>>> results.flows.to_pandas()  # doctest: +SKIP

Names are loaded on first use, so that the command line starts fast.
"""

from typing import TYPE_CHECKING, Any

from raddle.errors import (
    ExperimentError,
    RaddleError,
    ResultsError,
    RunCancelled,
    RunFailed,
)

if TYPE_CHECKING:
    from raddle.api import Scheme, run, schemes
    from raddle.results import Results, load

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

__version__ = "0.1.0"

_LAZY = {
    "Results": "raddle.results",
    "Scheme": "raddle.api",
    "load": "raddle.results",
    "run": "raddle.api",
    "schemes": "raddle.api",
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - whatever the name stands for
    if name in _LAZY:
        import importlib

        return getattr(importlib.import_module(_LAZY[name]), name)
    msg = f"module 'raddle' has no attribute {name!r}"
    raise AttributeError(msg)


def __dir__() -> list[str]:
    return sorted(__all__)
