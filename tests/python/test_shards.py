"""Many processes, one result: runs shared in one folder, or shards' folders that are merged."""

import json
import os
import random
import shutil
import signal
import time
from pathlib import Path

import pytest

from raddle.errors import ExperimentError, ResultsError
from raddle.report import write_report, write_sweep
from raddle.results.owners import Claims
from raddle.services.engines.choice import Engine, EngineName, Shard, chosen, parse_shard
from raddle.services.merge import merge
from raddle.services.overlay import parse_setting
from raddle.services.run import execute, plan_file
from raddle.services.status import status
from raddle.services.sweep import plan_points, run_sweep
from real import (
    QUICK,
    done_runs,
    ended,
    interrupt,
    kill_at_work,
    raddle,
    raddle_json,
    start,
    tree,
)

MANY = QUICK + "seeds = [1, 2]\n"
BUFFERS, SCHEMES = "simulation.buffer=4MiB,32MiB", "simulation.schemes=['hpcc']"
SWEEP = ("sweep", "many.toml", "--set", BUFFERS, "--set", SCHEMES, "--jobs", "1")
RUN = ("run", "many.toml", "--jobs", "1")
SHARE = ("--engine", "shards", "--no-report", "--out")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An experiment, and what one machine makes of it: `ran` and `swept`, of eight runs each."""
    folder = tmp_path_factory.mktemp("many")
    (folder / "many.toml").write_text(MANY)
    execute(plan_file(folder / "many.toml"), folder / "ran")
    write_report(folder / "ran")
    points = plan_points(folder / "many.toml", [parse_setting(BUFFERS), parse_setting(SCHEMES)])
    outcomes, table = run_sweep(points, folder / "swept")
    for outcome in outcomes:
        write_report(outcome.out)
    write_sweep(folder / "swept", table)
    return folder


def without_page(files: dict[str, bytes]) -> dict[str, bytes]:
    """Files of a run that was told to leave its page out."""
    return {name: text for name, text in files.items() if name != "report.html"}


def test_processes_share_a_folder_and_one_is_killed(folder: Path) -> None:
    words = (*SWEEP, "--engine", "shards", "--reports", "--out", "shared")
    processes = [start(*words, folder=folder) for _ in range(3)]
    pid, lost = kill_at_work(folder / "shared")
    assert len(lost) == 1
    for process in processes:
        ended(process, -signal.SIGKILL if process.pid == pid else 0)
    # Those that live took its run over, and the last one joined: no run is lost or done twice.
    assert tree(folder / "shared") == tree(folder / "swept")
    assert len(done_runs(folder / "shared")) == 8


def test_shards_have_folders_of_their_own_and_one_is_killed(folder: Path) -> None:
    shards = [folder / f"part-{number}" for number in (1, 2)]
    words = [(*RUN, "--shard", f"{n}/2", "--out", f"part-{n}") for n in (1, 2)]
    processes = [start(*each, folder=folder) for each in words]
    pid, (lost,) = kill_at_work(shards[1])
    assert pid == processes[1].pid
    ended(processes[0])
    ended(processes[1], -signal.SIGKILL)
    told = status(shards)
    assert not told.joined
    (run,) = [run for run in told.runs if run.key == lost]
    assert (run.state, len(run.taken_over_from)) == ("waiting", 1)
    merged = raddle("merge", "part-1", "part-2", "--out", "all", folder=folder, status=1)
    assert f"\n  {lost}\n" in merged.stderr
    assert "hint: the same `raddle run ... --out all` simulates these alone" in merged.stderr
    assert json.loads((folder / "all" / "summary.json").read_text())["complete"] is False
    # The same command goes on where it was killed.
    before = set(done_runs(shards[1]))
    assert "8 runs: 4 done and 4 waiting" in raddle(*words[1], folder=folder).stdout
    assert lost in {Path(run).name for run in set(done_runs(shards[1])) - before}
    told = raddle_json("merge", "part-1", "part-2", "--out", "all", folder=folder)
    assert (told["complete"], told["missing"]) == (True, [])
    assert tree(folder / "all") == tree(folder / "ran")


def test_tasks_of_an_array_share_a_folder_and_the_last_one_joins(folder: Path) -> None:
    words = (*RUN, "--no-report", "--out", "array")
    # The second of three tasks was started twice.
    tasks = [start(*words, "--shard", part, folder=folder) for part in ("1/3", "2/3", "2/3")]
    for task in tasks:
        ended(task)
    assert status([folder / "array"]).counts == {"done": 6, "running": 0, "waiting": 2}
    assert "tie" in raddle(*words, "--shard", "3/3", folder=folder).stdout
    assert tree(folder / "array") == without_page(tree(folder / "ran"))
    assert raddle("status", "array", folder=folder).stdout == "8 runs: 8 done; joined\n"


def test_a_shard_that_is_interrupted_gives_its_runs_back(folder: Path) -> None:
    words = (*RUN, *SHARE, "cut")
    assert interrupt(*words, folder=folder, runs=folder / "cut", after=2) == 130
    assert not list((folder / "cut").rglob("*.tmp"))
    assert Claims(folder / "cut").at_work() == []
    told = status([folder / "cut"])
    assert told.counts["running"] == 0
    assert 2 <= told.counts["done"] < 8
    assert not any(run.taken_over_from for run in told.runs)
    # `raddle merge` takes what is there, and names the rest.
    assert len(merge([folder / "cut"], folder / "cut").missing) == 8 - told.counts["done"]
    raddle(*words, folder=folder)
    assert tree(folder / "cut") == without_page(tree(folder / "ran"))


def test_what_a_dead_machine_had_is_waited_for_and_taken(folder: Path) -> None:
    name = "hpcc-seed1-loaded"
    shutil.copytree(folder / "ran", folder / "far")
    shutil.rmtree(folder / "far" / ".runs" / name)
    claims = Claims(folder / "far")
    process = {"token": "t", "host": "node7", "pid": 1, "started": "1", "place": "another"}
    claims.file(name, 1).parent.mkdir(parents=True)
    claims.file(name, 1).write_text(json.dumps({"process": process}))
    sign = claims.sign("t")
    sign.parent.mkdir()
    sign.write_text(json.dumps({"process": process, "runs": {name: {"since": 0.0, "share": 0.4}}}))
    (run,) = [run for run in status([folder / "far"]).runs if run.key == name]
    assert (run.state, run.host, run.share) == ("running", "node7", 0.4)
    assert "node7:1" in raddle("status", "far", folder=folder).stdout
    # One machine does not take a folder in which others work.
    with pytest.raises(ResultsError, match="process 1 of node7 is at work there"):
        execute(plan_file(folder / "many.toml"), folder / "far")
    waiting = start(*RUN, "--engine", "shards", "--out", "far", folder=folder)
    # Alive or dead? It waits, until the file server's clock says that it is dead.
    deadline = time.monotonic() + 60
    while len(claims.at_work()) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    time.sleep(0.1)
    assert waiting.poll() is None
    os.utime(sign, (time.time() - 200, time.time() - 200))
    ended(waiting)
    assert tree(folder / "far") == tree(folder / "ran")


def test_a_folder_is_merged_without_its_experiment(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "swept", tmp_path / "swept")
    for file in (*tmp_path.rglob("flows.parquet"), *tmp_path.rglob("summary.json")):
        if ".runs" not in file.parts:
            file.unlink()
    (tmp_path / "swept" / "sweep.json").unlink()
    raddle("merge", "swept", "--reports", folder=tmp_path)
    assert tree(tmp_path / "swept") == tree(folder / "swept")


def test_results_of_one_run_that_differ_are_refused(folder: Path, tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    for each in (a, b):
        shutil.copytree(folder / "ran", each)
    assert merge([a, b], tmp_path / "same").complete
    assert tree(tmp_path / "same") == without_page(tree(folder / "ran"))
    file = Path(".runs", "hpcc-seed1-loaded", "ports.parquet")
    shutil.copy(b / ".runs" / "hpcc-seed2-loaded" / "ports.parquet", b / file)
    with pytest.raises(ResultsError) as refused:
        merge([a, b], tmp_path / "other")
    first = f"{a / file} and {b / file} differ: two results of run hpcc-seed1-loaded"
    assert str(refused.value).splitlines()[0] == first


def test_folders_of_different_experiments_are_not_merged(folder: Path, tmp_path: Path) -> None:
    a, b = tmp_path / "a", tmp_path / "b"
    shutil.copytree(folder / "ran", a)
    with pytest.raises(ResultsError, match=r"is to hold the run .*\n.*need the same experiment"):
        merge([a, folder / "swept"], tmp_path / "out")
    (tmp_path / "many.toml").write_text(MANY + 'buffer = "8MiB"\n')
    engine = Engine(EngineName.SHARDS, shard=Shard(1, 8))
    assert not execute(plan_file(tmp_path / "many.toml"), b, engine=engine).joined
    with pytest.raises(ResultsError, match="different experiments: their runs none-seed1-loaded"):
        merge([a, b], tmp_path / "out")
    (a / ".runs" / "plan.json").unlink()
    with pytest.raises(ResultsError, match="call that command once more"):
        merge([a], a)
    with pytest.raises(ResultsError, match="no results folder at"):
        status([tmp_path / "nowhere"])


@pytest.mark.parametrize(
    ("name", "shard", "scheduler", "said"),
    [
        (None, "0/8", None, "numbered from 1 to 8\n  hint: a job array has to begin with 1"),
        (None, "9/8", None, "parts are numbered from 1 to 8"),
        (None, "2of8", None, "expected I/N, as in 2/8"),
        ("dask", "1/2", None, "--shard 1/2 needs --engine shards, not dask"),
        (None, None, "tcp://a:1", "--scheduler tcp://a:1 needs --engine dask"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    name: str | None, shard: str | None, scheduler: str | None, said: str
) -> None:
    engine = None if name is None else EngineName(name)
    with pytest.raises(ExperimentError) as refused:
        chosen(engine, shard=shard, scheduler=scheduler)
    assert said in str(refused.value)


def test_results_that_others_write_are_not_replaced(folder: Path) -> None:
    plan = plan_file(folder / "many.toml")
    with pytest.raises(ExperimentError, match="--replace would delete"):
        execute(plan, folder / "ran", engine=Engine(EngineName.SHARDS), replace=True)


@pytest.mark.parametrize(("runs", "of"), [(10, 3), (2, 5), (7, 7)])
def test_the_shards_of_a_plan_are_all_of_it(runs: int, of: int) -> None:
    parts = [parse_shard(f"{number}/{of}").part(range(runs)) for number in range(1, of + 1)]
    assert sorted(run for part in parts for run in part) == list(range(runs))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


@pytest.mark.scale
def test_many_processes_die_and_come_back(folder: Path) -> None:
    seeds = ",".join(f"[{seed}]" for seed in range(1, 9))
    words = (*SWEEP[:4], "--set", f"simulation.seeds={seeds}", "--jobs", "1", "--no-report")
    raddle(*words, "--out", "calm", folder=folder)
    share = (*words, "--engine", "shards", "--out", "chaos")
    processes = [start(*share, folder=folder) for _ in range(6)]
    dice = random.Random(1)
    for done in range(4, 56, 4):
        pid, _ = kill_at_work(folder / "chaos", least=done)
        if dice.random() < 0.7:
            processes.append(start(*share, folder=folder))
        assert pid in {process.pid for process in processes}
    processes.append(start(*share, folder=folder))
    ends = [process.wait(300) for process in processes]
    for process in processes:
        process.communicate()
    assert set(ends) == {0, -signal.SIGKILL}
    assert ends.count(-signal.SIGKILL) == 13
    assert tree(folder / "chaos") == tree(folder / "calm")
    assert len(done_runs(folder / "chaos")) == 64
