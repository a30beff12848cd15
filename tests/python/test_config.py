"""`raddle config`: what the environment may say, and what it says."""

import json
import re
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from raddle.cli.app import app
from raddle.services.settings import problem
from synthetic import SyntheticCore

ROOT = Path(__file__).resolve().parents[2]
TABLE = tomllib.loads((ROOT / "crates/base/text/environment.toml").read_text())["setting"]


def config(*words: str, status: int = 0) -> Result:
    result = CliRunner().invoke(app, ["config", *words], prog_name="raddle")
    assert result.exit_code == status, result.output
    return result


def test_every_setting_is_listed_with_value_and_default(
    core: SyntheticCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RADDLE_ORDER", "rank")
    rows = {row["name"]: row for row in json.loads(config("--json").stdout)["settings"]}
    assert rows.keys() == {row["name"] for row in TABLE}
    assert rows["RADDLE_ORDER"]["value"] == "rank"
    assert rows["RADDLE_ORDER"]["set"] is True
    assert rows["RADDLE_ORDER"]["default"] == "host"
    assert rows["RADDLE_MODE"]["value"] == rows["RADDLE_MODE"]["default"] == "auto"
    assert rows["RADDLE_JOB"]["value"] is None
    text = config().stdout
    assert all(row["name"] in text and row["meaning"] in text for row in TABLE)
    assert re.search(r"^RADDLE_ORDER +rank +set ", text, re.MULTILINE)


def test_the_key_of_a_job_is_not_shown(
    core: SyntheticCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RADDLE_JOB_KEY", "00112233445566778899aabbccddeeff")
    assert "0011" not in config().output + config("--json").output
    monkeypatch.setenv("RADDLE_JOB_KEY", "00112233")
    assert "0011" not in config(status=1).output + config("--json", status=1).output


def test_a_value_that_must_not_be_is_said_and_is_exit_1(
    core: SyntheticCore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RADDLE_MODE", "knode")
    monkeypatch.setenv("RADDLE_ORDER", "rank")
    shown = config(status=1)
    assert re.search(r"^RADDLE_MODE +knode +INVALID +auto", shown.stdout, re.MULTILINE)
    assert re.search(r"^RADDLE_ORDER +rank +set ", shown.stdout, re.MULTILINE)
    assert "RADDLE_MODE=knode: did you mean `node`? possible: auto, node, socket" in shown.stderr
    rows = {r["name"]: r for r in json.loads(config("--json", status=1).stdout)["settings"]}
    assert {name for name, row in rows.items() if row["problem"]} == {"RADDLE_MODE"}


@pytest.mark.parametrize(
    ("values", "good", "bad"),
    [
        ("auto | node", ["auto", " node "], ["Auto", "auto node", " "]),
        ("8..64", ["8", "64", "+9"], ["7", "65", "8.0", "-8", "1_0", "²", "9" * 5000]),
        ("1..", ["1", "99999"], ["0", "many"]),
        ("4 hexadecimal digits", ["00fF"], ["00f", "00f0f", "0x1f", "00fg"]),
        ("path of a file", ["anything"], []),
    ],
)
def test_values_are_judged_by_the_table(values: str, good: list[str], bad: list[str]) -> None:
    assert [value for value in good if problem(values, value)] == []
    assert [value for value in bad if not problem(values, value)] == []


def test_names_are_told_once_and_well_formed() -> None:
    names = [row["name"] for row in TABLE]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"RADDLE_[A-Z_]+", name) for name in names)
    assert all(row["meaning"] and row["values"] for row in TABLE)


def test_whatever_the_package_reads_is_in_the_table() -> None:
    sources = [
        *(ROOT / "python" / "raddle").rglob("*.py"),
        *(ROOT / "crates").glob("*/*/src/**/*.rs"),
    ]
    read = {
        name
        for source in sources
        if source.stem != "tests"
        for name in re.findall(r"[\"'](RADDLE_[A-Z_]+)[\"']", source.read_text())
    }
    assert {"RADDLE_JOBS", "RADDLE_NO_PROGRESS", "RADDLE_OPENSM_CONFIG"} <= read
    assert read <= {row["name"] for row in TABLE}
