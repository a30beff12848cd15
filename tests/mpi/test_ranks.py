"""One run on several MPI ranks: the same bytes as on one, and an end whatever happens to a rank."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

MPIRUN = shutil.which("mpirun.openmpi")
PROGRAM = Path(sys.executable).with_name("raddle-mpi-run")
PATIENCE_S = 120
pytest.importorskip("mpi4py")
pytestmark = pytest.mark.skipif(MPIRUN is None, reason="needs openmpi-bin")

TREE = """\
[fabric]
kind = "k-ary-fat-tree"
k = 6
"""
PERMUTATION = f"""\
schema = 1
name = "permutation"
{TREE}
[traffic]
generator = "permutation"
size = "64KiB"
[simulation]
schemes = ["hpcc", "dcqcn"]
"""
TROUBLE = f"""\
schema = 1
name = "trouble"
{TREE}
[traffic]
generator = "hpc-mix"
[simulation]
schemes = ["dcqcn"]
lossless = false
buffer = "200KB"
end = "100us"
reroute_delay = "10us"
[[simulation.faults]]
link = [0, 54]
down = "20us"
up = "60us"
[record]
paths = true
busiest = 10
sample_interval = "2us"
"""
GROUPS = """\
schema = 1
name = "groups"
[fabric]
kind = "cn-tn"
m = 4
q = 4
p = 2
k = 2
w = 4
terminals_per_l0 = 3
cns = 2
[traffic]
generator = "multicast"
dims = [4, 6]
processes_per_terminal = 1
operation = "allreduce"
combining = "on-tree"
size = "1000B"
rounds = 3
engine = "c-mr4lms-fixed"
colours = 8
[simulation]
schemes = ["none"]
"""
CLOSED_LOOP = f"""\
schema = 1
name = "closed-loop"
{TREE}
[traffic]
generator = "gpcnet"
[simulation]
schemes = ["pint"]
end = "60us"
"""


def started(file: Path, out: Path, ranks: int) -> subprocess.Popen[str]:
    """`mpirun` of an experiment."""
    assert MPIRUN is not None
    words = [MPIRUN, "--allow-run-as-root", "--oversubscribe", "-n", str(ranks), str(PROGRAM)]
    return subprocess.Popen(
        [*words, str(file), "--out", str(out), "--quiet", "--no-report"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def results(folder: Path) -> dict[str, bytes]:
    """All files but those that say how long it took, and on what."""
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and file.name != "manifest.json"
    }


def run_alone(file: Path, out: Path) -> dict[str, bytes]:
    """What one process leaves."""
    words = [PROGRAM.with_name("raddle"), "run", file, "--out", out, "--quiet", "--no-report"]
    subprocess.run([*map(str, words), "--threads", "1"], check=True, capture_output=True)
    return results(out)


@pytest.mark.parametrize(
    ("text", "counts"),
    [(PERMUTATION, (2, 3, 4)), (TROUBLE, (3,)), (GROUPS, (2,)), (CLOSED_LOOP, (4,))],
    ids=["permutation", "trouble", "groups", "closed-loop"],
)
def test_ranks_do_not_show(text: str, counts: tuple[int, ...], tmp_path: Path) -> None:
    file = tmp_path / "experiment.toml"
    file.write_text(text)
    expected = run_alone(file, tmp_path / "alone")
    assert len(expected) > 7
    for ranks in counts:
        out = tmp_path / str(ranks)
        _, said = (program := started(file, out, ranks)).communicate(timeout=PATIENCE_S)
        assert program.returncode == 0, said
        assert results(out) == expected, f"{ranks} ranks"


def test_what_is_wrong_is_said_once(tmp_path: Path) -> None:
    file = tmp_path / "experiment.toml"
    file.write_text(PERMUTATION.replace('"64KiB"', '"64"'))
    _, said = (program := started(file, tmp_path / "out", 3)).communicate(timeout=PATIENCE_S)
    assert program.returncode == 2
    assert said.count("error: ") == 1, said
    assert f"{file}:9:8: `size`" in said


def test_more_ranks_than_parts_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "experiment.toml"
    file.write_text(PERMUTATION.replace(TREE, '[fabric]\nkind = "dumbbell"\nhosts_per_side = 2\n'))
    _, said = (program := started(file, tmp_path / "out", 3)).communicate(timeout=PATIENCE_S)
    assert program.returncode == 2
    assert "3 ranks are too many: this fabric can be shared out over 2" in said


def test_a_rank_that_dies_ends_the_command_and_what_is_finished_stays(tmp_path: Path) -> None:
    file, out = tmp_path / "experiment.toml", tmp_path / "out"
    file.write_text(PERMUTATION.replace("64KiB", "256KiB"))
    program = started(file, out, 3)
    try:
        wait_for(program, lambda: list(out.glob(".runs/*-loaded/stats.json")))
        os.kill(ranks_of(program)[1], signal.SIGKILL)
        _, said = program.communicate(timeout=PATIENCE_S)
    finally:
        program.kill()
    assert program.returncode != 0
    assert "rank 1" in said
    done = {stats: stats.stat().st_mtime_ns for stats in out.glob(".runs/*-loaded/stats.json")}
    assert done
    # The same command goes on.
    _, said = (program := started(file, out, 3)).communicate(timeout=PATIENCE_S)
    assert program.returncode == 0, said
    assert {stats: stats.stat().st_mtime_ns for stats in done} == done
    assert results(out) == run_alone(file, tmp_path / "alone")


def test_an_interrupt_ends_all_ranks(tmp_path: Path) -> None:
    file, out = tmp_path / "experiment.toml", tmp_path / "out"
    file.write_text(PERMUTATION.replace("64KiB", "64MiB"))
    program = started(file, out, 2)
    try:
        wait_for(program, lambda: list(out.glob(".runs/**/flows.parquet")))
        program.send_signal(signal.SIGINT)
        program.communicate(timeout=PATIENCE_S)
    finally:
        program.kill()
    assert program.returncode != 0
    assert not list(out.glob(".runs/*-loaded"))
    assert not list(out.glob(".runs/.*")), "nothing half-written stays"


def wait_for(program: subprocess.Popen[str], there: Callable[[], object]) -> None:
    """Wait until something is there while the program goes on."""
    until = time.monotonic() + PATIENCE_S
    while not there():
        assert time.monotonic() < until
        assert program.poll() is None, program.communicate()[1]
        time.sleep(0.02)


def ranks_of(program: subprocess.Popen[str]) -> list[int]:
    """Processes that `mpirun` has started, by rank."""
    found = {}
    for status in Path("/proc").glob("[0-9]*/environ"):
        try:
            variables = status.read_bytes().split(b"\0")
            parent = int((status.parent / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            continue  # it has ended meanwhile
        for variable in variables:
            if parent == program.pid and variable.startswith(b"OMPI_COMM_WORLD_RANK="):
                found[int(variable.partition(b"=")[2])] = int(status.parent.name)
    return [found[rank] for rank in sorted(found)]
