"""Maps of fabrics: built, checked, read from and written for other programs.

Of every map the text is handed over, and the name of its file for messages. Formats of maps are
"auto", "toml", "experiment", "hpcc-ns3", "ibnetdiscover" and "ibsim".
"""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from raddle import _core
from raddle.core.answers import LEFT_OUT, Answer

__all__ = [
    "DrawnFabric",
    "Fabric",
    "Found",
    "Graph",
    "ImportNotes",
    "ImportedFabric",
    "Level",
    "LinkColumns",
    "LinkKind",
    "Missing",
    "NodeColumns",
    "Tree",
    "build",
    "check",
    "draw",
    "export",
    "read_foreign",
]


@dataclass(frozen=True, slots=True)
class Level(Answer):
    """A level of a map, hosts being level 0."""

    level: int
    nodes: int
    ports: int
    """Most ports of a node."""


@dataclass(frozen=True, slots=True)
class LinkKind(Answer):
    """Links of one rate and delay, both with their units."""

    rate: str
    delay: str
    links: int


@dataclass(frozen=True, slots=True)
class Fabric(Answer):
    """A map in numbers; the fields stand in the order of `raddle fabric check --json`."""

    name: str
    hosts: int
    switches: int
    links: int
    levels: tuple[Level, ...]
    link_kinds: tuple[LinkKind, ...]


@dataclass(frozen=True, slots=True)
class NodeColumns(Answer):
    """The nodes of a map, column by column."""

    node: tuple[int, ...]
    kind: tuple[str, ...]
    """"host" or "switch"."""
    level: tuple[int, ...]
    name: tuple[str, ...]
    x: tuple[float, ...]
    """Place from left to right."""


@dataclass(frozen=True, slots=True)
class LinkColumns(Answer):
    """The links of a map, column by column."""

    node_a: tuple[int, ...]
    node_b: tuple[int, ...]
    rate_bps: tuple[int, ...]
    delay_ps: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Graph(Answer):
    """All nodes and links of a map."""

    nodes: NodeColumns
    links: LinkColumns


@dataclass(frozen=True, slots=True)
class DrawnFabric(Fabric):
    """A map in numbers, and with all that a picture of it needs."""

    graph: Annotated[Graph, Field(exclude=True)]
    """Not told as JSON."""


@dataclass(frozen=True, slots=True)
class Found(Answer):
    """How many there are of something, and the first few in words."""

    count: int
    first: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ImportNotes(Answer):
    """What was odd in a file or left out of the map."""

    format: str
    """"ibnetdiscover" or "ibsim"."""
    aggregation_nodes: Found
    """Nodes in switches that reduce data: left out."""
    routers: Found
    """Left out."""
    without_links: Found
    """Nodes without links: left out."""
    split: Found
    """Adapters with several links, which became a host per port."""
    from_one_end: Found
    """Links that only one of the two nodes lists."""
    slow: Found
    """Links slower than most of their kind."""
    without_rate: Found
    """Links for which the file gives no rate."""
    strange_rates: Found
    """Rates in words that nobody knows: read as not given."""
    ignored_lines: Found
    """Lines that say nothing about the map."""


@dataclass(frozen=True, slots=True)
class Missing(Answer):
    """What a complete fat tree of the same shape would have and this one lacks."""

    l0: int
    l1: int
    l2: int
    l3: int
    cns: int
    links: int
    short_of_hosts: int
    """L0 switches with fewer hosts than the one with most."""


@dataclass(frozen=True, slots=True)
class Tree(Answer):
    """The shape of a CN/TN fat tree (docs/concepts), as far as it shows."""

    m: int
    """L1 switches of a CN."""
    q: int
    """L0 switches of a CN."""
    p: int
    """Uplinks of an L1 switch."""
    k: int
    """L2 switches of a TN."""
    w: int
    """CNs below an L2 switch, and L3 switches of a TN."""
    cns: int
    terminals_per_l0: int
    levels: int
    """Levels of switches, from 1 to 4."""
    missing: Missing
    missing_links: tuple[str, ...]
    """The first of them."""


@dataclass(frozen=True, slots=True)
class ImportedFabric(Fabric):
    """The map of an InfiniBand fabric, and what else was found."""

    notes: ImportNotes
    tree: Annotated[Tree | None, LEFT_OUT] = None
    no_tree: Annotated[str | None, LEFT_OUT] = None
    """Why it is no fat tree; None if it is one."""


def build(text: str, name: str, format: str) -> str:
    """The whole map as text ("toml" or "hpcc-ns3") of a fabric table or an experiment."""
    return _core.fabric_build(text, name, format)


def check(text: str, name: str, format: str) -> Fabric:
    """A map in numbers.

    Raises
    ------
    ExperimentError
        The map is not sound; the message names the place.
    """
    return Fabric.from_json(_core.fabric_check(text, name, format, False))


def draw(text: str, name: str, format: str) -> DrawnFabric:
    """A map in numbers, with its nodes and links; errors as of `check`."""
    return DrawnFabric.from_json(_core.fabric_check(text, name, format, True))


def export(text: str, name: str, format: str, out_format: str) -> str:
    """A map as "ibsim", "toml" or "hpcc-ns3"."""
    return _core.fabric_export(text, name, format, out_format)


def read_foreign(
    text: str, name: str, format: str, *, rate: str | None, delay: str | None, split_ports: bool
) -> tuple[ImportedFabric, str]:
    """The map of an InfiniBand fabric ("auto", "ibnetdiscover" or "ibsim"), and the same as TOML.

    Parameters
    ----------
    rate, delay
        Of links for which the file gives none; None: 8 Gb/s and 1 us.
    split_ports
        Whether an adapter with several links is a host per port.
    """
    told, toml = _core.fabric_import(text, name, format, rate, delay, split_ports)
    return ImportedFabric.from_json(told), toml
