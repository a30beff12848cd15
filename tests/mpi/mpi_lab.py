"""What tests of libraddle_mpi.so share: MPI libraries, programs, a lab, reports."""

import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
RELEASE = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "release"
LIBRARY = RELEASE / "libraddle_mpi.so"
PATH = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
ENVIRONMENT = {n: v for n, v in os.environ.items() if not n.startswith("RADDLE_")}
LIBRARIES = ("openmpi", "mpich")
PATIENCE_S = 150.0
"""How long something may take that is only a matter of time."""
LAUNCH = {
    "openmpi": (
        *("mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"),
        *("--mca", "mpi_yield_when_idle", "1"),
    ),
    "mpich": ("mpiexec.mpich",),
}
"""How ranks are started on this machine."""


def missing(mpi: str) -> str:
    """Why programs of this MPI library cannot be tested here; empty if they can."""
    if not (RELEASE / f"libraddle_mpi_{mpi}.so").is_file():
        return f"libraddle_mpi_{mpi}.so is not built (make build, lib{mpi}-dev)"
    return "" if shutil.which(f"mpicc.{mpi}") else f"mpicc.{mpi} is not installed"


libraries = pytest.mark.parametrize(
    "mpi",
    [
        pytest.param(m, marks=pytest.mark.skipif(bool(missing(m)), reason=missing(m)))
        for m in LIBRARIES
    ],
)
"""A test of each MPI library."""


def lab_missing() -> str:
    """Why there can be no lab here; empty if there can."""
    if os.geteuid() != 0:
        return "a lab needs root"
    return "" if shutil.which("raddle-switch", path=PATH) else "raddle-switch is not built"


def needs(mpi: str) -> pytest.MarkDecorator:
    """Skip without a lab or this MPI library."""
    why = lab_missing() or missing(mpi)
    return pytest.mark.skipif(bool(why), reason=why)


def build(folder: Path, *sources: str) -> None:
    """Compile programs of this folder for each MPI library: FOLDER/SOURCE-LIBRARY."""
    for mpi in LIBRARIES:
        if missing(mpi):
            continue
        for source in sources:
            command = [f"mpicc.{mpi}", "-O1", "-Wall", "-Wextra", "-Werror", "-include", "stddef.h"]
            command += ["-o", str(folder / f"{source}-{mpi}"), str(HERE / f"{source}.c"), "-lm"]
            subprocess.run(command, check=True)


def build_fortran(folder: Path, source: str = "fortran") -> None:
    """Compile a Fortran program both ways: FOLDER/mpi-LIBRARY and FOLDER/mpi_f08-LIBRARY."""
    for mpi in LIBRARIES:
        if missing(mpi) or not (shutil.which(f"mpif90.{mpi}") and shutil.which("gfortran")):
            continue
        for name, flags in {"mpi": ["-DUSE_MPI"], "mpi_f08": []}.items():
            command = [f"mpif90.{mpi}", "-cpp", *flags, "-o", str(folder / f"{name}-{mpi}")]
            # Modules and the like go to the folder that the compiler runs in.
            command.append(str(HERE / f"{source}.f90"))
            subprocess.run(command, check=True, cwd=folder, stderr=subprocess.DEVNULL)


def start_alone(
    mpi: str, ranks: int, *program: str | Path, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a program on this machine with the library under it."""
    command = [*LAUNCH[mpi], "-np", str(ranks), "env", f"LD_PRELOAD={LIBRARY}"]
    command += [f"{name}={value}" for name, value in variables.items()]
    return subprocess.run(
        [*command, *map(str, program)], env=ENVIRONMENT, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip


def run_alone(mpi: str, ranks: int, *program: str | Path, **variables: str) -> str:
    """Do so, and give what it printed."""
    done = start_alone(mpi, ranks, *program, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def totals(report: dict[str, Any], key: str) -> Counter[str]:
    """Add up one kind of counters over all communicators of a report."""
    total: Counter[str] = Counter()
    for communicator in report["communicators"]:
        total.update(communicator["counts"][key])
    return total


class TestLab:
    """A lab for tests, by its commands."""

    __test__ = False

    def __init__(self, name: str) -> None:
        self.name = name

    def words(self, command: str, *words: str | Path) -> list[str]:
        raddle = [sys.executable, "-m", "raddle", "lab", command]
        return [*raddle, "--name", self.name, *map(str, words)]

    def run(
        self, command: str, *words: str | Path, timeout: float = 240, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.words(command, *words), env={**ENVIRONMENT, **variables},
            capture_output=True, text=True, timeout=timeout, check=False,
        )  # fmt: skip

    def start(self, command: str, *words: str | Path, **variables: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            self.words(command, *words), env={**ENVIRONMENT, **variables},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def report(
        self, report: Path, *words: str | Path, timeout: float = 240, **variables: str
    ) -> dict[str, Any]:
        """Run an MPI program; give the library's report."""
        report.unlink(missing_ok=True)
        done = self.run("mpirun", *words, timeout=timeout, RADDLE_REPORT=str(report), **variables)
        assert done.returncode == 0, done.stdout + done.stderr
        parsed: dict[str, Any] = json.loads(report.read_text())
        return parsed

    def switch(self, name: str, action: str) -> None:
        done = self.run("switch", name, action)
        assert done.returncode == 0, done.stderr

    def status(self) -> dict[str, Any]:
        status: dict[str, Any] = json.loads(self.run("status", "--json").stdout)
        return status

    def jobs(self, switch: str) -> list[dict[str, Any]]:
        """The jobs of a switch, by its status command."""
        socket = Path(self.status()["folder"]) / "switches" / f"{switch}.sock"
        program = shutil.which("raddle-switch", path=PATH)
        assert program is not None
        done = subprocess.run(
            [program, "status", "--socket", socket, "--json"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        jobs: list[dict[str, Any]] = json.loads(done.stdout)["jobs"]
        return jobs


class Run:
    """A program in a lab, and what it has said so far."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.lines: list[str] = []
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as said:
            self.lines.extend(line.strip() for line in said)

    def until(self, text: str, times: int) -> None:
        """Wait until it has said so often what ends with `text`."""
        limit = time.monotonic() + PATIENCE_S
        while sum(line.endswith(text) for line in self.lines) < times:
            assert time.monotonic() < limit, f"no {times} x {text!r}: {self.lines}"
            assert self.process.poll() is None, self.lines
            time.sleep(0.01)

    def end(self) -> list[str]:
        """Wait for its end; the lines that it said."""
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.terminate()
            pytest.fail(f"it hangs: {self.lines}")
        self.reader.join(10)
        return self.lines


def die(lab: TestLab, switch: str, how: str) -> None:
    """A switch dies or is restarted. It is also the only way between hosts: it comes back."""
    if how == "kill":
        lab.switch(switch, "kill")
        time.sleep(3)
        lab.switch(switch, "start")
    else:
        lab.switch(switch, "restart")


def ranks(program: Path) -> list[int]:
    """Process ids of a program's ranks."""
    done = subprocess.run(
        ["pgrep", "-f", f"^{program}"], env=ENVIRONMENT, capture_output=True, text=True, check=True
    )
    return sorted(map(int, done.stdout.split()))


@contextmanager
def lab_up(part: str, *words: str) -> Iterator[TestLab]:
    """A lab while the block runs."""
    lab = TestLab(f"mpi-{part}-{os.getpid()}")
    done = lab.run("up", *words)
    assert done.returncode == 0, done.stderr
    try:
        yield lab
    finally:
        lab.run("down")
