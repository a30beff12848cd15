"""Answers of the compiled core as frozen dataclasses; no other module sees their JSON."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from raddle import _core

__all__ = ["Capacity", "CapacityLayer", "ReplayTime", "capacity", "capacity_of_file", "replay_run"]


@dataclass(frozen=True, slots=True)
class CapacityLayer:
    """A layer of groups and the colours that it has."""

    layer: int
    groups: int
    first_colour: int
    colours: int
    """Colours that the layer may use, from `first_colour` on."""
    colours_without_sharing: int
    """Colours with which each group of the layer has a tree of its own."""
    groups_per_tree: int
    """Groups on the fullest tree."""


@dataclass(frozen=True, slots=True)
class Capacity:
    """Groups that table entries carry, and entries that groups need, whoever their members are.

    The fields stand in the order of `raddle capacity --json`.
    """

    name: str | None
    """Of the route file; None where there is none."""
    m: int
    """Trees of a colour."""
    colours: int
    fault_tolerant: bool
    """Whether each group has two trees."""
    groups_carried: int
    """Groups with a tree each, where a terminal is in one at most."""
    groups: int | None
    """Groups that were asked about; None, as all that follow from them, if there were none."""
    colours_needed: int | None
    fewest_colours: int | None
    """Colours that are enough with these members; None where the members are not known."""
    fits: bool | None
    layers: tuple[CapacityLayer, ...]
    spare: int | None
    """Groups that fit besides without a further group on the fullest tree."""
    refused: str | None
    """Why the layers find no place."""
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReplayTime:
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


def capacity(request: Mapping[str, Any]) -> Capacity:
    """The capacity for groups by number or grid; a `request` has the fields of the core's."""
    return _capacity(_core.capacity(json.dumps(request)))


def capacity_of_file(text: str, name: str) -> Capacity:
    """The capacity for the groups of a route file's text, which messages call `name`."""
    return _capacity(_core.capacity_file(text, name))


def replay_run(
    session: _core.Replay, schedule: _core.ReplaySchedule, seed: int, progress: _core.Progress
) -> ReplayTime:
    """Replay `schedule` with the noise of `seed`."""
    return ReplayTime(**json.loads(session.run(schedule, seed, progress)))


def _capacity(text: str) -> Capacity:
    raw: dict[str, Any] = json.loads(text)
    raw["layers"] = tuple(CapacityLayer(**layer) for layer in raw["layers"])
    raw["warnings"] = tuple(raw["warnings"])
    return Capacity(**raw)
