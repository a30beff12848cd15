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
from raddle.errors import ExperimentError, ResultsError
from raddle.plan import Plan
from raddle.results import load
from raddle.services.run import plan_file
from raddle.services.why import why_flow, why_job
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


HEAVY = """\
[[job]]
name = "heavy"
program = { generator = "collective", collective = "alltoall", size = "2MiB", repeat = 2 }
ranks = 4
placement = [1, 3, 5, 7]
"""
VICTIM = """\
[[job]]
name = "victim"
program = { generator = "collective", collective = "alltoall", size = "64KiB", repeat = 4 }
ranks = 4
placement = [0, 2, 4, 6]
"""


@pytest.fixture(scope="module")
def trouble(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A job whose links another one fills, in two seeds, with the delays of flows."""
    out = tmp_path_factory.mktemp("trouble")
    file = out / "trouble.toml"
    settings = "[simulation]\nseeds = [1, 2]\n[record]\ndelays = true\n"
    file.write_text(HEAD + settings + VICTIM + HEAVY + SETUPS)
    raddle.run(file, out / "out")
    return out / "out"


def test_what_a_time_was_spent_on_adds_up_to_it(trouble: Path) -> None:
    results = load(trouble)
    assert results.blame is not None
    assert results.jobs is not None
    sums: dict[tuple[str, int, str], int] = {}
    for row in results.blame.to_pylist():
        key = (row["scheme"], row["seed"], row["job"])
        sums[key] = sums.get(key, 0) + row["time_ps"]
    for row in results.jobs.to_pylist():
        assert sums[row["scheme"], row["seed"], row["job"]] == row["time_ps"]
    told = why_job(trouble, "victim")
    assert sum(part["share"] for part in told["parts"]) == pytest.approx(1)
    assert told["time_us"] == pytest.approx(sum(part["time_us"] for part in told["parts"]) / 2)
    shares = [part["share"] for part in told["parts"]]
    assert shares == sorted(shares, reverse=True)


def test_delays_of_flows_are_no_longer_than_they_are(trouble: Path) -> None:
    results = load(trouble)
    assert results.delays is not None
    sums: dict[tuple[Any, ...], int] = {}
    for row in results.delays.to_pylist():
        key = tuple(row[name] for name in ("scheme", "seed", "src", "dst", "sport"))
        sums[key] = sums.get(key, 0) + row["time_ps"]
    flows = results.flows.to_pylist()
    assert len(sums) == len(flows)
    for row in flows:
        key = tuple(row[name] for name in ("scheme", "seed", "src", "dst", "sport"))
        # The acknowledgement has its way back still before it.
        assert 0 < sums[key] < row["fct_ps"]


def test_why_names_the_culprit_and_proves_it(trouble: Path, tmp_path: Path) -> None:
    picture = tmp_path / "why.svg"
    words = ["why", str(trouble), "--job", "victim", "--prove", "--picture", str(picture)]
    shown = CliRunner().invoke(app, words)
    assert shown.exit_code == 0, shown.output
    assert "behind heavy" in shown.output
    assert "Others stood in its way: heavy" in shown.output
    assert "Without heavy it takes" in shown.output
    assert len([line for line in shown.stdout.splitlines() if line]) <= 12
    assert "<svg" in picture.read_text()
    told = json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)
    proof = told["proof"]
    assert proof["without"] == "heavy"
    assert proof["saved_frac"] > 0.1
    assert proof["blamed_share"] == told["culprits"]["heavy"]
    # Nothing of the proof stays in the folder.
    assert load(trouble).schemes == ("plain", "switches")


def test_why_of_a_flow(trouble: Path) -> None:
    told = why_flow(trouble, "0:4")
    assert told["class"] == "victim"
    assert sum(part["share"] for part in told["parts"]) == pytest.approx(1)
    assert "heavy" in told["culprits"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--job", "victin"], "did you mean `victim`?"),
        (["--job", "victim", "--setup", "plane"], "did you mean `plain`?"),
        (["--flow", "0:x"], "is not SRC:DST or SRC:DST:SPORT"),
        (["--flow", "0:0"], "no flow 0:0 was delivered under plain"),
        ([], "name a --job or a --flow"),
        (["--job", "victim", "--flow", "0:4"], "name a --job or a --flow"),
    ],
)
def test_mistakes_of_why(trouble: Path, words: list[str], told: str) -> None:
    shown = CliRunner().invoke(app, ["why", str(trouble), *words])
    assert shown.exit_code == 2
    assert told in shown.output


def test_a_folder_without_jobs_does_not_say_why(tmp_path: Path) -> None:
    file = tmp_path / "plain.toml"
    file.write_text(HEAD + BACKGROUND + '[simulation]\nschemes = ["none"]\n')
    raddle.run(file, tmp_path / "out")
    with pytest.raises(ResultsError, match="does not say what the time of jobs"):
        why_job(tmp_path / "out", "it")
    with pytest.raises(ResultsError, match="does not say what the time of flows"):
        why_flow(tmp_path / "out", "0:1")
