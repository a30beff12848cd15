"""The explorer in Chromium: questions are answered in a few clicks, as Parquet files have it."""

import json
import math
import re
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from browsing import needs_browser, open_page
from raddle.errors import ResultsError
from raddle.report.explorer import MOST_BYTES, write_explorer
from raddle.results import Results, load
from raddle.results.columns import integers, select
from raddle.services.view import Explorer
from raddle.statistics.pauses import overlap_ps, pause_edges
from real import raddle

CROWD = """\
schema = 1
name = "crowd"
[fabric]
kind = "leaf-spine"
leaves = 4
hosts_per_leaf = 8
spines = 1
host_rate = "100Gbps"
fabric_rate = "200Gbps"
[traffic]
generator = "incast"
sources = 24
target = 0
size = "256KiB"
[simulation]
schemes = ["none", "hpcc"]
buffer = "1MiB"
[record]
paths = true
delays = true
ranks = true
ports = ["h17", "s32"]
[[job]]
name = "solver"
program = { generator = "collective", collective = "allreduce", size = "2KiB", repeat = 8 }
ranks = 16
placement = "spread"
[[job]]
name = "crowd"
program = { generator = "collective", collective = "alltoall", size = "64KiB", repeat = 2 }
ranks = 16
placement = "random"
"""
RUN = ("none", 1)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with pauses, jobs and everything recorded, and the same with larger buffers."""
    place = tmp_path_factory.mktemp("view")
    (place / "crowd.toml").write_text(CROWD)
    raddle("run", "crowd.toml", "--out", "crowd", "--no-report", folder=place)
    (place / "other.toml").write_text(CROWD.replace("1MiB", "4MiB"))
    raddle("run", "other.toml", "--out", "other", "--no-report", folder=place)
    return place


@pytest.fixture(scope="module")
def served(folder: Path) -> Iterator[Explorer]:
    """The explorer over both folders."""
    with Explorer([folder / "crowd", folder / "other"]) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()


class Visitor:
    """Someone who clicks, and counts the clicks."""

    def __init__(self, browser: Any, url: str) -> None:
        self.browser = browser
        self.clicks = 0
        open_page(browser, url)

    def find(self, selector: str, words: str | None = None) -> Any:
        """The element of a selector, with these words if any are given; waits for it."""
        from selenium.webdriver.support.ui import WebDriverWait

        def found(driver: Any) -> Any:
            elements = driver.find_elements("css selector", selector)
            fitting = [e for e in elements if words is None or words == e.text.strip()]
            return fitting[0] if fitting else None

        return WebDriverWait(self.browser, 10).until(found)

    def click(self, selector: str, words: str | None = None) -> None:
        """A click, on something that is there."""
        self.clicks += 1
        self.find(selector, words).click()

    def text(self, selector: str) -> str:
        """What an element says."""
        said: str = self.find(selector).text
        return said.replace("\u00a0", " ")

    def look_for(self, name: str) -> None:
        """Type a name, and go there."""
        self.find("header form input").send_keys(name)
        self.click("header form button")


UNITS = {"ps": 1, "ns": 1e3, "µs": 1e6, "ms": 1e9, "s": 1e12}


def span_ps(text: str) -> float:
    """A span as the page writes it, ps."""
    told = re.search(r"([\d.,]+) (ps|ns|µs|ms|s)\b", text)
    assert told, text
    return float(told[1].replace(",", "")) * UNITS[told[2]]


def near(shown: str, value: float) -> bool:
    """Whether four digits of a span are right."""
    return math.isclose(span_ps(shown), value, rel_tol=1e-3)


def rows(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of the run that the page shows first."""
    found: list[dict[str, Any]] = select(table, scheme=RUN[0], seed=RUN[1]).to_pylist()
    return found


