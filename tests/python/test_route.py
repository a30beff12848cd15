"""`raddle route`, `raddle mgid` and `raddle place` through the real program."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from browsing import needs_browser, show_in_browser
from raddle.report.merges import read_merges
from raddle.report.page import charts_of
from real import raddle, raddle_json

ENGINES = ("c-mr4lms-fixed", "c-mr4lms-dynamic", "mr4lms", "broadcast", "opensm")
FABRIC = """\
kind = "cn-tn"
m = 4
q = 4
p = 2
k = 4
w = 2
cns = 8
"""
ROUTES = f"""\
schema = 1
[fabric]
{FABRIC}
[groups]
pattern = "grid"
dims = [32, 16]
processes_per_terminal = 4
[multicast]
engines = {list(ENGINES)}
colours = 12
"""
JOBS = f"""\
schema = 1
[fabric]
{FABRIC}
[[running]]
name = "old"
hosts = [0, "h1", 2]
[[job]]
name = "small"
terminals = 3
[[job]]
name = "whole"
terminals = 128
[[job]]
name = "last"
terminals = 16
"""
KEYS = {
    "groups", "max_efi", "mean_efi", "max_tfi", "mean_tfi", "trees_left", "merges",
    "table_entries_max", "route_s", "process_growth_bytes",
}  # fmt: skip


@pytest.fixture(scope="module")
def routed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("routed")
    (folder / "grid.toml").write_text(ROUTES)
    raddle("route", "grid.toml", "--out", "out", "-q", folder=folder)
    return folder


def summary_of(folder: Path) -> Any:
    return json.loads((folder / "out" / "summary.json").read_text())


def test_the_summary_has_the_promised_figures(routed: Path) -> None:
    summary = summary_of(routed)
    assert summary["schema"] == 1
    assert tuple(summary["engines"]) == ENGINES
    for name, row in summary["engines"].items():
        assert set(row) >= KEYS, name
        if name == "opensm":  # 48 groups, 12 entries
            assert row["error"]
            assert row["max_efi"] is None
        else:
            assert row["error"] is None
            assert row["groups"] == 16 + 32
            assert row["trees_left"] + row["merges"] == row["groups"]
            assert row["mean_efi"] <= row["max_efi"]
            assert row["table_entries_max"] <= 12
    assert summary["engines"]["broadcast"]["max_tfi"] == 48


def test_tables_hold_one_colour_once_and_trees_their_members(routed: Path) -> None:
    out = routed / "out"
    trees = pq.read_table(out / "trees.parquet").to_pylist()
    assert {"engine", "group", "colour", "root", "members"} <= set(trees[0])
    rows = [row for row in trees if row["engine"] == "c-mr4lms-fixed"]
    assert [row["group"] for row in rows] == list(range(48))
    # A row of 32 processes, four on each terminal, lies on eight terminals.
    assert rows[0]["members"] == list(range(8))
    assert rows[1]["members"] == list(range(8, 16))
    tables = pq.read_table(out / "tables.parquet").to_pylist()
    entries = [(r["engine"], r["switch"], r["in_port"], r["colour"]) for r in tables]
    assert len(set(entries)) == len(entries)
    assert all(r["in_port"] not in r["out_ports"] and r["out_ports"] for r in tables)
    links = pq.read_table(out / "links.parquet").to_pylist()
    most = max(row["efi"] for row in links if row["engine"] == "mr4lms")
    assert most == summary_of(routed)["engines"]["mr4lms"]["max_efi"]


def test_the_table_of_engines_is_printed_and_json_is_alone(routed: Path) -> None:
    done = raddle("route", "grid.toml", "--out", "again", "--no-report", folder=routed)
    for engine in ENGINES:
        assert f"\n{engine} " in done.stdout
    assert "max EFI" in done.stdout
    assert "trees.parquet" in done.stderr
    assert not (routed / "again" / "report.html").exists()
    answer = raddle_json("route", "grid.toml", "--out", "again", "--no-report", folder=routed)
    assert answer == json.loads((routed / "again" / "summary.json").read_text())


def test_settings_make_a_folder_each(routed: Path) -> None:
    words = ("route", "grid.toml", "--out", "sweep", "--no-report", "-q")
    colours = ("--set", "multicast.colours=10,24")
    engine = ("--set", 'multicast.engines=["c-mr4lms-fixed"]')
    points = raddle_json(*words, *colours, *engine, folder=routed)["points"]
    left = [p["engines"]["c-mr4lms-fixed"]["trees_left"] for p in points]
    assert left[0] <= left[1]
    assert [p["multicast"]["colours"] for p in points] == [10, 24]
    assert all((routed / p["folder"] / "trees.parquet").is_file() for p in points)


def test_a_dry_run_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "grid.toml").write_text(ROUTES)
    done = raddle("route", "grid.toml", "--dry-run", folder=tmp_path)
    assert "48 in" in done.stdout
    assert [p.name for p in tmp_path.iterdir()] == ["grid.toml"]


def test_two_runs_give_the_same_tables(routed: Path) -> None:
    raddle("route", "grid.toml", "--out", "twin", "--no-report", "-q", folder=routed)
    for name in ("trees", "tables", "links", "merges", "nodes"):
        file = f"{name}.parquet"
        assert (routed / "twin" / file).read_bytes() == (routed / "out" / file).read_bytes()


def test_no_engine_with_an_answer_is_a_no(tmp_path: Path) -> None:
    only = ROUTES.replace(str(list(ENGINES)), '["opensm"]')
    (tmp_path / "grid.toml").write_text(only)
    done = raddle("route", "grid.toml", "--out", "out", folder=tmp_path, status=1)
    assert "no free entry among 12" in done.stdout
    page = (tmp_path / "out" / "report.html").read_text()
    assert "No engine could route these groups" in page


def test_the_report_says_what_merged_and_why(routed: Path) -> None:
    page = (routed / "out" / "report.html").read_text()
    assert re.search(r"\d+ groups share \d+ trees?: \d+ of \d+", page)
    assert "They meet at links to hosts (1)." in page
    assert "both need the link" in page
    for engine in ENGINES:
        assert engine in page


CROWDED = (
    ROUTES.replace("colours = 12", "colours = 2")
    .replace("[32, 16]", "[16, 8]")
    .replace("processes_per_terminal = 4", "processes_per_terminal = 1")
)
"""Fewer colours than groups need: trees are merged, and tables fill."""


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("crowded")
    (folder / "grid.toml").write_text(CROWDED)
    raddle("route", "grid.toml", "--out", "out", "-q", folder=folder)
    return folder


def sentences(folder: Path) -> dict[str, str]:
    page = (folder / "out" / "report.html").read_text()
    end = page.rpartition("<section")[2]
    assert 'id="why"' in end
    found = re.findall(r"<li><b>(\w+)\.</b> (.*?)</li>", end)
    return {name: text.replace("\u00a0", " ") for name, text in found}


def test_the_report_ends_with_what_merging_costs(routed: Path, crowded: Path) -> None:
    """Each figure is one of the folder's own tables."""
    apart = sentences(routed)
    assert "of the others no table is full: the fullest hold 5 of 12 entries" in apart["Tables"]
    assert apart["Trees"] == "No groups share a tree, except with broadcast."
    assert "goes to its members only, 640 in all" in apart["Cost"]
    merged = sentences(crowded)
    trees = pq.read_table(crowded / "out" / "trees.parquet").to_pylist()
    merges = pq.read_table(crowded / "out" / "merges.parquet").to_pylist()
    own = [row for row in merges if row["engine"] == "c-mr4lms-fixed"]
    groups = sum(len(row["groups"]) for row in own)
    assert f"c-mr4lms-fixed lets {groups} groups share {len(own)} trees" in merged["Trees"]
    members = {
        row["group"]: set(row["members"]) for row in trees if row["engine"] == "c-mr4lms-fixed"
    }
    strangers = 0
    for row in own:
        everybody = set().union(*(members[group] for group in row["groups"]))
        strangers += sum(len(everybody - members[group]) for group in row["groups"])
    assert strangers > 0
    assert f"c-mr4lms-fixed {strangers:,} (" in merged["Cost"]


