"""Algorithms of collectives by name: chosen, told, and refused with a way out."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from raddle.cli.app import app
from raddle.errors import TraceError
from raddle.services.replay import Settings, preview
from raddle.services.trace import import_goal

MAP = """schema = 1
kind = "leaf-spine"
leaves = 1
spines = 1
hosts_per_leaf = 2
"""
GOAL = """num_ranks 2
rank 0 {
l1: send 8b to 1 tag 0
}
rank 1 {
l1: recv 8b from 0 tag 0
}
"""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """One message, with a map of its own."""
    goal, fabric, out = (tmp_path / name for name in ("a.goal", "map.toml", "a.trace.parquet"))
    goal.write_text(GOAL)
    fabric.write_text(MAP)
    import_goal(goal, out, fabric=fabric)
    return out


def test_a_choice_is_in_the_summary(trace: Path) -> None:
    """What was not chosen is automatic."""
    told = preview(trace, ["none"], ["none"], Settings(algorithms=("allreduce=double-tree",)))
    assert told["algorithms"] == {
        "allreduce": "double-tree",
        "bcast": "automatic",
        "allgather": "automatic",
        "alltoall": "automatic",
        "barrier": "automatic",
    }


def test_a_slip_is_told_with_what_was_meant(trace: Path) -> None:
    """An unknown algorithm is refused before anything runs, in one sentence."""
    with pytest.raises(TraceError, match="did you mean `double-tree`"):
        preview(trace, ["none"], ["none"], Settings(algorithms=("allreduce=doubletree",)))


def test_the_command_says_what_it_uses(trace: Path) -> None:
    """A dry run names the choices."""
    made = CliRunner().invoke(
        app,
        ["replay", str(trace), "--dry-run", "--algorithm", "bcast=ring"],
        env={"COLUMNS": "120"},
    )
    assert made.exit_code == 0, made.output
    assert "bcast=ring" in made.output
