"""Tables that are missing, cut off, of another kind or of another experiment: said, never used."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner, Result

from raddle.cli.app import app
from raddle.errors import ResultsError
from raddle.report import write_report
from raddle.results import TABLES, load
from raddle.results.digests import digests
from raddle.results.faults import faults_of
from raddle.services.run import execute, plan_file
from synthetic import SyntheticCore


def invoke(*words: object) -> Result:
    return CliRunner().invoke(app, [str(w) for w in words], prog_name="raddle")


@pytest.fixture
def folder(core: SyntheticCore, experiment: Path, tmp_path: Path) -> Path:
    """Results as `raddle run` leaves them."""
    execute(plan_file(experiment), tmp_path / "out")
    return tmp_path / "out"


def test_whole_results_have_no_fault(folder: Path) -> None:
    assert faults_of(load(folder)) == []
    listed = json.loads((folder / "manifest.json").read_text())["files"]
    assert listed == digests(folder)
    assert len(listed) == 2 * len(TABLES)


@pytest.mark.parametrize(
    "name",
    [*(f"{table}.parquet" for table in TABLES if table != "flows"), "summary.json",
     "manifest.json", "experiment.toml", "isolated/flows.parquet"],
)  # fmt: skip
def test_a_missing_file_is_said_with_what_is_left_out(folder: Path, name: str) -> None:
    (folder / name).unlink()
    done = invoke("report", folder, "--json")
    assert done.exit_code == 0, done.output
    assert f"warning: {folder}/{name} is missing: " in done.stderr
    assert "left out" in done.stderr
    assert [f["file"] for f in json.loads(done.stdout)["faults"]] == [name]
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert f"<li>{name} is missing: " in page


def test_a_missing_twin_is_not_taken_for_traffic_without_tested_flows(folder: Path) -> None:
    shutil.rmtree(folder / "isolated")
    (folder / "summary.json").unlink()
    done = invoke("report", folder)
    assert "isolated/ is missing: the tested flows alone are left out" in done.stderr
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "which these results have lost" in page
    assert "no tested classes" not in page


def cut_off(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


def without_a_column(file: Path) -> None:
    table = pq.read_table(file)
    pq.write_table(table.drop_columns([table.column_names[-1]]), file)


def of_another_type(file: Path) -> None:
    table = pq.read_table(file)
    name = table.column_names[1]
    pq.write_table(table.set_column(1, name, table[name].cast(pa.string())), file)


def of_another_seed(file: Path) -> None:
    table = pq.read_table(file)
    seeds = pa.array([9] * table.num_rows, pa.uint64())
    pq.write_table(table.set_column(1, "seed", seeds), file)


@pytest.mark.parametrize("table", ["ports", "pauses", "queues", "throughput", "flows"])
@pytest.mark.parametrize("spoil", [cut_off, without_a_column, of_another_type, of_another_seed])
def test_a_table_that_the_run_did_not_write_so_is_refused(
    folder: Path, table: str, spoil: Callable[[Path], None]
) -> None:
    file = folder / f"{table}.parquet"
    spoil(file)
    done = invoke("report", folder)
    assert done.exit_code == 2
    assert file.name in done.stderr
    assert "joins it anew" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (cut_off, "is not a readable Parquet file"),
        (without_a_column, "has no column `drops`"),
        (of_another_type, "has `seed` of type string, not uint64"),
        (of_another_seed, "has rows of hpcc, seed 9, of which there is no run here"),
    ],
)
def test_a_table_is_checked_when_it_is_read_where_no_manifest_lists_it(
    folder: Path, spoil: Callable[[Path], None], words: str
) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["files"]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    spoil(folder / "ports.parquet")
    with pytest.raises(ResultsError, match=words):
        write_report(folder)


def test_the_same_run_joins_again_what_is_missing(
    core: SyntheticCore, experiment: Path, folder: Path
) -> None:
    before = digests(folder)
    (folder / "ports.parquet").unlink()
    cut_off(folder / "queues.parquet")
    core.simulated.clear()
    execute(plan_file(experiment), folder)
    assert core.simulated == []
    assert digests(folder) == before
    assert faults_of(load(folder)) == []


@pytest.mark.parametrize("table", ["flows", "ports"])
@pytest.mark.parametrize("spoil", [cut_off, Path.unlink])
def test_a_run_whose_part_is_not_whole_is_simulated_again(
    core: SyntheticCore,
    experiment: Path,
    folder: Path,
    table: str,
    spoil: Callable[[Path], None],
) -> None:
    before = digests(folder)
    spoil(folder / ".runs" / "hpcc-seed1-loaded" / f"{table}.parquet")
    core.simulated.clear()
    execute(plan_file(experiment), folder)
    assert core.simulated == ["hpcc-seed1-loaded"]
    assert digests(folder) == before
