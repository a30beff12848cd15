"""Multicast groups and jobs: their numbers, the table entries that they need, their places."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomli_w

from raddle import _core, core
from raddle.files import read_text, source_name

__all__ = [
    "capacity",
    "capacity_of_file",
    "capacity_of_text",
    "number",
    "number_file",
    "place",
    "route_text",
]


def number(text: str, name: str) -> dict[str, Any]:
    """MGIDs of the groups of a route file's text, whose files are relative to that of `name`."""
    found: dict[str, Any] = json.loads(_core.mgid(text, name))
    return found


def number_file(file: Path) -> dict[str, Any]:
    """MGIDs of the groups of a route file."""
    return number(read_text(file, stream=True), str(source_name(file)))


def capacity(request: Mapping[str, Any]) -> core.Capacity:
    """Groups that table entries carry, and entries that groups need, whoever their members are.

    `request` has `m`, `colours`, `fault_tolerant`, `groups`, `dims` and `processes_per_terminal`.
    """
    return core.capacity(request)


def capacity_of_text(text: str, name: str) -> core.Capacity:
    """The same for the groups of a route file's text."""
    return core.capacity_of_file(text, name)


def capacity_of_file(file: Path) -> core.Capacity:
    """The same for the groups of a route file."""
    return capacity_of_text(read_text(file, stream=True), str(source_name(file)))


def place(file: Path, *, backfill: bool, widen: bool) -> dict[str, Any]:
    """Place the jobs of a job file by the seven rules.

    Parameters
    ----------
    backfill
        Whether later jobs may run before one that waits.
    widen
        Whether a job may spread further than its class.
    """
    text, name = read_text(file, stream=True), str(source_name(file))
    found: dict[str, Any] = json.loads(_core.place(text, name, backfill, widen))
    return found


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
