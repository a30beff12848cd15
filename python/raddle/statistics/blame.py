"""Where the time of a job or a flow went, and who stood in its way."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Part", "culprits_of", "parts_of", "words_of"]

WORDS: Mapping[str, str] = {
    "start": "until its ranks began",
    "computing": "computing",
    "host": "sending, receiving and copying at its hosts",
    "memory": "messages between ranks of one host",
    "collective": "messages to groups and sums in switches",
    "rails": "messages over several rails",
    "transfer": "its messages themselves, on their way",
    "pacing": "held back by congestion control",
    "retransmission": "packets that were lost and sent again",
}
"""What a cause without a culprit is."""


@dataclass(frozen=True, slots=True)
class Part:
    """A share of a time: what it was spent on, because of whom, where."""

    cause: str
    culprit: str | None
    port: str | None
    time_ps: int
    share: float

    def as_json(self) -> dict[str, Any]:
        """As `raddle why --json` has it."""
        return {
            "cause": self.cause,
            "culprit": self.culprit,
            "port": self.port,
            "time_us": self.time_ps / 1e6,
            "share": self.share,
        }


def parts_of(rows: Iterable[Mapping[str, Any]]) -> list[Part]:
    """Sum up rows of `blame.parquet` or `delays.parquet`, seeds too; the largest part first."""
    times: dict[tuple[str, str | None, str | None], int] = {}
    for row in rows:
        key = (row["cause"], row["culprit"], row["port"])
        times[key] = times.get(key, 0) + int(row["time_ps"])
    all_ps = sum(times.values())
    parts = [Part(*key, time, time / all_ps) for key, time in times.items() if time]
    return sorted(parts, key=lambda part: -part.time_ps)


def culprits_of(parts: Sequence[Part], own: str) -> dict[str, float]:
    """Who stood in the way for which share, others than `own`; the largest share first."""
    shares: dict[str, float] = {}
    for part in parts:
        if part.culprit is not None and part.culprit != own:
            shares[part.culprit] = shares.get(part.culprit, 0.0) + part.share
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


def words_of(part: Part, own: str) -> str:
    """A part in words; `own`: whose time it is."""
    at = f" at {part.port}" if part.port else ""
    who = "its own messages" if part.culprit == own else part.culprit
    if part.cause == "queue":
        return f"behind {who or 'packets of no class'}{at}"
    if part.cause == "pause":
        return f"paused by PFC, because of {who or 'an unknown queue'}{at}"
    return f"{WORDS.get(part.cause, part.cause)}{at}"
