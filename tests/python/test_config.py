"""`raddle config`: what the environment may say, and what it says."""

import json
import re
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from raddle.cli.app import app
from synthetic import SyntheticCore

ROOT = Path(__file__).resolve().parents[2]
TABLE = tomllib.loads((ROOT / "crates" / "mpi" / "settings.toml").read_text())["setting"]


def config(*words: str) -> str:
    result = CliRunner().invoke(app, ["config", *words], prog_name="raddle")
    assert result.exit_code == 0, result.output
    return result.stdout


def test_every_setting_is_listed_with_value_and_default(
    core: SyntheticCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RADDLE_ORDER", "rank")
    rows = {row["name"]: row for row in json.loads(config("--json"))["settings"]}
    assert rows.keys() == {row["name"] for row in TABLE}
    assert rows["RADDLE_ORDER"]["value"] == "rank"
    assert rows["RADDLE_ORDER"]["set"] is True
    assert rows["RADDLE_ORDER"]["default"] == "host"
    assert rows["RADDLE_MODE"]["value"] == rows["RADDLE_MODE"]["default"] == "auto"
    assert rows["RADDLE_JOB"]["value"] is None
    text = config()
    assert all(row["name"] in text and row["meaning"] in text for row in TABLE)
    assert re.search(r"^RADDLE_ORDER +rank +set ", text, re.MULTILINE)


def test_the_key_of_a_job_is_not_shown(
    core: SyntheticCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RADDLE_JOB_KEY", "00112233445566778899aabbccddeeff")
    assert "0011" not in config() + config("--json")


def test_names_are_told_once_and_well_formed() -> None:
    names = [row["name"] for row in TABLE]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"RADDLE_[A-Z_]+", name) for name in names)
    assert all(row["meaning"] and row["values"] for row in TABLE)


def test_whatever_the_package_reads_is_in_the_table() -> None:
    sources = [
        *(ROOT / "python" / "raddle").rglob("*.py"),
        *(ROOT / "crates").glob("*/src/**/*.rs"),
    ]
    read = {
        name
        for source in sources
        if source.stem != "tests"
        for name in re.findall(r"[\"'](RADDLE_[A-Z_]+)[\"']", source.read_text())
    }
    assert {"RADDLE_JOBS", "RADDLE_NO_PROGRESS", "RADDLE_OPENSM_CONFIG"} <= read
    assert read <= {row["name"] for row in TABLE}
