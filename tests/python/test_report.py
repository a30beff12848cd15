"""The report: what it says, that it is one offline file, and that a browser is happy with it."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from browsing import needs_browser, show_in_browser
from raddle.plan import RunStats
from raddle.report import write_report
from raddle.report.page import charts_of
from raddle.results import load
from raddle.summary import summarise
from synthetic import PAPER, write_results

SECTIONS = [
    "verdict", "score", "over-time", "fct", "slowdown", "pauses", "queues", "fabric",
    "parameters", "manifest",
]  # fmt: skip


@pytest.fixture(scope="session")
def page(one_seed: Path) -> str:
    return write_report(one_seed).read_text(encoding="utf-8")


def test_the_sections_stand_in_their_order(page: str) -> None:
    assert re.findall(r'<section id="([a-z-]+)"', page) == SECTIONS


def test_the_page_is_one_small_file_that_asks_for_nothing(one_seed: Path, page: str) -> None:
    assert (one_seed / "report.html").stat().st_size < 15e6
    markup = re.sub(r"<script.*?</script>", "", page, flags=re.S)
    assert not re.findall(r'(?:src|href)="(?!#|data:)', markup)
    assert "default-src 'none'" in page


def test_every_chart_has_data_in_every_view(page: str) -> None:
    charts = charts_of(page)
    assert [c["key"] for c in charts] == [
        "score", "throughput", "watched", "fct", "slowdown", "pauses", "queues", "fabric",
    ]  # fmt: skip
    for chart in charts:
        assert chart["views"]
        for view in chart["views"]:
            assert view["data"], (chart["key"], view["label"])
            for axis in ("xaxis", "yaxis"):
                titled = "title" in view["layout"][axis]
                assert titled or chart["key"] in ("fabric", "score", "pauses")


def test_one_seed_says_that_there_is_no_interval(page: str) -> None:
    assert "This is one seed, so there is no interval" in page


def test_several_seeds_give_intervals(three_seeds: Path) -> None:
    text = write_report(three_seeds).read_text(encoding="utf-8")
    assert "over 3 seeds" in text
    assert "± half of the 95 % interval" in text


def test_plain_traffic_is_judged_by_slowdown_and_says_why_there_is_no_score(plain: Path) -> None:
    text = write_report(plain).read_text(encoding="utf-8")
    assert "p99 slowdown" in text
    assert "no tested classes" in text
    assert "score" not in [c["key"] for c in charts_of(text)]


def test_a_name_with_markup_stays_text(tmp_path: Path, plain: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(plain, folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["name"] = "</title><script>alert(1)</script>"
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert "<script>alert" not in write_report(folder).read_text(encoding="utf-8")


def test_an_interrupted_run_says_so_at_the_top(tmp_path: Path, one_seed: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(one_seed, folder)
    for name in ("summary.json", "manifest.json"):
        value = json.loads((folder / name).read_text()) | {"complete": False}
        (folder / name).write_text(json.dumps(value))
    text = write_report(folder).read_text(encoding="utf-8")
    assert text.index("This run was interrupted") < text.index('id="verdict"')


def test_only_flows_are_enough_for_a_report(tmp_path: Path, plain: Path) -> None:
    shutil.copy(plain / "flows.parquet", tmp_path)
    text = write_report(tmp_path).read_text(encoding="utf-8")
    assert "These results hold no counters of ports." in text
    assert "No port was paused" in text


def test_the_report_is_the_same_each_time(one_seed: Path, page: str) -> None:
    assert write_report(one_seed).read_text(encoding="utf-8") == page


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of the paper's size."""
    folder = tmp_path_factory.mktemp("large")
    write_results(folder, shape=PAPER, flows=19_181)
    return folder


@needs_browser
@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize(
    ("which", "theme"), [("large", "light"), ("three_seeds", "dark"), ("plain", "light")]
)
def test_the_report_works_in_chromium(
    browser: Any, request: pytest.FixtureRequest, which: str, width: int, theme: str
) -> None:
    show_in_browser(browser, write_report(request.getfixturevalue(which)), width, theme)


