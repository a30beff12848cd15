"""What a run of `raddle-perf` reports while it goes on: intervals, rails that come and go."""

import json
import subprocess
import time
from dataclasses import dataclass, field
from threading import Thread
from typing import Any

from raddle.errors import LabError

INTERVAL = ("--interval", "50ms")
"""What makes it tell."""


@dataclass
class Progress:
    """What a run told, and when, by this machine's clock."""

    process: subprocess.Popen[str]
    lines: list[tuple[float, dict[str, Any]]] = field(default_factory=list)
    """Intervals, each with the seconds that it took, and rails that came or went."""

    report: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Begin to read."""
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        before = 0.0
        for line in self.process.stdout or ():
            if line.startswith('{"type"'):
                told = json.loads(line)
                if told["type"] == "interval":
                    told["seconds"], before = told["at_s"] - before, told["at_s"]
                self.lines.append((time.monotonic(), told))
            elif line.startswith("{"):
                self.report = json.loads(line)

    def end(self) -> None:
        """Wait for the run's end; fails if it did."""
        self._reader.join()
        error = self.process.stderr.read() if self.process.stderr else ""
        if self.process.wait() != 0:
            raise LabError(error.strip())

    def intervals(self, begun: float, ended: float) -> list[dict[str, Any]]:
        """What came in intervals that ended within a time."""
        told = self.lines
        return [one for at, one in told if one["type"] == "interval" and begun < at <= ended]

    def goodput(self, begun: float, ended: float) -> float:
        """Mean goodput of a time, in bit/s; 0 if nothing came."""
        came = self.intervals(begun, ended)
        seconds = sum(float(one["seconds"]) for one in came)
        bits = sum(float(one["seconds"]) * one["goodput_bps"] for one in came)
        return bits / seconds if seconds else 0.0

    def span(self) -> tuple[float, float]:
        """When the first and the last interval ended."""
        times = [at for at, one in self.lines if one["type"] == "interval"]
        return times[0], times[-1]

    def rises(self, begun: float, ended: float) -> list[float]:
        """When a rail came up."""
        told = self.lines
        ups = [at for at, one in told if one["type"] == "rail" and one["up"]]
        return [at for at in ups if begun <= at <= ended]
