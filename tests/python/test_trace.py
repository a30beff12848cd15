"""Traces as files and as GOAL schedules, and what `raddle trace` says of them."""

import json
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from raddle import _core
from raddle.cli.app import app
from raddle.core.trace import SizeBin
from raddle.errors import TraceError
from raddle.report.trace import draw, why
from raddle.services.trace import APPLICATIONS, describe
from raddle.statistics.waits import split_time

GOAL = """num_ranks 3
rank 0 {
l1: calc 1000
l2: send 64b to 1 tag 5
l3: send 4096b to 2 tag 5
l2 requires l1
l3 requires l1
}
rank 1 {
recv 64b from 0 tag 5
}
rank 2 {
recv 4096b from 0 tag 5
}
"""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A trace of three ranks."""
    goal = tmp_path / "small.goal"
    goal.write_text(GOAL)
    out = tmp_path / "small.trace.parquet"
    _core.trace_import(str(goal), out, "")
    return out


def test_a_trace_is_a_table_that_others_read(trace: Path) -> None:
    """A row per call, in order, with the units in the names."""
    table = pq.read_table(trace)
    assert table.column_names[:4] == ["rank", "start_ns", "end_ns", "action"]
    rows = table.to_pylist()
    told = [(r["rank"], r["action"], r["peer"], r["bytes"]) for r in rows if r["peer"] is not None]
    assert told == [
        (0, "send", 1, 64),
        (0, "send", 2, 4096),
        (1, "receive", 0, 64),
        (2, "receive", 0, 4096),
    ]
    assert [r["start_ns"] for r in rows if r["action"] == "send"] == [1000, 1000]
    metadata = pq.read_metadata(trace).metadata or {}
    assert json.loads(metadata[b"raddle.placement"]) == [0, 1, 2]
    assert json.loads(metadata[b"raddle.communicators"]) == [[[0, 3]]]


def test_pandas_and_polars_read_a_trace(trace: Path) -> None:
    """Both see the same rows."""
    pandas = pytest.importorskip("pandas")
    rows = len(pq.read_table(trace))
    assert len(pandas.read_parquet(trace)) == rows
    polars = pytest.importorskip("polars")
    assert polars.read_parquet(trace).height == rows


def test_what_is_exported_is_imported_again(trace: Path, tmp_path: Path) -> None:
    """The same calls at the same times."""
    goal = tmp_path / "again.goal"
    goal.write_text(_core.trace_export(trace))
    again = tmp_path / "again.trace.parquet"
    _core.trace_import(str(goal), again, "")
    assert pq.read_table(again).equals(pq.read_table(trace))


def test_show_counts_what_is_there(trace: Path) -> None:
    """Two messages, all between hosts, in one superstep of one rank."""
    result = CliRunner().invoke(app, ["trace", "show", str(trace), "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert (found["messages"], found["bytes"]) == (2, 4160)
    assert (found["messages_between_hosts"], found["ranks"]) == (2, 3)
    assert found["supersteps"] == {
        "count": 1,
        "messages_per_rank_mean": 2.0,
        "messages_per_rank_max": 2,
    }
    assert found["host_matrix"] == {
        "from": [0, 0],
        "to": [1, 2],
        "messages": [1, 1],
        "bytes": [64, 4096],
    }
    assert [row["from_bytes"] for row in found["sizes"]] == [64, 4096]


def test_show_draws_and_tells(trace: Path, tmp_path: Path) -> None:
    """Text for people, a picture for papers."""
    plot = tmp_path / "small.svg"
    result = CliRunner().invoke(app, ["trace", "show", str(trace), "--plot", str(plot)])
    assert result.exit_code == 0, result.output
    assert "3 on 3 hosts" in result.stdout
    assert "<svg" in plot.read_text()
    assert len(draw(describe(trace, matrix=True), title="x").axes) == 3
    assert "Sizes: 50 % of the messages have 64 B to under 128 B" in plot.read_text()


def test_axes_of_ranks_have_ticks_at_ranks_only(trace: Path) -> None:
    """Not at -0.5 and 0.5, where squares of the matrix meet."""
    matrix = draw(describe(trace, matrix=True), title="x").axes[0]
    for ticks, (low, high) in (
        (matrix.get_xticks(), matrix.get_xlim()),
        (matrix.get_yticks(), sorted(matrix.get_ylim())),
    ):
        shown = [tick for tick in ticks if low <= tick <= high]
        assert shown == [0, 1, 2]


def test_sizes_are_bars_from_zero_or_points(trace: Path) -> None:
    """A bar on a cut axis would say nothing; few messages are not hidden by many."""
    found = describe(trace, matrix=True)
    sizes = draw(found, title="x").axes[1]
    assert [bar.get_height() for bar in sizes.containers[0]] == [1, 1]
    assert sizes.get_ylim()[0] == 0
    assert [label.get_text() for label in sizes.get_xticklabels()][:2] == ["64 B", "128 B"]
    found = replace(found, sizes=(replace(found.sizes[0], messages=1000), *found.sizes[1:]))
    sizes = draw(found, title="x").axes[1]
    assert not sizes.containers
    assert sizes.get_yscale() == "log"


def test_empty_messages_stand_beside_those_of_a_byte(trace: Path) -> None:
    """Both bins once stood at one place."""
    sizes = SizeBin(from_bytes=0, messages=5, bytes=0), SizeBin(from_bytes=1, messages=3, bytes=3)
    found = replace(describe(trace, matrix=True), sizes=sizes)
    bars = draw(found, title="x").axes[1].containers[0]
    assert [bar.get_x() + bar.get_width() / 2 for bar in bars] == [0, 1]


def test_a_picture_says_who_sends_most_and_where_time_goes() -> None:
    """Each figure is one that `trace show` and `trace times` print."""
    recorded = Path(__file__).parents[1] / "data" / "traces" / "openfoam.trace.parquet"
    found, times = describe(recorded, matrix=True), split_time(recorded)
    messages, sizes, time = why(found, times)
    pairs = found.rank_matrix
    assert pairs is not None
    first = pairs.bytes.index(max(pairs.bytes))
    assert f"most from {pairs.source[first]} to {pairs.target[first]} (89.3 kB in 531" in messages
    assert sizes.startswith("Sizes: 87 % of the messages have 128 B to under 256 B")
    late = [rank["late"] + rank["collective late"] for rank in times["ranks"]]
    assert f"rank {late.index(max(late))} waits longest" in time
    assert f"rank {late.index(min(late))} least" in time
    assert time.startswith("Time: 87 % of it is spent in MPI, most in “collective wire” (37 %)")
    assert why(found)[2] == "Time: 87 % of it is spent in MPI."


@pytest.mark.parametrize("application", APPLICATIONS)
def test_every_application_can_be_generated(application: str, tmp_path: Path) -> None:
    """With as many ranks and hosts as asked for."""
    out = tmp_path / "made.trace.parquet"
    words = [application, "--ranks", "24", "--per-host", "6", "--exchanges", "2"]
    result = CliRunner().invoke(app, ["trace", "generate", *words, "--out", str(out), "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert (found["ranks"], len(found["hosts"])) == (24, 4)
    assert 0 < found["messages_between_hosts"] < found["messages"]


def test_errors_name_file_and_cure(trace: Path, tmp_path: Path) -> None:
    """A cut file, another file, a schedule with a mistake, a name that is no trace's."""
    cut = tmp_path / "cut.trace.parquet"
    cut.write_bytes(trace.read_bytes()[:-20])
    with pytest.raises(TraceError, match=r"cut\.trace\.parquet: it is not a complete Parquet file"):
        describe(cut)
    with pytest.raises(TraceError, match=r"none\.trace\.parquet: no such file\n  hint: `radd"):
        describe(tmp_path / "none.trace.parquet")
    goal = tmp_path / "bad.goal"
    goal.write_text(GOAL.replace("recv 64b", "recv 63b"))
    with pytest.raises(TraceError, match="rank 1, event 0: 63 B were received, but event 0"):
        _core.trace_import(str(goal), tmp_path / "bad.trace.parquet", "")
    goal.write_text(GOAL.replace("send 64b to 1", "send 64b to 7"))
    with pytest.raises(TraceError, match="line 4, column 17: rank 7"):
        _core.trace_import(str(goal), tmp_path / "bad.trace.parquet", "")
    result = CliRunner().invoke(app, ["trace", "import", str(goal), "--out", "x.parquet"])
    assert result.exit_code == 2
    assert "NAME.trace.parquet" in result.stderr
    assert not (tmp_path / "bad.trace.parquet").exists()
