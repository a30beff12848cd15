"""`raddle compare`: what the experiments differ in, then only what differs; ties are marked."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from judging import write
from raddle.cli.app import app
from raddle.services.compare import compare_folders
from test_verdict import cut, times

EXPERIMENT = """\
schema = 1
name = "made-up"
[fabric]
kind = "leaf-spine"
leaves = 4
[traffic]
generator = "incast"
size = "64KiB"
[simulation]
schemes = ["hpcc"]
seeds = [1]
"""


def invoke(*words: object) -> Result:
    return CliRunner().invoke(app, ["compare", *map(str, words)], prog_name="raddle")


def compare_json(a: Path, b: Path, *words: object) -> Any:
    return json.loads(invoke(a, b, *words, "--json").stdout)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    runs = {("hpcc", 1): times(2.0), ("none", 1): times(4.0)}
    return write(tmp_path / "base", runs, experiment=EXPERIMENT)


def test_equal_results_end_in_one_line(base: Path) -> None:
    done = invoke(base, base)
    assert done.exit_code == 0
    assert done.stdout == "the same figures in all 14 rows\n"


def test_only_what_differs_is_printed_and_ties_are_marked(base: Path, tmp_path: Path) -> None:
    runs = {("hpcc", 1): times(2.05), ("none", 1): times(8.0)}
    other = write(tmp_path / "other", runs, experiment=EXPERIMENT)
    lines = invoke(base, other).stdout.splitlines()
    rows = [line for line in lines if line.startswith(("hpcc", "none"))]
    assert all(line.endswith("tie") for line in rows if line.startswith("hpcc"))
    assert not any("tie" in line for line in rows if line.startswith("none"))
    assert "+100.0 %" in next(line for line in rows if line.startswith("none    slowdown p99"))
    assert not any("–" in line for line in lines)
    assert not any("experiments differ" in line for line in lines)
    assert f"the same figures in {14 - len(rows)} of 14 rows" in lines


def test_seeds_decide_what_is_a_tie(tmp_path: Path) -> None:
    first = write(tmp_path / "a", {("hpcc", 1): times(1.9), ("hpcc", 2): times(2.1)})
    chance = write(tmp_path / "b", {("hpcc", 1): times(2.2), ("hpcc", 2): times(2.0)})
    sure = write(tmp_path / "c", {("hpcc", 1): times(1.91), ("hpcc", 2): times(2.11)})
    assert {r.tie for r in compare_folders(first, chance).differing} == {True}
    found = next(r for r in compare_folders(first, sure).rows if r.figure == "slowdown_p99")
    assert found.tie is False  # by as much for every seed


def test_seeds_that_one_folder_lacks_are_left_out(tmp_path: Path) -> None:
    first = write(tmp_path / "a", {("hpcc", 1): times(2.0)})
    more = write(tmp_path / "b", {("hpcc", 1): times(2.0), ("hpcc", 2): times(9.0)})
    lines = invoke(first, more).stdout.splitlines()
    assert lines[0] == "The experiments differ:"
    assert "seeds  2 only in B" in lines[1]
    assert lines[2] == "Figures are over the seeds that both have: 1."
    assert lines[-1].startswith("the same figures in all")


def test_unlike_experiments_are_told_first_each_with_what_differs(
    base: Path, tmp_path: Path
) -> None:
    text = EXPERIMENT.replace("leaves = 4", "leaves = 8").replace("incast", "permutation")
    runs = {("hpcc", 1): times(2.0), ("pint", 1): times(3.0)}
    other = write(tmp_path / "other", runs, experiment=text)
    manifest = json.loads((other / "manifest.json").read_text())
    manifest |= {"versions": {"raddle": "9.9"}, "schema": 7}
    (other / "manifest.json").write_text(json.dumps(manifest))
    lines = invoke(base, other).stdout.splitlines()
    assert lines[:6] == [
        "The experiments differ:",
        "  results schema     1 in A, 7 in B",
        "  raddle             absent in A, 9.9 in B",
        "  schemes            none only in A; pint only in B",
        "  fabric.leaves      4 in A, 8 in B",
        "  traffic.generator  incast in A, permutation in B",
    ]
    found = compare_json(base, other)
    assert found["alike"] is False
    assert {"what": "fabric.leaves", "a": 4, "b": 8} in found["unlike"]


def test_folders_without_a_common_scheme_are_not_compared(base: Path, tmp_path: Path) -> None:
    other = write(tmp_path / "other", {("swift", 1): times(2.0)}, experiment=EXPERIMENT)
    assert "No scheme is in both folders" in invoke(base, other).stdout


def test_figures_of_one_folder_alone_are_listed_and_not_dashes(tmp_path: Path) -> None:
    runs = {("hpcc", 1): times(2.0)}
    first = write(tmp_path / "a", runs)
    other = write(tmp_path / "b", runs, classes=("bulk",))
    said = invoke(first, other).stdout
    assert "only in A, of hpcc: FCT flow p50; FCT flow p95; FCT flow p99" in said
    assert "only in B, of hpcc: FCT bulk p50" in said
    assert "–" not in said


def test_unfinished_flows_are_told_and_their_figures_not_judged(base: Path, tmp_path: Path) -> None:
    runs = {("hpcc", 1): cut(2.01, 5), ("none", 1): times(4.0)}
    other = write(tmp_path / "other", runs, experiment=EXPERIMENT)
    done = invoke(base, other)
    assert done.stdout.startswith("Unfinished flows: under HPCC 0 of 20 in A and 5 of 20 in B.\n")
    rows = [line for line in done.stdout.splitlines() if line.startswith("hpcc")]
    assert rows
    assert all(line.endswith("unfinished") for line in rows)
    found = compare_json(base, other)
    assert found["unfinished"] == [{"scheme": "hpcc", "a": 0, "flows_a": 20, "b": 5, "flows_b": 20}]
    ties = {r["figure"]: r["tie"] for r in found["figures"] if r["scheme"] == "hpcc"}
    assert ties.pop("pause_us") is True
    assert set(ties.values()) == {None}


def test_json_has_every_row(base: Path, tmp_path: Path) -> None:
    other = write(tmp_path / "other", {("hpcc", 1): times(2.2)}, experiment=EXPERIMENT)
    found = compare_json(base, other, "--tolerance", 5)
    assert len(found["figures"]) == 14
    row = next(r for r in found["figures"] if r["figure"] == "slowdown_p99")
    assert row == {
        "scheme": "hpcc", "figure": "slowdown_p99", "label": "slowdown p99", "a": 2.0, "b": 2.2,
        "change_percent": pytest.approx(10), "same": False, "tie": False, "comparable": True,
    }  # fmt: skip
    assert found["agree"] is False
    assert found["leaders"] == {"a": ["hpcc"], "b": []}


def test_what_a_folder_lacks_is_said(one_seed: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(one_seed, copy)
    (copy / "ports.parquet").unlink()
    shutil.rmtree(copy / "isolated")
    done = invoke(one_seed, copy)
    for name in ("ports.parquet", "isolated/"):
        words = f"B, {copy}/{name} is missing: its figures are those of summary.json"
        assert words in done.stderr
    (copy / "summary.json").unlink()
    done = invoke(one_seed, copy)
    assert "summary.json is missing: figures are computed anew" in done.stderr
    assert "only in A, of none, dctcp, dcqcn, timely, hpcc and pint: S, weights 1" in done.stdout