def test_the_page_can_be_made_again(crowded: Path) -> None:
    page = crowded / "out" / "report.html"
    before = page.read_bytes()
    page.unlink()
    assert raddle("report", "out", folder=crowded).stdout.strip() == "out/report.html"
    assert page.read_bytes() == before


def test_examples_of_merges_are_few(crowded: Path) -> None:
    page = (crowded / "out" / "report.html").read_text()
    section = page.partition('<section id="merges">')[2].partition("</section>")[0]
    assert section.count("<li>") <= 5 * section.count("<details")
    assert "<details open" not in section


def test_many_merges_are_a_line_and_a_few_examples(tmp_path: Path) -> None:
    """They were a wall of forty rows for each engine."""
    reason = "g{} and g{} both need the link s1 – s2 with colour 0"
    rows = [
        {"engine": "mr4lms", "tree": tree, "groups": [3 * tree, 3 * tree + 1, 3 * tree + 2],
         "reason": reason.format(3 * tree, 3 * tree + 1)}
        for tree in range(50)
    ]  # fmt: skip
    rows[0]["groups"] = [0, 1]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "merges.parquet")
    names: dict[str, list[Any]] = {
        "group": list(range(150)),
        "name": [f"g{group}" for group in range(150)],
    }
    pq.write_table(pa.table(names), tmp_path / "trees.parquet")
    pq.write_table(pa.table({"name": ["s1", "s2"], "level": [1, 2]}), tmp_path / "nodes.parquet")
    (merged,) = read_merges(tmp_path, ["mr4lms", "broadcast"])
    assert (merged.trees, merged.groups, merged.sizes) == (50, 149, "49 of 3, 1 of 2")
    assert merged.places == "links between levels 1 and 2 (50)"
    assert [(e.tfi, e.names) for e in merged.examples[:1]] == [(3, "g3, g4 and g5")]
    assert len(merged.examples) == 5


