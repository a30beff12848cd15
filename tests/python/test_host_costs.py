"""Costs of hosts: fits give known ones back, and replays say how old theirs are."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from raddle import _core, core
from raddle.cli.app import app
from raddle.errors import LabError, TraceError
from raddle.services.costs import of_experiment, read_costs, read_file
from raddle.services.lab import calibrate
from raddle.services.lab.bench import Loop, compiled
from raddle.services.lab.calibrate import OFFLOAD, STAGES
from raddle.services.lab.predict import as_costs, predicted
from raddle.statistics.calibration import told
from raddle.statistics.host_costs import Row, fit, of_messages

FILE = """send_overhead = "5us"
[calibration]
measured = 2026-11-20T08:00:00Z
machine = "2 processors"
"""
SOURCE = {
    "file": "costs.toml",
    "measured": "2026-11-20T08:00:00+00:00",
    "machine": "2 processors",
}


def close(found: Mapping[str, float], known: Mapping[str, float]) -> bool:
    """Within 1 %, or as good as nothing."""
    return all(found[key] == pytest.approx(value, 0.01, 1e-3) for key, value in known.items())


def test_messages_give_their_costs_back() -> None:
    """A send is a line, a message inside a host two equal ends, scheduling what comes on top."""
    sizes = (8, 512, 2048, 8192)
    between: list[Row] = [
        {"bytes": size, "send_us": 4.0 + 1e-4 * size, "half_us": 9.0 + 4e-4 * size}
        for size in sizes
    ]
    inside: list[Row] = [
        {"bytes": size, "send_us": 0.2, "half_us": 0.5 + 2e-4 * size} for size in sizes
    ]
    scheduled = [{**row, "half_us": row["half_us"] + 0.6} for row in between]
    found = of_messages(between, inside, scheduled)
    known = {"send_overhead": 4.0, "local_overhead": 0.25, "local_copy_per_byte": 1e-4}
    assert close(found, {**known, "schedule_overhead": 0.3})
    assert "schedule_overhead" not in of_messages(between, inside, [])


@pytest.mark.parametrize("stage", [0, 1, 3])
def test_loops_give_their_costs_back(stage: int, tmp_path: Path) -> None:
    """What the simulator makes of known costs is fitted to; the same costs come out."""
    known = {
        "send_overhead": 5.0,
        "receive_overhead": 2.2,
        "copy_per_byte": 1.5e-4,
        "long_copy_per_byte": 1.2e-4,
        "switch_overhead": 1.5,
        "look_overhead": 5.5,
        "offload_overhead": 2.6,
        "offload_look_overhead": 1.7,
    }
    own = (*STAGES, OFFLOAD)[stage]
    loops = [loop for loop in own.loops if loop.hosts <= 4]

    def predict(costs: Mapping[str, float]) -> list[float]:
        told = as_costs({**known, **costs})
        return [predicted(loop, 9.0, told, tmp_path) for loop in loops]

    found = fit(predict, predict(known), own.start)
    again, made = predict(found), predict(known)
    assert again == pytest.approx(made, 0.01)
    if stage:
        assert close(found, {key: known[key] for key in own.start})


def test_a_loop_of_one_processor_takes_the_work_of_all_its_ranks(tmp_path: Path) -> None:
    """And one that costs nothing but its walk takes that."""
    costs = as_costs(dict.fromkeys(("send_overhead", "receive_overhead", "copy_per_byte"), 0.0))
    costs |= as_costs({"switch_overhead": 0.0, "look_overhead": 0.0})
    alone = predicted(Loop("ring", "host", 64, 2, 2), 50.0, costs, tmp_path)
    shared = predicted(Loop("ring", "host", 64, 2, 1), 50.0, costs, tmp_path)
    assert 50 < alone < 55
    assert 100 <= shared < 105


def test_a_file_says_where_its_costs_come_from(tmp_path: Path) -> None:
    """Replays take it as it is."""
    file = tmp_path / "costs.toml"
    file.write_text(FILE)
    found = read_file(file)
    assert found.changed == {"send_overhead": "5us"}
    assert found.as_json() == {**SOURCE, "file": str(file)}
    assert told(SOURCE, datetime(2026, 11, 23, 9, tzinfo=UTC)) == (
        "costs.toml, measured 3 days ago (2 processors)"
    )
    assert told({**SOURCE, "measured": None}).endswith("does not say when it was measured")
    experiment = f'[hosts]\ncosts = "{file}"\n'
    assert of_experiment(experiment)["machine"] == "2 processors"
    file.unlink()
    assert of_experiment(experiment) == {"file": str(file), "measured": None, "machine": None}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("calibration = 3\n", "must be a table"),
        ("[calibration]\nmeasured = 'yesterday'\n", "write a date and time of TOML"),
        ("[calibration]\n[send]\n", "send"),
        ("send_overhed = '1us'\n[calibration]\n", "did you mean `send_overhead`"),
        ("offload_look_overhead = '2h'\n", "offload_look_overhead"),
        ("time_slice = '0s'\n", "time_slice"),
    ],
)
def test_a_broken_file_is_told(text: str, words: str) -> None:
    """With its name and the way out."""
    with pytest.raises(TraceError, match=words) as caught:
        read_costs(text, Path("my.toml"))
    assert "my.toml" in str(caught.value)


def test_replays_and_advice_say_how_old_their_costs_are(tmp_path: Path) -> None:
    """Of one trace, of several jobs, and of an advice; without a map it is the trace's own."""
    trace, costs = tmp_path / "md.trace.parquet", tmp_path / "costs.toml"
    fabric = '[fabric]\nkind = "leaf-spine"\nleaves = 1\nspines = 1\nhosts_per_leaf = 4\n'
    _core.trace_generate("molecular-dynamics", "small", 4, 1, 2, "10us", 1, fabric, trace)
    costs.write_text(FILE)
    given = ["--costs", str(costs), "--processors", "2", "--seeds", "1"]
    for words in (
        ["replay", str(trace), "--schedule", "none", "--no-report"],
        ["replay", str(trace), "--collectives", "offload", "--no-report"],
        ["advise", str(trace), "--systems", "collectives"],
    ):
        out = tmp_path / words[0] / words[2].strip("-")
        done = CliRunner().invoke(app, [*words, *given, "--out", str(out)])
        assert done.exit_code == 0, done.output
        assert f"host costs {costs}, measured" in " ".join(done.output.split())
        summary = json.loads((out / "summary.json").read_text())
        source = summary.get("host_costs") or summary["calibration"]
        assert source["measured"] == SOURCE["measured"]
    built_in = CliRunner().invoke(
        app, ["replay", str(trace), "--dry-run", "--schedule", "none", "--seeds", "1"]
    )
    assert "costs     built in, of a processor of 2014; not measured" in built_in.output


def test_a_recording_says_which_processors_its_ranks_shared(tmp_path: Path) -> None:
    """Only a lab's does; others had their own."""
    trace = tmp_path / "md.trace.parquet"
    _core.trace_generate("molecular-dynamics", "small", 4, 1, 2, "10us", 1, "", trace)
    assert core.trace.describe(trace).processors is None


def test_a_machine_that_cannot_be_calibrated_says_why(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One processor, or no compiler."""
    monkeypatch.setattr("raddle.services.lab.bench.COMPILER", "no-such-compiler")
    with pytest.raises(LabError, match=r"libopenmpi-dev"):
        compiled(tmp_path)
    monkeypatch.setattr("raddle.services.lab.calibrate.check_machine", lambda *_: None)
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    with pytest.raises(LabError, match="one processor"):
        calibrate.calibrate()
