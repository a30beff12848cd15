"""One description, two worlds: a host that sends over two rails, of which one is cut.

Each scenario runs in the simulator and between two hosts of a lab, by the same core. The sender's
rails must come and go in the same order, times from a cut to what it notices must agree within
10 %, and every message must arrive. `pytest -s` prints both.
"""

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

import pytest

import switch_harness as harness
from laboratory import missing, up
from raddle.services.lab import Lab

SIMULATED = harness.TARGET / "release" / "examples" / "rail_events"
REASON = missing() or ("" if SIMULATED.exists() else f"needs {SIMULATED}: run make build")
pytestmark = pytest.mark.skipif(bool(REASON), reason=REASON)
TOLERANCE = 0.1
MESSAGE_BYTES, WINDOW = 1 << 20, 16
PATIENCE_S = 60
INTERVAL_MS = 20
HEARTBEAT_S = 0.02
TRIES = 3
"""Runs of which one must be alike: the machine may be busy for a few milliseconds."""


@dataclass(frozen=True)
class Outage:
    """A rail that carries nothing from one time to another, or for ever."""

    rail: int
    down_ms: int
    up_ms: int | None = None


@dataclass(frozen=True)
class Scenario:
    """What happens; both worlds have it."""

    cut: Outage | None = None
    rails_mbps: tuple[int, ...] = (200, 200)
    message_bytes: int = MESSAGE_BYTES
    window: int = WINDOW
    end_ms: int = 1200


@dataclass(frozen=True)
class Change:
    """A rail came or went: when, and how long after the cable did (none: no cable has changed)."""

    rail: int
    up: bool
    at_s: float
    after_s: float | None


SCENARIOS = {
    "nothing happens": Scenario(),
    "a rail is cut": Scenario(Outage(1, 500)),
    "a rail is cut and comes back": Scenario(Outage(1, 500, 805)),
    "the first rail is cut and comes back": Scenario(Outage(0, 400, 705)),
}


def changes(events: list[dict[str, Any]], cables: list[float]) -> list[Change]:
    """What the sender notices, in order."""
    found = []
    for event in events:
        at = event["at_s"]
        before = [cable for cable in cables if cable <= at]
        found.append(Change(event["rail"], event["up"], at, at - before[-1] if before else None))
    # At the beginning all rails come up at once: which is the first is chance.
    return sorted(found, key=lambda one: (one.after_s is not None, one.rail * (not one.after_s)))


def simulated(scenario: Scenario, folder: Path) -> list[Change]:
    """What the sender notices in the simulator."""
    file = folder / "scenario.json"
    file.write_text(json.dumps(asdict(scenario)))
    done = subprocess.run([SIMULATED, file], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout)
    assert found["messages"] > WINDOW
    cut = scenario.cut
    times = [at / 1e3 for at in (cut.down_ms, cut.up_ms) if at is not None] if cut else []
    return changes(found["events"], times)


def real(scenario: Scenario, name: str) -> list[Change]:
    """The same between two hosts, every byte compared."""
    lab = Lab.find(name)
    words = ["raddle-perf", "run", "--peer", "h2", "--check", "--json", "--source-port", "0"]
    words += ["--size", f"{scenario.message_bytes}B", "--window", str(scenario.window)]
    words += ["--time", f"{scenario.end_ms}ms", "--warm-up", "0ms", "--count", "1"]
    words += ["--interval", f"{INTERVAL_MS}ms"]
    clock, told, done = Clock(), list[dict[str, Any]](), list[float]()
    todo = steps(scenario.cut)
    # One program changes cables, and waits for its words: so they take effect at once.
    with (
        subprocess.Popen(
            lab.command("h2", ["ip", "-batch", "-"]), stdin=subprocess.PIPE, text=True
        ) as cables,
        subprocess.Popen(
            lab.command("h1", words), env=lab.environment(), stdout=subprocess.PIPE, text=True
        ) as sender,
    ):
        assert sender.stdout is not None
        assert cables.stdin is not None
        for line in sender.stdout:
            if not line.startswith("{"):
                continue
            event = json.loads(line)
            told.append(event)
            if "at_s" in event:
                clock.hear(event["at_s"])
            if todo and event.get("at_s", 0.0) >= todo[0][0]:
                done.append(change(cables.stdin, todo.pop(0)[1]))
    assert (cables.returncode, sender.returncode) == (0, 0)
    assert told[-1]["messages"] > WINDOW
    events = [event for event in told if event.get("type") == "rail"]
    return changes(events, [clock.sender(at) for at in done])


class Clock:
    """The sender's clock, from when its lines come: the fastest line says how far it is off."""

    def __init__(self) -> None:
        self.offset = float("inf")

    def hear(self, at_s: float) -> None:
        """A line that was written at this time of the sender's."""
        self.offset = min(self.offset, time.monotonic() - at_s)

    def sender(self, at: float) -> float:
        """A time of ours, by the sender's clock."""
        return at - self.offset


def steps(cut: Outage | None) -> list[tuple[float, str]]:
    """What is done to cables: when, by the sender's clock, and words for `ip`."""
    if cut is None:
        return []
    down = (cut.down_ms / 1e3, f"link set e{cut.rail} down\n")
    if cut.up_ms is None:
        return [down]
    return [down, (cut.up_ms / 1e3, f"link set e{cut.rail} up\n")]


def change(cables: IO[str], words: str) -> float:
    """Do something to a cable; when it was done."""
    cables.write(words)
    cables.flush()
    return time.monotonic()


@contextmanager
def served(scenario: Scenario) -> Iterator[str]:
    """A lab of two hosts with these rails, and a server on h2."""
    rates = ",".join(f"{rate}Mbps" for rate in scenario.rails_mbps)
    with up("alike", "--hosts", "2", "--rails", str(len(scenario.rails_mbps)), "--rates", rates):
        lab = Lab.find("alike")
        with subprocess.Popen(
            lab.command("h2", ["raddle-perf", "serve"]),
            env=lab.environment(), stderr=subprocess.PIPE, text=True,
        ) as server:  # fmt: skip
            try:
                assert server.stderr is not None
                assert "listening" in server.stderr.readline()
                yield "alike"
            finally:
                server.terminate()


@pytest.mark.parametrize("name", SCENARIOS)
def test_rails_come_and_go_alike(name: str, tmp_path: Path) -> None:
    scenario = SCENARIOS[name]
    here = simulated(scenario, tmp_path)
    with served(scenario) as lab:
        for left in reversed(range(TRIES)):
            there = real(scenario, lab)
            for own, other in zip(here, there, strict=False):
                print(f"{name}: {own} simulated, {other} real")
            if not left or are_alike(here, there):
                break
    assert [(one.rail, one.up) for one in here] == [(one.rail, one.up) for one in there]
    assert are_alike(here, there)


def are_alike(here: list[Change], there: list[Change]) -> bool:
    """The same happens; rails go down after the same time, and are up a heartbeat after cables."""
    if [(one.rail, one.up) for one in here] != [(one.rail, one.up) for one in there]:
        return False
    for own, other in zip(here, there, strict=True):
        if own.after_s is None or other.after_s is None:
            continue
        if own.up and max(own.after_s, other.after_s) > (1 + TOLERANCE) * HEARTBEAT_S:
            return False
        if not own.up and abs(other.after_s / own.after_s - 1) > TOLERANCE:
            return False
    return True
