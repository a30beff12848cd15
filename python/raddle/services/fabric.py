"""Maps of fabrics: built from a few numbers, checked, read from and written for other programs."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raddle import _core
from raddle.files import read_text, source_name

__all__ = ["Source", "build", "check", "export", "import_map"]


@dataclass(frozen=True, slots=True)
class Source:
    """The text of a map or an experiment, and the name of its file in messages."""

    text: str
    name: str

    @classmethod
    def of(cls, file: Path) -> "Source":
        """Read a file, or standard input.

        Raises
        ------
        ExperimentError
            It cannot be read.
        """
        return cls(read_text(file, stream=True), str(source_name(file)))


def build(source: Source, format: str) -> str:
    """The whole map, "toml" or "hpcc-ns3", that a fabric table or an experiment describes."""
    return _core.fabric_build(source.text, source.name, format)


def check(source: Source, format: str, *, graph: bool = False) -> dict[str, Any]:
    """Describe a map (`format` as for `_core.fabric_check`); with `graph` also all nodes and links.

    Raises
    ------
    ExperimentError
        The map is not sound; the message names the place.
    """
    found: dict[str, Any] = json.loads(_core.fabric_check(source.text, source.name, format, graph))
    return found


def export(source: Source, format: str, out_format: str) -> str:
    """A map as "ibsim", "toml" or "hpcc-ns3"."""
    return _core.fabric_export(source.text, source.name, format, out_format)


def import_map(
    source: Source, format: str, *, rate: str | None, delay: str | None, split_ports: bool
) -> tuple[dict[str, Any], str]:
    """Read the map of an InfiniBand fabric: what it is and what is odd in it, and the map as TOML.

    Parameters
    ----------
    rate, delay
        Of links for which the file gives none.
    split_ports
        Whether an adapter with several links is a host per port.
    """
    told, toml = _core.fabric_import(source.text, source.name, format, rate, delay, split_ports)
    found: dict[str, Any] = json.loads(told)
    return found, toml
