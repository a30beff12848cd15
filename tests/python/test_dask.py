"""Runs as tasks of a Dask cluster: workers die, Ctrl-C comes, the bytes are one machine's."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from raddle.report import write_report
from raddle.results.owners import Claims
from raddle.services.run import execute, plan_file
from real import (
    ENVIRONMENT,
    QUICK,
    done_runs,
    ended,
    interrupt,
    kill_at_work,
    raddle,
    start,
    tree,
)

pytest.importorskip("distributed")

MANY = QUICK + "seeds = [1, 2, 3, 4]\n"
RUN = ("run", "many.toml")
DASK = (*RUN, "--engine", "dask")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An experiment of sixteen runs, and what one machine makes of it, `ran`."""
    folder = tmp_path_factory.mktemp("dask")
    (folder / "many.toml").write_text(MANY)
    execute(plan_file(folder / "many.toml"), folder / "ran")
    write_report(folder / "ran")
    return folder


@pytest.fixture
def scheduler(folder: Path) -> Iterator[str]:
    """The address of a cluster that was there before."""
    script = (
        "import sys; from distributed import LocalCluster\n"
        "if __name__ == '__main__':\n"
        "    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as one:\n"
        "        print(one.scheduler_address, flush=True)\n"
        "        sys.stdin.read()\n"
    )
    (folder / "cluster.py").write_text(script)
    process = subprocess.Popen(
        [sys.executable, "cluster.py"], cwd=folder, env=ENVIRONMENT, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert process.stdout is not None
    yield process.stdout.readline().strip()
    process.communicate("")


def test_a_worker_that_is_killed_loses_no_run(folder: Path) -> None:
    words = (*DASK, "--jobs", "2", "--threads", "3", "--out", "killed")
    process = start(*words, folder=folder)
    pid, lost = kill_at_work(folder / "killed")
    assert pid != process.pid
    assert len(lost) == 1
    ended(process)
    assert tree(folder / "killed") == tree(folder / "ran")
    manifest = json.loads((folder / "killed" / "manifest.json").read_text())
    assert {run["threads"] for run in manifest["runs"]} == {3}
    assert len(done_runs(folder / "killed")) == 16


def test_an_interrupted_run_resumes_with_a_cluster_that_exists(
    folder: Path, scheduler: str
) -> None:
    words = (*DASK, "--scheduler", scheduler, "--out", "cut")
    assert interrupt(*words, folder=folder, runs=folder / "cut", after=2) == 130
    done = done_runs(folder / "cut")
    assert 2 <= len(done) < 16
    assert json.loads((folder / "cut" / "summary.json").read_text())["complete"] is False
    assert f"; {len(done)} were there already" in raddle(*words, folder=folder).stderr
    assert Claims(folder / "cut").at_work() == []
    assert tree(folder / "cut") == tree(folder / "ran")


def test_a_fault_of_a_run_is_told_as_without_dask(folder: Path) -> None:
    (folder / "flows.csv").write_text("start_us,src,dst,size_bytes\n0,0,1,1000\n")
    text = MANY.replace('generator = "hpc-mix"', 'file = "flows.csv"')
    (folder / "file.toml").write_text(text)
    words = ("run", "file.toml", "--engine", "dask", "--jobs", "1", "--out", "fault")
    (folder / "fault" / ".runs" / "none-seed1-loaded").mkdir(parents=True)
    (folder / "fault" / ".runs" / "none-seed1-loaded" / "stats.json").mkdir()
    (folder / "fault" / ".runs" / "hpcc-seed1-loaded").touch()
    done = raddle(*words, folder=folder, status=2)
    assert "fault/.runs/hpcc-seed1-loaded: Not a directory" in done.stderr
    assert "run hpcc-seed1-loaded stopped there" in done.stderr


def test_without_the_package_its_name_is_told(folder: Path) -> None:
    script = (
        "import runpy, sys; sys.modules['distributed'] = None\n"
        "runpy.run_module('raddle', run_name='__main__', alter_sys=True)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *DASK, "--out", "without"],
        cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert "--engine dask needs the package distributed" in done.stderr
    assert "hint: pip install 'raddle[dask]'" in done.stderr