def chain_of(results: Results, host: int) -> list[tuple[int, int, float]]:
    """From a host to the switch that was free: (pauser, paused, ps), as the page's rule says."""
    edges = pause_edges(select(results.pauses, scheme=RUN[0], seed=RUN[1]), results.links)
    chain: list[tuple[int, int, float]] = []
    at, during, seen = host, None, {host}
    while True:
        found = [
            (
                float(np.diff(e.spans_ps).sum())
                if during is None
                else overlap_ps(e.spans_ps, during),
                e,
            )
            for e in edges
            if e.paused == at
        ]
        if not found:
            return chain
        time, edge = max(found, key=lambda pair: (pair[0], -pair[1].pauser))
        if time <= 0 or (during is not None and time < np.diff(during).sum() / 2):
            return chain
        chain.append((edge.pauser, at, time))
        if edge.pauser in seen:
            return chain
        seen.add(edge.pauser)
        during = edge.spans_ps if during is None else _overlap(edge.spans_ps, during)
        at = edge.pauser


def _overlap(left: Any, right: Any) -> Any:
    """The spans in which both are."""
    found = [(max(a, c), min(b, d)) for a, b in left for c, d in right if max(a, c) < min(b, d)]
    return np.array(found).reshape(-1, 2)


@needs_browser
@pytest.mark.browser
def test_which_port_paused_host_17_and_why(browser: Any, folder: Path, served: Explorer) -> None:
    results = load(folder / "crowd")
    names = [str(name) for name in results.nodes["name"].to_pylist()]
    paused = {
        e.paused: e.paused_us
        for e in pause_edges(select(results.pauses, scheme=RUN[0]), results.links)
    }
    host = (
        17
        if 17 in paused
        else max((n for n in paused if names[n].startswith("h")), key=paused.__getitem__)
    )
    expected = chain_of(results, host)
    visitor = Visitor(browser, served.url)
    visitor.look_for(names[host])
    lines = visitor.text("#pause-chain").split("\n")
    assert visitor.clicks <= 4
    assert len(expected) >= 1
    for (pauser, at, time), line in zip(expected, lines, strict=False):
        assert line.startswith(f"{names[pauser]} silenced {names[at]} → {names[pauser]} for")
        assert near(line, time)
    root = expected[-1][0]
    ports = [row for row in rows(results.ports) if row["node"] == root]
    fullest = max(ports, key=lambda row: row["max_queue_bytes"])
    assert f"its own longest queue is at {names[root]} → {names[fullest['peer']]}" in lines[-1]


@needs_browser
@pytest.mark.browser
def test_which_flows_shared_the_slowest_flows_worst_link(
    browser: Any, folder: Path, served: Explorer
) -> None:
    results = load(folder / "crowd")
    assert results.paths is not None
    assert results.delays is not None
    names = results.nodes["name"].to_pylist()
    flows = [row for row in rows(results.flows) if row["fct_ps"] is not None]
    slowest = max(flows, key=lambda row: row["fct_ps"] / row["ideal_fct_ps"])
    ends = ("src", "dst", "sport")
    own = [row for row in rows(results.paths) if all(row[e] == slowest[e] for e in ends)]
    waits: dict[str, int] = {}
    for row in rows(results.delays):
        same = all(row[e] == slowest[e] for e in (*ends, "start_ps"))
        if same and row["cause"] in ("queue", "pause"):
            waits[row["port"]] = waits.get(row["port"], 0) + row["time_ps"]
    worst = max(own, key=lambda row: waits.get(f"{row['name']}:{row['port']}", 0))
    there = {
        tuple(row[e] for e in ends)
        for row in rows(results.paths)
        if (row["node"], row["port"]) == (worst["node"], worst["port"])
    }
    shared = [row for row in rows(results.flows) if tuple(row[e] for e in ends) in there]
    visitor = Visitor(browser, served.url)
    visitor.click("nav button", "Flows")
    visitor.click(".list tbody tr[aria-selected]")
    visitor.click("#worst")
    said = visitor.text("#flow-count")
    assert visitor.clicks <= 4
    way = f"{worst['name']} → {names[worst['peer']]}"
    assert said == f"{len(shared):,} flow{'s' * (len(shared) != 1)} through {way}"


