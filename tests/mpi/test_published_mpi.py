"""The published in-network Allreduce under MPI programs: sums, fallback, and what it counts."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mpi_lab import HERE, Run, TestLab, build, lab_up, needs, totals

pytestmark = needs("openmpi")

PYTHON = "/usr/bin/python3"
"""Debian's, for which there is the package python3-mpi4py."""

PATIENT = {"RADDLE_OFFLOAD": "always", "RADDLE_SETUP_MS": "20000", "RADDLE_OVERDUE_MS": "10000"}
"""On a busy machine nothing is given up early."""

SHORT = {"RADDLE_MAX_BYTES": "256"}
"""Longer calls are plain by both protocols: the library's own result, to compare with."""


def mpi4py_missing() -> bool:
    done = subprocess.run([PYTHON, "-c", "import mpi4py"], capture_output=True, check=False)
    return done.returncode != 0


with_mpi4py = pytest.mark.skipif(mpi4py_missing(), reason="needs the package python3-mpi4py")


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    build(folder, "rounds", "collectives")
    return folder


@pytest.fixture(scope="module")
def lab() -> Iterator[TestLab]:
    """Four hosts below two TORs and a SPINE, whose programs speak the published protocol."""
    words = ("--hosts", "4", "--hosts-per-tor", "2", "--sockets", "2", "--protocol", "published")
    with lab_up("published", *words) as lab:
        yield lab


def reported(lab: TestLab, folder: Path, *words: str | Path, **variables: str) -> dict[str, Any]:
    """Run a program that nothing may disturb; the library's report."""
    return lab.report(folder / "report", *words, timeout=240, **{**PATIENT, **variables})


