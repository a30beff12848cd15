"""The page of a recorded program: it says what the trace's own rows say, counted in another way."""

import re
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from browsing import needs_browser, open_page
from raddle.errors import ResultsError
from raddle.services.view import Explorer

MELT = Path(__file__).resolve().parents[1] / "data" / "traces" / "melt.trace.parquet"
UNITS = {"s": 1e12, "ms": 1e9, "µs": 1e6, "ns": 1e3, "ps": 1.0}
COLUMNS: dict[str, pa.DataType] = {
    **{name: pa.uint32() for name in ("rank", "peer", "comm", "request")},
    **{name: pa.uint64() for name in ("start_ns", "end_ns", "bytes")},
    **{name: pa.bool_() for name in ("any_source", "any_tag")},
    "action": pa.string(),
    "tag": pa.int32(),
    "requests": pa.list_(pa.uint32()),
}
MESSAGE = {"tag": 7, "comm": 0, "bytes": 1024}
CALLS = [
    # Rank 0 computes for 10 µs and sends. Rank 1 waits from the beginning, has the message after
    # 13 µs, computes for 4 µs, and ends; rank 2 ends after 2 µs.
    {"rank": 0, "start_ns": 10_000, "end_ns": 11_000, "action": "send", "peer": 1, **MESSAGE},
    {"rank": 0, "start_ns": 12_000, "end_ns": 12_000, "action": "end"},
    {"rank": 1, "start_ns": 0, "end_ns": 0, "action": "receive", "peer": 0, "request": 5} | MESSAGE,
    {"rank": 1, "start_ns": 0, "end_ns": 13_000, "action": "wait", "requests": [5]},
    {"rank": 1, "start_ns": 17_000, "end_ns": 17_000, "action": "end"},
    {"rank": 2, "start_ns": 2_000, "end_ns": 2_000, "action": "end"},
]


def ps(text: str) -> float:
    number, unit = text.replace(",", "").split()
    return float(number) * UNITS[unit]


def rows(browser: Any, label: str) -> list[list[str]]:
    """The cells of a table's body."""
    script = """const table = document.querySelector(`table[aria-label="${arguments[0]}"]`);
        return [...table.tBodies[0].rows].filter((row) => row.className !== "space")
            .map((row) => [...row.cells].map((cell) => cell.textContent))"""
    found: list[list[str]] = browser.execute_script(script, label)
    return found


@pytest.fixture
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The page of one trace or several."""
    made = tmp_path / "three.trace.parquet"
    pq.write_table(pa.Table.from_pylist(CALLS, schema=pa.schema(COLUMNS)), made)
    traces = [made if name == "three" else MELT for name in request.param]
    with Explorer(traces) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.url
        server.shutdown()


@needs_browser
@pytest.mark.browser
@pytest.mark.parametrize("served", [["three"]], indirect=True)
def test_the_critical_path_goes_to_who_was_late(browser: Any, served: str) -> None:
    open_page(browser, f"{served}#view=path")
    kinds = {kind: ps(time) for kind, time, _ in rows(browser, "Kinds")}
    # 10 µs of rank 0, the message for 3 µs, 4 µs of rank 1.
    assert kinds == {"computing": 14e6, "wire": 3e6}
    assert {rank: ps(time) for rank, time, _ in rows(browser, "Ranks on the path")} == {
        "rank 0": 10e6,
        "rank 1": 7e6,
    }
    open_page(browser, f"{served}#about=lane:1")
    call, at, took, why = rows(browser, "Calls")[0]
    assert (call, at, took) == ("wait", "0 ps", "13 µs")
    assert why == "rank 0, 10 µs late"
    times = {kind: ps(time) for kind, time, _ in rows(browser, "Time")}
    assert times == {"computing": 4e6, "sending": 0, "waiting": 13e6, "collective": 0}
    assert browser.get_log("browser") == []


@needs_browser
@pytest.mark.browser
@pytest.mark.parametrize("served", [["melt"]], indirect=True)
def test_messages_and_supersteps_are_those_of_the_trace(browser: Any, served: str) -> None:
    table = pq.read_table(MELT)
    calls = table.select(["rank", "action", "peer", "bytes", "request"]).to_pylist()
    sent: Counter[tuple[int, int]] = Counter()
    messages: Counter[tuple[int, int]] = Counter()
    for call in calls:
        if call["action"] == "send":
            sent[call["rank"], call["peer"]] += call["bytes"]
            messages[call["rank"], call["peer"]] += 1
    open_page(browser, f"{served}#view=messages&sort=-messages")
    shown = rows(browser, "Pairs")
    assert len(shown) == min(len(sent), 28)
    for source, target, count, *_ in shown:
        assert int(count.replace(",", "")) == messages[int(source), int(target)]
    open_page(browser, f"{served}#view=messages")
    assert [(int(row[0]), int(row[1])) for row in rows(browser, "Pairs")[:1]] == [
        max(sent, key=lambda pair: sent[pair])
    ]
    steps: dict[int, int] = defaultdict(int)
    number: Counter[int] = Counter()
    open_now: Counter[int] = Counter()
    for call in calls:
        rank, action = call["rank"], call["action"]
        open_now[rank] += action == "send"
        blocks = not (action in ("send", "receive") and call["request"] is not None)
        if blocks and open_now[rank]:
            steps[number[rank]] += open_now[rank]
            number[rank] += 1
            open_now[rank] = 0
    open_page(browser, f"{served}#view=supersteps")
    for step, _, count, *_ in rows(browser, "Supersteps"):
        assert int(count.replace(",", "")) == steps[int(step.replace(",", ""))]
    assert browser.get_log("browser") == []


@needs_browser
@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("served", [["melt", "three"]], indirect=True)
def test_two_traces_stand_below_each_other(
    browser: Any, served: str, width: int, theme: str
) -> None:
    open_page(browser, f"{served}#about=lane:3", width, theme)
    lanes = browser.find_elements("css selector", "canvas.ranks")
    assert [re.findall(r"the (\d+) ranks", one.get_attribute("aria-label")) for one in lanes] == [
        ["8"], ["3"],
    ]  # fmt: skip
    # A lane has drawn something: more than one colour.
    script = """const pen = arguments[0].getContext("2d");
        const {data} = pen.getImageData(0, 0, arguments[0].width, arguments[0].height);
        return new Set(new Uint32Array(data.buffer)).size"""
    assert all(browser.execute_script(script, one) > 3 for one in lanes)
    for button in ("Critical path", "Messages", "Supersteps"):
        browser.find_element("xpath", f"//nav/button[text()='{button}']").click()
        scroll = browser.execute_script(
            "const e = document.documentElement; return [e.scrollWidth, e.clientWidth]"
        )
        assert scroll[0] <= scroll[1], button
    assert browser.get_log("browser") == []


def test_stretches_of_melt_are_whole() -> None:
    """Calls of a rank do not overlap, which the page takes for granted."""
    table = pq.read_table(MELT, columns=["rank", "start_ns", "end_ns"])
    for a, b in pairwise(table.to_pylist()):
        assert a["rank"] != b["rank"] or a["end_ns"] <= b["start_ns"]


def test_what_is_no_trace_is_named(tmp_path: Path) -> None:
    other = tmp_path / "other.trace.parquet"
    pq.write_table(pa.table({"a": [1]}), other)
    with pytest.raises(ResultsError, match="is no trace"):
        Explorer([other])
    with pytest.raises(ResultsError, match="nor a trace"):
        Explorer([tmp_path / "none.trace.parquet"])
