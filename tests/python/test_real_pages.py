"""Reports and sweeps of real runs in Chromium."""

import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from browsing import needs_browser, show_in_browser
from raddle.report.page import charts_of
from raddle.results import Results, load
from raddle.results.columns import floats, integers, select, take
from raddle.statistics.verdict import label_of
from raddle.text import size, span_us
from real import QUICK, raddle


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report over three seeds with pauses, and a sweep."""
    folder = tmp_path_factory.mktemp("pages")
    seeds = 'schemes = ["none", "dcqcn", "pint"]\nseeds = [1, 2, 3]\nbuffer = "2MiB"'
    rules = "\n[score]\nweights = { long = 0.6, short = 0.2, allreduce = 0.2 }\n"
    (folder / "seeds.toml").write_text(QUICK.replace('schemes = ["none", "hpcc"]', seeds) + rules)
    (folder / "quick.toml").write_text(QUICK)
    raddle("run", "seeds.toml", "--out", "seeds", folder=folder)
    raddle("sweep", "quick.toml", "--set", "simulation.buffer=2MiB,4MiB,32MiB",
           "--set", "traffic.load_factor=0.3,0.9", "--out", "sweep", folder=folder)  # fmt: skip
    return folder


@needs_browser
@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_real_report_works_in_chromium(browser: Any, pages: Path, width: int, theme: str) -> None:
    show_in_browser(browser, pages / "seeds" / "report.html", width, theme)


@needs_browser
@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
def test_a_sweep_works_in_chromium(browser: Any, pages: Path, width: int) -> None:
    show_in_browser(browser, pages / "sweep" / "sweep.html", width, "light")


def test_a_real_report_shows_pauses_intervals_and_own_weights(pages: Path) -> None:
    page = (pages / "seeds" / "report.html").read_text()
    assert "Who silenced whom" in page
    assert "(paired, 95 %)" in page.replace("\u00a0", " ")
    assert "<small>yours</small>" in page
    assert "× alone" in page


def of_class(results: Results, scheme: str, kind: str) -> pa.Table:
    flows = select(results.flows, scheme=scheme)
    rows = [row for row, name in enumerate(flows["class"].to_pylist()) if name == kind]
    return take(flows, np.asarray(rows, dtype=np.int64))


def test_a_real_report_ends_with_why_in_the_words_of_its_tables(pages: Path) -> None:
    """The longest queue and the pauses of the slower scheme, from ports.parquet."""
    results = load(pages / "seeds")
    text = (pages / "seeds" / "report.html").read_text().replace("\u00a0", " ")
    end = text.rpartition("<section")[2]
    title = re.search(r"<h2>Why (.*?) is slower than (.*?) for flows of class (\S+)</h2>", end)
    assert title
    of_label = {label_of(scheme): scheme for scheme in results.schemes}
    slow, fast = of_label[title[1]], of_label[title[2]]
    mean, other = (
        float(floats(flows, "fct_ps").mean()) / 1e6
        for flows in (of_class(results, scheme, title[3]) for scheme in (slow, fast))
    )
    assert mean > other
    assert f"{span_us(mean)} against {span_us(other)} in the mean" in end
    ports = select(results.ports, scheme=slow)
    paused = span_us(float(floats(ports, "pause_ps").sum()) / 1e6 / len(results.seeds))
    queue = re.search(r"stood at (\w+) → (\w+): up to ([^,]*),", end)
    assert queue
    names = results.nodes["name"].to_pylist()
    node, peer = (names.index(name) for name in queue.groups()[:2])
    at_port = (integers(ports, "node") == node) & (integers(ports, "peer") == peer)
    assert queue[3] == size(int(floats(ports, "max_queue_bytes")[at_port].max()))
    assert f"Ports were paused for {paused} in all" in end
    assert end.count("<li><b>") == 3


def test_a_real_sweep_chooses_figure_and_setting_apart(pages: Path) -> None:
    """Not a wall of buttons, one for each pair of them."""
    text = (pages / "sweep" / "sweep.html").read_text()
    fct = next(chart for chart in charts_of(text) if chart["key"] == "sweep-fct")
    rows = [set(words) for words in zip(*(view["label"] for view in fct["views"]), strict=True)]
    assert {"p99", "p50"} in rows
    assert {"load_factor 0.3", "load_factor 0.9"} in rows
    assert sum(len(row) for row in rows) < len(fct["views"])
    assert 'id="why"' in text.rpartition("<section")[2]
