"""The compiled core, `raddle._core`, with types: the only package that calls it.

Each module asks the core for one kind of thing. Answers are frozen dataclasses
(`raddle.core.answers`): nobody else sees JSON of the core.
"""

from typing import TYPE_CHECKING

from raddle.lazy import attach

__all__ = [
    "build",
    "fabric",
    "groups",
    "replay",
    "rounds",
    "route",
    "runs",
    "trace",
    "traffic",
]

if TYPE_CHECKING:
    from raddle.core import build, fabric, groups, replay, rounds, route, runs, trace, traffic
else:
    __getattr__, __dir__ = attach(__name__, modules=__all__)
