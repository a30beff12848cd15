"""`raddle replay` with the network carrying more than messages, and with several programs."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from raddle.cli.app import app

ROOT = Path(__file__).resolve().parents[2]
LAMMPS = ROOT / "experiments" / "together" / "lammps-melt.trace.parquet"
MAP = """\
schema = 1
[fabric]
kind = "leaf-spine"
leaves = 3
hosts_per_leaf = 8
spines = 2
"""


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a map and two traces."""
    folder = tmp_path_factory.mktemp("traces")
    (folder / "map.toml").write_text(MAP)
    for name, kind in (("pic", "particle-in-cell"), ("md", "molecular-dynamics")):
        made = CliRunner().invoke(
            app,
            ["trace", "generate", kind, "--ranks", "16", "--per-host", "2", "--exchanges", "2",
             "--out", str(folder / f"{name}.trace.parquet")],
        )  # fmt: skip
        assert made.exit_code == 0, made.output
    return folder


def test_several_programs_share_the_fabric(traces: Path, tmp_path: Path) -> None:
    shown = CliRunner().invoke(
        app,
        ["replay", str(traces / "pic.trace.parquet"), str(traces / "md.trace.parquet"),
         "--fabric", str(traces / "map.toml"), "--collectives", "host", "--collectives", "offload",
         "--schedule", "none", "--schedule", "both", "--seeds", "2", "--out", str(tmp_path / "out"),
         "--json"],
    )  # fmt: skip
    assert shown.exit_code == 0, shown.output
    summary = json.loads(shown.stdout)
    assert list(summary["schemes"]) == ["plain", "both", "offload", "offload-both"]
    for row in summary["schemes"].values():
        assert list(row["jobs"]) == ["pic", "md"]
        assert all(job["seeds"] == 2 and job["unfinished"] == 0 for job in row["jobs"].values())
    both = summary["schemes"]["both"]["jobs"]["pic"]
    assert both["time_us"] < summary["schemes"]["plain"]["jobs"]["pic"]["time_us"]
    assert (tmp_path / "out" / "blame.parquet").is_file()
    assert (tmp_path / "out" / "report.html").is_file()


def test_switches_and_rails_carry_a_recorded_program(traces: Path, tmp_path: Path) -> None:
    words = ["replay", str(LAMMPS), "--fabric", str(traces / "map.toml"), "--placement", "blocks:4"]
    words += ["--collectives", "offload", "--rails", "2", "--seeds", "1"]
    shown = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "out"), "--no-report"])
    assert shown.exit_code == 0, shown.output
    rows = pq.read_table(tmp_path / "out" / "jobs.parquet").to_pylist()
    assert [row["scheme"] for row in rows] == ["plain", "offload-2-rails"]
    plain, offload = rows
    assert (plain["offload_calls"], plain["ranks"]) == (0, 64)
    assert offload["offload_calls"] > 0
    # Every collective is carried by somebody.
    assert offload["offload_calls"] + offload["host_calls"] == plain["host_calls"]
    assert offload["time_ps"] < plain["time_ps"]


def test_the_plan_is_shown(traces: Path) -> None:
    words = ["replay", str(traces / "pic.trace.parquet"), "--fabric", str(traces / "map.toml")]
    shown = CliRunner().invoke(app, [*words, "--collectives", "multicast", "--dry-run", "--json"])
    assert shown.exit_code == 0, shown.output
    assert len(json.loads(shown.stdout)["runs"]) == 2 * 5


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--collectives", "ofload"], "did you mean `offload`?"),
        (["--rails", "2", "--scope", "rank-to-rank"], "--scope is for one trace"),
        (["--rails", "2", "--placement", "in-turn"], "take recorded or blocks:N"),
        (["--rails", "2", "--scheme", "hpcc"], "hpcc"),
        (["--rails", "2", "--algorithm", "allreduce=tree"], "allreduce"),
        (["--collectives", "offload", "--placement", "blocks:1000000"], "ranks_per_host"),
    ],
)
def test_mistakes(traces: Path, words: list[str], told: str) -> None:
    base = ["replay", str(traces / "pic.trace.parquet"), "--fabric", str(traces / "map.toml")]
    shown = CliRunner().invoke(app, [*base, *words])
    assert shown.exit_code == 2, shown.output
    assert told in shown.output
    assert len(shown.output.splitlines()) <= 9


def test_without_a_map_it_is_the_traces_own(traces: Path) -> None:
    trace = str(traces / "pic.trace.parquet")
    shown = CliRunner().invoke(app, ["replay", trace, "--rails", "2", "--dry-run"])
    assert shown.exit_code == 2
    assert "has no fabric of its own; name one with --fabric" in shown.output
