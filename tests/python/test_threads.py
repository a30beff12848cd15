"""Threads of a run change its time and no byte: of runs, of whole folders, of replays."""

import hashlib
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import tomli_w

import raddle
from raddle import _core, core, machine
from raddle.cli.talk import say_one_thread
from raddle.errors import ExperimentError
from raddle.plan import Plan
from raddle.report import write_report
from raddle.services.engines import choice
from raddle.services.engines.choice import Engine, EngineName
from raddle.services.overlay import parse_setting
from raddle.services.replay import Settings, preview, replay
from raddle.services.run import execute, plan_file
from raddle.services.sweep import plan_points
from real import tree

ROOT = Path(__file__).resolve().parents[2]
THREADS = (1, 2, 3, 8, 64)
EXPERIMENTS = {
    str(file.relative_to(ROOT)): tomllib.loads(file.read_text())
    for folder in ("examples", "experiments")
    for file in sorted((ROOT / folder).rglob("*.toml"))
}
EXPERIMENTS = {
    name: keys for name, keys in EXPERIMENTS.items() if "simulation" in keys or "include" in keys
}
SMALL = {
    "examples/link-failure.toml": ("simulation.end=450us",),
    "experiments/congestion/dumbbell.toml": ("simulation.end=300us",),
    "experiments/congestion/gpcnet.toml": ('simulation.schemes=["pint"]', "simulation.end=20us"),
    "experiments/congestion/large.toml": ('simulation.schemes=["pint"]', "simulation.end=15us"),
    "experiments/congestion/figure7-60.toml": ("simulation.end=30us",),
    "experiments/multicast/collectives.toml": (
        "fabric.cns=1", "fabric.q=4", "fabric.k=1", "traffic.dims=[6, 60]", "traffic.rounds=1",
    ),
    "experiments/multicast/latency.toml": ("traffic.rounds=2",),
    "experiments/together.toml": (
        "simulation.alone=false", 'setup=[{name="all",collectives="offload",scheduling="both"}]',
    ),
}  # fmt: skip
"""What makes an experiment small, beside one seed and `END`."""
END = "60us"
MIX = """\
schema = 1
name = "mix"
[fabric]
kind = "leaf-spine"
leaves = 8
spines = 8
hosts_per_leaf = 16
[traffic]
generator = "hpc-mix"
[simulation]
schemes = ["dcqcn"]
end = "30us"
"""
"""256 ports and more are cut into several processes; a window has enough events for threads."""


def shrunk(name: str, *settings: str) -> Plan:
    """An experiment with one seed, an end, and these settings."""
    chosen = {"simulation.seeds": "[1]", "simulation.end": END}
    chosen |= dict(text.split("=", 1) for text in settings)
    overlay = [parse_setting(f"{key}={value}") for key, value in chosen.items()]
    (point,) = plan_points(ROOT / name, overlay)
    return point.plan


