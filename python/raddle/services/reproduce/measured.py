"""What real programs measured: which measurements there are, and what they gave.

A measurement stands in experiments/measurements.toml with its sample size and its rule before it is
taken. `raddle reproduce --measure` takes those of a paper, in labs; what they gave is kept beside
the paper's programs, with the machine and the day, so that a call without it prints the last one.
"""

import json
import os
import platform
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from raddle.errors import ResultsError, RunFailed
from raddle.files import read_text, write_json
from raddle.text import many

__all__ = ["Measurement", "last_measured", "measure", "read_measurements"]

FILE = Path("experiments") / "measurements.toml"
FOLDER = "measured"


@dataclass(frozen=True, slots=True)
class Measurement:
    """A measurement, as it was fixed before it was taken."""

    name: str
    paper: str
    command: tuple[str, ...]
    """Words of a program of Python, from the repository's root; it leaves `result`."""
    result: str
    """The JSON file that the command leaves, from the repository's root."""
    samples: int
    """Pairs or rounds per figure, at least."""
    rule: str
    """When a figure counts."""
    minutes: float
    """About how long it takes on two cores."""


KEYS: Mapping[str, type | tuple[type, ...]] = {
    "paper": str,
    "command": list,
    "result": str,
    "samples": int,
    "rule": str,
    "minutes": (int, float),
}


def read_measurements(repository: Path) -> list[Measurement]:
    """All measurements of the repository.

    Raises
    ------
    ResultsError
        The file lacks a key, or has one of another type.
    """
    file = repository / FILE
    if not file.is_file():
        return []
    found = []
    for name, table in tomllib.loads(read_text(file)).items():
        for key, kind in KEYS.items():
            if not isinstance(table, dict) or not isinstance(table.get(key), kind):
                msg = f"{file}: [{name}] needs `{key}`"
                raise ResultsError(msg)
        found.append(
            Measurement(
                name=name,
                paper=table["paper"],
                command=tuple(map(str, table["command"])),
                result=table["result"],
                samples=table["samples"],
                rule=table["rule"],
                minutes=float(table["minutes"]),
            )
        )
    return found


def measure(measurement: Measurement, repository: Path, home: Path) -> None:
    """Take a measurement, and keep what it gave in the paper's folder `home`.

    A measurement whose limits did not hold is kept like any other.

    Raises
    ------
    RunFailed
        The program left no result.
    """
    result = repository / measurement.result
    result.unlink(missing_ok=True)
    done = subprocess.run([sys.executable, *measurement.command], cwd=repository, check=False)
    if not result.is_file():
        msg = (
            f"`{' '.join(('python3', *measurement.command))}` left no {measurement.result} "
            f"(exit status {done.returncode}); what it said stands above"
        )
        raise RunFailed(msg)
    write_json(
        home / FOLDER / f"{measurement.name}.json",
        {
            "measurement": measurement.name,
            "command": f"python3 {' '.join(measurement.command)}",
            "samples": measurement.samples,
            "rule": measurement.rule,
            "day": datetime.now(UTC).date().isoformat(),
            "machine": f"{_processor()}, {many(os.cpu_count() or 1, 'core')}",
            "result": json.loads(read_text(result)),
        },
    )


def last_measured(home: Path) -> Mapping[str, Any]:
    """What a paper's measurements gave last, by name: what `measure` keeps."""
    return {
        file.stem: json.loads(read_text(file)) for file in sorted((home / FOLDER).glob("*.json"))
    }


def _processor() -> str:
    if shutil.which("lscpu"):
        said = subprocess.run(["lscpu", "-J"], capture_output=True, text=True, check=False).stdout
        try:
            for entry in json.loads(said)["lscpu"]:
                if entry["field"].startswith("Model name"):
                    return str(entry["data"])
        except (ValueError, KeyError, TypeError):
            pass
    return platform.processor() or platform.machine()
