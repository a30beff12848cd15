"""libraddle_mpi.so under unmodified programs: the bits of plain MPI, whatever dies meanwhile."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
RELEASE = ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "release"
LIBRARY = RELEASE / "libraddle_mpi.so"
LAB = f"mpi{os.getpid()}"
LAUNCH = {
    "openmpi": (
        *("mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"),
        *("--mca", "mpi_yield_when_idle", "1"),
    ),
    "mpich": ("mpiexec.mpich",),
}
ENVIRONMENT = {n: v for n, v in os.environ.items() if not n.startswith("RADDLE_")}


def missing(mpi: str) -> str:
    """Why programs of this MPI library cannot be tested here; empty if they can."""
    if not (RELEASE / f"libraddle_mpi_{mpi}.so").is_file():
        return f"libraddle_mpi_{mpi}.so is not built (make build, lib{mpi}-dev)"
    return "" if shutil.which(f"mpicc.{mpi}") else f"mpicc.{mpi} is not installed"


def lab_missing() -> str:
    """Why there can be no lab here; empty if there can."""
    if os.geteuid() != 0:
        return "a lab needs root"
    switch = shutil.which(
        "raddle-switch", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    )
    return "" if switch else "raddle-switch is not built (make build)"


libraries = pytest.mark.parametrize(
    "mpi",
    [
        pytest.param(m, marks=pytest.mark.skipif(bool(missing(m)), reason=missing(m)))
        for m in LAUNCH
    ],
)
needs_lab = pytest.mark.skipif(
    bool(lab_missing() or missing("openmpi")), reason=lab_missing() or missing("openmpi")
)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    for mpi in LAUNCH:
        if missing(mpi):
            continue
        for source in ("collectives", "rounds"):
            command = [f"mpicc.{mpi}", "-O1", "-Wall", "-Wextra", "-Werror", "-include", "stddef.h"]
            command += ["-o", str(folder / f"{source}-{mpi}"), str(HERE / f"{source}.c"), "-lm"]
            subprocess.run(command, check=True)
        if shutil.which(f"mpif90.{mpi}") and shutil.which("gfortran"):
            for name, flags in {"mpi": ["-DUSE_MPI"], "mpi_f08": []}.items():
                command = [f"mpif90.{mpi}", "-cpp", *flags, "-o", str(folder / f"{name}-{mpi}")]
                # Modules and the like go to the folder that the compiler runs in.
                command.append(str(HERE / "fortran.f90"))
                subprocess.run(command, check=True, cwd=folder, stderr=subprocess.DEVNULL)
    return folder


def run_alone(mpi: str, ranks: int, program: Path, **variables: str) -> str:
    """Run a program on this machine with the library under it; give what it printed."""
    command = [*LAUNCH[mpi], "-np", str(ranks), "env", f"LD_PRELOAD={LIBRARY}"]
    command += [f"{name}={value}" for name, value in variables.items()]
    done = subprocess.run(
        [*command, str(program)], env=ENVIRONMENT, capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def totals(report: dict[str, Any], key: str) -> Counter[str]:
    """Add up one kind of counters over all communicators of a report."""
    total: Counter[str] = Counter()
    for communicator in report["communicators"]:
        total.update(communicator["counts"][key])
    return total


@libraries
def test_without_a_job_every_call_is_plain_and_counted(
    mpi: str, programs: Path, tmp_path: Path
) -> None:
    report = tmp_path / "report.json"
    said = run_alone(mpi, 2, programs / f"collectives-{mpi}", RADDLE_REPORT=str(report))
    assert "differences 0" in said
    assert "raddle" not in said, "it speaks without being asked"
    parsed = json.loads(report.read_text())
    assert parsed["ranks"] == 2
    assert totals(parsed, "offloaded") == {}
    plain, calls = totals(parsed, "plain"), totals(parsed, "calls")
    assert plain.total() == calls.total()
    assert plain["no_job"] > 1000
    assert min(calls[f"MPI_{name}"] for name in ("Allreduce", "Reduce", "Bcast", "Barrier")) > 100


@libraries
@pytest.mark.parametrize("interface", ["mpi", "mpi_f08"])
def test_fortran_calls_are_seen(mpi: str, interface: str, programs: Path, tmp_path: Path) -> None:
    program = programs / f"{interface}-{mpi}"
    if not program.exists():
        pytest.skip(f"mpif90.{mpi} needs gfortran")
    report = tmp_path / "report.json"
    assert "wrong 0" in run_alone(mpi, 2, program, RADDLE_REPORT=str(report))
    calls = totals(json.loads(report.read_text()), "calls")
    # 200 rounds; the last Reduce is one more.
    assert calls == {
        "MPI_Allreduce": 1200, "MPI_Reduce": 201, "MPI_Bcast": 200, "MPI_Barrier": 200,
    }  # fmt: skip


@libraries
def test_disabled_it_wraps_nothing(mpi: str, programs: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    variables = {"RADDLE_REPORT": str(report), "RADDLE_DISABLE": "1", "RADDLE_LOG": "info"}
    said = run_alone(mpi, 2, programs / f"rounds-{mpi}", **variables)
    assert "wrong 0" in said
    assert not report.exists()


@pytest.mark.skipif(not LIBRARY.is_file(), reason=f"{LIBRARY} is not built (make build)")
def test_programs_without_mpi_do_not_notice() -> None:
    for words in (["sh", "-c", "echo fine"], [sys.executable, "-c", "print('fine')"]):
        done = subprocess.run(
            words, env={**ENVIRONMENT, "LD_PRELOAD": str(LIBRARY), "RADDLE_LOG": "info"},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert (done.stdout, done.stderr) == ("fine\n", "")


def test_the_page_has_every_setting_and_reason() -> None:
    page = (ROOT / "docs" / "mpi.md").read_text()
    table = tomllib.loads((ROOT / "crates" / "mpi" / "settings.toml").read_text())["setting"]
    for setting in (row for row in table if row["used_by"] == "mpi"):
        assert f"| `{setting['name']}` |" in page, setting["name"]
    source = (ROOT / "crates" / "mpi" / "src" / "reason.rs").read_text()
    rows = source[source.index("reasons! {") :].splitlines()[1:]
    keys = [row.split('"')[1] for row in rows if row.count('"') == 4]
    assert len(keys) > 15
    for key in keys:
        if key != "eligible":
            assert f"| `{key}` |" in page, key


def lab(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "raddle", "lab", *words], env={**ENVIRONMENT, **variables},
        capture_output=True, text=True, timeout=240, check=False,
    )  # fmt: skip


def run_in_lab(report: Path, *words: str | Path, **variables: str) -> dict[str, Any]:
    """Run a program in the lab; give the library's report."""
    report.unlink(missing_ok=True)
    done = lab("mpirun", "--name", LAB, *map(str, words), RADDLE_REPORT=str(report), **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    parsed: dict[str, Any] = json.loads(report.read_text())
    return parsed


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    done = lab("up", "--name", LAB, "--hosts", "5", "--hosts-per-tor", "2", "--offload", "sockets")
    assert done.returncode == 0, done.stderr
    yield
    lab("down", "--name", LAB)


@needs_lab
@pytest.mark.usefixtures("cluster")
def test_offloaded_results_have_the_bits_of_plain_mpi(programs: Path, tmp_path: Path) -> None:
    program = programs / "collectives-openmpi"
    report = run_in_lab(tmp_path / "r", "--", program, RADDLE_OFFLOAD="always")
    offloaded = totals(report, "offloaded")
    assert min(offloaded[f"MPI_{n}"] for n in ("Allreduce", "Reduce", "Bcast", "Barrier")) > 100
    assert offloaded.total() > 0.7 * totals(report, "calls").total()
    assert totals(report, "rounds")["fallbacks"] == 0


@needs_lab
@pytest.mark.usefixtures("cluster")
def test_uneven_nodes_and_measured_choice(programs: Path, tmp_path: Path) -> None:
    program = programs / "collectives-openmpi"
    report = run_in_lab(tmp_path / "r", "--ppn", "1,3,2,1,2", "--", program)
    assert totals(report, "offloaded").total() > 1000
    assert totals(report, "plain")["measuring"] > 100


def switches(name: str) -> list[int]:
    """Give the process ids of one switch of our lab."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_text()
        except OSError:
            continue
        if "raddle-switch" in words and f"/{LAB}/{name}" in words:
            found.append(int(folder.name))
    return found


@needs_lab
@pytest.mark.scale
@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("switch", ["tor1", "spine1"])
def test_a_switch_that_dies_changes_no_result(switch: str, programs: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    words = [sys.executable, "-m", "raddle", "lab", "mpirun", "--name", LAB, "--"]
    # One rank computes for 5 s while the others wait for it and the switch dies.
    words += [str(programs / "rounds-openmpi"), "3000", "1000", "1", "200", "5"]
    variables = {"RADDLE_OFFLOAD": "always", "RADDLE_REPORT": str(report)}
    with subprocess.Popen(
        words, env={**ENVIRONMENT, **variables}, stdout=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        assert "begun" in running.stdout.readline()
        time.sleep(2)
        (process,) = switches(switch)
        os.kill(process, signal.SIGKILL)
        # It is also the network between the hosts: plain MPI needs it back.
        assert lab("switch", switch, "start", "--name", LAB).returncode == 0
        said, _ = running.communicate(timeout=200)
        assert running.returncode == 0, said
    assert "wrong 0" in said
    counts = totals(json.loads(report.read_text()), "rounds")
    assert counts["fallbacks"] > 0
    assert counts["rounds"] > 0
