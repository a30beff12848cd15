"""`advice.toml`: what `raddle advise` found, read where it is applied.

Its form is in docs/reference/advise.md.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from raddle.errors import ExperimentError
from raddle.files import read_text
from raddle.text import suggest

__all__ = ["Advice", "read_advice"]

TABLES = ("schema", "program", "settings", "environment", "predicted")
WORDS: Mapping[str, tuple[str, ...]] = {
    "collectives": ("host", "multicast", "offload"),
    "protocol": ("native", "published"),
    "mode": ("node", "socket"),
    "scheduling": ("none", "reorder", "aggregate", "both", "published", "library"),
}
"""The values of settings that have few."""
OTHERS = ("rails", "scheme", "placement")
HOSTS = re.compile(r"[^,:\s]+:[1-9][0-9]{0,5}(,[^,:\s]+:[1-9][0-9]{0,5})*")
"""As `mpirun -H` takes them."""


@dataclass(frozen=True, slots=True)
class Advice:
    """What to set; what is absent stays as it is."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    program: Mapping[str, Any] = field(default_factory=dict)
    predicted: Mapping[str, float] = field(default_factory=dict)

    @property
    def offloads(self) -> bool:
        """Whether switches are to compute."""
        named = self.environment.get("RADDLE_OFFLOAD", "never") != "never"
        return named or self.settings.get("collectives") == "offload"

    @property
    def hosts(self) -> Sequence[tuple[str, int]]:
        """The hosts that it was predicted on, and how many ranks each has; maybe none are named."""
        text = self.program.get("hosts", "")
        pairs = [word.rpartition(":") for word in text.split(",") if word]
        return [(name, int(ranks)) for name, _, ranks in pairs]

    @property
    def has_protocol(self) -> bool:
        """Whether it names how leaders and switches speak."""
        return "protocol" in self.settings or "RADDLE_PROTOCOL" in self.environment

    @property
    def rails(self) -> int:
        """Links of a host that are used as one."""
        rails: int = self.settings.get("rails", 1)
        return rails

    @property
    def takes_messages(self) -> bool:
        """Whether point-to-point messages are to go another way."""
        layers = ("RADDLE_SCHEDULE", "RADDLE_RAILS")
        named = any(self.environment.get(name, "off") != "off" for name in layers)
        return named or self.rails > 1 or self.settings.get("scheduling", "none") != "none"


def read_advice(file: Path) -> Advice:
    """Read an advice.

    Raises
    ------
    ExperimentError
        The file cannot be read, or a key or a value is not known; the message names it.
    """
    try:
        found = tomllib.loads(read_text(file))
    except tomllib.TOMLDecodeError as error:
        msg = f"{file}: this is not TOML: {error}"
        raise ExperimentError(msg) from None
    for name in found:
        if name not in TABLES:
            msg = f"{file}: unknown key `{name}`: {suggest(name, TABLES)}"
            raise ExperimentError(msg)
    if found.get("schema") != 1:
        msg = f"{file}: `schema` is {found.get('schema', 'missing')}: write schema = 1"
        raise ExperimentError(msg)
    tables = {name: found.get(name, {}) for name in TABLES[1:]}
    for name, table in tables.items():
        if not isinstance(table, dict):
            msg = f"{file}: `{name}` must be a table"
            raise ExperimentError(msg)
    for key, value in tables["settings"].items():
        _check(file, key, value)
    hosts = tables["program"].get("hosts", "")
    if not isinstance(hosts, str) or (hosts and not HOSTS.fullmatch(hosts)):
        msg = f'{file}: [program]: `hosts` is {hosts!r}: write HOST:RANKS,..., such as "h1:2,h2:2"'
        raise ExperimentError(msg)
    for name, value in tables["environment"].items():
        if not name.startswith("RADDLE_") or not isinstance(value, str):
            msg = f"{file}: [environment]: `{name}` must be a RADDLE_* variable, its value a string"
            raise ExperimentError(msg)
    return Advice(tables["settings"], tables["environment"], tables["program"], tables["predicted"])


def _check(file: Path, key: str, value: object) -> None:
    known = (*WORDS, *OTHERS)
    if key not in known:
        msg = f"{file}: [settings]: unknown key `{key}`: {suggest(key, known)}"
        raise ExperimentError(msg)
    if key in WORDS and value not in WORDS[key]:
        msg = f"{file}: [settings]: `{key}` is {value!r}: {suggest(str(value), WORDS[key])}"
        raise ExperimentError(msg)
    if key == "rails" and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
        msg = f"{file}: [settings]: `rails` is {value!r}: write a number of links, from 1"
        raise ExperimentError(msg)
    if key in ("scheme", "placement") and not isinstance(value, str):
        msg = f"{file}: [settings]: `{key}` is {value!r}: write a word"
        raise ExperimentError(msg)
