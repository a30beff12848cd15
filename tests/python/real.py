"""The real program: `raddle` as a process, and experiments small enough for a test."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from raddle.results.owners import Claims

QUICK = """\
schema = 1
name = "quick"
[fabric]
kind = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 8
[traffic]
generator = "hpc-mix"
[simulation]
schemes = ["none", "hpcc"]
"""
"""hpc-mix on 16 hosts: tested flows of all three kinds, background, and a twin."""

ENVIRONMENT = {**os.environ, "RADDLE_NO_PROGRESS": "1", "COLUMNS": "100", "NO_COLOR": "1"}
PATIENCE_S = 120
"""So long at most for what takes a second or two on a machine that has nothing else to do."""
TABLES = ("flows", "pauses", "ports", "throughput", "flow_throughput", "queues", "nodes", "links")


def raddle(*words: str | Path, folder: Path, status: int = 0) -> subprocess.CompletedProcess[str]:
    """Run `raddle` in `folder`; fails, showing what it said, if it does not end with `status`."""
    done = subprocess.run(
        [sys.executable, "-m", "raddle", *map(str, words)],
        cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False,
        timeout=2 * PATIENCE_S,
    )  # fmt: skip
    assert done.returncode == status, f"raddle {words}:\n{done.stdout}{done.stderr}"
    return done


def raddle_json(*words: str | Path, folder: Path, status: int = 0) -> Any:
    """What `raddle ... --json` prints."""
    return json.loads(raddle(*words, "--json", folder=folder, status=status).stdout)


def interrupt(*words: str | Path, folder: Path, runs: Path, after: int) -> int:
    """Start `raddle`, press Ctrl-C when `after` runs are done under `runs`; its exit status."""
    # Tests that a shell started in the background have Ctrl-C ignored, and so would their programs.
    hear = "import signal, runpy; signal.signal(signal.SIGINT, signal.default_int_handler)"
    start = f"{hear}; runpy.run_module('raddle', run_name='__main__', alter_sys=True)"
    process = subprocess.Popen(
        [sys.executable, "-c", start, *map(str, words)],
        cwd=folder, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    deadline = time.monotonic() + PATIENCE_S
    while len(done_runs(runs)) < after and process.poll() is None:
        assert time.monotonic() < deadline, "no run ended in time"
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    return process.wait(PATIENCE_S)


def done_runs(out: Path) -> list[str]:
    """The runs that are done below a folder in which others write, by their paths."""
    return [
        os.path.relpath(folder, out)
        for folder, _, files in os.walk(out)
        if "stats.json" in files and not folder.endswith(".tmp") and ".tmp/" not in folder
    ]


def start(*words: str | Path, folder: Path) -> "subprocess.Popen[str]":
    """Start `raddle` in `folder`, and do not wait for it."""
    return subprocess.Popen(
        [sys.executable, "-m", "raddle", *map(str, words)],
        cwd=folder, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def ended(process: "subprocess.Popen[str]", status: int = 0) -> str:
    """What a process of `start` said on stdout; fails if it does not end with `status`."""
    out, err = process.communicate(timeout=2 * PATIENCE_S)
    assert process.returncode == status, out + err
    return out


def kill_at_work(top: Path, only: int | None = None, least: int = 1) -> tuple[int, list[str]]:
    """Kill a process in the middle of a run, when `least` runs are done; its number and runs."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        assert time.monotonic() < deadline, "nobody was at a run in time"
        done = done_runs(top)
        for process, _, runs in Claims(top).processes() if len(done) >= least else ():
            if not runs or only not in (None, process.pid) or not process.runs():
                continue
            os.kill(process.pid, signal.SIGSTOP)  # so that it cannot end the run meanwhile
            held = [key for own, _, keys in Claims(top).processes() if own == process
                    for key in keys]  # fmt: skip
            left = [key for key in held if not _is_done(top, key)]
            if left:
                os.kill(process.pid, signal.SIGKILL)
                return process.pid, left
            os.kill(process.pid, signal.SIGCONT)
        time.sleep(0.005)


def _is_done(top: Path, key: str) -> bool:
    point, _, name = key.rpartition("/")
    return (top / point / ".runs" / name / "stats.json").is_file()


def tree(out: Path) -> dict[str, bytes]:
    """Every file of a results folder but manifest.json, byte by byte."""
    files = (f for f in out.rglob("*") if f.is_file() and f.name != "manifest.json")
    return {str(f.relative_to(out)): f.read_bytes() for f in files}


def parquet_of(out: Path) -> dict[str, bytes]:
    """The Parquet files of a results folder, byte by byte; parts of single runs left out."""
    files = (f for f in out.rglob("*.parquet") if ".runs" not in f.parts)
    return {str(f.relative_to(out)): f.read_bytes() for f in files}
