"""Offload comes back: switches die and return, ranks are stopped, and results are right."""

import json
import os
import random
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from mpi_lab import Run, TestLab, build, die, lab_up, needs, ranks

pytestmark = needs("openmpi")

SOON_S = 10.0
"""From when all is well again until all is offloaded again."""
SWITCHES = ("tor1", "tor2", "spine1")
SHARED = {"node": "1", "socket": "2"}


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    build(folder, "comeback")
    return folder


@pytest.fixture(scope="module", params=["sockets", "xdp"])
def lab(request: pytest.FixtureRequest) -> Iterator[TestLab]:
    """Four hosts under two TORs and a SPINE."""
    words = ("--hosts", "4", "--hosts-per-tor", "2", "--offload", request.param)
    with lab_up("comeback", *words) as lab:
        yield lab


@dataclass
class Program:
    """`comeback.c` in a lab: two communicators, until it is told to end."""

    run: Run
    path: Path
    gate: Path
    report: Path

    def is_offloaded(self) -> bool:
        """Whether each of the two was last said to be offloaded."""
        last: dict[str, bool] = {}
        for line in self.run.lines:
            _, _, said = line.partition("]: ")
            for name in ("MPI_COMM_WORLD", "reversed"):
                if said.startswith(f"{name} of "):
                    last[name] = "plain MPI" not in said
        return len(last) == 2 and all(last.values())

    def falls_back(self, times: int, within: float) -> bool:
        """Whether they have gone back to plain MPI so often, before so many seconds have passed."""
        limit = time.monotonic() + within
        failed = "plain MPI: a switch or path failed"
        while sum(failed in line for line in self.run.lines) < times:
            assert self.run.process.poll() is None, self.run.lines
            if time.monotonic() > limit:
                return False
            time.sleep(0.01)
        return True

    def fallen_back(self, times: int) -> None:
        """Wait until they have gone back to plain MPI so often."""
        assert self.falls_back(times, 60), self.run.lines

    def settled(self, within: float) -> float:
        """Wait until every group that failed must have been noticed, and all is offloaded again."""
        begun = time.monotonic()
        did = self.run.lines.count("did 64 more")
        while self.run.lines.count("did 64 more") < did + 2:
            assert time.monotonic() - begun < within, self.run.lines
            assert self.run.process.poll() is None, self.run.lines
            time.sleep(0.01)
        self.offloaded_again(begun + within - time.monotonic())
        return time.monotonic() - begun

    def offloaded_again(self, within: float = SOON_S) -> float:
        """Wait for it; gives the time that it took."""
        begun = time.monotonic()
        while not self.is_offloaded():
            assert time.monotonic() - begun < within, self.run.lines
            assert self.run.process.poll() is None, self.run.lines
            time.sleep(0.01)
        return time.monotonic() - begun

    def end(self) -> dict[str, dict[str, Any]]:
        """Let it end; the two communicators of its report."""
        self.gate.touch()
        lines = self.run.end()
        assert any(line.startswith("rounds ") and line.endswith(" wrong 0") for line in lines), (
            lines
        )
        assert self.run.process.returncode == 0, lines
        communicators = json.loads(self.report.read_text())["communicators"]
        return {one["name"]: one for one in communicators if one["name"] != "a communicator"}


class Starter:
    """Starts the program."""

    def __init__(self, lab: TestLab, programs: Path, folder: Path) -> None:
        self.lab = lab
        self.path = programs / "comeback-openmpi"
        self.folder = folder
        self.started: list[Program] = []

    def __call__(self, *words: str, **variables: str) -> Program:
        number = len(self.started)
        gate, report = self.folder / f"end{number}", self.folder / f"report{number}"
        said = {"RADDLE_OFFLOAD": "always", "RADDLE_LOG": "info", "RADDLE_REPORT": str(report)}
        process = self.lab.start(
            "mpirun", *words, "--", self.path, gate, "2000", **{**said, **variables}
        )
        program = Program(Run(process), self.path, gate, report)
        self.started.append(program)
        program.run.until("begun", 1)
        return program


@pytest.fixture
def start(lab: TestLab, programs: Path, tmp_path: Path) -> Iterator[Starter]:
    starter = Starter(lab, programs, tmp_path)
    yield starter
    for program in starter.started:
        program.run.process.terminate()
        program.run.process.wait(30)


def check(report: dict[str, dict[str, Any]], fallbacks: int | None = None) -> None:
    """Both were offloaded at the end, and had fallen back so often together."""
    assert set(report) == {"MPI_COMM_WORLD", "reversed"}
    counts = [one["counts"]["rounds"] for one in report.values()]
    assert fallbacks in (None, sum(one["fallbacks"] for one in counts)), report
    for one in report.values():
        rounds = one["counts"]["rounds"]
        assert one["state"] == "offload", one
        assert rounds["tries"] >= rounds["comebacks"] >= rounds["fallbacks"], one
        assert min(one["counts"]["offloaded"].values()) > 10, one


def no_groups_within(lab: TestLab, seconds: float) -> None:
    """Wait until switches have forgotten all."""
    limit = time.monotonic() + seconds
    while any(lab.jobs(switch) for switch in SWITCHES):
        assert time.monotonic() < limit, [lab.jobs(switch) for switch in SWITCHES]
        time.sleep(0.2)


def test_offload_comes_back_after_a_switch_has_started_anew(lab: TestLab, start: Starter) -> None:
    program = start()
    lab.switch("spine1", "restart")
    program.fallen_back(2)
    program.offloaded_again()
    time.sleep(1)
    check(program.end(), 2)
    no_groups_within(lab, 10)


