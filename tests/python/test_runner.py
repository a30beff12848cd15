"""Runs: all of them, only the missing ones, interrupted ones, failing ones."""

import json
import os
import signal
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import raddle
from raddle.errors import ExperimentError, ResultsError
from raddle.results.claim import claim_folder
from raddle.services import run as runs
from raddle.services.engines.choice import Engine
from raddle.services.run import execute, plan_file
from raddle.services.runner import Job
from synthetic import Progress, SyntheticCore


def test_a_run_leaves_a_complete_results_folder(
    core: SyntheticCore, experiment: Path, tmp_path: Path
) -> None:
    outcome = execute(plan_file(experiment), tmp_path / "out", engine=Engine(jobs=2))
    assert outcome.complete
    assert len(core.simulated) == 8
    files = {p.name for p in (tmp_path / "out").iterdir()}
    assert files >= {
        "experiment.toml", "manifest.json", "summary.json", "flows.parquet", "isolated",
    }  # fmt: skip
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["schema"] == 1
    assert summary["complete"] is True
    hpcc = summary["schemes"]["hpcc"]
    assert hpcc["seeds"] == [1, 2]
    assert hpcc["fct_us"]["T_short"]["ci95"]["p99"] > 0
    assert hpcc["score"]["s"]["1"]["mean"] > 1
    assert hpcc["parameters"]["min_rate"] == {
        "value": "1 Gb/s", "source": "HPCC simulator, run.py",
    }  # fmt: skip
    assert outcome.summary == summary


def test_results_do_not_depend_on_the_number_of_jobs(
    core: SyntheticCore, experiment: Path, tmp_path: Path
) -> None:
    for jobs in (1, 4):
        execute(plan_file(experiment), tmp_path / str(jobs), engine=Engine(jobs=jobs))
    for name in ("flows.parquet", "isolated/pauses.parquet", "summary.json"):
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "4" / name).read_bytes()