def test_one_tree_for_all_does_not_squeeze_the_others(crowded: Path) -> None:
    """Its 48 groups on every link stand behind a break of the axis, or need none."""
    page = (crowded / "out" / "report.html").read_text()
    efi = next(chart for chart in charts_of(page) if chart["key"] == "efi")
    for view in efi["views"]:
        far = [trace for trace in view["data"] if trace.get("xaxis") == "x2"]
        assert {trace["name"] for trace in far} == ({"broadcast"} if far else set())
        assert bool(far) == ("xaxis2" in view["layout"])


@needs_browser
@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
def test_the_report_works_in_chromium(browser: Any, routed: Path, width: int) -> None:
    show_in_browser(browser, routed / "out" / "report.html", width, "light")


def test_groups_of_a_route_file_get_numbers(routed: Path) -> None:
    done = raddle("mgid", "grid.toml", "--csv", "mgids.csv", folder=routed)
    assert "48 groups on 48 spanning trees" in done.stdout
    with (routed / "mgids.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len({row["mgid"] for row in rows}) == 48
    for row in rows:  # equations (1) and (3) with C = 12, m = 4, p = 2
        spt = int(row["mgid"]) % 48
        assert (int(row["colour"]), int(row["tree_group"])) == divmod(spt, 4)
        assert int(row["tn"]) == spt % 4 * 2 + spt // 4 % 2
    answer = raddle_json("mgid", "grid.toml", folder=routed)
    assert (
        answer["sharing"]["trees_left"]
        == (summary_of(routed)["engines"]["c-mr4lms-fixed"]["trees_left"])
    )


def test_any_communicators_get_numbers_or_a_reason(tmp_path: Path) -> None:
    (tmp_path / "map.toml").write_text("schema = 1\n" + FABRIC)
    (tmp_path / "groups.csv").write_text("group,member\na,h0\na,h1\nb,h0\nb,h9\nc,h0\nc,3\n")
    words = ("mgid", "--fabric", "map.toml", "--groups", "groups.csv", "--colours")
    rows = raddle_json(*words, "3", folder=tmp_path)["rows"]
    assert len({row["colour"] for row in rows}) == 3  # all three have h0
    refused = raddle(*words, "2", folder=tmp_path, status=2).stderr
    assert "terminal 0 is in 3 groups (a, b, c)" in refused
    assert "raise `colours` to 3" in refused
    grid = raddle_json("mgid", "--fabric", "map.toml", "--grid", "16x8", folder=tmp_path)
    assert len(grid["rows"]) == 24


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), "--fabric"),
        (("--fabric", "map.toml"), "--groups"),
        (("--fabric", "map.toml", "--grid", "4y4"), "64x32x16"),
        (("--fabric", "map.toml", "--grid", "4x4", "--colours", "0"), "colours"),
        (("--fabric", "map.toml", "--grid", "2x2", "--processes", "4"), "processes"),
        (("--fabric", "absent.toml", "--grid", "4x4"), "absent.toml"),
    ],
)
def test_bad_words_to_mgid_end_with_status_2(
    tmp_path: Path, words: tuple[str, ...], expected: str
) -> None:
    (tmp_path / "map.toml").write_text("schema = 1\n" + FABRIC)
    done = raddle("mgid", *words, folder=tmp_path, status=2)
    assert expected in done.stderr
    assert done.stdout == ""


def test_jobs_are_placed_and_a_refusal_names_its_rule(tmp_path: Path) -> None:
    (tmp_path / "jobs.toml").write_text(JOBS)
    answer = raddle_json("place", "jobs.toml", folder=tmp_path, status=1)
    assert [job["state"] for job in answer["jobs"]] == ["placed", "refused", "behind"]
    hosts = answer["jobs"][0]["hosts"]
    assert len(hosts) == 3
    assert not {"h0", "h1", "h2"} & set(hosts)
    assert "rule 1 (a terminal serves one job)" in answer["jobs"][1]["reason"]
    done = raddle("place", "jobs.toml", "--backfill", folder=tmp_path, status=1)
    assert "2 of 3 jobs placed" in done.stdout
    (tmp_path / "jobs.toml").write_text(JOBS.replace("128", "12"))
    assert "3 of 3" in raddle("place", "jobs.toml", folder=tmp_path).stdout


def test_the_schema_of_route_files_is_json(tmp_path: Path) -> None:
    schema = json.loads(raddle("schema", "route", folder=tmp_path).stdout)
    assert {"fabric", "groups", "multicast"} <= set(schema["properties"])
    engines = schema["$defs"]["MulticastTable"]["properties"]["engines"]
    assert set(engines["items"]["enum"]) == set(ENGINES)
