"""Chakra traces of MLCommons: imported, and as jobs beside the same program told otherwise."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import raddle
from chakra_files import COLL, COMP, RECV, SEND, node, write
from raddle.cli.app import app
from raddle.errors import ExperimentError
from raddle.results import load
from raddle.services.run import plan_file

MAP = 'schema = 1\n[fabric]\nkind = "leaf-spine"\nleaves = 2\nhosts_per_leaf = 4\nspines = 1\n'
ALL_REDUCE, BROADCAST = 0, 5
RANKS = 4


def step() -> list[bytes]:
    """Computing, a sum beside more computing, and a task that needs both."""
    return [
        node(1, COMP, micros=10),
        node(2, COLL, [1], comm_type=ALL_REDUCE, comm_size=100_000),
        node(3, COMP, [1], micros=5),
        node(4, COMP, [2, 3], micros=7),
    ]


def ring(rank: int) -> list[bytes]:
    """Three times: receive from the left, send to the right, compute."""
    nodes: list[bytes] = []
    left, right = (rank - 1) % RANKS, (rank + 1) % RANKS
    for turn in range(3):
        before = [3 * turn - 1] if turn else []
        nodes += [
            node(3 * turn, RECV, before, comm_src=left, comm_size=30_000, comm_tag=turn),
            node(3 * turn + 1, SEND, before, comm_dst=right, comm_size=30_000, comm_tag=turn),
            node(3 * turn + 2, COMP, [3 * turn, 3 * turn + 1], micros=4),
        ]
    return nodes


def as_goal() -> str:
    """The ring as a GOAL schedule."""
    lines = [f"num_ranks {RANKS}"]
    for rank in range(RANKS):
        left, right = (rank - 1) % RANKS, (rank + 1) % RANKS
        lines.append(f"rank {rank} {{")
        for turn in range(3):
            lines += [
                f"r{turn}: recv 30000b from {left} tag {turn}",
                f"s{turn}: send 30000b to {right} tag {turn}",
                f"c{turn}: calc 4000",
                f"c{turn} requires r{turn}",
                f"c{turn} requires s{turn}",
            ]
            if turn:
                lines += [f"r{turn} requires c{turn - 1}", f"s{turn} requires c{turn - 1}"]
        lines.append("}")
    return "\n".join(lines) + "\n"


def imported(*words: str | Path) -> dict[str, object]:
    done = CliRunner().invoke(app, ["trace", "import", *map(str, words), "--json"])
    assert done.exit_code == 0, done.output
    told: dict[str, object] = json.loads(done.stdout)
    return told


def test_a_folder_becomes_a_trace(tmp_path: Path) -> None:
    write(tmp_path, [step()] * 12)
    told = imported(tmp_path, "--out", tmp_path / "step.trace.parquet")
    assert told["ranks"] == 12
    assert told["collectives"] == [{"kind": "allreduce", "calls": 12, "bytes": 1_200_000}]
    files = sorted(tmp_path.glob("*.et"))
    # The numbers count, not the order of the words.
    assert files[2].name == "step.10.et"
    assert imported(*files, "--out", tmp_path / "again.trace.parquet")["ranks"] == 12


def time_of(folder: Path, program: str, more: str = "") -> int:
    file = folder / "job.toml"
    settings = '[hosts]\ngap_share = 0.0\nstart_skew = "0s"\n'
    file.write_text(f'{MAP}{settings}[[job]]\nname = "it"\nprogram = "{program}"\n{more}')
    raddle.run(file, folder / f"out-{Path(program).name}")
    jobs = load(folder / f"out-{Path(program).name}").jobs
    assert jobs is not None
    time: int = jobs["time_ps"][0].as_py()
    return time


def test_a_ring_takes_as_long_as_the_same_schedule_in_goal(tmp_path: Path) -> None:
    write(tmp_path, [ring(rank) for rank in range(RANKS)], "ring")
    (tmp_path / "ring.goal").write_text(as_goal())
    chakra, goal = (time_of(tmp_path, name) for name in ("ring.0.et", "ring.goal"))
    assert chakra == pytest.approx(goal, rel=0.01)


def test_a_step_takes_its_parts(tmp_path: Path) -> None:
    """10 us, the sum (which begins where it is waited for) beside 5 us, 7 us."""
    write(tmp_path, [step()] * RANKS)
    whole = time_of(tmp_path, "step.0.et")
    alone = [node(1, COLL, comm_type=ALL_REDUCE, comm_size=100_000)]
    (tmp_path / "sum").mkdir()
    write(tmp_path / "sum", [alone] * RANKS, "sum")
    only = time_of(tmp_path, "sum/sum.0.et")
    assert whole == pytest.approx(only + 22_000_000, rel=0.01)


def test_a_changed_rank_is_another_experiment(tmp_path: Path) -> None:
    write(tmp_path, [step()] * RANKS)
    file = tmp_path / "job.toml"
    file.write_text(MAP + '[[job]]\nname = "it"\nprogram = "step.0.et"\n')
    before = [run.stamp for run in plan_file(file).runs]
    assert [run.stamp for run in plan_file(file).runs] == before
    last = [*step()[:3], node(4, COMP, [2, 3], micros=70)]
    write(tmp_path, [*[step()] * (RANKS - 1), last])
    assert [run.stamp for run in plan_file(file).runs] != before


def test_a_job_of_process_groups(tmp_path: Path) -> None:
    ranks = [
        [
            node(
                1, COLL, comm_type=ALL_REDUCE, comm_size=64, pg_name="low" if rank < 2 else "high"
            ),
            node(2, COLL, [1], comm_type=BROADCAST, comm_size=4096, root=1),
        ]
        for rank in range(RANKS)
    ]
    write(tmp_path, ranks)
    told = imported(tmp_path, "--out", tmp_path / "groups.trace.parquet")
    assert told["communicators"] == 3
    assert time_of(tmp_path, "step.0.et", 'collectives = "offload"\n') > 0


@pytest.mark.parametrize(
    ("nodes", "told"),
    [
        ([node(1, COMP, [9], micros=1)], "step.0.et: node 1: it waits for node 9"),
        ([node(1, COMP, [2]), node(2, COMP, [1])], "waits for itself"),
        ([node(1, COLL, comm_type=ALL_REDUCE)], "node 1: `comm_size` must be"),
        ([node(1, SEND, comm_size=8, comm_dst=4)], "`comm_dst` must be a rank"),
        ([node(1, COMP, num_ops=7)], "say how long it takes"),
        ([step()[0][:-2]], "it is cut"),
    ],
)
def test_what_is_wrong_is_told(tmp_path: Path, nodes: list[bytes], told: str) -> None:
    write(tmp_path, [nodes] * RANKS)
    done = CliRunner().invoke(
        app, ["trace", "import", str(tmp_path), "--out", str(tmp_path / "x.trace.parquet")]
    )
    assert done.exit_code == 2
    assert told in done.output
    file = tmp_path / "job.toml"
    file.write_text(MAP + '[[job]]\nname = "it"\nprogram = "step.0.et"\n')
    with pytest.raises(ExperimentError, match=r"step\.0\.et"):
        plan_file(file)


def test_members_that_disagree_are_told(tmp_path: Path) -> None:
    ranks = [step() for _ in range(RANKS)]
    ranks[2] = [node(1, COMP, micros=1)]
    write(tmp_path, ranks)
    done = CliRunner().invoke(
        app, ["trace", "import", str(tmp_path), "--out", str(tmp_path / "x.trace.parquet")]
    )
    assert done.exit_code == 2
    assert len(done.output.splitlines()) <= 6


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (["a.0.et", "a.2.et"], "the file of rank 1 is missing"),
        (["a.0.et", "b.0.et"], "rank 0 is in"),
        (["a.et"], "is called NAME.RANK.et"),
        ([], "or folders with Chakra files: NAME.RANK.et"),
    ],
)
def test_files_that_are_missing(tmp_path: Path, names: list[str], told: str) -> None:
    for name in names:
        (tmp_path / name).write_bytes(b"")
    done = CliRunner().invoke(
        app, ["trace", "import", str(tmp_path), "--out", str(tmp_path / "x.trace.parquet")]
    )
    assert done.exit_code == 2
    assert told in done.output