@needs_browser
@pytest.mark.browser
def test_what_rank_3_waited_for(browser: Any, folder: Path, served: Explorer) -> None:
    results = load(folder / "crowd")
    assert results.ranks is not None
    waited: dict[int, int] = {}
    for row in rows(results.ranks):
        if (row["job"], row["rank"], row["activity"]) == ("solver", 3, "waiting"):
            time = row["end_ps"] - row["start_ps"]
            waited[row["from_rank"]] = waited.get(row["from_rank"], 0) + time
    longest = max(waited, key=waited.__getitem__)
    visitor = Visitor(browser, served.url)
    visitor.click("nav button", "Jobs")
    visitor.click(".lanes button", "solver")
    visitor.clicks += 1
    visitor.find('input[type="number"]').send_keys("3\n")
    first = visitor.find("#waits tbody tr")
    assert visitor.clicks <= 4
    cells = [cell.text for cell in first.find_elements("css selector", "td")]
    assert cells[0] == f"rank {longest}"
    assert near(cells[2], waited[longest])


@needs_browser
@pytest.mark.browser
def test_which_job_filled_the_longest_queue(browser: Any, folder: Path, served: Explorer) -> None:
    results = load(folder / "crowd")
    assert results.delays is not None
    names = results.nodes["name"].to_pylist()
    at: dict[str, dict[tuple[str, str], int]] = {}
    for row in rows(results.delays):
        if row["culprit"] is not None and row["port"] is not None:
            key = (row["culprit"], row["cause"])
            there = at.setdefault(row["port"], {})
            there[key] = there.get(key, 0) + row["time_ps"]
    ports = sorted(rows(results.ports), key=lambda row: -row["max_queue_bytes"])
    known = [f"{names[p['node']]}:{p['port']}" for p in ports]
    port = next(name for name in known if name in at)
    visitor = Visitor(browser, served.url)
    visitor.click("nav button", "Ports")
    visitor.find('input[type="search"]').send_keys(port.partition(":")[0])
    visitor.find(".list tbody td.text")
    visitor.click(".list td.text", port)
    cells = [cell.text for cell in visitor.find("#culprits tr").find_elements("css selector", "td")]
    assert visitor.clicks <= 4
    culprit = max(at[port], key=at[port].__getitem__)
    assert tuple(cells[:2]) == culprit
    assert near(cells[2], at[port][culprit])


@needs_browser
@pytest.mark.browser
def test_where_two_runs_differ_most(browser: Any, folder: Path, served: Explorer) -> None:
    a, b = load(folder / "crowd"), load(folder / "other")
    found: dict[str, tuple[float, float]] = {}

    def put(what: str, of: Any) -> None:
        found[what] = (of(a), of(b))

    for kind in {row["class"] for row in rows(a.flows)}:

        def own(results: Results, kind: str = kind) -> list[dict[str, Any]]:
            return [row for row in rows(results.flows) if row["class"] == kind]

        def done(results: Results, own: Any = own) -> list[dict[str, Any]]:
            return [row for row in own(results) if row["fct_ps"] is not None]

        put(f"completion time of {kind} flows, mean",
            lambda r, f=done: np.mean([x["fct_ps"] for x in f(r)]))  # fmt: skip
        put(f"slowdown of {kind} flows, mean",
            lambda r, f=done: np.mean([x["fct_ps"] / x["ideal_fct_ps"] for x in f(r)]))  # fmt: skip
        put(f"unfinished {kind} flows", lambda r, f=own, g=done: len(f(r)) - len(g(r)))
    for what, column in (
        ("pauses of all ports", "pause_ps"),
        ("ECN marks", "ecn_marks"),
        ("dropped packets", "drops"),
    ):
        put(what, lambda r, c=column: sum(row[c] for row in rows(r.ports)))
    put("longest queue", lambda r: max(row["max_queue_bytes"] for row in rows(r.ports)))
    for job in ("solver", "crowd"):
        put(
            f"time of job {job}",
            lambda r, j=job: next(x["time_ps"] for x in rows(r.jobs) if x["job"] == j),
        )

    def ratio(pair: tuple[float, float]) -> float:
        return (
            0.0
            if pair[0] == pair[1]
            else math.inf
            if 0 in pair
            else abs(math.log(pair[1] / pair[0]))
        )

    most = max(sorted(found), key=lambda what: ratio(found[what]))
    visitor = Visitor(browser, served.url)
    visitor.click("nav button", "Compare")
    cells = [
        c.text for c in visitor.find("#differences tbody tr").find_elements("css selector", "td")
    ]
    assert visitor.clicks <= 4
    assert cells[0] == most