@pytest.mark.scale
@pytest.mark.parametrize("mode", SHARED)
@pytest.mark.parametrize("how", ["kill", "restart"])
@pytest.mark.parametrize("switch", SWITCHES)
def test_offload_comes_back_when_a_switch_does(
    lab: TestLab, switch: str, how: str, mode: str, start: Starter
) -> None:
    words = ("--ppn", "2", "--mode", mode)
    program = start(*words, RADDLE_SOCKETS=SHARED[mode])
    time.sleep(2)
    die(lab, switch, how)
    begun = time.monotonic()
    program.fallen_back(2)
    program.offloaded_again(begun + SOON_S - time.monotonic())
    time.sleep(2)
    check(program.end(), 2)
    no_groups_within(lab, 10)


def stopped(rank: int, seconds: float) -> None:
    os.kill(rank, signal.SIGSTOP)
    time.sleep(seconds)
    os.kill(rank, signal.SIGCONT)


def test_offload_comes_back_after_a_process_was_stopped(lab: TestLab, start: Starter) -> None:
    program = start(RADDLE_GIVE_UP_MS="300")
    # Stopped in a plain call, it holds up no offloaded one, and its groups outlive the pause.
    for _ in range(10):
        stopped(ranks(program.path)[2], 1.5)
        if program.falls_back(1, 5):
            break
    program.fallen_back(1)
    program.offloaded_again()
    time.sleep(1)
    check(program.end(), 1)


@pytest.mark.scale
def test_a_rank_that_was_stopped_for_20_s_costs_a_second(lab: TestLab, start: Starter) -> None:
    program = start()
    time.sleep(2)
    stopped(ranks(program.path)[1], 20)
    begun = time.monotonic()
    program.fallen_back(1)
    program.offloaded_again(begun + SOON_S - time.monotonic())
    time.sleep(2)
    check(program.end(), 1)


def test_what_was_never_offloaded_comes_to_be_and_tries_end_with_the_program(
    lab: TestLab, start: Starter
) -> None:
    """What hosts send to switches is lost at first: every try fails, after half a second."""
    rule = ("pref", "5", "ipproto", "udp", "dport", "61347", "blackhole")
    hosts = [f"h{number}" for number in range(1, 5)]
    for host in hosts:
        lab.run("exec", host, "--", "ip", "rule", "add", *rule)
    try:
        # The program ends, and frees a communicator, in the middle of tries.
        for number in range(3):
            program = start(RADDLE_SETUP_MS="500", RADDLE_COME_BACK_MS="100")
            time.sleep(0.7 + 0.2 * number)
            if number < 2:
                report = program.end()
                assert {one["state"] for one in report.values()} == {"no_switch"}
    finally:
        for host in hosts:
            lab.run("exec", host, "--", "ip", "rule", "del", *rule)
    program.offloaded_again()
    time.sleep(0.5)
    # It may have begun before all hosts were heard.
    check(program.end())
    no_groups_within(lab, 10)


@pytest.mark.parametrize("wait_ms", ["0", "600000"])
def test_the_wait_is_as_set(lab: TestLab, wait_ms: str, start: Starter) -> None:
    """0: never again."""
    program = start(RADDLE_COME_BACK_MS=wait_ms)
    lab.switch("spine1", "restart")
    program.fallen_back(2)
    time.sleep(2)
    assert not program.is_offloaded()
    for one in program.end().values():
        assert one["state"] == "failed"
        assert one["counts"]["rounds"]["tries"] == 0


def open_of(process: int) -> int:
    """Files and sockets that a process has open."""
    return sum(1 for _ in Path(f"/proc/{process}/fd").iterdir())


@pytest.mark.scale
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_offload_comes_back_after_many_random_failures(
    lab: TestLab, seed: int, start: Starter
) -> None:
    """One program, 25 failures: switches die or start anew, ranks are stopped, some at once."""
    draws = random.Random(seed)
    mode = draws.choice(tuple(SHARED))
    variables = {"RADDLE_GIVE_UP_MS": "1000", "RADDLE_SOCKETS": SHARED[mode]}
    program = start("--ppn", "2", "--mode", mode, **variables)
    all_ranks = ranks(program.path)
    open_files = {rank: open_of(rank) for rank in all_ranks}
    waited = []
    for _ in range(25):
        time.sleep(draws.uniform(1.5, 4))
        dead = draws.sample(SWITCHES, draws.choice([0, 1, 1, 2]))
        stopped = draws.sample(all_ranks, draws.choice([0, 1, 2]))
        lasts = draws.choice([0.1, 1, 3, 6])
        for switch in dead:
            lab.switch(switch, "kill")
        for rank in stopped:
            os.kill(rank, signal.SIGSTOP)
        time.sleep(lasts)
        for rank in stopped:
            os.kill(rank, signal.SIGCONT)
        # The lab waits for all switches: while one is dead it says so.
        for switch in dead[:-1]:
            lab.run("switch", switch, "start")
        for switch in dead[-1:]:
            lab.switch(switch, "start")
        # Plain MPI itself may wait for TCP as long again as its way was cut.
        waited.append(program.settled(SOON_S + 2 * lasts))
    print(f"seed {seed}, {mode}: offloaded again after {max(waited):.1f} s at most")
    # Sockets of groups that failed are closed; MPI may have opened connections anew.
    now_open = {rank: open_of(rank) for rank in all_ranks}
    assert all(now_open[rank] <= open_files[rank] + 8 for rank in all_ranks), (open_files, now_open)
    report = program.end()
    assert all(one["state"] == "offload" for one in report.values()), report
    assert sum(one["counts"]["rounds"]["fallbacks"] for one in report.values()) > 25
    no_groups_within(lab, 10)
