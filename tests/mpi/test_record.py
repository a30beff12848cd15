"""The recorder: a trace has what the program counted for itself, and no result changes."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from mpi_lab import (
    ENVIRONMENT,
    LAUNCH,
    TestLab,
    build,
    build_fortran,
    lab_up,
    libraries,
    missing,
    needs,
    run_alone,
    start_alone,
)
from raddle import _core
from raddle.errors import TraceError

Pair = tuple[int, int]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    build(folder, "messages", "threads", "ends", "collectives")
    build_fortran(folder, "messages")
    return folder


def run_raddle(*words: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "raddle", "record", *map(str, words)],
        env={**ENVIRONMENT, **variables}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def record(trace: Path, mpi: str, ranks: int, *program: str | Path) -> str:
    """Run a program by `raddle record`; what it printed, and the last line of JSON."""
    launch = (*LAUNCH[mpi], "-np", str(ranks))
    done = run_raddle("--out", trace, "--json", "--", *launch, *program)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "raddle" not in done.stderr, "it speaks without being asked"
    return done.stdout


class Trace:
    """What a trace says was sent and received between pairs of ranks, and called."""

    def __init__(self, path: Path) -> None:
        self.rows = pq.read_table(path).to_pylist()
        self.calls = Counter(row["action"] for row in self.rows)

    def messages(self, action: str) -> Counter[tuple[Pair, int]]:
        """How often so many bytes went from a rank to another, by one end's words."""
        found: Counter[tuple[Pair, int]] = Counter()
        for row in self.rows:
            if row["action"] == action:
                ends = (row["rank"], row["peer"])
                found[(ends if action == "send" else ends[::-1], row["bytes"])] += 1
        return found

    def sent(self) -> dict[Pair, tuple[int, int]]:
        """Messages and bytes of each pair."""
        totals: dict[Pair, tuple[int, int]] = {}
        for (pair, size), times in self.messages("send").items():
            messages, octets = totals.get(pair, (0, 0))
            totals[pair] = (messages + times, octets + times * size)
        return totals


@libraries
@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_the_trace_has_what_the_program_counted(
    mpi: str, ranks: int, programs: Path, tmp_path: Path
) -> None:
    path = tmp_path / "messages.trace.parquet"
    said = record(path, mpi, ranks, programs / f"messages-{mpi}").splitlines()
    assert "wrong 0" in said
    trace = Trace(path)
    words = [line.split() for line in said]
    pairs = {(int(w[1]), int(w[2])): (int(w[3]), int(w[4])) for w in words if w[0] == "pair"}
    assert trace.sent() == pairs
    assert trace.messages("send") == trace.messages("receive")
    for w in words:
        if w[0] == "collective":
            assert trace.calls[w[1]] == int(w[2]), w[1]
    assert trace.calls["end"] == ranks
    told = json.loads(said[-1])["trace"]
    assert told["ranks"] == ranks
    assert told["messages"] == sum(messages for messages, _ in pairs.values())


@libraries
@pytest.mark.parametrize("interface", ["mpi", "mpi_f08"])
def test_fortran_messages_are_recorded(
    mpi: str, interface: str, programs: Path, tmp_path: Path
) -> None:
    program = programs / f"{interface}-{mpi}"
    if not program.exists():
        pytest.skip(f"mpif90.{mpi} needs gfortran")
    path = tmp_path / "fortran.trace.parquet"
    said = record(path, mpi, 3, program).splitlines()
    assert "wrong 0" in said
    (counted,) = (line.split() for line in said if line.startswith("sent "))
    sent = Trace(path).sent().values()
    assert sum(m for m, _ in sent) == int(counted[1])
    assert sum(b for _, b in sent) == int(counted[2])


@libraries
def test_threads_are_recorded(mpi: str, programs: Path, tmp_path: Path) -> None:
    path = tmp_path / "threads.trace.parquet"
    said = record(path, mpi, 2, programs / f"threads-{mpi}", "500").split()
    assert said[:4] == ["sent", "4000", "wrong", "0"]
    trace = Trace(path)
    assert trace.calls["send"] == 4000
    assert trace.messages("send") == trace.messages("receive")


@libraries
def test_collectives_have_the_same_results(mpi: str, programs: Path, tmp_path: Path) -> None:
    path = tmp_path / "collectives.trace.parquet"
    assert "differences 0" in record(path, mpi, 2, programs / f"collectives-{mpi}")
    calls = Trace(path).calls
    assert min(calls[name] for name in ("allreduce", "reduce", "bcast", "barrier")) > 100


