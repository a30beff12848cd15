"""Jobs that share a fabric: what a run leaves of them, who wins, and what is said of mistakes."""

import json
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import raddle
from raddle.cli.app import app
from raddle.errors import ExperimentError
from raddle.plan import Plan
from raddle.results import load
from raddle.services.run import plan_file
from raddle.statistics.jobs import judge_jobs

ROOT = Path(__file__).resolve().parents[2]
HEAD = """\
schema = 1
[fabric]
kind = "leaf-spine"
leaves = 2
hosts_per_leaf = 4
spines = 1
"""
SOLVER = """\
[[job]]
name = "solver"
program = { generator = "collective", collective = "allreduce", size = "8B", repeat = 5 }
ranks = 4
"""
OTHER = SOLVER.replace("solver", "other")
SETUPS = """\
[[setup]]
name = "plain"
[[setup]]
name = "switches"
collectives = "offload"
"""
BACKGROUND = """\
[traffic]
generator = "permutation"
size = "1KiB"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two jobs under two setups and two seeds."""
    out = tmp_path_factory.mktemp("jobs")
    file = out / "jobs.toml"
    file.write_text(HEAD + "[simulation]\nseeds = [1, 2]\n" + SOLVER + OTHER + SETUPS)
    raddle.run(file, out / "out")
    return out / "out"


def test_a_run_leaves_a_row_for_each_job_setup_and_seed(folder: Path) -> None:
    table = pq.read_table(folder / "jobs.parquet")
    assert table.column_names == [
        "scheme", "seed", "job", "ranks", "start_ps", "time_ps", "alone_ps", "slowdown",
        "host_calls", "multicast_calls", "offload_calls",
    ]  # fmt: skip
    rows = table.to_pylist()
    assert [(row["scheme"], row["seed"], row["job"]) for row in rows] == [
        (setup, seed, job)
        for setup in ("plain", "switches")
        for seed in (1, 2)
        for job in ("solver", "other")
    ]
    for row in rows:
        assert row["slowdown"] == pytest.approx(row["time_ps"] / row["alone_ps"])
        by_switches = row["scheme"] == "switches"
        assert (row["host_calls"], row["offload_calls"]) == ((0, 5) if by_switches else (5, 0))
    jobs = load(folder).jobs
    assert jobs is not None
    assert jobs.equals(table)


def test_the_summary_says_who_serves_the_jobs(folder: Path) -> None:
    summary = json.loads((folder / "summary.json").read_text())
    verdict = summary["verdict"]
    assert verdict["leaders"] == ["switches"]
    assert verdict["headline"].startswith("switches serves the jobs best: ")
    solver = summary["schemes"]["switches"]["jobs"]["solver"]
    plain = summary["schemes"]["plain"]["jobs"]["solver"]
    assert plain["saved_frac"] == 0
    assert 0 < solver["saved_frac"] < 1
    # Of two seeds: the mean of the shares, not the share of the means.
    times = {
        (row["scheme"], row["seed"]): row["time_ps"]
        for row in pq.read_table(folder / "jobs.parquet").to_pylist()
        if row["job"] == "solver"
    }
    shares = [1 - times["switches", seed] / times["plain", seed] for seed in (1, 2)]
    assert solver["saved_frac"] == pytest.approx(sum(shares) / 2)


def test_the_command_prints_a_table_of_jobs(tmp_path: Path) -> None:
    file = tmp_path / "jobs.toml"
    file.write_text(HEAD + SOLVER + SETUPS)
    shown = CliRunner().invoke(app, ["run", str(file), "--out", str(tmp_path / "out")])
    assert shown.exit_code == 0, shown.output
    rows = [line.split() for line in shown.output.splitlines() if line.startswith("solver")]
    assert [row[1] for row in rows[:2]] == ["plain", "switches"]
    assert rows[0][-3:] == ["5", "0", "0"]
    assert rows[1][-3:] == ["0", "0", "5"]
    page = (tmp_path / "out" / "report.html").read_text()
    assert all(word in page for word in ("Jobs", "solver", "switches"))


def training(keys: str = "") -> str:
    """A job of eight ranks: four workers, each with a stream."""
    return f"""\
[[job]]
name = "training"
{keys}[job.program]
generator = "training"
layers = 2
hidden = 64
sequence = 8
data_parallel = 4
forward = "1us"
"""


def figures(saved: float, half_width: float | None = None, **more: Any) -> dict[str, Any]:
    interval = {} if half_width is None else {"saved_frac_ci95": half_width}
    return {"unfinished": 0, "saved_frac": saved, "slowdown": 1.0, **interval, **more}


