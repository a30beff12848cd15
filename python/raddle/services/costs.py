"""Files with costs of hosts, and what they say of how they were measured."""

import tomllib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from raddle import core
from raddle.errors import RaddleError, TraceError
from raddle.files import read_text, source_name

__all__ = ["Costs", "of_experiment", "read_costs", "read_file"]

TABLE = "calibration"


@dataclass(frozen=True, slots=True)
class Costs:
    """Costs of hosts that differ from the usual ones, and where they come from."""

    changed: dict[str, Any]
    """By the names of `core.replay.Costs`."""
    file: str | None = None
    measured: datetime | None = None
    machine: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Where they come from, as `raddle.statistics.calibration` has it."""
        return {
            "file": self.file,
            "measured": None if self.measured is None else self.measured.isoformat(),
            "machine": self.machine,
        }


def of_experiment(text: str) -> dict[str, Any]:
    """Where the costs of an experiment's hosts come from, as `Costs.as_json` gives it.

    The file may be gone, or another by now: then only its name is told.
    """
    file = tomllib.loads(text).get("hosts", {}).get("costs")
    if file is None:
        return Costs({}).as_json()
    try:
        return read_file(Path(file)).as_json()
    except RaddleError:
        return Costs({}, file).as_json()


def read_file(file: Path) -> Costs:
    """Read a file with costs.

    Raises
    ------
    TraceError
        It is not valid; the message names the place.
    """
    return read_costs(read_text(file, stream=True), source_name(file))


def read_costs(text: str, name: Path) -> Costs:
    """Costs of hosts from the TOML of the file `name`.

    Raises
    ------
    TraceError
        The text is not valid; the message names the place.
    """
    core.replay.costs(text, str(name))
    changed = tomllib.loads(text)
    calibration = changed.pop(TABLE, {})
    if not isinstance(calibration, dict):
        msg = f"{name}: `{TABLE}` must be a table, as `raddle lab calibrate` writes it"
        raise TraceError(msg)
    measured = calibration.get("measured")
    if measured is not None and not isinstance(measured, datetime):
        msg = f"{name}: [{TABLE}]: `measured` is {measured!r}: write a date and time of TOML"
        raise TraceError(msg)
    if measured is not None and measured.tzinfo is None:
        measured = measured.replace(tzinfo=UTC)
    machine = calibration.get("machine")
    return Costs(changed, str(name), measured, machine if isinstance(machine, str) else None)
