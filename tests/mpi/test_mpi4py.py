"""mpi4py's own test suite gives the same verdicts with and without Raddle under it.

It comes from the source package, which is fetched from PyPI and built against each MPI library;
without a network these tests are skipped.
"""

import json
import os
import re
import subprocess
import sys
import tarfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from mpi_lab import HERE, LIBRARIES, TestLab, lab_up, missing, needs, totals
from raddle import _core

pytestmark = [pytest.mark.scale, needs("openmpi")]

VERSION = "4.1.2"
LEFT_OUT = ("test_spawn", "test_dynproc", "test_util_pool")
"""Modules that start or join other jobs (MPI_Comm_spawn, MPI_Comm_accept), or are futures on top of
that: processes that mpirun of a lab did not start have no place in it.

Tests that fail without Raddle have to fail with it: windows of MPI_Win_allocate over TCP are none
that Open MPI 4.1 can make between hosts (51 tests of test_win and test_util_sync).
"""

CRASHES = {"openmpi": (), "mpich": ("-x", "testSplitTypeShared")}
"""MPICH 4.0 dies of MPI_Comm_split_type on an intercommunicator, without Raddle too."""

MESSAGES = ("-i", "test_p2p|test_request|test_status", "-e", "|".join(LEFT_OUT))
"""Tests of messages between two ranks, and of requests."""

VERDICT = re.compile(r"^(test\w+ \([\w.]+\)).* \.\.\. .*?(ok|skipped|FAIL|ERROR|expected failure)")


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source package, unpacked, with an environment for each MPI library: env-LIBRARY."""
    folder = tmp_path_factory.mktemp("mpi4py")
    pip = (sys.executable, "-m", "pip", "-q")
    fetched = subprocess.run(
        [*pip, "download", "--no-binary", "mpi4py", "--no-deps",
         "--dest", folder, f"mpi4py=={VERSION}"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    (package, *_) = [*folder.glob("mpi4py-*.tar.gz"), None]
    if package is None:
        pytest.skip(f"mpi4py {VERSION} cannot be fetched: {fetched.stderr[-200:]}")
    with tarfile.open(package) as archive:
        archive.extractall(folder, filter="data")
    for mpi in LIBRARIES:
        if missing(mpi):
            continue
        environment = folder / f"env-{mpi}"
        subprocess.run([sys.executable, "-m", "venv", environment], check=True)
        # Its one C file takes minutes to optimise, and nothing is measured here.
        variables = {**os.environ, "MPICC": f"mpicc.{mpi}", "CFLAGS": "-O0 -g0"}
        command = [str(environment / "bin" / "pip"), "install", "-q", str(package), "numpy"]
        subprocess.run(command, env=variables, check=True)
    return folder


@pytest.fixture(scope="module")
def lab() -> Iterator[TestLab]:
    with lab_up("mpi4py", "--hosts", "4", "--hosts-per-tor", "2", "--offload", "sockets") as lab:
        yield lab


def verdicts(folder: Path, ranks: int) -> list[dict[str, str]]:
    """Per rank, the verdict on each test."""
    found = []
    for rank in range(ranks):
        text = (folder / f"rank-{rank}").read_text(errors="replace")
        assert re.search(r"^(OK|FAILED)", text, re.MULTILINE), text[-2000:]
        matches = (VERDICT.match(line) for line in text.splitlines())
        found.append({m[1]: m[2] for m in matches if m})
    return found


def run(
    lab: TestLab, suite: Path, mpi: str, ranks: int, folder: Path, options: tuple[str, ...],
    tests: tuple[str, ...], **variables: str,
) -> list[dict[str, str]]:  # fmt: skip
    """Run tests on so many hosts, with options for `raddle lab mpirun`; per rank, the verdicts."""
    folder.mkdir()
    words: list[str | Path] = ["--mpi", mpi, "--hosts", str(ranks), "--", HERE / "mpi4py_rank.sh"]
    program = [
        suite / f"env-{mpi}" / "bin" / "python",
        suite / f"mpi4py-{VERSION}" / "test" / "main.py",
    ]
    done = lab.run(
        "mpirun", *options, *words, folder, *program, "-v", *tests, timeout=900, **variables
    )
    found = verdicts(folder, ranks)
    assert done.returncode == 0, (done.stdout, done.stderr)
    return found


@pytest.mark.parametrize(
    ("mpi", "ranks"), [("openmpi", 2), ("openmpi", 3), ("openmpi", 4), ("mpich", 2)]
)
def test_the_same_passes_and_skips(
    mpi: str, ranks: int, suite: Path, lab: TestLab, tmp_path: Path
) -> None:
    if missing(mpi):
        pytest.skip(missing(mpi))
    report = tmp_path / "report.json"
    found = {}
    for offload in ("off", "sockets"):
        options = ("--offload", offload)
        variables = {"RADDLE_OFFLOAD": "always", "RADDLE_REPORT": str(report)}
        left_out = ("-e", "|".join(LEFT_OUT), *CRASHES[mpi])
        found[offload] = run(
            lab, suite, mpi, ranks, tmp_path / offload, options, left_out, **variables
        )
    assert found["off"] == found["sockets"]
    counts = Counter(found["sockets"][0].values())
    assert counts["ok"] > 1000, counts
    counters = json.loads(report.read_text())
    assert totals(counters, "offloaded").total() > 100
    assert totals(counters, "rounds")["fallbacks"] == 0


@pytest.mark.parametrize("mpi", LIBRARIES)
def test_recording_changes_no_verdict_about_messages(
    mpi: str, suite: Path, lab: TestLab, tmp_path: Path
) -> None:
    """In their trace, every message has both ends: else none could be made."""
    if missing(mpi):
        pytest.skip(missing(mpi))
    trace = tmp_path / "messages.trace.parquet"
    found = [
        run(lab, suite, mpi, 2, tmp_path / name, ("--offload", "off", *options), MESSAGES)
        for name, options in (("plain", ()), ("recorded", ("--record", str(trace))))
    ]
    assert found[0] == found[1]
    assert Counter(found[1][0].values())["ok"] > 150
    assert json.loads(_core.trace_describe(trace, matrix=False))["messages"] > 10_000


@pytest.mark.parametrize("ranks", [2, 3])
def test_scheduling_changes_no_verdict_about_messages(
    ranks: int, suite: Path, lab: TestLab, tmp_path: Path
) -> None:
    """One thread at a time, since scheduling leaves programs with several alone."""
    report = tmp_path / "report.json"
    one_thread = {"MPI4PY_RC_THREAD_LEVEL": "serialized", "RADDLE_REPORT": str(report)}
    tests = ("-e", "|".join(LEFT_OUT))
    found = [
        run(
            lab, suite, "openmpi", ranks, tmp_path / schedule, ("--offload", "off"), tests,
            RADDLE_SCHEDULE=schedule, **one_thread,
        )
        for schedule in ("off", "force")
    ]  # fmt: skip
    assert found[0] == found[1]
    assert Counter(found[1][0].values())["ok"] > 1000
    messages = json.loads(report.read_text())["messages"]
    assert min(messages[name] for name in ("copied", "by_reference", "parcels")) > 1000