def test_a_gain_within_its_interval_is_no_difference() -> None:
    rows = {
        "plain": {"a": figures(0.0), "b": figures(0.0)},
        "sure": {"a": figures(0.2, 0.05), "b": figures(0.0, 0.01)},
        "unsure": {"a": figures(0.2, 0.3), "b": figures(-0.5, 0.1)},
    }
    verdict = judge_jobs(rows)
    assert verdict.leaders == ("sure",)
    assert verdict.details == (
        "a, against plain: saved by sure 20 %; no difference by unsure.",
        "b, against plain: lost by unsure 50 %; no difference by sure.",
    )


def test_nobody_leads_where_nothing_helps() -> None:
    verdict = judge_jobs({"plain": {"a": figures(0.0)}, "more": {"a": figures(0.01)}})
    assert verdict.leaders == ()
    assert verdict.headline == "No setup serves the 1 job better than plain."


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        (SOLVER + SOLVER, "name", "there are two of the name `solver`"),
        (SOLVER.replace("ranks = 4", "ranks = 9"), "solver", "needs 9 hosts, and 8 of 8 are free"),
        (SOLVER + 'placement = ["h0"]\n', "placement", "needs 4 hosts, and 1 are named"),
        (SOLVER + 'placement = ["h0", "h0", "h1", "h2"]\n', "placement", "a host runs one job"),
        (
            SOLVER + 'placement = [0, 1, 2, 3]\n' + OTHER + "placement = [3, 4, 5, 6]\n",
            "placement",
            "belongs to `solver`: a host runs one job",
        ),
        (SOLVER + 'placement = ["h77", 1, 2, 3]\n', "placement", "there is no host `h77`"),
        (SOLVER + 'collectives = "ofload"\n', "collectives", "offload"),
        (SOLVER + 'algorithms = { allreduce = "tree" }\n', "algorithms", "double-tree"),
        (SOLVER.replace('"allreduce"', '"alreduce"'), "program", "did you mean `allreduce`?"),
        (SOLVER.replace('"collective",', '"ring",'), "program", "`ring`"),
        (SOLVER.replace("ranks = 4\n", ""), "program", "a generator needs `ranks`"),
        (SOLVER + '[[setup]]\nname = "a b"\n', "name", "letters, digits"),
        (SOLVER + '[[setup]]\nname = "a"\nrails = true\n', "rails", "has no [rails]"),
        (SOLVER + '[[setup]]\nname = "a"\nscheme = "hpc"\n', "scheme", "did you mean `hpcc`?"),
        (SOLVER + '[[setup]]\nname = "a"\nwithout = ["solve"]\n', "without", "`solver`"),
        ("[hosts]\n" + BACKGROUND, "hosts", "is for jobs"),
        ("", "", "there is neither [traffic] nor a [[job]]"),
        (training("ranks = 5\n"), "ranks", "the training has 8 ranks, not 5"),
        (training("ranks_per_host = 2\n"), "ranks_per_host", "write `per_host`"),
        (training() + "pipeline_parallel = 4\n", "program", "must be a multiple"),
        (SOLVER.replace("{", '"missing.trace.parquet" # {'), "program", "missing.trace.parquet"),
    ],
)  # fmt: skip
def test_mistakes_are_told_on_one_screen(tmp_path: Path, text: str, place: str, words: str) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text(HEAD + text)
    with pytest.raises(ExperimentError) as caught:
        plan_file(file)
    told = str(caught.value)
    assert words in told
    assert place in told
    assert len(told.splitlines()) <= 8, told
    assert max(map(len, told.splitlines())) <= 400, told


@pytest.mark.parametrize("damage", ["cut", "loop", "words"])
def test_damaged_programs_are_told_with_their_file(tmp_path: Path, damage: str) -> None:
    goal = (
        "num_ranks 2\nrank 0 {\nl1: send 8b to 1 tag 0\n}\nrank 1 {\nl1: recv 8b from 0 tag 0\n}\n"
    )
    broken = {
        "cut": goal[:-3],
        "loop": goal.replace("}\nrank 1", "l2: calc 5\nl1 requires l2\nl2 requires l1\n}\nrank 1"),
        "words": "hello",
    }
    (tmp_path / "program.goal").write_text(broken[damage])
    file = tmp_path / "wrong.toml"
    file.write_text(HEAD + '[[job]]\nname = "it"\nprogram = "program.goal"\n')
    with pytest.raises(ExperimentError) as caught:
        plan_file(file)
    assert "program.goal" in str(caught.value)
    (tmp_path / "program.goal").write_text(goal)
    assert isinstance(plan_file(file), Plan)


def test_the_example_and_the_large_experiment_are_planned() -> None:
    for name, runs in (("examples/jobs.toml", 6 * 4), ("experiments/together.toml", 7 * 5 * 3)):
        plan = plan_file(ROOT / name)
        assert len(plan.runs) == runs
        assert {re.sub("-.*", "", run.variant) for run in plan.runs} == {"loaded", "alone"}
