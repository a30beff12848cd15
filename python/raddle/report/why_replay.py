"""Why one replay of a program is slower than another: its messages, time in MPI, and waits."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from raddle.report.why import Part, Why
from raddle.statistics.replay_notes import MEANING
from raddle.statistics.rule import difference
from raddle.statistics.verdict import label_of
from raddle.text import count, many, percent, span_us

__all__ = ["why_of_replay"]

Json = Mapping[str, Any]
PROGRAM_ORDER = "none"


@dataclass(frozen=True, slots=True)
class _Replay:
    """The program under a scheme and with a schedule."""

    scheme: str
    schedule: str
    row: Json
    parts: Mapping[str, float] | None
    """What the ranks' time consists of in program order, if it was looked at."""

    @property
    def name(self) -> str:
        """Its name in a sentence."""
        order = "program order" if self.schedule == PROGRAM_ORDER else self.schedule
        return f"{order} under {label_of(self.scheme)}"

    @property
    def time(self) -> str:
        """How long the program takes."""
        return span_us(1e6 * self.row["time_s"])

    def ties(self, other: "_Replay") -> bool:
        """Whether their times differ by no more than a tie."""
        own, its = ({str(r["seed"]): r["time_s"] for r in x.row["runs"]} for x in (self, other))
        return difference(own, its).tie


def why_of_replay(summary: Json) -> Why:
    """Compare the slowest replay with the fastest."""
    replays = [
        _Replay(scheme, schedule, row, found["parts"])
        for scheme, found in summary["schemes"].items()
        for schedule, row in found["schedules"].items()
    ]
    slow = max(replays, key=lambda replay: replay.row["time_s"])
    fast = min(replays, key=lambda replay: replay.row["time_s"])
    source = "From the figures of this page (summary.json); "
    source += f"times are means over {many(summary['seeds'], 'seed')}."
    parts = (
        Part("Messages.", _messages(slow, fast)),
        Part("MPI.", _mpi(slow, fast)),
        Part("Waits.", _waits(slow, fast)),
    )
    if slow is fast:
        lead = f"With {slow.name} the program takes {slow.time}."
        return Why("Where the time goes", lead, parts, "", source)
    more = slow.row["time_s"] / fast.row["time_s"] - 1 if fast.row["time_s"] else 0.0
    lead = (
        f"With {slow.name} the program takes {slow.time}, {percent(more)} more than with "
        f"{fast.name} ({fast.time})"
    )
    if slow.ties(fast):
        lead = f"{lead}: the widest difference, and no more than a tie."
        return Why("Why they are level", lead, parts, "", source)
    title = f"Why {slow.name} is slower than {fast.name}"
    return Why(title, f"{lead}: the widest difference.", parts, _verdict(slow, fast), source)


def _messages(slow: _Replay, fast: _Replay) -> str:
    """How many went through the network; joined ones are one parcel."""
    own, other = (
        f"{count(r.row['network_messages'])} (parcels of ranks: {count(r.row['parcels'])})"
        for r in (slow, fast)
    )
    against = "" if slow is fast else f", with {fast.name} {other}"
    return f"Messages through the network with {slow.name}: {own}{against}."


def _mpi(slow: _Replay, fast: _Replay) -> str:
    own, other = (span_us(1e6 * r.row["mpi_s"]) for r in (slow, fast))
    against = "" if slow is fast else f", with {fast.name} {other}"
    return f"A rank spends {own} in MPI in the mean{against}."


def _waits(slow: _Replay, fast: _Replay) -> str:
    """The largest part of the ranks' time in MPI, in program order."""
    if slow.parts is None or fast.parts is None:
        return "What ranks wait for is not looked at in a trace of this size."
    own, other = slow.parts, fast.parts
    part = max((name for name in MEANING if name != "compute"), key=lambda name: own[name])
    text = (
        f"In program order under {label_of(slow.scheme)} most time in MPI is {MEANING[part]}: "
        f"{span_us(1e6 * own[part])} of a rank's {span_us(1e6 * sum(own.values()))}"
    )
    if slow.scheme != fast.scheme:
        text += f" (under {label_of(fast.scheme)} {span_us(1e6 * other[part])})"
    return f"{text}, in the first seed."


def _verdict(slow: _Replay, fast: _Replay) -> str:
    """What of the difference is time in MPI, and whether there are more messages."""
    apart = slow.row["time_s"] - fast.row["time_s"]
    in_mpi = slow.row["mpi_s"] - fast.row["mpi_s"]
    if in_mpi <= 0:
        return (
            "Time in MPI is not longer where the program is slower, so these figures do not "
            "explain the difference."
        )
    more = slow.row["network_messages"] > fast.row["network_messages"]
    return (
        f"The program's times differ by {span_us(1e6 * apart)}, those in MPI by "
        f"{span_us(1e6 * in_mpi)} in the mean of ranks"
        + (", and more messages go through the network." if more else ".")
    )