def test_a_second_call_simulates_only_what_is_missing_or_damaged(
    core: SyntheticCore, experiment: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    execute(plan_file(experiment), out)
    core.simulated.clear()
    (out / ".runs" / "hpcc-seed2-loaded" / "stats.json").write_text('{"name": "hpcc')
    outcome = execute(plan_file(experiment), out)
    assert core.simulated == ["hpcc-seed2-loaded"]
    assert sum(s.reused for s in outcome.states) == 7


def files_of(out: Path) -> dict[str, bytes]:
    return {str(f.relative_to(out)): f.read_bytes() for f in out.rglob("*") if f.is_file()}


def test_results_of_another_experiment_are_replaced_only_on_request(
    core: SyntheticCore, experiment: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    execute(plan_file(experiment), out)
    (out / "notes.txt").write_text("mine")
    before = files_of(out)
    core.simulated.clear()
    experiment.write_text(experiment.read_text() + '[fabric]\nkind = "dumbbell"\n')
    with pytest.raises(ResultsError) as refused:
        execute(plan_file(experiment), out)
    assert str(refused.value).splitlines() == [
        f"{out} holds results of another experiment",
        "  fabric.kind  absent there, dumbbell here",
        "  hint: name another folder with --out, or delete those results with --replace",
    ]
    assert files_of(out) == before
    assert core.simulated == []
    execute(plan_file(experiment), out, replace=True)
    assert len(core.simulated) == 8
    assert (out / "notes.txt").read_text() == "mine"
    core.simulated.clear()
    execute(plan_file(experiment), out)  # it is the same one now
    assert core.simulated == []


def test_another_experiment_is_refused_even_if_no_run_has_the_same_name(
    core: SyntheticCore, experiment: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    execute(plan_file(experiment), out)
    text = experiment.read_text() + '[fabric]\nkind = "dumbbell"\n'
    experiment.write_text(text.replace('["none", "hpcc"]', '["swift"]'))
    with pytest.raises(ResultsError, match=r"fabric\.kind"):
        execute(plan_file(experiment), out)
    execute(plan_file(experiment), out, replace=True)
    parts = {entry.name.partition("-")[0] for entry in (out / ".runs").iterdir()}
    assert parts == {"lock", "plan.json", "swift"}


def test_results_of_another_version_are_replaced_only_on_request(
    core: SyntheticCore, experiment: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    execute(plan_file(experiment), out)
    for file in out.glob(".runs/*/stats.json"):
        file.write_text(json.dumps(json.loads(file.read_text()) | {"stamp": "older"}))
    manifest = json.loads((out / "manifest.json").read_text())
    with pytest.raises(ResultsError, match="contents of a file that it reads"):
        execute(plan_file(experiment), out)
    manifest["versions"]["raddle"] = "0.0.1"
    (out / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(ResultsError, match=r"raddle +0\.0\.1 there, "):
        execute(plan_file(experiment), out)


def test_more_seeds_and_schemes_and_other_weights_are_the_same_experiment(
    core: SyntheticCore, experiment: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    execute(plan_file(experiment), out)
    core.simulated.clear()
    text = experiment.read_text()
    experiment.write_text(text.replace("[1, 2]", "[1, 2, 3]").replace('["none"', '["pint", "none"'))
    execute(plan_file(experiment), out)
    assert len(core.simulated) == 10
    core.simulated.clear()
    experiment.write_text(text.replace("[1, 2]", "[2]"))
    execute(plan_file(experiment), out)
    assert core.simulated == []
    assert raddle.load(out).seeds == (2,)
    experiment.write_text(text)
    execute(plan_file(experiment), out)
    assert core.simulated == []  # what was not asked for was not deleted


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"manifest.json": '{"kind": "route"}'}, "holds results of `raddle route`"),
        ({"summary.json": '{"trace": "a.trace.parquet"}'}, "holds results of `raddle replay`"),
        ({"sweep.json": "{}"}, "holds results of `raddle sweep`"),
        ({"manifest.json": '{"name": "a web page"}'}, "holds other files and no raddle results"),
        ({"summary.json": "[]"}, "holds other files and no raddle results"),
    ],
)
def test_a_folder_of_another_command_is_not_touched(
    core: SyntheticCore, experiment: Path, tmp_path: Path, files: dict[str, str], words: str
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    for name, text in files.items():
        (out / name).write_text(text)
    for replace in (False, True):
        with pytest.raises(ResultsError, match=words):
            execute(plan_file(experiment), out, replace=replace)
    assert {p.name: p.read_text() for p in out.iterdir()} == files


def test_a_folder_of_runs_is_not_taken_by_another_command(
    core: SyntheticCore, experiment: Path, tmp_path: Path
) -> None:
    execute(plan_file(experiment), tmp_path / "out")
    for kind in ("route", "replay"):
        with (
            pytest.raises(ResultsError, match="holds results of `raddle run`"),
            claim_folder(tmp_path / "out", kind),
        ):
            pass


def test_an_interrupt_keeps_finished_runs_and_the_same_call_resumes(
    core: SyntheticCore, experiment: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    started = threading.Event()

    def hang_at_the_third(name: str, progress: Progress) -> None:
        if len(core.simulated) >= 2:
            started.set()
            assert progress.cancelled.wait(10)

    def press_ctrl_c(_: Any) -> None:
        if started.is_set():
            started.clear()
            raise KeyboardInterrupt

    core.on_run = hang_at_the_third
    outcome = execute(plan_file(experiment), out, engine=Engine(jobs=1), watch=press_ctrl_c)
    assert outcome.interrupted
    assert not outcome.complete
    assert len(core.simulated) == 2
    assert json.loads((out / "summary.json").read_text())["complete"] is False
    core.on_run = None
    resumed = execute(plan_file(experiment), out)
    assert resumed.complete
    assert len(core.simulated) == 8


def test_an_earlier_experiment_leaves_nothing_behind(
    core: SyntheticCore, experiment: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    execute(plan_file(experiment), out)
    (out / "report.html").write_text("of the first experiment")
    text = experiment.read_text().replace("hpc-mix", "poisson").replace("[1, 2]", "[5]")
    experiment.write_text(text)
    execute(plan_file(experiment), out, replace=True)
    assert not (out / "report.html").exists()
    results = raddle.load(out)
    assert results.seeds == (5,)
    assert results.isolated is None


def test_a_failing_run_keeps_the_finished_ones_and_says_which_it_was(
    core: SyntheticCore, experiment: Path, tmp_path: Path
) -> None:
    def fail(name: str, progress: Progress) -> None:
        if name == "hpcc-seed1-loaded":
            msg = "disk full"
            raise OSError(msg)

    core.on_run = fail
    out = tmp_path / "out"
    with pytest.raises(ResultsError, match=r"disk full\n.*hpcc-seed1-loaded stopped there"):
        execute(plan_file(experiment), out, engine=Engine(jobs=1))
    assert json.loads((out / "manifest.json").read_text())["complete"] is False


def test_a_folder_with_other_files_is_not_touched(
    core: SyntheticCore, experiment: Path, tmp_path: Path
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.tex").write_text("years of work")
    with pytest.raises(ResultsError, match="holds other files"):
        execute(plan_file(experiment), tmp_path / "home")
    assert [p.name for p in (tmp_path / "home").iterdir()] == ["thesis.tex"]


def test_two_writers_do_not_share_a_folder(tmp_path: Path) -> None:
    with (
        claim_folder(tmp_path / "out", "run"),
        pytest.raises(ResultsError, match="another raddle"),
        claim_folder(tmp_path / "out", "run"),
    ):
        pass


def test_run_takes_a_mapping_and_gives_frames(core: SyntheticCore, tmp_path: Path) -> None:
    results = raddle.run(
        {"schema": 1, "simulation": {"schemes": ["hpcc"], "seeds": [3]}}, tmp_path / "out"
    )
    assert results.schemes == ("hpcc",)
    assert results.seeds == (3,)
    assert results.complete
    frame = results.flows.to_pandas()
    assert set(frame["scheme"]) == {"hpcc"}
    assert pl.from_arrow(results.pauses).shape[0] == results.pauses.num_rows
    assert results.isolated is not None
    assert results.acks is None


def test_an_interrupted_run_from_python_raises_keyboard_interrupt(
    core: SyntheticCore, experiment: Path, tmp_path: Path
) -> None:
    def press_ctrl_c(name: str, progress: Progress) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        assert progress.cancelled.wait(10)

    core.on_run = press_ctrl_c
    # A parent that runs in the background may have handed down an ignored SIGINT.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            raddle.run(experiment, tmp_path / "out", jobs=1)
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda p: p.write_bytes(b"\xff\xfe"), "not UTF-8"),
        (lambda p: p.mkdir(), "is a folder"),
        (lambda p: None, "no such file"),
        (lambda p: p.write_text("= 3"), "bad.toml"),
        (lambda p: p.write_text("shema = 1"), "did you mean"),
    ],
)
def test_an_unreadable_experiment_names_the_file_and_the_cure(
    core: SyntheticCore, tmp_path: Path, prepare: Any, message: str
) -> None:
    file = tmp_path / "bad.toml"
    prepare(file)
    with pytest.raises(raddle.ExperimentError, match=message):
        plan_file(file)


def test_a_core_of_another_version_is_refused_in_words(
    core: SyntheticCore, experiment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core, "validate", lambda text, path, set_up: '{"schema": 2}')
    with pytest.raises(raddle.RaddleError, match="reinstall raddle"):
        plan_file(experiment)


def test_loading_what_is_no_results_folder_says_what_makes_one(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match="raddle run"):
        raddle.load(tmp_path)
    (tmp_path / "flows.parquet").write_bytes(b"PAR1 truncated")
    with pytest.raises(ResultsError, match="not a readable Parquet file"):
        _ = raddle.load(tmp_path).flows


def test_a_set_up_that_takes_long_is_shown_with_its_step_and_hosts(
    core: SyntheticCore, experiment: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain, shown = core.validate, threading.Event()

    class SetUp:
        step = ("finding routes", 1024)

    def slow(text: str, path: str, set_up: SetUp) -> str:
        assert shown.wait(10)
        return plain(text, path)

    monkeypatch.setattr(core, "SetUp", SetUp, raising=False)
    monkeypatch.setattr(core, "validate", slow)
    monkeypatch.setattr(runs, "MOMENT_S", 0.0)
    seen: list[str] = []

    def watch(jobs: Sequence[Job[Any]]) -> None:
        seen.extend(f"{job.name}: {job.look().words}" for job in jobs)
        shown.set()

    assert plan_file(experiment, watch=watch).runs
    assert seen[0].startswith("set-up: finding routes: 1,024 hosts  0 s")


def test_a_set_up_of_a_moment_is_not_shown_and_its_error_is_raised(
    core: SyntheticCore, experiment: Path, tmp_path: Path
) -> None:
    def never(jobs: Sequence[Job[Any]]) -> None:
        raise AssertionError(jobs)

    assert plan_file(experiment, watch=never).runs
    bad = tmp_path / "bad.toml"
    bad.write_text("schema = ", encoding="utf-8")
    with pytest.raises(ExperimentError):
        plan_file(bad, watch=never)
