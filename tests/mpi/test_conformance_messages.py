"""One description, two worlds: what becomes of messages that may be joined.

A program runs on three hosts of a lab, once plain and recorded, then with the library's schedules.
The simulator replays the recording with the schedules of the same names. Each message must be in
one parcel, and both worlds must make the same number of parcels of them. `pytest -s` prints both.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from mpi_lab import TestLab, build, lab_up, needs
from raddle.services.replay import Settings, replay

pytestmark = needs("openmpi")
RANKS = 3


@dataclass(frozen=True)
class Supersteps:
    """What the program does: each rank sends so many messages to each of its next neighbours."""

    rounds: int
    count: int
    bytes: int
    peers: int = 1

    @property
    def messages(self) -> int:
        """Of all ranks."""
        return RANKS * self.rounds * self.count * self.peers


SCENARIOS = {
    "one message to a neighbour": Supersteps(4, 1, 100),
    "short messages to a neighbour": Supersteps(4, 20, 100),
    "parcels that are full": Supersteps(3, 20, 10_000),
}
TWO_NEIGHBOURS = Supersteps(3, 12, 3_000, peers=2)
LONG = Supersteps(2, 6, 30_000)

SCHEDULES = {"library": "force", "published": "published"}
"""Of the simulator, and what the library is told."""


@dataclass(frozen=True)
class Worlds:
    """Runs a program in both."""

    lab: TestLab
    program: Path
    folder: Path

    def run(
        self, what: Supersteps, *schedules: str
    ) -> tuple[dict[str, dict[str, Any]], dict[str, dict[str, Any]]]:
        """What a replay and what the library say of messages, by schedule."""
        words: list[str | Path] = ["--", self.program, str(what.rounds), str(what.count)]
        words += [str(what.bytes), str(what.peers)]
        trace = self.folder / "plain.trace.parquet"
        trace.unlink(missing_ok=True)
        done = self.lab.run("mpirun", "--record", trace, *words)
        assert done.returncode == 0, done.stdout + done.stderr
        simulated = replay(trace, schedules, Settings(seeds=1))["schedules"]
        report = self.folder / "report.json"
        real = {
            name: self.lab.report(report, *words, RADDLE_SCHEDULE=SCHEDULES[name])["messages"]
            for name in schedules
        }
        return simulated, real


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    build(folder, "supersteps")
    return folder / "supersteps-openmpi"


@pytest.fixture(scope="module")
def lab() -> Iterator[TestLab]:
    with lab_up("joined", "--hosts", str(RANKS), "--offload", "off") as lab:
        yield lab


@pytest.fixture
def worlds(lab: TestLab, program: Path, tmp_path: Path) -> Worlds:
    return Worlds(lab, program, tmp_path)


@pytest.mark.parametrize("name", SCENARIOS)
def test_messages_are_joined_alike(name: str, worlds: Worlds) -> None:
    what = SCENARIOS[name]
    simulated, real = worlds.run(what, *SCHEDULES)
    for schedule in SCHEDULES:
        here = (simulated[schedule]["messages"], simulated[schedule]["parcels"])
        there = (real[schedule]["parts"], real[schedule]["parcels"])
        print(f"{name}, {schedule}: {here} simulated, {there} real")
        assert here == there
        assert here[0] == what.messages


def test_a_window_grows_alike_once_ranks_know_their_neighbours(worlds: Worlds) -> None:
    """The published window grows by the number of neighbours.

    The simulator knows it before; a program's rank counts them in its first superstep. So the
    supersteps after it are compared.
    """
    found = []
    for rounds in (1, TWO_NEIGHBOURS.rounds):
        simulated, real = worlds.run(replace(TWO_NEIGHBOURS, rounds=rounds), *SCHEDULES)
        found.append(
            {name: (simulated[name]["parcels"], real[name]["parcels"]) for name in SCHEDULES}
        )
    first, all_of_them = found
    print(f"first superstep: {first}, all: {all_of_them} (simulated, real)")
    for name in SCHEDULES:
        pairs = zip(first[name], all_of_them[name], strict=True)
        here, there = (after - before for before, after in pairs)
        assert here == there
    assert first["library"][0] == first["library"][1]


def test_long_messages_are_joined_in_neither_world(worlds: Worlds) -> None:
    """In the library they go by reference: only their envelopes are joined."""
    simulated, real = worlds.run(LONG, "library")
    here, there = simulated["library"], real["library"]
    assert (here["messages"], here["parcels"], here["joined"]) == (LONG.messages, LONG.messages, 0)
    assert (there["by_reference"], there["copied"]) == (LONG.messages, 0)