@needs_browser
@pytest.mark.browser
def test_two_runs_stand_side_by_side(browser: Any, folder: Path, served: Explorer) -> None:
    """The same port in both: its longest queue, from either folder."""
    visitor = Visitor(browser, served.url)
    visitor.look_for("s32:1")
    for element, name in (("#details", "crowd"), ("#beside", "other")):
        said = visitor.text(element)
        port = next(
            row for row in rows(load(folder / name).ports) if (row["node"], row["port"]) == (32, 1)
        )
        assert said.removeprefix("×\n").startswith(name)
        shown = re.search(r"Longest queue\n([\d.,]+) (KiB|MiB|B)", said)
        assert shown
        factor = {"B": 1, "KiB": 2**10, "MiB": 2**20}[shown[2]]
        value = float(shown[1].replace(",", "")) * factor
        assert math.isclose(value, port["max_queue_bytes"], rel_tol=1e-3)


@needs_browser
@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_view_works(browser: Any, served: Explorer, width: int, theme: str) -> None:
    """No console error, nothing sideways, and an address that leads to the same view again."""
    size = "const e = document.documentElement; return [e.scrollWidth, e.clientWidth]"
    for view in ("fabric", "flows", "ports", "jobs", "compare"):
        for about in ("", "node:h17", "port:s32:1", "rank:solver:3"):
            open_page(browser, f"{served.url}#view={view}&about={about}", width, theme)
            scroll, client = browser.execute_script(size)
            assert scroll <= client, (view, about)
            assert browser.find_elements("css selector", "#view > *")
            details = browser.find_elements("css selector", "aside#details")
            assert bool(details) == bool(about), (view, about)
    assert browser.get_log("browser") == []


@needs_browser
@pytest.mark.browser
def test_the_picture_moves_by_keys_and_links_lead_back(browser: Any, served: Explorer) -> None:
    from selenium.webdriver.common.keys import Keys

    open_page(browser, served.url)
    canvas = browser.find_element("css selector", ".picture canvas")
    before = browser.execute_script("return arguments[0].toDataURL()", canvas)
    canvas.send_keys(Keys.ARROW_LEFT, "+")
    browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    assert browser.execute_script("return arguments[0].toDataURL()", canvas) != before
    browser.find_element("css selector", "nav button:nth-child(3)").click()
    assert "view=ports" in browser.current_url
    browser.back()
    assert "view=ports" not in browser.current_url


@needs_browser
@pytest.mark.browser
def test_canvases_take_on_the_colours_that_are_chosen(browser: Any, served: Explorer) -> None:
    for view, canvas in (("fabric", ".picture canvas"), ("jobs", "canvas.ranks")):
        open_page(browser, f"{served.url}#view={view}&about=job:solver")
        look = f"return document.querySelector('{canvas}').toDataURL()"
        light = browser.execute_script(look)
        browser.find_element("css selector", "[aria-label='Light or dark']").click()
        browser.execute_async_script("requestAnimationFrame(() => setTimeout(arguments[0], 100))")
        assert browser.execute_script(look) != light, view