def test_loads_are_shares_of_capacity(one_seed: Path) -> None:
    from raddle.report.fabric_map import link_loads

    loads = link_loads(load(one_seed), "hpcc", 6e9)
    assert loads.max() > 0.3
    assert ((loads >= 0) & (loads <= 1)).all()


def test_a_large_map_is_drawn_in_groups(tmp_path: Path) -> None:
    from synthetic import Shape

    write_results(tmp_path, schemes=("hpcc",), shape=Shape(4096, 128, 128, 64), flows=300)
    text = write_report(tmp_path).read_text(encoding="utf-8")
    assert re.search(r"The 4,416 nodes are drawn in \d+ groups", text)
    assert len(text) < 8e6


@pytest.fixture(scope="session")
def to_groups(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results whose flows are messages to groups: three members each; one is missed."""
    out = tmp_path_factory.mktemp("groups") / "out"
    write_results(out, schemes=("none", "hpcc"), flows=60, tested=False)
    flows = load(out).flows.select(["scheme", "seed", "src", "dst", "sport", "start_ps"])
    rows = [
        {**flow, "group": 0, "message": 0, "member": member, "delivered_ps": None
         if flow["scheme"] == "none" and number == 0 and member == 7
         else flow["start_ps"] + (member - 5) * 1_000_000}
        for number, flow in enumerate(flows.to_pylist()) for member in (7, 8, 9)
    ]  # fmt: skip
    more = {
        "group": pa.uint32(),
        "message": pa.uint32(),
        "member": pa.uint32(),
        "delivered_ps": pa.uint64(),
    }
    names = [field for field in flows.schema if field.name != "start_ps"]
    schema = pa.schema([*names, *(pa.field(*field) for field in more.items())])
    pq.write_table(pa.Table.from_pylist(rows, schema), out / "members.parquet")
    results = load(out)
    stats = []
    for scheme in results.schemes:
        own = [row for row in rows if row["scheme"] == scheme]
        missed = sum(row["delivered_ps"] is None for row in own)
        counts = {
            "members_reached": len(own) - missed, "members_missed": missed, "second_copies": 1234,
            "foreign_copies": 0, "late_copies": 0, "dead_ends": 5,
        }  # fmt: skip
        stats.append((scheme, 1, "loaded", RunStats(scheme, "", 1, 1.0, 1, 60, 60, counts)))
    summary = summarise(results, name="groups", complete=True, parameters={}, stats=stats)
    (out / "summary.json").write_text(json.dumps(summary))
    write_report(out)
    return out


def test_messages_to_groups_have_a_table(to_groups: Path) -> None:
    none, hpcc = load(to_groups).summary["schemes"].values()
    messages = none["multicast"]["messages"]
    assert none["multicast"]["messages_everywhere"] == messages - 1
    assert hpcc["multicast"]["messages_everywhere"] == messages
    # The members 7, 8 and 9 have it after 2, 3 and 4 us.
    assert none["multicast"]["last_member_us"]["p50"] == pytest.approx(4)
    assert none["multicast"]["last_member_us"]["n"] == messages - 1
    page = (to_groups / "report.html").read_text(encoding="utf-8")
    table = page.partition('id="groups"')[2].partition("</table>")[0]
    cells = [re.findall(r"<td>(.*?)</td>", row) for row in table.split("<tr>")[2:]]
    all_ = 3 * messages
    tail = ["4.00", "4.00", "1,234", "0", "0", "5"]
    assert cells == [
        [f"{messages - 1} / {messages}", f"{all_ - 1} / {all_}", "<b>1</b>", "7", *tail],
        [f"{messages} / {messages}", f"{all_} / {all_}", "0", "–", *tail],
    ]


def test_a_run_without_groups_has_no_such_table(page: str) -> None:
    assert "Messages to groups" not in page


@needs_browser
@pytest.mark.parametrize("width", [360, 1280])
def test_the_table_of_groups_works_in_chromium(browser: Any, to_groups: Path, width: int) -> None:
    show_in_browser(browser, to_groups / "report.html", width, "light")