def recordings(folder: Path) -> list[int]:
    return [file.stat().st_size for file in sorted(folder.glob("rank-*.rec"))]


@libraries
@pytest.mark.parametrize(("how", "status"), [("abort", 3), ("exit", 4)])
def test_a_program_that_breaks_off_leaves_what_it_has(
    mpi: str, how: str, status: int, programs: Path, tmp_path: Path
) -> None:
    path, program = tmp_path / "a.trace.parquet", programs / f"ends-{mpi}"
    done = run_raddle("--out", path, "--", *LAUNCH[mpi], "-np", "2", program, how)
    # MPICH's launcher is at times hung up by a signal before it passes the program's status on.
    hung_up = mpi == "mpich" and "Hangup" in done.stdout and done.returncode == 1
    assert done.returncode == status or hung_up, done.stdout + done.stderr
    assert "left no trace" in done.stderr
    assert [*tmp_path.iterdir()] == []
    # The same without the command, which takes the recordings away.
    folder = tmp_path / "recordings"
    assert start_alone(mpi, 2, program, how, RADDLE_RECORD=str(folder)).returncode == status
    assert max(recordings(folder)) > 20
    with pytest.raises(TraceError, match="MPI_Finalize"):
        _core.assemble_trace(folder, path)


@libraries
def test_a_child_process_adds_nothing(mpi: str, programs: Path, tmp_path: Path) -> None:
    path = tmp_path / "child.trace.parquet"
    record(path, mpi, 2, programs / f"ends-{mpi}", "child")
    assert Trace(path).calls == {"send": 2, "receive": 2, "wait": 2, "barrier": 2, "end": 2}


@libraries
def test_a_folder_that_cannot_be_written_is_said(mpi: str, programs: Path) -> None:
    said = run_alone(mpi, 2, programs / f"ends-{mpi}", RADDLE_RECORD="/proc/nowhere")
    assert said.count("/proc/nowhere") == 2


def test_what_cannot_be_recorded_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a.trace.parquet"
    done = run_raddle("--out", path, "--", "true")
    assert done.returncode == 2
    assert "nothing was recorded" in done.stderr
    done = run_raddle("--out", path, "--", "true", RADDLE_DISABLE="1")
    assert done.returncode == 2
    assert "RADDLE_DISABLE" in done.stderr
    done = run_raddle("--out", tmp_path / "a.parquet", "--", "true")
    assert done.returncode == 2
    assert ".trace.parquet" in done.stderr
    assert run_raddle("--out", path, "--", "sh", "-c", "exit 5").returncode == 5
    assert run_raddle("--out", path, "--", "no-such-program").returncode == 2
    assert [*tmp_path.iterdir()] == []


@pytest.fixture(scope="module")
def lab() -> Iterator[TestLab]:
    words = ("--hosts", "3", "--hosts-per-tor", "2", "--rates", "400Mbps")
    with lab_up("record", *words, "--offload", "off") as lab:
        yield lab


# MPICH never yields: no more ranks than cores.
@needs("openmpi")
@pytest.mark.parametrize("offload", ["off", "sockets"])
@pytest.mark.parametrize(
    ("mpi", "ppn", "placement"), [("openmpi", "1,2,1", [0, 1, 1, 2]), ("mpich", "1,1", [0, 1])]
)
def test_a_trace_of_a_lab_has_its_hosts_and_fabric(
    mpi: str, ppn: str, placement: list[int], offload: str, lab: TestLab, programs: Path,
    tmp_path: Path,
) -> None:  # fmt: skip
    if missing(mpi):
        pytest.skip(missing(mpi))
    path, hosts = tmp_path / "lab.trace.parquet", max(placement) + 1
    words = ("--mpi", mpi, "--offload", offload, "--hosts", str(hosts), "--ppn", ppn)
    done = lab.run("mpirun", *words, "--record", path, "--", programs / f"messages-{mpi}", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    metadata = pq.read_metadata(path).metadata
    assert metadata is not None
    assert json.loads(metadata[b"raddle.hosts"]) == ["h1", "h2", "h3"][:hosts]
    assert json.loads(metadata[b"raddle.placement"]) == placement
    fabric = metadata[b"raddle.fabric"].decode()
    assert "leaves = 2" in fabric
    assert 'host_rate = "400000000bps"' in fabric
