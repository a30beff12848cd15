"""Many processes, one result: runs shared in one folder, or shards' folders that are merged."""

import json
import os
import shutil
import signal
import time
from pathlib import Path

import pytest

from raddle.results.owners import Claims
from raddle.services.engines.choice import parse_shard
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

# Runs of a second or so, long enough to be killed in the middle.
MANY = QUICK.replace("hosts_per_leaf = 8", "hosts_per_leaf = 12") + "seeds = [1, 2]\n"
SWEEP = ("sweep", "many.toml", "--set", "simulation.buffer=4MiB,32MiB", "--jobs", "1")
RUN = ("run", "many.toml", "--jobs", "1")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An experiment, and what one machine makes of it: `swept` of 16 runs, `ran` of 8."""
    folder = tmp_path_factory.mktemp("many")
    (folder / "many.toml").write_text(MANY)
    raddle(*SWEEP[:-2], "--out", "swept", "--reports", folder=folder)
    # Half of the sweep is the run, but for the point's name of the file.
    raddle(*RUN[:-2], "--out", "ran", folder=folder)
    return folder


def test_processes_share_a_folder_and_one_is_killed(folder: Path) -> None:
    words = (*SWEEP, "--engine", "shards", "--reports", "--out", "shared")
    processes = [start(*words, folder=folder) for _ in range(3)]
    pid, lost = kill_at_work(folder / "shared")
    assert len(lost) == 1
    status = raddle_json("status", "shared", folder=folder)
    assert status["counts"]["done"] >= 1
    for process in processes:
        ended(process, -signal.SIGKILL if process.pid == pid else 0)
    # Those that live took its run over, and the last one joined: no run is lost or done twice.
    assert tree(folder / "shared") == tree(folder / "swept")
    assert len(done_runs(folder / "shared")) == 16
    assert "16 were there already" in raddle(*words, folder=folder).stderr


def test_shards_have_folders_of_their_own_and_one_is_killed(folder: Path) -> None:
    shards = [f"part-{number}" for number in (1, 2, 3)]
    words = {name: (*RUN, "--shard", f"{name[-1]}/3", "--out", name) for name in shards}
    processes = [start(*words[name], folder=folder) for name in shards]
    pid, (lost,) = kill_at_work(folder / "part-2")
    assert pid == processes[1].pid
    for process in processes:
        ended(process, -signal.SIGKILL if process.pid == pid else 0)
    told = raddle_json("status", *shards, folder=folder)
    assert told["complete"] is False
    assert next(run for run in told["runs"] if run["key"] == lost)["state"] == "waiting"
    merged = raddle("merge", *shards, "--out", "all", folder=folder, status=1)
    assert f"\n  {lost}\n" in merged.stderr
    assert "hint: the same `raddle run ... --out all` simulates these alone" in merged.stderr
    assert json.loads((folder / "all" / "summary.json").read_text())["complete"] is False
    # The same command goes on where it was killed.
    before = set(done_runs(folder / "part-2"))
    ended(start(*words["part-2"], folder=folder))
    assert lost in {Path(run).name for run in set(done_runs(folder / "part-2")) - before}
    assert raddle_json("merge", *shards, "--out", "all", folder=folder)["missing"] == []
    assert tree(folder / "all") == tree(folder / "ran")


def test_shards_that_share_a_folder_are_joined_by_the_last(folder: Path) -> None:
    words = (*RUN, "--out", "array")
    # Nine tasks for eight runs, one of them started twice.
    for number in (9, 1, 2, 3, 4):
        raddle(*words, "--shard", f"{number}/9", folder=folder)
    pair = [start(*words, "--shard", "5/9", folder=folder) for _ in range(2)]
    for process in pair:
        ended(process)
    told = raddle("status", "array", folder=folder).stdout
    assert told == "8 runs: 5 done and 3 waiting\n"
    for number in (6, 7):
        raddle(*words, "--shard", f"{number}/9", folder=folder)
    done = raddle(*words, "--shard", "8/9", folder=folder)
    assert "tie" in done.stdout or "best" in done.stdout
    assert tree(folder / "array") == tree(folder / "ran")
    assert raddle("status", "array", folder=folder).stdout == "8 runs: 8 done; joined\n"


def test_a_shard_that_is_interrupted_gives_its_runs_back(folder: Path) -> None:
    words = (*RUN, "--engine", "shards", "--out", "cut")
    assert interrupt(*words, folder=folder, runs=folder / "cut", after=2) == 130
    assert not list((folder / "cut").rglob("*.tmp"))
    claims = Claims(folder / "cut")
    assert claims.at_work() == []
    told = raddle_json("status", "cut", folder=folder)
    assert told["counts"]["running"] == 0
    assert told["counts"]["done"] >= 2
    assert not any(run["taken_over_from"] for run in told["runs"])
    # `raddle merge` takes what is there, and names the rest.
    assert raddle_json("merge", "cut", folder=folder, status=1)["missing"]
    raddle(*words, folder=folder)
    assert tree(folder / "cut") == tree(folder / "ran")


def test_what_a_dead_machine_had_is_waited_for_and_taken(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "hpcc-seed1-loaded"
    shutil.copytree(folder / "ran", folder / "far")
    shutil.rmtree(folder / "far" / ".runs" / name)
    (folder / "far" / "summary.json").unlink()
    claims = Claims(folder / "far")
    process = {"token": "t", "host": "node7", "pid": 1, "started": "1", "place": "another"}
    claims.file(name, 1).parent.mkdir(parents=True)
    claims.file(name, 1).write_text(json.dumps({"process": process}))
    sign = claims.sign("t")
    sign.parent.mkdir()
    sign.write_text(json.dumps({"process": process, "runs": {name: {"since": 0.0, "share": 0.4}}}))
    (run,) = [r for r in raddle_json("status", "far", folder=folder)["runs"] if r["key"] == name]
    assert (run["state"], run["host"], run["share"]) == ("running", "node7", 0.4)
    assert "node7:1" in raddle("status", "far", folder=folder).stdout
    # One machine does not take a folder in which others work.
    refused = raddle(*RUN, "--out", "far", folder=folder, status=2)
    assert "process 1 of node7 is at work there" in refused.stderr
    process_here = start(*RUN, "--engine", "shards", "--out", "far", folder=folder)
    # Alive or dead? It waits, until the file server's clock says that it is dead.
    deadline = time.monotonic() + 60
    while len(list(claims.sign("t").parent.iterdir())) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    time.sleep(0.2)
    assert process_here.poll() is None
    os.utime(sign, (time.time() - 200, time.time() - 200))
    ended(process_here)
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
    for name in ("a", "b"):
        shutil.copytree(folder / "ran", tmp_path / name)
    raddle("merge", "a", "b", "--out", "same", folder=tmp_path)
    assert tree(tmp_path / "same") == tree(folder / "ran")
    parts = tmp_path / "b" / ".runs"
    shutil.copy(
        parts / "hpcc-seed2-loaded" / "ports.parquet", parts / "hpcc-seed1-loaded" / "ports.parquet"
    )
    refused = raddle("merge", "a", "b", "--out", "other", folder=tmp_path, status=2)
    assert refused.stderr.startswith(
        "error: a/.runs/hpcc-seed1-loaded/ports.parquet and b/.runs/hpcc-seed1-loaded/ports.parquet"
        " differ: two results of run hpcc-seed1-loaded\n"
    )


def test_folders_of_different_experiments_are_not_merged(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder / "ran", tmp_path / "a")
    refused = raddle("merge", "a", folder / "swept", folder=tmp_path, status=2)
    assert "is to hold the run" in refused.stderr
    assert "all shards need the same experiment" in refused.stderr
    (tmp_path / "many.toml").write_text(MANY + 'buffer = "8MiB"\n')
    raddle(*RUN, "--shard", "1/8", "--out", "b", folder=tmp_path)
    refused = raddle("merge", "a", "b", folder=tmp_path, status=2)
    assert "a and b are of different experiments: their runs none-seed1-loaded" in refused.stderr
    (tmp_path / "a" / ".runs" / "plan.json").unlink()
    assert "call that command once more" in raddle("merge", "a", folder=tmp_path, status=2).stderr
    assert "no results folder at c" in raddle("status", "c", folder=tmp_path, status=2).stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--shard", "0/8"), "parts are numbered from 1 to 8\n  hint: a job array has to begin"),
        (("--shard", "9/8"), "parts are numbered from 1 to 8"),
        (("--shard", "2of8"), "expected I/N, as in 2/8"),
        (("--shard", "1/2", "--engine", "dask"), "--shard 1/2 needs --engine shards, not dask"),
        (("--scheduler", "tcp://a:1"), "--scheduler tcp://a:1 needs --engine dask"),
        (("--engine", "dask", "--scheduler", "nonsense://"), "no Dask scheduler at nonsense://"),
        (("--engine", "shards", "--replace"), "--replace would delete what other processes"),
        (("--engine", "slurm"), "possible: local, dask, shards"),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    folder: Path, words: tuple[str, ...], said: str
) -> None:
    done = raddle(*RUN, *words, "--out", "refused", folder=folder, status=2)
    assert said in done.stderr


@pytest.mark.parametrize(("runs", "of"), [(10, 3), (2, 5), (7, 7)])
def test_the_shards_of_a_plan_are_all_of_it(runs: int, of: int) -> None:
    parts = [parse_shard(f"{number}/{of}").part(range(runs)) for number in range(1, of + 1)]
    assert sorted(run for part in parts for run in part) == list(range(runs))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