def hostile(folder: Path, to: Path) -> Path:
    """The same run with names that are programs where a page is careless."""
    to.mkdir()
    evil = "<img src=x onerror=alert(1)>"
    for file in folder.glob("*.parquet"):
        table = pq.read_table(file)
        for column in ("name", "class", "job", "culprit", "scheme"):
            if column in table.column_names:
                # Names stay apart: each keeps its own after the tag.
                values = [v if v is None else f"{evil}{v}" for v in table[column].to_pylist()]
                place = table.column_names.index(column)
                table = table.set_column(place, column, pa.array(values, pa.string()))
        pq.write_table(table, to / file.name, compression="zstd")
    return to


@needs_browser
@pytest.mark.browser
def test_names_that_are_tags_run_nothing(browser: Any, folder: Path, tmp_path: Path) -> None:
    odd = hostile(folder / "crowd", tmp_path / "<script>alert(2)<")
    page = write_explorer(odd)
    for view in ("fabric", "flows", "ports", "jobs", "compare"):
        open_page(browser, f"{page.as_uri()}#view={view}&about=node:<img src=x onerror=alert(3)>")
        assert browser.find_elements("css selector", "img") == []
        assert len(browser.find_elements("css selector", "script")) == 2
    assert browser.get_log("browser") == []


@needs_browser
@pytest.mark.browser
def test_the_page_with_its_tables_inside_is_the_same(
    browser: Any, folder: Path, served: Explorer
) -> None:
    page = write_explorer(folder / "crowd")
    assert page.stat().st_size < MOST_BYTES
    texts = []
    for address in (served.url, page.as_uri()):
        browser.get_log("performance")
        open_page(browser, f"{address}#view=flows")
        texts.append(browser.find_element("css selector", ".list").text)
    assert texts[0] == texts[1]
    asked = [
        json.loads(line["message"])["message"]["params"]["request"]["url"]
        for line in browser.get_log("performance")
        if '"Network.requestWillBeSent"' in line["message"]
    ]
    assert {url.partition(":")[0] for url in asked} <= {"file", "data", "about"}


def answer(url: str, **headers: str) -> tuple[int, bytes]:
    """Status and body of a request."""
    request = urllib.request.Request(
        url, headers={k.replace("_", "-"): v for k, v in headers.items()}
    )
    try:
        with urllib.request.urlopen(request, timeout=20) as reply:
            return int(reply.status), bytes(reply.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, b""


def test_the_server_hands_out_tables_and_nothing_else(folder: Path, served: Explorer) -> None:
    flows = (folder / "crowd" / "flows.parquet").read_bytes()
    url = served.url
    assert answer(f"{url}api/files/0/flows.parquet") == (200, flows)
    assert answer(f"{url}api/files/0/flows.parquet", Range="bytes=4-9") == (206, flows[4:10])
    assert answer(f"{url}api/files/0/flows.parquet", Range="bytes=-1")[0] == 416
    assert answer(f"{url}api/files/0/flows.parquet", Range=f"bytes={len(flows)}-")[0] == 416
    for path in (
        "api/files/0/manifest.json", "api/files/0/..%2fcrowd.toml", "api/files/2/flows.parquet",
        "api/files/-1/flows.parquet", "api/files/0/.runs/plan.json", "etc/passwd", "api/files/0",
    ):  # fmt: skip
        assert answer(f"{url}{path}")[0] == 404, path
    assert answer(url, Host="evil.example")[0] == 403


def test_a_large_run_leaves_a_page_that_says_what_it_lacks(folder: Path, tmp_path: Path) -> None:
    """Tables that are too long for the page are thinned, flow by flow alike in all of them."""
    large = tmp_path / "large"
    large.mkdir()
    for name in ("nodes", "links", "ports", "queues"):
        (large / f"{name}.parquet").write_bytes((folder / "crowd" / f"{name}.parquet").read_bytes())
    count = 1_500_000
    random = np.random.default_rng(1)
    schema = pq.read_schema(folder / "crowd" / "flows.parquet")
    columns: dict[str, Any] = {
        "scheme": ["none"] * count, "seed": np.ones(count), "src": random.integers(0, 32, count),
        "dst": random.integers(0, 32, count), "sport": random.integers(0, 65535, count),
        "size_bytes": random.integers(1, 2**40, count),
        "start_ps": random.integers(0, 2**40, count), "class": ["x"] * count,
        "fct_ps": random.integers(1, 2**40, count),
        "ideal_fct_ps": random.integers(1, 2**40, count),
    }  # fmt: skip
    table = pa.table({n: pa.array(c, schema.field(n).type) for n, c in columns.items()})
    pq.write_table(table, large / "flows.parquet", compression="zstd")
    page = write_explorer(large)
    assert page.stat().st_size < MOST_BYTES
    text = page.read_text()
    assert re.search(r"flows\.parquet: this page has [\d,]+ rows of 1,500,000\.", text)


def test_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ResultsError, match=r"no flows\.parquet"):
        Explorer([tmp_path])
    said = raddle("view", tmp_path, "--no-browser", folder=tmp_path, status=2).stderr
    assert "the explorer looks into what `raddle run` and `raddle route` leave" in said
    with pytest.raises(ResultsError, match="there is no folder"):
        Explorer([tmp_path / "missing"])


