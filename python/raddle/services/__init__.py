"""What commands do: a module for each, which knows results and nothing of the command line."""

from typing import TYPE_CHECKING

from raddle.lazy import attach

__all__ = [
    "advise",
    "combinations",
    "compare",
    "doctor",
    "engines",
    "estimate",
    "fabric",
    "groups",
    "lab",
    "merge",
    "overlay",
    "ranks",
    "record",
    "replay",
    "reproduce",
    "route",
    "run",
    "settings",
    "status",
    "sweep",
    "template",
    "trace",
    "traffic",
]

if TYPE_CHECKING:
    from raddle.services import (
        advise,
        combinations,
        compare,
        doctor,
        engines,
        estimate,
        fabric,
        groups,
        lab,
        merge,
        overlay,
        ranks,
        record,
        replay,
        reproduce,
        route,
        run,
        settings,
        status,
        sweep,
        template,
        trace,
        traffic,
    )
else:
    __getattr__, __dir__ = attach(__name__, modules=__all__)
