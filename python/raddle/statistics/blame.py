"""Where the time of a job or a flow went, and who stood in its way."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from raddle.text import many, percent

__all__ = [
    "LEAST",
    "Group",
    "Part",
    "culprits_of",
    "groups_of",
    "kinds_of",
    "parts_of",
    "split_small",
]

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


AT_HOSTS = frozenset({"start", "computing", "host", "memory"})
"""Causes that have nothing to do with the network."""
LEAST = 0.001
"""A smaller share is not shown by itself."""


@dataclass(frozen=True, slots=True)
class Part:
    """A share of a time: what it was spent on, because of whom, where."""

    cause: str
    culprit: str | None
    port: str | None
    time_ps: int
    share: float

    @classmethod
    def of_json(cls, told: Mapping[str, Any]) -> "Part":
        """From what `as_json` made."""
        time_ps = round(told["time_us"] * 1e6)
        return cls(told["cause"], told["culprit"], told["port"], time_ps, told["share"])

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


def kinds_of(parts: Sequence[Part], own: str) -> dict[str, float]:
    """Shares of three kinds: at the job's hosts, in the network, and behind others."""
    shares = dict.fromkeys(("hosts", "network", "others"), 0.0)
    for part in parts:
        if part.cause in AT_HOSTS:
            shares["hosts"] += part.share
        elif part.culprit is not None and part.culprit != own:
            shares["others"] += part.share
        else:
            shares["network"] += part.share
    return shares


def culprits_of(parts: Sequence[Part], own: str) -> dict[str, float]:
    """Who stood in the way for which share, others than `own`; the largest share first."""
    shares: dict[str, float] = {}
    for part in parts:
        if part.culprit is not None and part.culprit != own:
            shares[part.culprit] = shares.get(part.culprit, 0.0) + part.share
    return dict(sorted(shares.items(), key=lambda item: -item[1]))


@dataclass(frozen=True, slots=True)
class Group:
    """Parts of one cause and one culprit."""

    parts: Sequence[Part]

    @property
    def share(self) -> float:
        """Of the whole time."""
        return sum(part.share for part in self.parts)

    @property
    def culprit(self) -> str | None:
        """Who stood in the way."""
        return self.parts[0].culprit

    def words(self, own: str) -> str:
        """What it is; `own`: whose time it is."""
        first = self.parts[0]
        who = "its own messages" if first.culprit == own else first.culprit
        if first.cause == "queue":
            what = f"behind {who or 'packets of no class'}"
        elif first.cause == "pause":
            what = f"paused by PFC because of {who or 'an unknown queue'}"
        else:
            what = WORDS.get(first.cause, first.cause)
        ports = [part for part in self.parts if part.port]
        if not ports:
            return what
        if len(ports) == 1:
            return f"{what}, at {first.port}"
        return f"{what}, at {many(len(ports), 'port')}, {percent(first.share)} at {first.port}"


def split_small(groups: Sequence[Group], most: int) -> tuple[Sequence[Group], float]:
    """The groups to show, `most` at most and none below a thousandth, and the share of the rest."""
    shown = [group for group in groups[:most] if group.share >= LEAST]
    return shown, sum(group.share for group in groups[len(shown) :])


def groups_of(parts: Sequence[Part]) -> list[Group]:
    """Put parts of one cause and one culprit together; the largest group first."""
    groups: dict[tuple[str, str | None], list[Part]] = {}
    for part in parts:
        groups.setdefault((part.cause, part.culprit), []).append(part)
    return sorted((Group(own) for own in groups.values()), key=lambda group: -group.share)
