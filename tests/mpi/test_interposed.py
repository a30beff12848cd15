"""libraddle_mpi.so under unmodified programs: the bits of plain MPI, whatever dies meanwhile."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from mpi_lab import (
    ENVIRONMENT,
    LIBRARY,
    ROOT,
    TestLab,
    build,
    build_fortran,
    lab_up,
    libraries,
    needs,
    run_alone,
    start_alone,
    totals,
)


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    build(folder, "collectives", "many", "progress", "rounds")
    build_fortran(folder)
    return folder


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


@libraries
def test_wrong_settings_are_said_once_for_all_ranks_and_only_where_asked(
    mpi: str, programs: Path
) -> None:
    program = (programs / f"rounds-{mpi}", "50")
    wrong = {"RADDLE_OFLOAD": "always", "RADDLE_ORDER": "tree"}
    assert start_alone(mpi, 2, *program, **wrong).stderr == ""
    said = start_alone(mpi, 2, *program, **wrong, RADDLE_LOG="info").stderr
    lines = [line.partition("]: ")[2] for line in said.splitlines() if line.startswith("raddle[")]
    assert lines[0].startswith("version ")
    assert sorted(line for line in lines if "RADDLE_O" in line) == [
        "RADDLE_OFLOAD is not known (`raddle config` lists all)",
        "RADDLE_ORDER=tree is ignored: it must be host | rank | arrival",
    ]
    # Each of ranks with different faults says its own.
    words = ("sh", "-c", 'RADDLE_ORDER=$$ exec "$0" "$@"', *program)
    said = start_alone(mpi, 2, *words, RADDLE_JOB="7").stderr
    assert said.count("is ignored: it must be host | rank | arrival") == 2


@libraries
def test_tries_that_fail_cost_the_program_nothing_but_time(
    mpi: str, programs: Path, tmp_path: Path
) -> None:
    """Two ranks that take each other for two nodes, and no switch between them."""
    report = tmp_path / "report.json"
    variables = {
        "RADDLE_JOB": "7", "RADDLE_JOB_KEY": "00" * 16, "RADDLE_OFFLOAD": "always",
        "RADDLE_SETUP_MS": "100", "RADDLE_COME_BACK_MS": "20", "RADDLE_REPORT": str(report),
    }  # fmt: skip
    words = ("sh", "-c", 'RADDLE_NODE=$$ exec "$0" "$@"', programs / f"rounds-{mpi}", "1500", "500")
    assert "wrong 0" in run_alone(mpi, 2, *words, **variables)
    (world,) = json.loads(report.read_text())["communicators"]
    assert world["state"] in {"no_switch", "no_interface"}
    assert world["counts"]["rounds"]["tries"] >= 2
    assert world["counts"]["rounds"]["comebacks"] == 0


@libraries
def test_a_report_lists_200_communicators_and_adds_up_all(
    mpi: str, programs: Path, tmp_path: Path
) -> None:
    """Each of two ranks has 300 communicators of its own, with two calls each."""
    report = tmp_path / "report.json"
    run_alone(mpi, 2, programs / f"many-{mpi}", "300", RADDLE_REPORT=str(report))
    parsed = json.loads(report.read_text())
    assert len(parsed["communicators"]) == 200
    assert parsed["others"]["communicators"] == 601 - 200
    assert parsed["calls"] == 2 * 2 * 300 + 5
    assert parsed["calls"] == (
        totals(parsed, "calls").total() + sum(parsed["others"]["counts"]["calls"].values())
    )
    # The one with the most calls is listed.
    assert "MPI_COMM_WORLD" in {one["name"] for one in parsed["communicators"]}


@pytest.mark.skipif(not LIBRARY.is_file(), reason=f"{LIBRARY} is not built (make build)")
def test_programs_without_mpi_do_not_notice() -> None:
    for words in (["sh", "-c", "echo fine"], [sys.executable, "-c", "print('fine')"]):
        done = subprocess.run(
            words, env={**ENVIRONMENT, "LD_PRELOAD": str(LIBRARY), "RADDLE_LOG": "info"},
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert (done.stdout, done.stderr) == ("fine\n", "")


def test_the_page_has_every_reason() -> None:
    page = (ROOT / "docs" / "reference" / "mpi.md").read_text()
    source = (ROOT / "crates" / "real" / "mpi" / "src" / "collectives" / "reason.rs").read_text()
    rows = source[source.index("reasons! {") :].splitlines()[1:]
    keys = [row.split('"')[1] for row in rows if row.count('"') == 4]
    assert len(keys) > 15
    for key in keys:
        if key != "eligible":
            assert f"| `{key}` |" in page, key


@pytest.fixture(scope="module")
def cluster() -> Iterator[TestLab]:
    words = ("--hosts", "5", "--hosts-per-tor", "2", "--offload", "sockets")
    with lab_up("interposed", *words) as lab:
        yield lab


@needs("openmpi")
def test_offloaded_results_have_the_bits_of_plain_mpi(
    cluster: TestLab, programs: Path, tmp_path: Path
) -> None:
    program = programs / "collectives-openmpi"
    report = cluster.report(tmp_path / "r", "--", program, RADDLE_OFFLOAD="always")
    offloaded = totals(report, "offloaded")
    assert min(offloaded[f"MPI_{n}"] for n in ("Allreduce", "Reduce", "Bcast", "Barrier")) > 100
    assert offloaded.total() > 0.7 * totals(report, "calls").total()
    assert totals(report, "rounds")["fallbacks"] == 0


@libraries
@pytest.mark.parametrize("offload", ["off", "sockets"])
def test_messages_move_while_collectives_are_offloaded(
    mpi: str, offload: str, cluster: TestLab, programs: Path, tmp_path: Path
) -> None:
    words = ("--mpi", mpi, "--hosts", "2", "--offload", offload, "--", programs / f"progress-{mpi}")
    if offload == "off":
        assert cluster.run("mpirun", *words).stdout == "wrong 0\n"
        return
    report = cluster.report(tmp_path / "r", *words, RADDLE_OFFLOAD="always")
    offloaded = totals(report, "offloaded")
    assert offloaded["MPI_Barrier"] > 300
    assert offloaded["MPI_Allreduce"] > 15_000


@needs("openmpi")
def test_uneven_nodes_and_measured_choice(cluster: TestLab, programs: Path, tmp_path: Path) -> None:
    program = programs / "collectives-openmpi"
    report = cluster.report(tmp_path / "r", "--ppn", "1,3,2,1,2", "--", program)
    assert totals(report, "offloaded").total() > 1000
    assert totals(report, "plain")["measuring"] > 100
