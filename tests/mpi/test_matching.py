"""Message scheduling under unmodified programs: what MPI promises is kept."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mpi_lab import (
    TestLab,
    build,
    build_fortran,
    lab_up,
    libraries,
    missing,
    needs,
    run_alone,
    totals,
)
from raddle import _core

ours = pytest.mark.skipif(bool(missing("openmpi")), reason=missing("openmpi"))
"""Messages are scheduled with Open MPI only."""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    build(folder, "matching", "messages", "threads", "ends", "asleep")
    build_fortran(folder, "messages")
    return folder


def run(
    tmp_path: Path, ranks: int, *program: str | Path, mpi: str = "openmpi", **variables: str
) -> dict[str, Any]:
    """Run a program with scheduling forced on; what the report says of messages."""
    report = tmp_path / "report.json"
    variables = {"RADDLE_SCHEDULE": "force", "RADDLE_REPORT": str(report), **variables}
    assert "wrong 0" in run_alone(mpi, ranks, *program, **variables)
    messages: dict[str, Any] = json.loads(report.read_text())["messages"]
    return messages


def on_nodes_of_their_own(*program: str | Path, ranks: int = 1) -> list[str]:
    """Words that run so many ranks as if they were alone on their node."""
    words = " ".join(map(str, program))
    return ["sh", "-c", f"RADDLE_NODE=n$((OMPI_COMM_WORLD_RANK / {ranks})) exec {words}"]


@ours
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_what_mpi_promises(ranks: int, programs: Path, tmp_path: Path) -> None:
    found = run(tmp_path, ranks, *on_nodes_of_their_own(programs / "matching-openmpi"))
    assert found["copied"] > 800 * ranks
    assert found["by_reference"] > 10 * ranks
    assert found["unexpected"] > 0
    if ranks > 1:
        assert found["parts"] > 3 * found["parcels"]


@ours
def test_messages_for_a_whole_node_are_handed_on(programs: Path, tmp_path: Path) -> None:
    program = on_nodes_of_their_own(programs / "matching-openmpi", ranks=2)
    found = run(tmp_path, 4, *program, RADDLE_SCHEDULE_SCOPE="rank-to-node")
    assert found["handed_on"] > 100
    assert run(tmp_path, 4, *program)["handed_on"] == 0


@ours
@pytest.mark.parametrize("leaders", ["1", "2"])
def test_the_published_window(leaders: str, programs: Path, tmp_path: Path) -> None:
    """It joins for nodes, so that leaders hand on, and what MPI promises is kept."""
    program = on_nodes_of_their_own(programs / "matching-openmpi", ranks=2)
    variables = {"RADDLE_SCHEDULE": "published", "RADDLE_SCHEDULE_LEADERS": leaders}
    found = run(tmp_path, 4, *program, **variables)
    assert found["handed_on"] > 100
    assert found["parts"] > found["parcels"]


@ours
def test_ranks_of_one_node_are_not_joined(programs: Path, tmp_path: Path) -> None:
    found = run(tmp_path, 2, programs / "matching-openmpi")
    assert found["parts"] == found["parcels"] > 100


@ours
@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_every_kind_of_call(ranks: int, programs: Path, tmp_path: Path) -> None:
    found = run(tmp_path, ranks, programs / "messages-openmpi", "5", "--serialized")
    assert found["copied"] > 50
    assert found["by_reference"] > 10


@ours
@pytest.mark.parametrize("interface", ["mpi", "mpi_f08"])
def test_fortran(interface: str, programs: Path, tmp_path: Path) -> None:
    program = programs / f"{interface}-openmpi"
    if not program.exists():
        pytest.skip("mpif90.openmpi needs gfortran")
    assert run(tmp_path, 3, program)["copied"] > 10


@ours
def test_a_recording_is_the_same(programs: Path, tmp_path: Path) -> None:
    program: list[str | Path] = [programs / "messages-openmpi", "2", "--serialized"]
    found = []
    for schedule in ("off", "force"):
        folder = tmp_path / schedule
        run(tmp_path, 3, *program, RADDLE_SCHEDULE=schedule, RADDLE_RECORD=str(folder))
        trace = tmp_path / f"{schedule}.trace.parquet"
        _core.assemble_trace(folder, trace)
        described = json.loads(_core.trace_describe(trace, matrix=True))
        found.append((described["messages"], described["bytes"]))
    assert found[0] == found[1]


@libraries
def test_by_default_nothing_is_scheduled(mpi: str, programs: Path, tmp_path: Path) -> None:
    program: list[str | Path] = [programs / f"messages-{mpi}", "1", "--serialized"]
    assert run(tmp_path, 2, *program, mpi=mpi, RADDLE_SCHEDULE="") == {"state": "off"}


@pytest.mark.skipif(bool(missing("mpich")), reason=missing("mpich"))
def test_an_mpi_library_without_a_way_in_stays_plain(programs: Path, tmp_path: Path) -> None:
    program: list[str | Path] = [programs / "messages-mpich", "1", "--serialized"]
    assert run(tmp_path, 2, *program, mpi="mpich") == {"state": "library"}


@ours
def test_several_threads_stay_plain(programs: Path, tmp_path: Path) -> None:
    found = run(tmp_path, 2, programs / "messages-openmpi", "1")
    assert found == {"state": "threads"}


@ours
def test_ranks_with_other_settings_stay_plain(programs: Path, tmp_path: Path) -> None:
    words = f"exec {programs / 'messages-openmpi'} 1 --serialized"
    differ = ["sh", "-c", f'[ "$OMPI_COMM_WORLD_RANK" = 1 ] && unset RADDLE_SCHEDULE; {words}']
    assert run(tmp_path, 3, *differ) == {"state": "settings"}


@ours
def test_where_nothing_is_joined_messages_become_plain(programs: Path, tmp_path: Path) -> None:
    program = on_nodes_of_their_own(programs / "messages-openmpi", "40", "--serialized")
    found = run(tmp_path, 3, *program, RADDLE_SCHEDULE="on")
    assert found["trials"]["plain"] >= 1
    forced = run(tmp_path, 3, *program)
    assert 0 < found["copied"] < forced["copied"] / 4


@ours
@pytest.mark.parametrize("ranks", [2, 3])
def test_what_comes_later_wakes_a_process_up(ranks: int, programs: Path, tmp_path: Path) -> None:
    program = on_nodes_of_their_own(programs / "asleep-openmpi")
    found = run(tmp_path, ranks, *program, RADDLE_SCHEDULE="on")
    assert found["trials"]["plain"] >= 1
    assert found["parts"] > 8 * found["parcels"]
    assert found["by_reference"] >= 3 * ranks


@ours
def test_who_hands_on_does_not_sleep(programs: Path, tmp_path: Path) -> None:
    program = on_nodes_of_their_own(programs / "asleep-openmpi", ranks=2)
    found = run(tmp_path, 4, *program, RADDLE_SCHEDULE="on", RADDLE_SCHEDULE_SCOPE="rank-to-node")
    assert found["handed_on"] > 1000


@ours
def test_while_nothing_is_ours_nobody_looks(programs: Path, tmp_path: Path) -> None:
    program = on_nodes_of_their_own(programs / "asleep-openmpi", "500")
    looks = {
        schedule: run(tmp_path, 3, *program, RADDLE_SCHEDULE=schedule)["looks"]
        for schedule in ("on", "force")
    }
    # Of 500; a trial on a busy machine takes longer, and looks meanwhile.
    assert looks["on"] < looks["force"] / 2


@pytest.fixture(scope="module")
def lab() -> Iterator[TestLab]:
    with lab_up("matching", "--hosts", "3", "--offload", "sockets") as lab:
        yield lab


@needs("openmpi")
@pytest.mark.parametrize("scope", ["rank-to-rank", "rank-to-node"])
def test_beside_offload(lab: TestLab, scope: str, programs: Path, tmp_path: Path) -> None:
    report = lab.report(
        tmp_path / "r", "--ppn", "1,3,2", "--", programs / "matching-openmpi", "4",
        RADDLE_SCHEDULE="force", RADDLE_SCHEDULE_SCOPE=scope, RADDLE_OFFLOAD="always",
    )  # fmt: skip
    assert report["messages"]["parts"] > 2 * report["messages"]["parcels"]
    assert (report["messages"]["handed_on"] > 100) == (scope == "rank-to-node")
    assert totals(report, "offloaded").total() > 0
