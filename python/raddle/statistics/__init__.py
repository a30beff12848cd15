"""Figures of results, what is compared by them, and what is said of them; nothing is written."""

from typing import TYPE_CHECKING

from raddle.lazy import attach

__all__ = [
    "calibration",
    "comparable",
    "contrast",
    "figures",
    "measured",
    "pauses",
    "plans",
    "readings",
    "replay_notes",
    "routes",
    "rule",
    "samples",
    "score",
    "summary",
    "sweep_verdict",
    "verdict",
    "waits",
    "ways",
]

if TYPE_CHECKING:
    from raddle.statistics import (
        calibration,
        comparable,
        contrast,
        figures,
        measured,
        pauses,
        plans,
        readings,
        replay_notes,
        routes,
        rule,
        samples,
        score,
        summary,
        sweep_verdict,
        verdict,
        waits,
        ways,
    )
else:
    __getattr__, __dir__ = attach(__name__, modules=__all__)
