"""Replays of traces on fabrics."""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from raddle import _core
from raddle.core.answers import LEFT_OUT, Answer
from raddle.core.runs import Progress

__all__ = ["Costs", "HostCosts", "Occupied", "ReplayTime", "Schedule", "Session", "costs"]


@dataclass(frozen=True, slots=True)
class HostCosts(Answer):
    """What hosts do for a message, each with its unit."""

    send_overhead: str
    receive_overhead: str
    copy_per_byte: str
    local_overhead: str
    local_copy_per_byte: str
    socket_latency: str
    cross_latency: str
    contention_per_rank: str
    envelope: str


@dataclass(frozen=True, slots=True)
class Costs(Answer):
    """Costs of hosts, each with its unit; docs/reference/traces.md says what they are."""

    host: HostCosts
    eager_limit: str
    long_copy_per_byte: str
    local_eager_limit: str
    part_overhead: str
    schedule_overhead: str
    switch_overhead: str
    look_overhead: str
    poll_overhead: str
    time_slice: str
    nic_gap: str
    nic_in_order: bool
    mtu: str
    offload_send_overhead: Annotated[str | None, LEFT_OUT] = None
    offload_receive_overhead: Annotated[str | None, LEFT_OUT] = None
    offload_look_overhead: Annotated[str | None, LEFT_OUT] = None


@dataclass(frozen=True, slots=True)
class ReplayTime(Answer):
    """How long one replay took; the fields stand in the order of `raddle replay --json`."""

    time_s: float
    """Until the last rank was through."""
    mean_s: float
    """The mean over ranks."""
    mpi_s: float
    """How much of that mean ranks were in calls of MPI."""
    network_messages: int
    """Messages that went through the network."""
    network_bytes: int
    """Their bytes, heads and envelopes included."""
    drops: int
    """Packets dropped."""
    pauses: int
    """PAUSE frames received."""


@dataclass(frozen=True, slots=True)
class Occupied:
    """Where the ranks of a replay are."""

    hosts: int
    """Hosts that have a rank."""
    of_map: int
    """Hosts of the map."""
    most_ranks: int
    """Most ranks of a host."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """The program of a trace with the messages that a schedule makes of its own."""

    scheduled: _core.ReplaySchedule
    took_s: float
    """Processor time of scheduling all ranks."""

    @property
    def messages(self) -> int:
        """Messages of the program between hosts, without those of collectives."""
        return self.scheduled.messages

    @property
    def parcels(self) -> int:
        """What is issued instead: messages and joined messages."""
        return self.scheduled.parcels

    @property
    def joined(self) -> int:
        """Joined messages among them."""
        return self.scheduled.joined


@dataclass(frozen=True, slots=True)
class Session:
    """A trace on a fabric under one scheme, to be replayed with several schedules and seeds."""

    replay: _core.Replay

    @classmethod
    def open(
        cls,
        trace: Path,
        *,
        fabric: Path | None,
        placement: str,
        scheme: str,
        sockets: int,
        costs: Costs,
        gap_share: float,
        start_skew: str,
        processors: int | None,
        algorithms: Sequence[str],
    ) -> "Session":
        """Put the ranks of a trace on hosts; `raddle.services.replay.Settings` says of what.

        Raises
        ------
        TraceError
            The trace is broken, its ranks find no place, or an algorithm is unknown.
        """
        return cls(
            _core.Replay(
                trace,
                fabric=None if fabric is None else str(fabric),
                placement=placement,
                scheme=scheme,
                sockets=sockets,
                costs=costs.to_json(),
                gap_share=gap_share,
                start_skew=start_skew,
                processors=processors,
                algorithms=list(algorithms),
            )
        )

    def under(self, scheme: str) -> "Session":
        """The same under another scheme; schedules of one are good for the other."""
        return Session(self.replay.under(scheme))

    def schedule(self, name: str, scope: str | None, leaders: int = 1) -> Schedule:
        """Schedule all supersteps by one of `services.replay.ALL_SCHEDULES`.

        `scope` says which messages may be joined: "rank-to-rank" or "rank-to-node", None: as the
        schedule does; so many `leaders` of a host take those for several of its ranks apart.
        """
        start = time.thread_time()
        plan = self.replay.plan(name, scope, leaders)
        took_s = time.thread_time() - start
        return Schedule(self.replay.scheduled(plan), took_s)

    def run(self, schedule: Schedule, seed: int, threads: int, progress: Progress) -> ReplayTime:
        """Replay with the noise of `seed`, on up to so many `threads`, which change no figure."""
        return ReplayTime.from_json(self.replay.run(schedule.scheduled, seed, threads, progress))

    def retell(
        self, schedule: Schedule, seed: int, threads: int, progress: Progress, out: Path
    ) -> None:
        """Replay as `run` does, write the trace `out`: the same calls, these times."""
        self.replay.retell(schedule.scheduled, seed, threads, progress, out)

    def one_thread(self) -> str | None:
        """Why its runs keep to one thread however many they may use, if they do."""
        return self.replay.one_thread()

    def algorithms(self) -> dict[str, str]:
        """The algorithm of each kind of collective that has several."""
        found: dict[str, str] = json.loads(self.replay.algorithms())
        return found

    def occupied(self) -> Occupied:
        """Where the ranks are."""
        return Occupied(*self.replay.occupied())

    def recorded(self) -> tuple[float, float]:
        """Seconds that the program took when recorded, and the ranks' mean of them in MPI."""
        return self.replay.recorded()


def costs(text: str = "", name: str = "costs") -> Costs:
    """Costs of hosts: those of the TOML `text` of the file `name`, and the usual ones otherwise.

    Raises
    ------
    TraceError
        The text is not valid; the message names the place.
    """
    return Costs.from_json(_core.replay_costs(text, name))
