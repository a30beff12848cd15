"""`raddle reproduce`: verdicts by one rule, files that others read, searches that go on."""

import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from raddle.errors import ResultsError
from raddle.report.reproduction import render_paper
from raddle.results.reproduction import Outcome, Row, Table, cell, count_rows, finding, lost
from raddle.services.reproduce.context import Context
from raddle.services.reproduce.markdown import keep, kept, page_of
from raddle.services.reproduce.measured import last_measured, measure, read_measurements
from raddle.services.reproduce.search import Search, run_search

ROOT = Path(__file__).resolve().parents[2]
COLUMNS = {
    "paper": "string",
    "item": "string",
    "setting": "string",
    "unit": "string",
    "published": "double",
    "ours": "double",
    "ci_low": "double",
    "ci_high": "double",
    "deviation_frac": "double",
    "kind": "string",
    "null_deviation_frac": "double",
    "verdict": "string",
}
"""What others rely on."""

PROGRAM = """
from raddle.services.reproduce import Context, Outcome, cell, finding, lost

def reproduce(context: Context) -> Outcome:
    rows = [
        cell(item="Table 5", setting="8 B", unit="us", published=8.6, ours=9.0, kind="predicted",
             null=7.0, ci=(8.9, 9.1)),
        finding(item="4.2", setting="<script>", statement="faster", holds=None, note="one seed"),
        lost("Table 2", "buffer"),
    ]
    return Outcome(rows)
"""
SEARCH = """
from raddle.services.reproduce import Search

def evaluate(point, quick, out):
    (out / f"saw-{point['units']}").touch(exist_ok=False)
    return {"fast": point["units"] > 1, "small": point["units"] < 3}

SEARCH = Search(inputs={"units": [1, 2, 3]}, findings=["fast", "small"], evaluate=evaluate)
"""


def row(ours: float, published: float = 10.0, **more: object) -> Row:
    return cell(item="T", setting="s", published=published, ours=ours, kind="predicted", **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("ours", "verdict"), [(9.0, "holds"), (11.0, "holds"), (8.99, "misses"), (11.01, "misses")]
)
def test_a_cell_holds_within_a_tenth_of_the_published_figure(ours: float, verdict: str) -> None:
    assert row(ours).verdict == verdict


@pytest.mark.parametrize(
    ("published", "ours", "verdict"),
    [(7, 7, "holds"), (7, 7.2, "misses"), (1.09, 1.0941, "holds"), (1.09, 1.096, "misses")],
)
def test_an_exact_figure_holds_to_its_printed_digits(
    published: float, ours: float, verdict: str
) -> None:
    found = cell(item="T", setting="s", published=published, ours=ours, kind="exact")
    assert found.verdict == verdict


@pytest.mark.parametrize(
    ("interval", "verdict"),
    [((9.5, 10.5), "holds"), ((8.0, 10.0), "not_shown"), ((5.0, 8.0), "misses")],
)
def test_an_interval_decides_where_asked(interval: tuple[float, float], verdict: str) -> None:
    assert row(sum(interval) / 2, ci=interval, decide_by_ci=True).verdict == verdict


def test_a_figure_that_is_not_finite_is_refused() -> None:
    with pytest.raises(ResultsError, match="ours is nan"):
        row(float("nan"))


def test_counts_add_up() -> None:
    rows = [
        row(10.0, null=10.5),
        row(20.0, null=20.0),
        finding(item="4", setting="a", statement="x", holds=True),
        lost("T", "b"),
    ]
    found = count_rows(rows)
    assert found["rows"] == sum(found["verdicts"].values()) == 4
    assert sum(sum(kind.values()) for kind in found["kinds"].values()) == 4
    assert (found["predicted_within"], found["predicted_cells"]) == (1, 2)
    assert (found["null_within"], found["null_cells"]) == (1, 2)
    assert found["findings"]["holds"] == 1


def test_models_that_predict_the_same_are_counted_apart(tmp_path: Path) -> None:
    """Two models of one cell are not two cells, in counts, in words and in the picture."""
    rows = [
        row(20.0),
        row(10.0, variant="with more data"),
        finding(item="4", setting="a", statement="x", holds=True, variant="with more data"),
    ]
    found = count_rows(rows)
    assert (found["rows"], found["predicted_within"], found["predicted_cells"]) == (1, 0, 1)
    other = found["variants"]["with more data"]
    assert (other["rows"], other["predicted_within"], other["predicted_cells"]) == (2, 1, 1)
    assert other["findings"]["holds"] == 1

    page = render_paper("A paper", "a", Outcome(rows), quick=False).replace(
        "\N{NO-BREAK SPACE}", " "
    )
    assert "0 of 1 predicted cells are within 10 %" in page
    assert "With more data: 1 of 1 predicted cells are within 10 %" in page
    assert "T, with more data" in page

    template = tmp_path / "page.md"
    template.write_text(
        '{{ counts() }}\n{{ rows("T", variant="with more data") }}\n{{ value("T", "s") }}\n'
    )
    text = page_of(template, Outcome(rows))
    assert "Of 1 predicted cells 0 are" in text
    assert "The same with more data: of 1 predicted cells 1 are" in text
    assert text.splitlines()[-1] == "20"


