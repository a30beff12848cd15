"""Multicast groups and jobs: their numbers, the table entries that they need, their places.

Of route and job files the text is handed over, and the name of the file, for messages and as where
other files in it are.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated

from pydantic import Field

from raddle import _core
from raddle.core.answers import Answer
from raddle.core.route import RouteCheck

__all__ = [
    "Capacity",
    "CapacityLayer",
    "CapacityRequest",
    "Group",
    "Job",
    "Layer",
    "Machine",
    "Numbering",
    "Placement",
    "Sharing",
    "capacity",
    "capacity_of_groups",
    "number",
    "place",
]


@dataclass(frozen=True, slots=True)
class Group(Answer):
    """A group and its number."""

    group: int
    """Its place in the file."""
    name: str
    layer: int
    members: int
    mgid: int
    colour: int
    tree_group: int
    """The group of trees of the colour that its tree is in."""
    tn: int
    second_tn: int | None
    """TN of the second tree; None without fault tolerance."""
    shares_with: int | None
    """The first group of its tree; None if that is itself."""


@dataclass(frozen=True, slots=True)
class Layer(Answer):
    """A layer of groups and its colours."""

    layer: int
    groups: int
    first_colour: int
    colours: int


@dataclass(frozen=True, slots=True)
class Sharing(Answer):
    """How many trees fixed roots leave."""

    trees_left: int
    max_tfi: int
    """Most groups on a tree."""
    merges: int
    """Groups without a tree of their own."""


@dataclass(frozen=True, slots=True)
class Numbering(RouteCheck):
    """Groups with numbers; the fields stand in the order of `raddle mgid --json`."""

    rows: tuple[Group, ...]
    layers: tuple[Layer, ...]
    trees: int
    """Spanning trees."""
    sharing: Sharing | None
    """None where trees have no fixed roots."""


@dataclass(frozen=True, slots=True)
class CapacityLayer(Answer):
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
class Capacity(Answer):
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
class CapacityRequest:
    """What the capacity is asked for, for groups by number or by grid."""

    m: int
    """Trees of a colour."""
    colours: int
    fault_tolerant: bool = False
    groups: int | None = None
    """How many, of which a terminal is in at most one."""
    dims: Sequence[int] = ()
    """The lengths of a grid of processes; empty: none."""
    processes_per_terminal: int = 1


@dataclass(frozen=True, slots=True)
class Machine(Answer):
    """The machine that jobs are placed on."""

    name: str
    hosts: int
    switches: int
    links: int


@dataclass(frozen=True, slots=True)
class Job(Answer):
    """A job of the queue, and where it is."""

    name: str
    terminals: int
    state: str
    """"placed", "refused" or "behind"."""
    job_class: Annotated[str | None, Field(alias="class")]
    """None as long as it waits, as `l0s`."""
    reason: str | None
    """Why it waits."""
    l0s: int | None
    """L0 switches that it has hosts of."""
    cns: tuple[int, ...]
    hosts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Placement(Answer):
    """A queue of jobs on a machine; the fields stand in the order of `raddle place --json`."""

    fabric: Machine
    running: int
    """Jobs that ran before."""
    free: int
    """Terminals without a job."""
    placed: int
    """Jobs of the queue that are placed."""
    jobs: tuple[Job, ...]
    warnings: tuple[str, ...]


def number(text: str, name: str) -> Numbering:
    """MGIDs of the groups of a route file."""
    return Numbering.from_json(_core.mgid(text, name))


def capacity(request: CapacityRequest) -> Capacity:
    """Groups that table entries carry, and entries that groups need, whoever their members are."""
    return Capacity.from_json(_core.capacity(json.dumps(asdict(request))))


def capacity_of_groups(text: str, name: str) -> Capacity:
    """The same for the groups of a route file."""
    return Capacity.from_json(_core.capacity_file(text, name))


def place(text: str, name: str, *, backfill: bool, widen: bool) -> Placement:
    """Place the jobs of a job file by the seven rules.

    Parameters
    ----------
    backfill
        Whether later jobs may run before one that waits.
    widen
        Whether a job may spread further than its class.
    """
    return Placement.from_json(_core.place(text, name, backfill, widen))