def test_a_damaged_table_is_named(folder: Path, tmp_path: Path) -> None:
    for file in (folder / "crowd").glob("*.parquet"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "flows.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(ResultsError, match=r"flows\.parquet is not a readable Parquet file"):
        write_explorer(tmp_path)


def test_a_port_that_is_taken_is_named(folder: Path, served: Explorer) -> None:
    with pytest.raises(ResultsError, match=rf"port {served.server_port} cannot be used"):
        Explorer([folder / "crowd"], served.server_port)


def test_ranks_follow_each_other_in_the_table(folder: Path) -> None:
    table = load(folder / "crowd").ranks
    assert table is not None
    own = select(table, scheme=RUN[0], seed=RUN[1])
    start, end = integers(own, "start_ps"), integers(own, "end_ps")
    rank = integers(own, "rank")
    same = rank[1:] == rank[:-1]
    assert (start[1:][same] == end[:-1][same]).all()


ROUTES = """\
schema = 1
[fabric]
kind = "cn-tn"
m = 4
q = 8
p = 2
k = 4
w = 2
cns = 8
terminals_per_l0 = 4
[groups]
pattern = "grid"
dims = [16, 16]
[multicast]
engines = ["c-mr4lms-fixed", "opensm"]
colours = 4
"""


@needs_browser
@pytest.mark.browser
def test_trees_of_groups_are_those_of_the_tables(browser: Any, tmp_path: Path) -> None:
    """A tree of m members has as many links as the engine's own figures say for its group."""
    (tmp_path / "routes.toml").write_text(ROUTES)
    raddle("route", "routes.toml", "--out", "routes", folder=tmp_path)
    folder = tmp_path / "routes"
    with Explorer([folder]) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        visitor = Visitor(browser, server.url)
        shown = {}
        for group in (0, 20):
            open_page(browser, f"{server.url}#view=groups&about=group:{group}:0")
            shown[group] = int(visitor.text("#tree-links").replace(",", ""))
        open_page(browser, f"{server.url}#view=merges&scheme=c-mr4lms-fixed")
        merged = browser.find_elements("css selector", "#merges tbody tr")
        for view in ("fabric", "groups", "tables", "merges"):
            open_page(browser, f"{server.url}#view={view}&about=node:s256", 390)
            scroll = "const e = document.documentElement; return e.scrollWidth <= e.clientWidth"
            assert browser.execute_script(scroll)
        assert browser.get_log("browser") == []
        server.shutdown()
    trees = pq.read_table(folder / "trees.parquet").to_pylist()
    links = links_of_trees(folder)
    for group, count in shown.items():
        row = next(t for t in trees if (t["engine"], t["group"]) == ("c-mr4lms-fixed", group))
        assert count == len(links(row))
    merges = [
        m
        for m in pq.read_table(folder / "merges.parquet").to_pylist()
        if m["engine"] == "c-mr4lms-fixed"
    ]
    assert len(merged) == min(len(merges), 500)


def links_of_trees(folder: Path) -> Any:
    """The links of a group's tree: those on which its switches' tables send its messages."""
    tables = pq.read_table(folder / "tables.parquet").to_pylist()
    links = pq.read_table(folder / "links.parquet").to_pylist()
    leads = {}
    for link in links:
        ends = (link["node_a"], link["port_a"]), (link["node_b"], link["port_b"])
        leads[ends[0]], leads[ends[1]] = ends[1], ends[0]

    def of(row: dict[str, Any]) -> set[frozenset[tuple[int, int]]]:
        out = {
            (t["switch"], t["in_port"]): t["out_ports"]
            for t in tables
            if t["engine"] == row["engine"] and t["colour"] == row["colour"]
        }
        found: set[frozenset[tuple[int, int]]] = set()
        ways = [end for end in leads if end[0] == row["members"][0]]
        while ways:
            end = ways.pop()
            node, port = leads[end]
            link = frozenset((end, (node, port)))
            if link in found:
                continue
            found.add(link)
            ways += [(node, p) for p in out.get((node, port), []) if p != port]
        return found

    return of


LARGE = """\
schema = 1
name = "large"
[fabric]
kind = "k-ary-fat-tree"
k = 64
[traffic]
generator = "permutation"
size = "16KiB"
[simulation]
schemes = ["none"]
"""
MOST_OPEN_S = 3
LEAST_FRAMES = 30
DRAG = """
const done = arguments[arguments.length - 1];
const canvas = document.querySelector(".picture canvas");
const box = canvas.getBoundingClientRect();
const point = (type, x) => canvas.dispatchEvent(new PointerEvent(type, {
  bubbles: true, pointerId: 1, clientX: box.left + x, clientY: box.top + 200,
}));
canvas.setPointerCapture = () => undefined;
point("pointerdown", 200);
performance.mark("drag-starts");
const start = performance.now();
let frames = 0;
const frame = (now) => {
  if (now - start > 2000) {
    performance.mark("drag-ends");
    point("pointerup", 200);
    done();
    return;
  }
  frames += 1;
  point("pointermove", 200 + (frames % 100));
  requestAnimationFrame(frame);
};
requestAnimationFrame(frame);
"""


def displayed(browser: Any) -> float:
    """Frames a second that the browser's own trace says were displayed during the drag."""
    messages = (json.loads(entry["message"])["message"] for entry in browser.get_log("performance"))
    traced = [told["params"] for told in messages if told["method"] == "Tracing.dataCollected"]
    times = {event["name"]: event["ts"] for event in traced if event["name"].startswith("drag-")}
    begin, end = times["drag-starts"], times["drag-ends"]
    frames = {
        event["ts"]
        for event in traced
        if event["name"] == "Display::FrameDisplayed" and begin <= event["ts"] <= end
    }
    seconds: float = (end - begin) / 1e6
    return len(frames) / seconds


@needs_browser
@pytest.mark.browser
@pytest.mark.scale
def test_65536_hosts_open_at_once_and_move_smoothly(
    browser: Any, traced_browser: Any, tmp_path: Path
) -> None:
    """Opens in 3 s; a pod of 1,024 hosts and 3,072 links moves at 30 frames a second or more."""
    (tmp_path / "large.toml").write_text(LARGE)
    raddle("run", "large.toml", "--out", "large", "--no-report", folder=tmp_path)
    with Explorer([tmp_path / "large"]) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        open_page(browser, server.url)
        opened = browser.execute_script("return performance.getEntriesByName('shown')[0].startTime")
        open_page(traced_browser, server.url)
        traced_browser.find_element("css selector", ".matrix button").click()
        traced_browser.execute_async_script("setTimeout(arguments[0], 300)")
        traced_browser.execute_async_script(DRAG)
        rate = displayed(traced_browser)
        server.shutdown()
    print(f"opened in {opened / 1000:.2f} s, {rate:.0f} frames/s")
    assert opened <= 1000 * MOST_OPEN_S
    assert rate >= LEAST_FRAMES
