"""Where time goes: traces whose parts are known, told by `raddle trace times`."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from raddle import _core
from raddle.cli.app import app
from raddle.core.trace import describe
from raddle.errors import TraceError
from raddle.services.replay import Settings, replay
from raddle.statistics.waits import PARTS, split_time

DATA = Path(__file__).parent.parent / "data" / "traces"
MS = 1_000_000


def write(path: Path, ranks: int, *calls: tuple[int, int, int, str, dict[str, Any]]) -> Path:
    """A trace of calls (rank, start and end in ms, action, what else is set)."""
    goal = path.with_suffix(".goal")
    goal.write_text(
        f"num_ranks {ranks}\n" + "".join(f"rank {rank} {{\n}}\n" for rank in range(ranks))
    )
    _core.trace_import(str(goal), path, "")
    empty = pq.read_table(path)
    rows = [
        {
            **dict.fromkeys(empty.column_names),
            **{"any_source": False, "any_tag": False},
            **{"rank": rank, "start_ns": start * MS, "end_ns": end * MS, "action": action},
            **others,
        }
        for rank, start, end, action, others in calls
    ]
    schema = empty.schema.with_metadata(pq.read_metadata(path).metadata or {})
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), path)
    return path


def message(peer: int, **others: Any) -> dict[str, Any]:
    return {"peer": peer, "tag": 7, "comm": 0, "bytes": 8, **others}


def test_a_wait_is_late_until_its_message_is_sent(tmp_path: Path) -> None:
    """The receiver waits from 2, the message leaves at 5 and is there at 9; both sides compute."""
    trace = write(
        tmp_path / "x.trace.parquet", 2,
        (0, 5, 6, "send", message(1)),
        (0, 10, 10, "end", {}),
        (1, 1, 2, "receive", message(0, request=0)),
        (1, 2, 9, "wait", {"requests": [0]}),
        (1, 10, 10, "end", {}),
    )  # fmt: skip
    sender, receiver = split_time(trace)["ranks"]
    nothing = dict.fromkeys(PARTS, 0.0)
    assert sender == pytest.approx({**nothing, "compute": 0.009, "send": 0.001})
    assert receiver == pytest.approx({**nothing, "compute": 0.002, "late": 0.003, "wire": 0.005})


def test_clocks_are_set_by_collectives(tmp_path: Path) -> None:
    """Rank 1's clock is 100 ms ahead; it comes 3 ms later, and both leave 1 ms after that."""
    whole = {"comm": 0, "bytes": 8}
    trace = write(
        tmp_path / "x.trace.parquet", 2,
        (0, 10, 14, "allreduce", whole),
        (0, 14, 14, "end", {}),
        (1, 113, 114, "allreduce", whole),
        (1, 114, 114, "end", {}),
    )  # fmt: skip
    first, second = split_time(trace)["ranks"]
    assert first["collective late"] == pytest.approx(0.003)
    assert first["collective wire"] == pytest.approx(0.001)
    assert second["collective late"] == pytest.approx(0)
    assert second["collective wire"] == pytest.approx(0.001)


def test_members_wait_for_the_root_of_a_broadcast_and_the_root_for_nobody(tmp_path: Path) -> None:
    """The root leaves at once, whoever else is late."""
    root = {"comm": 0, "bytes": 8, "peer": 1}
    trace = write(
        tmp_path / "x.trace.parquet", 3,
        (0, 0, 9, "bcast", root), (0, 9, 9, "end", {}),
        (1, 6, 7, "bcast", root), (1, 9, 9, "end", {}),
        (2, 8, 9, "bcast", root), (2, 9, 9, "end", {}),
    )  # fmt: skip
    found = [rank["collective late"] for rank in split_time(trace)["ranks"]]
    assert found == pytest.approx([0.006, 0, 0])


def test_parts_of_recordings_and_replays_add_up(tmp_path: Path) -> None:
    """To the ranks' time; in MPI as `describe` and the replay say."""
    recorded = DATA / "melt.trace.parquet"
    parts = split_time(recorded)["parts"]
    found = describe(recorded)
    assert sum(parts.values()) - parts["compute"] == pytest.approx(found.mpi_s)
    assert min(parts.values()) >= 0
    trace = DATA / "stencil.trace.parquet"
    settings = Settings(seeds=1, gap_share=0, start_skew="0ns")
    row = replay(trace, ["both"], settings, traces=tmp_path)["schedules"]["both"]
    told = describe(tmp_path / "both.trace.parquet")
    assert told.duration_s == pytest.approx(row["time_s"], abs=1e-9)
    assert told.mpi_s == pytest.approx(row["mpi_s"])
    assert told.messages == describe(trace).messages
    parts = split_time(tmp_path / "both.trace.parquet")["parts"]
    assert sum(parts.values()) - parts["compute"] == pytest.approx(row["mpi_s"])
    assert parts["wire"] > 0


def test_the_command_puts_traces_side_by_side(tmp_path: Path) -> None:
    """A column per trace; JSON has every rank."""
    names = [str(DATA / f"{name}.trace.parquet") for name in ("melt", "sweep")]
    result = CliRunner().invoke(app, ["trace", "times", *names])
    assert result.exit_code == 0, result.output
    header, *rows = result.stdout.splitlines()
    assert header.split() == ["ms", "melt", "sweep"]
    assert len(rows) == len(PARTS) + 2
    result = CliRunner().invoke(app, ["trace", "times", names[0], "--json"])
    (only,) = json.loads(result.stdout)["traces"]
    assert len(only["ranks"]) == 8
    with pytest.raises(TraceError, match="no such file"):
        split_time(tmp_path / "none.trace.parquet")
