"""Hosts with rails in the simulator: what is asked of them, and the constants that are fitted.

Nothing here is random: the same cells give the same figures.
"""

import json
import math
import subprocess
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raddle.errors import RunFailed

HERE = Path(__file__).resolve().parent
MYRINET = HERE / "myrinet.toml"
LAB = HERE / "lab.toml"
MODERN = HERE / "400g.toml"

LONG = 1 << 20
"""Bytes of a long message: its goodput is a link's "highest" one."""

WINDOW = 4
"""Messages under way of a process on Myrinet: GM's send tokens keep several. Assumed."""

RAIL = "2Gbps"
PACKET_HEAD = 80
"""Bytes that our packets have before their payload."""

Machine = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Cell:
    """One measurement between two hosts."""

    rails: tuple[str, ...]
    bytes: int
    policy: str = "dynamic"
    cut: str = "equal"
    forward: int = 0
    """Processes that send from the first host to the last; none at all: messages back and forth."""
    backward: int = 0
    window: int = WINDOW
    warm_up: str = "50ms"
    time: str = "500ms"

    def request(self) -> dict[str, Any]:
        """The cell as the simulator reads it."""
        load: dict[str, Any] = {"kind": "ping-pong", "rounds": 10}
        if self.forward + self.backward:
            load = {
                "kind": "streams",
                "forward": self.forward,
                "backward": self.backward,
                "window": self.window,
                "warm_up": self.warm_up,
                "time": self.time,
            }
        return {
            "rails": self.rails,
            "bytes": self.bytes,
            "policy": self.policy,
            "cut": self.cut,
            "load": load,
        }


ONE = Cell((RAIL,), LONG, "static", forward=1)
"""GM: one link and no choice."""
TWO = Cell((RAIL,) * 2, LONG, forward=1)
"""MNC: two links, dynamic, equal pieces."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What the simulator found for a cell."""

    streams_bps: tuple[float, ...]
    """Payload of each stream in bit/s, forward ones first; none for messages back and forth."""
    latency_us: float | None
    """Mean time of a message one way."""
    rail_bytes: tuple[int, ...]
    """What the first host put on each rail, heads included."""

    @property
    def total_bps(self) -> float:
        """Payload of all streams together."""
        return math.fsum(self.streams_bps)

    @property
    def megabytes(self) -> float:
        """The same in MB/s, of 10^6 bytes."""
        return self.total_bps / 8e6

    @property
    def microseconds(self) -> float:
        """The latency of a cell that measures one."""
        if self.latency_us is None:
            msg = "streams have no latency"
            raise RunFailed(msg)
        return self.latency_us


Found = dict[Cell, Figures]


def simulate(machine: Machine, cells: Iterable[Cell]) -> Found:
    """Simulate cells on a machine.

    Raises
    ------
    RunFailed
        The simulator refused one, and said why on standard error.
    """
    asked = list(dict.fromkeys(cells))
    request = {"machine": machine, "cells": [cell.request() for cell in asked]}
    done = subprocess.run(
        (
            "cargo", "run", "--quiet", "--locked", "--release",
            "-p", "raddle-engine", "--example", "rails",
        ),
        cwd=HERE, input=json.dumps(request) + "\n", stdout=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        msg = "the simulator of rails ended; its error is above"
        raise RunFailed(msg)
    found = {}
    for cell, figures in zip(asked, json.loads(done.stdout), strict=True):
        found[cell] = Figures(
            tuple(figures["goodput_bps"]), figures["latency_us"], tuple(figures["rail_bytes"])
        )
    return found


def read(path: Path) -> dict[str, Any]:
    """Read an experiment's file."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


def rate_bps(text: str) -> float:
    """A rate of an experiment's file in bit/s."""
    for unit, size in (("Gbps", 1e9), ("Mbps", 1e6)):
        if text.endswith(unit):
            return float(text.removesuffix(unit)) * size
    msg = f"{text!r} is no rate in Gbps or Mbps"
    raise ValueError(msg)


def mebibytes(text: str) -> int:
    """A size of an experiment's file in bytes."""
    return int(text.removesuffix("MiB")) << 20


def size_of(text: str) -> int:
    """A size in KiB of an experiment's file in bytes."""
    return int(text.removesuffix("KiB")) << 10


def microseconds(text: str) -> float:
    """A time of an experiment's file."""
    for unit, size in (("ns", 1e-3), ("us", 1.0), ("ms", 1e3)):
        if text.endswith(unit):
            return float(text.removesuffix(unit)) * size
    msg = f"{text!r} is no time in ns, us or ms"
    raise ValueError(msg)


def fit(myrinet: dict[str, Any]) -> dict[str, float]:
    """Give the constants in ns that two published numbers decide, and no other.

    On one link a card needs segment / 202 MB/s for each packet; what the wire does not explain is
    the card's. In opposite directions a bus reads and writes a packet in segment / (80 % of
    202 MB/s); what its two rates do not explain is the cost of cutting.
    """
    published, bus = myrinet["published"], myrinet["machine"]["bus"]
    segment = 8 * myrinet["machine"]["protocol"]["segment"]
    alone = 8e6 * published["one_link_MBps"]
    wire = (segment + 8 * PACKET_HEAD) / rate_bps(RAIL)
    each = alone * published["opposite_directions_pct"] / 100
    crossing = segment / rate_bps(bus["read"]) + segment / rate_bps(bus["write"])
    return {"nic_gap": 1e9 * (segment / alone - wire), "cut": 1e9 * (segment / each - crossing)}


def other_cut(myrinet: dict[str, Any]) -> float:
    """Give the cost of cutting in ns if the bandwidth of two links decided it."""
    machine, published = myrinet["machine"], myrinet["published"]
    segment = 8 * machine["protocol"]["segment"]
    read = segment / rate_bps(machine["bus"]["read"])
    cut: float = 1e9 * (segment / (8e6 * published["two_links_MBps"]) - read)
    return cut


def card_turn_ns(myrinet: dict[str, Any], kept_pct: float) -> float:
    """What a card loses at each turn if it keeps so much of each way's rate while both are busy.

    On one link a packet takes segment / 202 MB/s. Both ways packets alternate: each way has one in
    two turns.
    """
    segment = 8 * myrinet["machine"]["protocol"]["segment"]
    alone: float = segment / (8e6 * myrinet["published"]["one_link_MBps"])
    return 1e9 * alone / (2 * kept_pct / 100)


def card_rate(myrinet: dict[str, Any], kept_pct: float) -> str:
    """What a card sends and receives together if it keeps so much of each way's rate."""
    both_ways = 2 * kept_pct / 100 * 8e6 * myrinet["published"]["one_link_MBps"]
    return f"{both_ways / 1e9:.4f}Gbps"
