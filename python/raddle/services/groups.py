"""Multicast groups and jobs: their numbers, the table entries that they need, their places."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomli_w

from raddle import core
from raddle.core.groups import (
    Capacity,
    CapacityRequest,
    Numbering,
    Placement,
    capacity,
    capacity_of_groups,
    number,
)
from raddle.files import read_text, source_name

__all__ = [
    "CapacityRequest",
    "capacity",
    "capacity_of_file",
    "capacity_of_groups",
    "number",
    "number_file",
    "place",
    "route_text",
]


def number_file(file: Path) -> Numbering:
    """MGIDs of the groups of a route file."""
    return number(read_text(file, stream=True), str(source_name(file)))


def capacity_of_file(file: Path) -> Capacity:
    """The capacity for the groups of a route file."""
    return capacity_of_groups(read_text(file, stream=True), str(source_name(file)))


def place(file: Path, *, backfill: bool, widen: bool) -> Placement:
    """Place the jobs of a job file; `raddle.core.groups.place` says how."""
    text, name = read_text(file, stream=True), str(source_name(file))
    return core.groups.place(text, name, backfill=backfill, widen=widen)


def route_text(
    fabric: Path, groups: Mapping[str, Any], *, colours: int, fault_tolerant: bool
) -> str:
    """The text of a route file without engines: `groups` on the map `fabric`."""
    return tomli_w.dumps(
        {
            "schema": 1,
            "fabric": {"file": str(fabric)},
            "groups": dict(groups),
            "multicast": {"colours": colours, "fault_tolerant": fault_tolerant},
        }
    )
