"""More flows than are held at once: figures equal those of all flows, and memory stays."""

import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from raddle.report.page import render
from raddle.results import TABLES, Results
from raddle.results import flows as flow_files
from raddle.statistics import distribution
from raddle.statistics.distribution import Distribution
from raddle.statistics.samples import spread
from raddle.statistics.summary import summarise

SCHEMES = ("hpcc", "dcqcn")
GROUP = 32_768


def folder_of(path: Path, flows: int, classes: tuple[str, ...] = ("background",)) -> Path:
    """Write a folder of results of two schemes with so many flows each, as a run leaves it."""
    path.mkdir()
    with pq.ParquetWriter(path / "flows.parquet", TABLES["flows"], compression="zstd") as writer:
        for number, scheme in enumerate(SCHEMES):
            for part, begin in enumerate(range(0, flows, GROUP)):
                rows = min(GROUP, flows - begin)
                writer.write_table(_flows(scheme, number, part, rows, classes))
    runs = [
        {"name": s, "scheme": s, "seed": 1, "variant": "loaded", "done": True, "stamp": "0" * 64}
        for s in SCHEMES
    ]
    counts = {"flows": flows, "finished": flows, "simulated_ps": 10**12, "packet_hops": 1}
    manifest = {"schemes": list(SCHEMES), "complete": True, "runs": [r | counts for r in runs]}
    (path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return path


def _flows(scheme: str, number: int, part: int, rows: int, classes: tuple[str, ...]) -> pa.Table:
    random = np.random.default_rng(part)  # the same flows under every scheme
    size = random.integers(100, 2_000_000, rows).astype(np.uint64)
    ideal = size * np.uint64(80) + np.uint64(4_000_000)
    slowdown = 1 + random.exponential(1 + 0.3 * number, rows)
    columns = {
        "scheme": [scheme] * rows,
        "seed": np.ones(rows, dtype=np.uint64),
        "src": random.integers(0, 100, rows).astype(np.uint32),
        "dst": random.integers(0, 100, rows).astype(np.uint32),
        "sport": random.integers(0, 65_536, rows).astype(np.uint16),
        "size_bytes": size,
        "start_ps": (part * 10**9 + np.arange(rows)).astype(np.uint64),
        "fct_ps": pa.array((ideal * slowdown).astype(np.uint64), mask=random.random(rows) < 1e-3),
        "class": [classes[i] for i in random.integers(0, len(classes), rows)],
        "ideal_fct_ps": ideal,
    }
    return pa.table(columns, schema=TABLES["flows"])  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two schemes with 150,000 flows each, in three groups."""
    return folder_of(tmp_path_factory.mktemp("many") / "out", 150_000, ("a", "b", "T_short"))


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> int:
    """As if 40,000 flows were the most that are held."""
    monkeypatch.setattr(flow_files, "AT_ONCE", 40_000)
    monkeypatch.setattr(distribution, "MOST_EXACT", 20_000)
    return 40_000


def test_counts_and_sums_of_many_flows_are_those_of_all(folder: Path, at_once: int) -> None:
    many = summarise(Results(folder), name="x", complete=True, parameters={})
    assert many["flow_sample"] == 8  # 300,000 flows, 40,000 at once
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flow_files, "AT_ONCE", 1 << 20)
        patch.setattr(distribution, "MOST_EXACT", 1 << 20)
        whole = summarise(Results(folder), name="x", complete=True, parameters={})
    assert "flow_sample" not in whole
    assert many["verdict"]["comparison"]["unfinished"] == {
        scheme: row["flows"] - row["finished"] for scheme, row in whole["schemes"].items()
    }
    for scheme in SCHEMES:
        own, all_ = many["schemes"][scheme], whole["schemes"][scheme]
        assert (own["flows"], own["finished"]) == (all_["flows"], all_["finished"])
        for key in ("goodput_gbps", "long_flow_rate_gbps", "jain_long_flows"):
            assert own[key] == pytest.approx(all_[key], rel=1e-12)
        # Percentiles are within half a bin.
        assert own["slowdown"] == pytest.approx(all_["slowdown"], rel=3e-4)
        for name, fct in all_["fct_us"].items():
            assert own["fct_us"][name] == pytest.approx(fct, rel=3e-4)
        for ours, theirs in zip(own["slowdown_by_size"], all_["slowdown_by_size"], strict=True):
            assert ours == pytest.approx(theirs, rel=3e-4)
    assert many["verdict"]["leaders"] == whole["verdict"]["leaders"]


def test_a_sample_has_the_same_flows_under_every_scheme_and_all_tested_ones(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(flow_files, "AT_ONCE", 110_000)
    results = Results(folder)
    rows = results.flow_sample.to_pydict()
    names = {
        scheme: {
            row[1:]
            for row in zip(*(rows[c] for c in ("scheme", *flow_files.NAME)), strict=True)
            if row[0] == scheme
        }
        for scheme in SCHEMES
    }
    assert names["hpcc"] == names["dcqcn"]
    kept = {name: rows["class"].count(name) for name in ("a", "b", "T_short")}
    counts = results.flow_file.counts
    every = {name: sum(run[name] for run in counts.values()) for name in kept}
    assert kept["T_short"] == every["T_short"]
    for name in ("a", "b"):  # one of three: within 5 standard deviations of a binomial draw
        assert abs(kept[name] - every[name] / 3) < 5 * np.sqrt(every[name] * 2 / 9)


def test_the_page_says_what_is_of_a_sample(folder: Path, at_once: int) -> None:
    page = render(Results(folder))
    assert "Counts, means and sums are of all 300,000 flows" in page
    assert "a sample: one flow in 8" in page
    assert len(page.encode()) < 15e6


def test_a_distribution_of_many_values_is_within_its_bins() -> None:
    random = np.random.default_rng(1)
    values = random.pareto(1.1, 300_000) + 1e-3
    values[::1000] = np.nan
    exact = spread(values)
    found = Distribution()
    other = Distribution()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distribution, "MOST_EXACT", 1000)
        for part in np.array_split(values, 7):
            found.add(part)
        for part in np.array_split(values, 3):
            other.add(part)
        other.merge(Distribution())
    assert asdict(found.spread()) == pytest.approx(asdict(exact), rel=3e-4)
    assert asdict(other.spread()) == pytest.approx(asdict(exact), rel=3e-4)
    other.merge(found)
    assert other.spread().n == 600_000
    assert other.spread().p50 == pytest.approx(exact.p50, rel=3e-4)


def peak_mb(folder: Path, at_once: int) -> float:
    """The largest memory of a process that makes the summary and the page of a folder."""
    program = (
        "import json, resource, sys, pathlib\n"
        "from raddle.results import Results, flows\n"
        "from raddle.report.page import render\n"
        "from raddle.statistics.summary import summarise\n"
        "flows.AT_ONCE = int(sys.argv[2])\n"
        "folder = pathlib.Path(sys.argv[1])\n"
        "summary = summarise(Results(folder), name='x', complete=True, parameters={})\n"
        "(folder / 'summary.json').write_text(json.dumps(summary))\n"
        "render(Results(folder))\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)\n"
    )
    words = [sys.executable, "-c", program, str(folder), str(at_once)]
    return float(subprocess.run(words, check=True, capture_output=True, text=True).stdout)


def test_memory_does_not_grow_with_the_flows(tmp_path: Path) -> None:
    few, many = (
        peak_mb(folder_of(tmp_path / name, flows), GROUP)
        for name, flows in (("few", GROUP), ("many", 10 * GROUP))
    )
    assert many - few < 30, (few, many)


@pytest.mark.scale
def test_memory_of_ten_million_flows_is_that_of_one_million(tmp_path: Path) -> None:
    few, many = (
        peak_mb(folder_of(tmp_path / name, flows), flow_files.AT_ONCE)
        for name, flows in (("few", 500_000), ("many", 5_000_000))
    )
    assert many - few < 200, (few, many)
    assert many < 1000
