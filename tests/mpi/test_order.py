"""The orders of additions that we know are those of the installed MPI libraries, to the bit."""

import os
import shutil
import subprocess
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROBE = Path(__file__).with_name("order_probe.c")
EIGHT_KIB = 8192
SIZES = {"MPI_FLOAT": 4, "MPI_DOUBLE": 8, "MPI_FLOAT_INT": 8, "MPI_DOUBLE_INT": 12}
NARROW = {"MPI_INT8_T", "MPI_UINT8_T", "MPI_INT16_T", "MPI_UINT16_T"}


@dataclass(frozen=True)
class Library:
    """An MPI library and how it is started."""

    name: str
    compiler: str
    launcher: tuple[str, ...]
    version: str


OPEN_MPI = Library(
    "openmpi",
    "mpicc.openmpi",
    (
        "mpirun.openmpi",
        *("--oversubscribe", "--allow-run-as-root", "--mca", "mpi_yield_when_idle", "1"),
        *("--mca", "hwloc_base_binding_policy", "none"),
    ),
    "(OpenRTE) 4.1.",
)
MPICH = Library("mpich", "mpicc.mpich", ("mpiexec.mpich",), "4.0.")


@dataclass(frozen=True)
class Verdict:
    """What our core says to a line of the probe."""

    word: str
    line: str

    @property
    def words(self) -> list[str]:
        return self.line.split()


def judge(
    library: Library, folder: Path, ranks: int, *arguments: str, cliques: int = 1
) -> list[Verdict]:
    """Run the probe on so many ranks and let our core judge its lines."""
    for tool in (library.compiler, library.launcher[0]):
        if shutil.which(tool) is None:
            pytest.skip(f"needs {tool} (packages openmpi-bin libopenmpi-dev mpich libmpich-dev)")
    version = "mpichversion" if library is MPICH else library.launcher[0]
    shown = subprocess.run([version, "--version"], capture_output=True, text=True, check=False)
    if library.version not in shown.stdout:
        pytest.skip(f"needs another version of {library.name}: {library.version}")
    program = folder / f"order_probe.{library.name}"
    subprocess.run(
        [library.compiler, "-O1", "-Wall", "-Wextra", "-Werror", "-o", program, PROBE], check=True
    )
    probed = subprocess.run(
        [*library.launcher, "-n", str(ranks), program, *arguments],
        env={**os.environ, "MPIR_CVAR_NUM_CLIQUES": str(cliques)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert probed.returncode == 0, probed.stderr
    command = ["cargo", "run", "--locked", "--quiet", "-p", "raddle-offload"]
    command += ["--example", "order_of", "--", library.name]
    judged = subprocess.run(
        command, cwd=ROOT, input=probed.stdout, capture_output=True, text=True, check=False
    )
    assert judged.returncode == 0, judged.stderr
    verdicts = [Verdict(*line.split("\t")) for line in judged.stdout.splitlines()]
    assert verdicts
    return verdicts


def check_calls(verdicts: list[Verdict]) -> None:
    """Nothing differs, and sums of up to 8 KiB are not left to the plain call."""
    assert not [v for v in verdicts if v.word == "DIFFERS"][:20]
    for verdict in verdicts:
        _, _, operation, data_type, _, count, size, *_ = verdict.words
        size_bytes = int(count) * SIZES[data_type]
        # Open MPI's ring on three ranks adds each block in another order.
        ring = size == "3" and size_bytes >= EIGHT_KIB // 2
        if operation in ("MPI_SUM", "MPI_PROD") and size_bytes <= EIGHT_KIB and not ring:
            assert verdict.word == "same", verdict
    assert Counter(v.word for v in verdicts)["same"] > len(verdicts) // 3


def test_open_mpi_adds_in_the_order_that_we_know(tmp_path: Path) -> None:
    counts = (1, 2, 3, 8, 16, 32, 33, 255, 257, 511, 512, 1023, 1024, 2048, 2500)
    check_calls(judge(OPEN_MPI, tmp_path, 16, "calls", "1", "16", *map(str, counts)))


@pytest.mark.scale
def test_open_mpi_adds_in_the_order_that_we_know_at_every_count(tmp_path: Path) -> None:
    check_calls(judge(OPEN_MPI, tmp_path, 16, "calls", "3", "16"))


@pytest.mark.parametrize("cliques", [1, 2])
def test_mpich_adds_in_the_order_that_we_know_on_two_ranks(tmp_path: Path, cliques: int) -> None:
    check_calls(judge(MPICH, tmp_path, 2, "calls", "1", "2", cliques=cliques))


@pytest.mark.scale  # MPICH never yields
@pytest.mark.parametrize("cliques", [1, 4])
def test_mpich_adds_in_the_order_that_we_know_on_four_ranks(tmp_path: Path, cliques: int) -> None:
    # It never yields: few calls where ranks outnumber cores.
    counts = ("1", "3", "257", "1024")
    check_calls(judge(MPICH, tmp_path, 4, "calls", "1", "4", *counts, cliques=cliques))


def differing(verdicts: list[Verdict]) -> set[tuple[str, str]]:
    """Operations and types for which a library's arithmetic is not ours."""
    return {(v.words[1], v.words[2]) for v in verdicts if v.word == "DIFFERS"}


def test_arithmetic_of_open_mpi(tmp_path: Path) -> None:
    # With vectors, sums of narrow numbers saturate; without, nothing differs.
    found = differing(judge(OPEN_MPI, tmp_path, 1, "local"))
    assert found <= {("MPI_SUM", data_type) for data_type in NARROW}


def test_arithmetic_of_mpich(tmp_path: Path) -> None:
    unsigned = [f"MPI_UINT{bits}_T" for bits in (8, 16, 32, 64)]
    found = differing(judge(MPICH, tmp_path, 1, "local"))
    # 4.0 compares unsigned numbers as signed ones (repaired later).
    assert found <= {(o, t) for o in ("MPI_MAX", "MPI_MIN") for t in unsigned}
