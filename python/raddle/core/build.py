"""What this build of the core knows: its version, schemes, kinds of files, variables and units."""

import tomllib
from dataclasses import dataclass
from typing import Literal

from raddle import _core

__all__ = [
    "Variable",
    "experiment_schema",
    "job_key",
    "parse_quantity",
    "route_schema",
    "schemes",
    "variables",
    "version",
]


@dataclass(frozen=True, slots=True)
class Variable:
    """A RADDLE_* variable; the fields stand in the order of `raddle config --json`."""

    name: str
    used_by: str
    """The part of Raddle that reads it."""
    values: str
    default: str
    """What holds where it is not set; empty: nothing."""
    meaning: str


def version() -> str:
    """The version of the compiled core."""
    return _core.version()


def schemes() -> list[tuple[str, str]]:
    """Schemes of congestion control: name and one line about each, as reports order them."""
    return _core.schemes()


def experiment_schema() -> str:
    """The JSON Schema of an experiment file."""
    return _core.experiment_schema()


def route_schema() -> str:
    """The JSON Schema of a route file."""
    return _core.route_schema()


def variables() -> tuple[Variable, ...]:
    """Every RADDLE_* variable."""
    return tuple(Variable(**row) for row in tomllib.loads(_core.settings())["setting"])


def parse_quantity(kind: Literal["time", "size", "rate"], text: str) -> int:
    """A quantity with its unit in ps, bytes or bit/s.

    Raises
    ------
    ValueError
        It is none; the message says what is wrong.
    """
    return _core.parse_quantity(kind, text)


def job_key(secret: bytes, job: int) -> bytes:
    """The key (16 bytes) of a job at a site with this secret (32 bytes)."""
    return bytes(_core.job_key(secret, job))
