"""What commands do: a module for each, which knows results and nothing of the command line."""

from typing import TYPE_CHECKING

from raddle.lazy import attach

__all__ = [
    "advice",
    "advise",
    "combinations",
    "compare",
    "costs",
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
    "replay_shared",
    "reproduce",
    "route",
    "run",
    "settings",
    "status",
    "sweep",
    "template",
    "trace",
    "traffic",
    "view",
    "why",
]

if TYPE_CHECKING:
    from raddle.services import (
        advice,
        advise,
        combinations,
        compare,
        costs,
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
        replay_shared,
        reproduce,
        route,
        run,
        settings,
        status,
        sweep,
        template,
        trace,
        traffic,
        view,
        why,
    )
else:
    __getattr__, __dir__ = attach(__name__, modules=__all__)