def test_what_is_kept_makes_the_same_page(tmp_path: Path) -> None:
    rows = [row(10.25, null=9.0, ci=(10.0, 10.5)), lost("T", "a | b", "not in the text")]
    outcome = Outcome(rows, {"sizes": Table(("a", "b"), [(1, 2.5), ("x|y", None)])})
    template = tmp_path / "page.md"
    template.write_text(
        '# T\n\n{{ counts() }}\n\n{{ rows("T") }}\n\n{{ table("sizes") }}\n\n'
        '{{ value("T", "s", "deviation_frac") }}\n'
    )
    keep(outcome, tmp_path / "results", "raddle reproduce t")
    text = page_of(template, outcome)
    assert page_of(template, kept(tmp_path / "results")) == text
    assert "+2.5 %" in text
    assert "x\\|y" in text


def test_a_page_that_asks_for_what_is_not_there_names_it(tmp_path: Path) -> None:
    template = tmp_path / "page.md"
    template.write_text('{{ rows("Table 9") }}')
    with pytest.raises(ResultsError, match="Table 9"):
        page_of(template, Outcome([row(1.0)]))


def parity(point: dict[str, int], _quick: bool, _out: Path) -> dict[str, bool | None]:
    return {
        "even": point["a"] % 2 == 0,
        "odd": point["a"] % 2 == 1,
        "high": point["a"] + point["b"] > 4,
    }


def test_a_search_tells_what_never_holds_together(tmp_path: Path) -> None:
    search = Search({"a": [1, 2, 3], "b": [0, 2]}, ["even", "odd", "high"], parity)
    found = run_search(search, Context(tmp_path, jobs=2))
    assert len(found.points) == 6
    assert found.never_together() == [("even", "odd"), ("even", "high")]
    assert found.region == []
    assert (found.best_count, found.points[found.best]) == (2, {"a": 3, "b": 2})
    assert {name: found.elsewhere(name) for name in found.findings} == {
        "even": (0, 1),
        "odd": (1, 3),
        "high": (1, 6),
    }
    assert found.predicted() == []
    assert run_search(search, Context(tmp_path, jobs=1)).holds == found.holds
    template = tmp_path / "page.md"
    template.write_text("{{ search() }}")
    page = page_of(template, Outcome([], found.tables()))
    assert "6 points were searched" in page
    assert "At no point do all 3 findings hold; at most 2 do" in page
    assert "at 1 of 3" in page


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with a small program for one paper."""
    home = tmp_path / "clone"
    for name in ("multicast", "congestion", "offload", "scheduling", "rails"):
        (home / "experiments" / name).mkdir(parents=True)
    (home / "Cargo.toml").touch()
    (home / "experiments" / "__init__.py").touch()
    (home / "experiments" / "offload" / "reproduce.py").write_text(PROGRAM)
    (home / "experiments" / "offload" / "search.py").write_text(SEARCH)
    (home / "experiments" / "offload" / "page.md").write_text('{{ rows("Table 5") }}\n')
    return home


def call(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "raddle", "reproduce", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_the_command_leaves_rows_a_summary_and_pages(repository: Path) -> None:
    done = call(repository / "experiments", "offload", "--out", "../out", "--quick", "--json")
    assert done.returncode == 0, done.stderr
    out = repository / "out"
    summary = json.loads((out / "summary.json").read_text())
    assert json.loads(done.stdout) == summary
    assert summary["schema"] == 1
    counts = summary["papers"]["offload"]
    assert counts["kinds"]["predicted"] == {"holds": 1, "misses": 0, "not_shown": 1, "lost": 1}
    assert counts["search"]["best_point"] == {"units": 2}
    assert counts["search"]["points_where_all_hold"] == 1
    table = pq.read_table(out / "results.parquet")
    types = {field.name: str(field.type) for field in table.schema}
    assert COLUMNS.items() <= types.items()
    assert table["paper"].unique().to_pylist() == ["offload"]
    assert "| 8 B | 8.600 | 9 [8.900, 9.100] |" in (out / "offload.md").read_text()
    assert '<th scope="row"><script>' not in (out / "offload.html").read_text()
    # Points that are there are not evaluated again: `evaluate` would fail on its own file.
    assert call(repository, "offload", "--out", "out", "--quick").returncode == 0


def test_a_measurement_is_fixed_before_it_is_taken_and_kept_with_its_machine(
    repository: Path,
) -> None:
    file = repository / "experiments" / "measurements.toml"
    file.write_text(
        """
        [ranks]
        paper = "offload"
        command = ["-c", "open('found.json', 'w').write('[1]')"]
        result = "found.json"
        samples = 20
        rule = "the median's 95 % interval is narrower than 10 %"
        minutes = 0.1
        """
    )
    (found,) = read_measurements(repository)
    home = repository / "experiments" / "offload"
    measure(found, repository, home)
    kept_now = last_measured(home)["ranks"]
    assert kept_now["result"] == [1]
    assert kept_now["samples"] == 20
    assert "core" in kept_now["machine"]
    file.write_text("[ranks]\npaper = 'offload'\n")
    with pytest.raises(ResultsError, match=r"\[ranks\] needs `command`"):
        read_measurements(repository)


def test_outside_a_clone_the_command_says_where_to_run_it(tmp_path: Path) -> None:
    done = call(tmp_path, "offload")
    assert done.returncode == 2
    assert "clone of Raddle's repository" in done.stderr
    assert not (tmp_path / "out").exists()


def test_a_folder_of_other_results_is_left_alone(repository: Path) -> None:
    (repository / "out").mkdir()
    (repository / "out" / "mine.txt").write_text("mine")
    done = call(repository, "offload", "--out", "out")
    assert done.returncode == 2
    assert [f.name for f in (repository / "out").iterdir()] == ["mine.txt"]


def test_pages_of_results_are_what_the_kept_figures_make() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "results.py"), "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr + "run `make generate`"