def sums(
    lab: TestLab, folder: Path, ppn: int, mode: str, *, hosts: int = 4, local: int = 2,
    rounds: int = 1, **variables: str,
) -> dict[str, Any]:  # fmt: skip
    """Run the mpi4py program; it compares each result itself."""
    sockets = 2 if mode == "socket" and ppn > 1 else 1
    words = ("--hosts", str(hosts), "--ppn", str(ppn), "--mode", mode, "--", PYTHON)
    program = (HERE / "sums.py", ppn // sockets, local * sockets, hosts // local, rounds)
    return reported(lab, folder, *words, *map(str, program), **SHORT, **variables)


def all_in_switches(report: dict[str, Any], *also: str) -> None:
    """Nothing fell back, and each call that could be was offloaded; `also`: reasons why not."""
    assert totals(report, "rounds")["fallbacks"] == 0
    (world,) = [one for one in report["communicators"] if one["name"] == "MPI_COMM_WORLD"]
    plain = world["counts"]["plain"]
    assert set(plain) <= {"early", "size", "type", "unsupported", *also}, plain
    assert world["counts"]["offloaded"]["MPI_Allreduce"] >= 20


@with_mpi4py
@pytest.mark.parametrize(("ppn", "mode"), [(1, "node"), (2, "socket"), (4, "node"), (8, "socket")])
def test_results_are_those_of_plain_mpi(lab: TestLab, ppn: int, mode: str, tmp_path: Path) -> None:
    all_in_switches(sums(lab, tmp_path, ppn, mode, RADDLE_ORDER="arrival"))


@with_mpi4py
@pytest.mark.scale
@pytest.mark.parametrize("protocol", ["native", "published"])
@pytest.mark.parametrize("mode", ["node", "socket"])
@pytest.mark.parametrize("ppn", [1, 2, 4, 8])
def test_results_are_those_of_plain_mpi_by_both_protocols(
    lab: TestLab, ppn: int, mode: str, protocol: str, tmp_path: Path
) -> None:
    order = {"native": "host", "published": "arrival"}[protocol]
    report = sums(lab, tmp_path, ppn, mode, rounds=3, RADDLE_ORDER=order, RADDLE_PROTOCOL=protocol)
    # Ours keeps the library's order, and leaves to it what would not have the same bits.
    all_in_switches(report, *(("arithmetic", "order") if protocol == "native" else ()))


@with_mpi4py
@pytest.mark.scale
@pytest.mark.parametrize("mode", ["node", "socket"])
@pytest.mark.parametrize(("hosts", "local"), [(9, 3), (16, 4)])
def test_results_are_those_of_plain_mpi_on_more_hosts(
    hosts: int, local: int, mode: str, tmp_path: Path
) -> None:
    words = ("--hosts", str(hosts), "--hosts-per-tor", str(local), "--sockets", "2")
    with lab_up(f"published-{hosts}", *words, "--protocol", "published") as lab:
        report = sums(lab, tmp_path, 2, mode, hosts=hosts, local=local, RADDLE_ORDER="arrival")
        all_in_switches(report)


def test_all_bits_are_those_of_the_plain_calls(
    lab: TestLab, programs: Path, tmp_path: Path
) -> None:
    """Communicators of many shapes: what the protocol cannot do is plain, and counted as that."""
    words = ("--hosts", "4", "--", programs / "collectives-openmpi", "--largest", "300")
    report = reported(lab, tmp_path, *words)
    assert totals(report, "offloaded")["MPI_Allreduce"] > 200
    assert set(totals(report, "offloaded")) == {"MPI_Allreduce"}
    plain = totals(report, "plain")
    # Every second host: one below each TOR. Longer than 256 B; Reduce, Bcast, Barrier; pairs.
    assert min(plain[reason] for reason in ("tree", "size", "unsupported")) > 50, plain
    assert totals(report, "rounds")["fallbacks"] == 0


def test_without_the_right_to_open_raw_sockets_all_is_plain(
    lab: TestLab, programs: Path, tmp_path: Path
) -> None:
    words = ("--", "setpriv", "--bounding-set=-net_raw", programs / "rounds-openmpi", "100")
    report = reported(lab, tmp_path, *words)
    assert totals(report, "plain")["no_raw_socket"] == 200 - 3
    assert totals(report, "offloaded").total() == 0


LOSE_FOR_A_WHILE = """
ip rule add pref 10 lookup local; ip rule del pref 0
ip rule add pref 5 iif e0 ipproto udp dport 4791 blackhole
sleep 0.3
ip rule del pref 5
ip rule add pref 0 lookup local; ip rule del pref 10
"""
"""A command on a host: for a while no frame of the published protocol comes there."""


def test_a_lost_packet_ends_offload_for_all_and_it_comes_back(
    lab: TestLab, programs: Path, tmp_path: Path
) -> None:
    report = tmp_path / "report"
    variables = {
        "RADDLE_OFFLOAD": "always",
        "RADDLE_REPORT": str(report),
        "RADDLE_OVERDUE_MS": "50",
        "RADDLE_SETUP_MS": "300",
        "RADDLE_COME_BACK_MS": "100",
    }
    run = Run(lab.start("mpirun", "--", programs / "rounds-openmpi", "3000", "1000", **variables))
    run.until("begun", 1)
    lost = lab.run("exec", "h4", "--", "sh", "-c", LOSE_FOR_A_WHILE)
    assert lost.returncode == 0, lost.stderr
    lines = run.end()
    assert "rounds 3000 wrong 0" in lines, lines
    assert run.process.returncode == 0
    found = json.loads(report.read_text())
    rounds, plain = totals(found, "rounds"), totals(found, "plain")
    assert rounds["fallbacks"] >= 1, rounds
    assert rounds["comebacks"] >= 1, rounds
    assert plain["failed"] >= 1, plain
    assert found["offloaded"] + plain.total() == found["calls"] == 6000


def test_switches_serve_both_protocols_at_once(
    lab: TestLab, programs: Path, tmp_path: Path
) -> None:
    """Two programs side by side, one by each protocol: all is right and nothing falls back."""
    reports = {protocol: tmp_path / protocol for protocol in ("native", "published")}
    runs = []
    for protocol, report in reports.items():
        variables = {**PATIENT, "RADDLE_GIVE_UP_MS": "20000", "RADDLE_PROTOCOL": protocol}
        words = ("mpirun", "--", programs / "rounds-openmpi", "1000", "200")
        runs.append(Run(lab.start(*words, **variables, RADDLE_REPORT=str(report))))
    for run in runs:
        run.until("begun", 1)
    for run in runs:
        lines = run.end()
        assert "rounds 1000 wrong 0" in lines, lines
    for report in reports.values():
        found = json.loads(report.read_text())
        assert totals(found, "rounds")["fallbacks"] == 0
        assert totals(found, "offloaded")["MPI_Allreduce"] >= 1000 - 10
