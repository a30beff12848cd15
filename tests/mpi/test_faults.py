"""Whatever dies under an MPI program: results are right, nobody hangs, switches forget the dead."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mpi_lab import Run, TestLab, build, die, lab_up, needs, ranks

pytestmark = needs("openmpi")

LEASE_S = 60.0


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    build(folder, "faults", "rounds")
    return folder


@pytest.fixture(scope="module", params=["sockets", "xdp"])
def lab(request: pytest.FixtureRequest) -> Iterator[TestLab]:
    """Four hosts under two TORs and a SPINE."""
    words = ("--hosts", "4", "--hosts-per-tor", "2", "--offload", request.param)
    with lab_up("faults", *words) as lab:
        yield lab


@pytest.fixture
def deaf(lab: TestLab) -> Iterator[str]:
    """A command on h4: from then on it gets nothing from its TOR; what it sends arrives."""
    ip = ("exec", "h4", "--", "ip", "rule")
    for words in (("add", "pref", "10", "lookup", "local"), ("del", "pref", "0")):
        lab.run(*ip, *words)
    # A socket's remembered route would pass by the rule.
    lab.run("exec", "h4", "--", "sysctl", "-qw", "net.ipv4.udp_early_demux=0")
    yield "ip rule add pref 5 iif e0 ipproto udp sport 61347 blackhole"
    for words in (
        ("del", "pref", "5"),
        ("add", "pref", "0", "lookup", "local"),
        ("del", "pref", "10"),
    ):
        lab.run(*ip, *words)


def lose_results(lab: TestLab, deaf: str) -> None:
    """From now on ranks of h4 get no result."""
    done = lab.run("exec", "h4", "--", *deaf.split())
    assert done.returncode == 0, done.stderr


def start(lab: TestLab, *words: str | Path) -> Run:
    return Run(lab.start("mpirun", "--", *words, RADDLE_OFFLOAD="always"))


def verdicts(lines: list[str]) -> list[str]:
    return sorted(line for line in lines if " wrong " in line)


RIGHT = [f"rank {rank} wrong 0" for rank in range(4)]


@pytest.mark.scale
@pytest.mark.parametrize("how", ["kill", "restart"])
@pytest.mark.parametrize("switch", ["tor1", "spine1"])
@pytest.mark.parametrize("nap_s", [0, 30])
def test_ranks_that_have_their_result_compute_or_are_in_finalize(
    lab: TestLab, deaf: str, switch: str, how: str, nap_s: int, programs: Path, tmp_path: Path
) -> None:
    """Three ranks have the sum; the fourth has not, and the switch dies.

    With a nap they sleep for 30 s without a call and go on for 100 rounds; without one the sum was
    the last, and they are in MPI_Finalize.
    """
    gate = tmp_path / "gate"
    rounds = "300" if nap_s else "201"
    run = start(lab, programs / "faults-openmpi", rounds, "200", gate, str(nap_s))
    run.until("at the gate", 4)
    lose_results(lab, deaf)
    gate.touch()
    run.until("has its sum" if nap_s else "wrong 0", 3)
    die(lab, switch, how)
    assert verdicts(run.end()) == RIGHT
    assert run.process.returncode == 0


def test_who_lacks_the_last_result_gets_it_from_the_others(
    lab: TestLab, deaf: str, programs: Path, tmp_path: Path
) -> None:
    """The short one of the above: the others are in MPI_Finalize, and the SPINE is restarted."""
    gate = tmp_path / "gate"
    run = start(lab, programs / "faults-openmpi", "101", "100", gate, "0")
    run.until("at the gate", 4)
    lose_results(lab, deaf)
    gate.touch()
    run.until("wrong 0", 3)
    die(lab, "spine1", "restart")
    assert verdicts(run.end()) == RIGHT


@pytest.mark.scale
@pytest.mark.parametrize("how", ["kill", "restart"])
@pytest.mark.parametrize("switch", ["tor1", "tor2", "spine1"])
def test_a_switch_dies_between_any_two_messages(
    lab: TestLab, switch: str, how: str, programs: Path
) -> None:
    for delay_s in (0.1, 0.4, 0.9):
        run = start(lab, programs / "rounds-openmpi", "20000")
        run.until("begun", 1)
        time.sleep(delay_s)
        die(lab, switch, how)
        lines = run.end()
        assert "rounds 20000 wrong 0" in lines, (delay_s, lines)


@pytest.mark.scale
def test_a_killed_rank_ends_the_job_and_its_switches_forget_it(
    lab: TestLab, programs: Path
) -> None:
    run = start(lab, programs / "rounds-openmpi", "1000000")
    run.until("begun", 1)
    assert len(lab.jobs("tor2")) == 1
    (rank, *_) = ranks(programs / "rounds-openmpi")
    os.kill(rank, signal.SIGKILL)
    begun = time.monotonic()
    run.end()
    assert run.process.returncode != 0
    while any(lab.jobs(switch) for switch in ("tor1", "tor2", "spine1")):
        assert time.monotonic() - begun < LEASE_S + 5, "the lease is over, and the group stands"
        time.sleep(0.5)