def hashes(folder: Path) -> dict[str, str]:
    """SHA-256 of every file below a folder."""
    return {
        str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


def check_runs(plan: Plan, folder: Path) -> None:
    """Every run of a plan leaves the same files on any number of threads."""
    found = []
    for threads in THREADS:
        out, progress = folder / str(threads), core.runs.new_progress()
        runs = [core.runs.run(plan, run.index, out, threads, progress) for run in plan.runs]
        assert sum(run.packet_hops for run in runs) > 0
        found.append(hashes(out))
    assert len(found[0]) >= 7 * len(plan.runs)
    for threads, files in zip(THREADS, found, strict=True):
        assert files == found[0], f"{threads} threads"


@pytest.mark.parametrize(
    "name", [name for name, keys in EXPERIMENTS.items() if "include" not in keys]
)
def test_experiments_do_not_show_their_threads(name: str, tmp_path: Path) -> None:
    check_runs(shrunk(name, *SMALL.get(name, ())), tmp_path)


def test_broadcasts_of_processes_that_take_a_window_do_not_show_their_threads(
    tmp_path: Path,
) -> None:
    plan = shrunk("experiments/multicast/latency.toml", "traffic.rounds=2", "traffic.overhead=2us")
    assert plan.one_thread is None
    check_runs(plan, tmp_path)


@pytest.mark.scale
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_longer_experiments_do_not_show_their_threads(name: str, tmp_path: Path) -> None:
    # The burst of the small experiment begins at 5 ms.
    end = "5200us" if "congestion/small" in name else "400us"
    check_runs(shrunk(name, f"simulation.end={end}"), tmp_path)


@pytest.mark.parametrize(
    ("name", "settings", "why"),
    [
        ("experiments/rails/permutation.toml", (), None),
        ("experiments/multicast/latency.toml", (), "at once on what happens at other hosts"),
        (
            "experiments/multicast/latency.toml",
            ("traffic.operation=allreduce", "traffic.combining=on-tree"),
            None,
        ),
        ("experiments/multicast/latency.toml", ("traffic.overhead=900ns",), "at once on what"),
        ("examples/first.toml", ("simulation.compat=hpcc-ns3",), "another simulator's order"),
    ],
)
def test_what_keeps_to_one_thread_says_so(
    name: str, settings: tuple[str, ...], why: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    said = shrunk(name, *settings).one_thread
    assert (said is None) == (why is None)
    for threads in (None, 1):
        say_one_thread(threads, [said])
    assert capsys.readouterr().err == ""
    say_one_thread(8, [said, said])
    told = capsys.readouterr().err
    assert told.count("\n") == (why is not None)
    assert why is None or (told.startswith("note: each run keeps to one thread") and why in told)
    say_one_thread(8, [None, said])
    assert capsys.readouterr().err.startswith("note: some runs keep" if why else "")


def test_whole_folders_are_equal_on_any_number_of_threads_and_jobs(tmp_path: Path) -> None:
    (tmp_path / "mix.toml").write_text(MIX)
    plan = plan_file(tmp_path / "mix.toml")
    given = [(1, 1), (2, 3)]
    for jobs, threads in given:
        execute(plan, tmp_path / f"{threads}", engine=Engine(jobs=jobs, threads=threads))
        write_report(tmp_path / f"{threads}")
    first, *others = (tree(tmp_path / f"{threads}") for _, threads in given)
    assert {"summary.json", "report.html", "isolated/flows.parquet"} <= set(first)
    assert all(files == first for files in others)
    manifest = json.loads((tmp_path / "3" / "manifest.json").read_text())
    assert {run["threads"] for run in manifest["runs"]} == {3}
    # Runs that are there are good for a command with another number.
    again = execute(plan, tmp_path / "3", engine=Engine(threads=1))
    assert all(state.reused for state in again.states)


def test_replays_do_not_show_their_threads(tmp_path: Path) -> None:
    fabric = tomli_w.dumps({"fabric": tomllib.loads(MIX)["fabric"]})
    trace = tmp_path / "em.trace.parquet"
    _core.trace_generate("electromagnetics", "small", 128, 1, 2, "10us", 1, fabric, trace)
    found = []
    for threads in THREADS:
        out = tmp_path / str(threads)
        summary = replay(trace, ["both"], Settings(seeds=1), jobs=2, threads=threads, traces=out)
        for row in summary["schedules"].values():
            row.pop("schedule_s")  # a measured time
        found.append((summary, hashes(out)))
    assert list(found[0][1]) == ["both.trace.parquet", "none.trace.parquet"]
    for threads, one in zip(THREADS, found, strict=True):
        assert one == found[0], f"{threads} threads"
    assert found[0][0]["one_thread"] is None
    shared = preview(trace, ["none"], settings=Settings(seeds=1, processors=2))
    assert shared["one_thread"] == "ranks of several hosts share a processor"


@pytest.mark.parametrize(
    ("engine", "runs", "threads"),
    [
        (Engine(), 1, 8),
        (Engine(), 3, 2),
        (Engine(), 8, 1),
        (Engine(), 100, 1),
        (Engine(jobs=2), 100, 4),
        (Engine(jobs=1), 100, 8),
        (Engine(jobs=16), 100, 1),
        (Engine(jobs=2, threads=5), 1, 5),
        (Engine(EngineName.DASK, jobs=2), 100, 4),
        (Engine(EngineName.DASK, scheduler="tcp://head:8786"), 1, 1),
        (Engine(EngineName.SHARDS), 1, 1),
        (Engine(EngineName.SHARDS, threads=3), 100, 3),
    ],
)
def test_runs_get_the_cores_that_others_leave_over(
    engine: Engine, runs: int, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice, "cores", lambda: 8)
    monkeypatch.setattr(machine, "cores", lambda: 8)
    assert engine.threads_of_run(runs) == threads


@pytest.mark.parametrize("threads", [0, -1, 1025, 1.5, True, "many"])
def test_what_cannot_be_a_number_of_threads_is_refused(threads: Any, tmp_path: Path) -> None:
    (tmp_path / "mix.toml").write_text(MIX)
    words = f"threads must be a whole number, 1 to 1024, got {threads!r}"
    with pytest.raises(ExperimentError, match=re.escape(words)):
        raddle.run(tmp_path / "mix.toml", tmp_path / "out", threads=threads)
    assert not (tmp_path / "out").exists()
