"""The report: what it says, that it is one offline file, and that a browser is happy with it."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from browsing import needs_browser, open_in_browser, show_in_browser
from raddle.plan import RunStats
from raddle.report import write_report
from raddle.report.axes import BEGINS, split_axis, value_axis
from raddle.report.chart import COLOURS, SCALE, figure
from raddle.report.page import charts_of
from raddle.results import load
from raddle.statistics.summary import summarise
from synthetic import PAPER, write_results

SECTIONS = [
    "verdict", "score", "over-time", "fct", "slowdown", "pauses", "queues", "fabric",
    "parameters", "manifest", "why",
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
        stats.append((scheme, 1, "loaded", RunStats(scheme, "", 1, 1, 60, 60, counts)))
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


def traces_of(page: str, key: str) -> list[tuple[list[str], dict[str, Any]]]:
    """Every trace of a chart with the words of its view."""
    chart = next(c for c in charts_of(page) if c["key"] == key)
    return [(view["label"], trace) for view in chart["views"] for trace in view["data"]]


def test_busiest_links_stand_under_the_scheme_that_the_map_shows(page: str) -> None:
    """The table once named one scheme, whichever the map showed."""
    shown = [view["label"] for view in charts_of(page)[-1]["views"]]
    below = page.partition('data-follows="fabric"')[2].partition("</section>")[0]
    assert [[name] for name in re.findall(r'data-view="([^"]*)"', below)] == shown
    assert [[name] for name in re.findall(r"Busiest links under ([^<]*)<", below)] == shown


def test_what_is_no_scheme_has_no_schemes_colour(page: str) -> None:
    loads = [t["line"]["color"] for _, t in traces_of(page, "fabric") if "line" in t]
    assert set(loads) == set(SCALE)
    flows = [t for (label,), t in traces_of(page, "watched") if label.endswith(": all")]
    assert flows
    assert not {t["line"]["color"] for t in flows} & set(COLOURS.values())


def test_no_row_says_what_holds_by_definition(page: str) -> None:
    """A scheme alone has S = 1 at every weighting: that is no row."""
    for row in re.findall(r"<tr.*?</tr>", page, re.S):
        cells = [re.sub(r"<.*?>", "", cell).strip() for cell in re.findall(r"<td.*?</td>", row)]
        assert not (len(cells) > 2 and len(set(cells[:3])) == 1 and cells[0] in ("1", "1.00")), row


def test_a_column_that_is_the_same_for_all_is_a_sentence(tmp_path: Path) -> None:
    from made_by_hand import Scheme, write

    folder = write(tmp_path, {"none": Scheme((20, 30, 40)), "hpcc": Scheme((16, 18, 20))})
    glance = write_report(folder).read_text().partition("At a glance")[2].partition("</p>")[0]
    assert "All flows finished. No port was paused. No packet was marked." in glance
    assert "<th>drops</th>" not in glance
    folder = write(tmp_path, {"none": Scheme((20, 30, None), drops=2)})
    glance = write_report(folder).read_text().partition("At a glance")[2].partition("</p>")[0]
    assert "<th>drops</th>" in glance
    assert "finished<br>" in glance


def test_axes_show_what_is_compared_and_say_where_they_begin() -> None:
    near = value_axis("Gb/s", [np.asarray([90.0, 91.0]), np.asarray([82.6])])
    assert 80 < near[BEGINS] < 82.6
    shown = figure([go.Scatter(x=[1], y=[90])], x={}, y=near).to_plotly_json()["layout"]
    assert shown["yaxis"]["range"][0] == near[BEGINS]
    assert f"axis begins at {near[BEGINS]:g}, not at 0" in shown["annotations"][0]["text"]
    assert len(shown["shapes"]) == 2
    assert value_axis("MB", [np.asarray([1.0, 9.0])])["rangemode"] == "tozero"
    assert value_axis("MB", [np.zeros(3)])["rangemode"] == "tozero"
    assert value_axis("MB", [np.zeros(0)])["rangemode"] == "tozero"


@pytest.mark.parametrize("which", ["one_seed", "three_seeds", "plain"])
def test_a_cut_axis_is_marked_and_bars_begin_at_zero(
    request: pytest.FixtureRequest, which: str
) -> None:
    text = write_report(request.getfixturevalue(which)).read_text(encoding="utf-8")
    for chart in charts_of(text):
        for view in chart["views"]:
            layout = view["layout"]
            bars = [trace for trace in view["data"] if trace["type"] == "bar"]
            for trace in bars:
                axis = layout["xaxis" if trace.get("orientation") == "h" else "yaxis"]
                assert axis["rangemode"] == "tozero"
            values = layout["yaxis"]
            cut = "range" in values and values["range"][0] > 0 and values.get("type") != "log"
            words = [a["text"] for a in layout.get("annotations", [])]
            assert cut == any("not at 0" in text for text in words), chart["key"]


def test_few_far_values_do_not_squeeze_the_others() -> None:
    """`raddle route`: one tree for 3,584 groups beside trees of 28 at most."""
    axis = split_axis("groups", [np.asarray([1.0, 7.0, 28.0]), np.asarray([3584.0])])
    assert axis is not None
    assert axis.limit == 28
    assert axis.near["range"] == [0.5, 28.5]
    assert axis.near["domain"][1] - axis.near["domain"][0] > 0.8
    assert axis.far["tickvals"] == [3584.0]
    assert split_axis("groups", [np.asarray([1.0, 3.0, 9.0, 28.0])]) is None
    assert split_axis("groups", [np.asarray([5.0])]) is None


@needs_browser
@pytest.mark.browser
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_load_is_the_stronger_the_further_it_is_from_the_ground(
    browser: Any, one_seed: Path, theme: str
) -> None:
    """A sequential scale: each class differs from the page more than the one before."""
    open_in_browser(browser, write_report(one_seed), 1280, theme)
    style = "getComputedStyle(document.documentElement).getPropertyValue(arguments[0]).trim()"

    def lightness(name: str) -> float:
        text = browser.execute_script(f"return {style}", name)
        return sum(w * int(text[i : i + 2], 16) for w, i in ((0.3, 1), (0.59, 3), (0.11, 5)))

    ground = lightness("--card")
    apart = [abs(lightness(f"--scale-{step}") - ground) for step in range(1, 6)]
    assert apart == sorted(apart)
    assert apart[-1] > 3 * apart[0]


@needs_browser
@pytest.mark.browser
def test_a_table_scrolls_by_keys_and_says_how_much_is_left(browser: Any, one_seed: Path) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    open_in_browser(browser, write_report(one_seed), 390, "light")
    table = "document.querySelector('#score .table')"
    hint = f"return {table}.previousElementSibling.textContent"
    before = browser.execute_script(hint)
    assert re.fullmatch(r"\d+ more columns: scroll sideways →", before)
    browser.execute_script(f"{table}.focus()")
    ActionChains(browser).send_keys(*[Keys.ARROW_RIGHT] * 60).perform()
    wait_for(browser, f"return {table}.scrollLeft > 30")
    browser.execute_script(f"{table}.scrollLeft = 10000")
    wait_for(browser, f"return {table}.previousElementSibling.textContent === '← scroll back'")


@needs_browser
@pytest.mark.browser
def test_without_scripts_every_table_is_there(browser: Any, one_seed: Path) -> None:
    file = write_report(one_seed)
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(file.as_uri())
        headings = [h.text for h in browser.find_elements("css selector", "#fabric h3")]
        assert len(headings) == len(load(one_seed).schemes)
        assert all(h.startswith("Busiest links under ") for h in headings)
        assert browser.find_element("css selector", "#why li").text.startswith("Queue.")
        assert browser.find_element("css selector", "nav").size["height"] > 0
        told = browser.find_elements("css selector", "figure noscript")
        assert len(told) == len(browser.find_elements("css selector", "figure.chart"))
        plots = browser.find_elements("css selector", ".plot")
        assert not any(plot.is_displayed() for plot in plots)  # no blank boxes
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def wait_for(browser: Any, script: str) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(browser, 20).until(lambda d: d.execute_script(script))
