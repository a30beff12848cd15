"""`raddle trace generate training`: from settings to a trace, and slips told."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from raddle.cli.app import app
from raddle.errors import TraceError
from raddle.services.trace import generate_training

SETTINGS = """layers = 4
hidden = 64
sequence = 32
tensor_parallel = 2
pipeline_parallel = 2
micro_batches = 3
forward = "10us"
"""


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    """Four workers, two stages of two."""
    file = tmp_path / "small.toml"
    file.write_text(SETTINGS)
    return file


def test_the_trace_has_the_traffic_of_its_formulas(settings: Path) -> None:
    """4 Allreduces of b s h values per layer, micro-batch and worker; activations to the stage."""
    out = settings.with_suffix(".trace.parquet")
    made = CliRunner().invoke(
        app,
        ["trace", "generate", "training", "--settings", str(settings), "--out", str(out), "--json"],
    )
    assert made.exit_code == 0, made.output
    found = json.loads(made.stdout)
    (reduced,) = found["collectives"]
    calls, bytes_ = 4 * 2 * 3 * 4, 32 * 64 * 2
    assert (reduced["kind"], reduced["calls"], reduced["bytes"]) == (
        "allreduce", calls, calls * bytes_,
    )  # fmt: skip
    assert (found["ranks"], found["messages"]) == (4, 2 * 2 * 3)
    assert found["bytes"] == 2 * 2 * 3 * bytes_


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "needs --settings"),
        (["--settings", "x.toml", "--ranks", "4"], "--ranks is not for training"),
    ],
)
def test_options_that_mean_nothing_are_refused(arguments: list[str], said: str) -> None:
    """Bad usage, before any file is read."""
    command = ["trace", "generate", "training", "--out", "a.trace.parquet", *arguments]
    made = CliRunner().invoke(app, command, env={"COLUMNS": "200"})
    assert made.exit_code == 2
    assert said in made.output


def test_a_slip_in_the_settings_is_told_with_its_place(settings: Path) -> None:
    """The file, the line and what was meant."""
    settings.write_text(SETTINGS.replace("layers", "layer"))
    with pytest.raises(TraceError, match=r"(?s)small\.toml:1.*did you mean `layers`"):
        generate_training(settings, settings.with_suffix(".trace.parquet"))


def test_a_kind_that_nobody_knows_is_told_with_what_was_meant(tmp_path: Path) -> None:
    """Training is one of the kinds."""
    out = tmp_path / "a.trace.parquet"
    made = CliRunner().invoke(app, ["trace", "generate", "training"[:-1], "--out", str(out)])
    assert made.exit_code == 2
    assert "did you mean `training`?" in made.output
