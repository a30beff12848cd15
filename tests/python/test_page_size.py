"""The page stays small, whatever the results are: under 15 MB, and it says what it leaves out."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from raddle.report.page import render
from raddle.results import TABLES, Results

SCHEMES = ("none", "dctcp", "dcqcn", "timely", "hpcc", "pint", "swift", "powertcp")
CLASSES = [f"class-{number:03}" for number in range(256)]
"""As many as a flow can name."""
LEVELS = 5
SAMPLES = 100
END_PS = 10**10


def write(folder: Path, name: str, columns: dict[str, object]) -> None:
    table = pa.table(columns, schema=TABLES[name])  # type: ignore[arg-type]
    pq.write_table(table, folder / f"{name}.parquet", compression="zstd")


def hostile(
    folder: Path, schemes: Sequence[str], classes: Sequence[str], of_level: int, links_up: int
) -> Path:
    """Results with many schemes, classes, links, pauses and runs, and a long experiment.

    A level has `of_level` nodes, each with `links_up` links to any of the next level.
    """
    folder.mkdir()
    random = np.random.default_rng(1)
    count = of_level * LEVELS
    level = np.arange(count) // of_level
    kinds = ["switch" if one else "host" for one in level]
    names = [f"a-node-with-a-long-name-{number}" for number in range(count)]
    write(folder, "nodes", {"node": range(count), "kind": kinds, "level": level, "name": names})
    a = np.repeat(np.arange(of_level * (LEVELS - 1)), links_up)
    b = (a // of_level + 1) * of_level + random.integers(0, of_level, a.size)
    number = 1 + np.arange(a.size)
    links = {"node_a": a, "port_a": number, "node_b": b, "port_b": number}
    rates = {"rate_bps": [10**11] * a.size, "delay_ps": [10**6] * a.size}
    write(folder, "links", {"link": range(a.size), **links, **rates})

    def of_all(columns: dict[str, object], rows: int) -> dict[str, object]:
        runs = {"scheme": np.repeat(schemes, rows), "seed": [1] * (rows * len(schemes))}
        return runs | {k: np.tile(np.asarray(v), len(schemes)) for k, v in columns.items()}

    ends = {"node": np.concatenate([a, b]), "port": np.tile(number, 2), "peer": np.tile(a, 2)}
    zero = np.zeros(2 * a.size, dtype=np.uint64)
    counters = dict.fromkeys(TABLES["ports"].names[6:], zero) | {"pause_ps": zero + 1000}
    counters["tx_bytes"] = random.integers(1, 10**7, 2 * a.size).astype(np.uint64)
    speed = {"rate_bps": zero + 10**11}
    write(folder, "ports", of_all({**ends, **speed, **counters}, 2 * a.size))
    start = random.integers(0, END_PS, a.size)
    spans = {"start_ps": start, "end_ps": start + END_PS // 2}
    write(folder, "pauses", of_all({"node": b, "port": number, **spans}, a.size))
    rows = 4 * len(classes)
    flows = {"src": zero[:rows], "dst": zero[:rows] + 1, "sport": range(rows)}
    sizes = {"size_bytes": random.integers(1, 10**7, rows), "start_ps": zero[:rows]}
    times = {"fct_ps": random.integers(10**6, 10**9, rows), "class": [*classes] * 4}
    ideal = {"ideal_fct_ps": zero[:rows] + 10**6}
    write(folder, "flows", of_all({**flows, **sizes, **times, **ideal}, rows))
    at = END_PS // SAMPLES * (1 + np.arange(SAMPLES))
    queues = {name: random.integers(1, 10**9, SAMPLES) for name in TABLES["queues"].names[3:]}
    write(folder, "queues", of_all({"time_ps": at, **queues}, SAMPLES))
    rows = SAMPLES * len(classes)
    delivered = {"class": [*classes] * SAMPLES, "delivered_bytes": random.integers(1, 10**9, rows)}
    by_class = {"time_ps": np.repeat(at, len(classes)), **delivered}
    write(folder, "throughput", of_all(by_class, rows))
    text = "".join(f"[[traffic.flow]]\nsrc = {i}\ndst = 1\nsize = '1kB'\n" for i in range(50_000))
    (folder / "experiment.toml").write_text(text, encoding="utf-8")
    run = {"variant": "loaded", "done": True, "stamp": "0" * 64, "flows": 1, "finished": 1}
    runs = [
        {"name": f"{s}-seed1", "scheme": s, "seed": 1, **run, "simulated_ps": END_PS}
        for s in schemes
        for _ in range(1001)
    ]
    runs = [one | {"packet_hops": 1} for one in runs]
    manifest = {"schemes": schemes, "complete": True, "runs": runs}
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("schemes", "classes", "of_level", "links_up"),
    [(2, 30, 100, 8), pytest.param(8, 256, 400, 20, marks=pytest.mark.scale)],
)
def test_the_page_of_results_that_are_large_in_every_way_stays_small(
    tmp_path: Path, schemes: int, classes: int, of_level: int, links_up: int
) -> None:
    page = render(
        Results(hostile(tmp_path / "out", SCHEMES[:schemes], CLASSES[:classes], of_level, links_up))
    )
    assert len(page.encode()) < 15e6
    for words in (
        f"Drawn are the first 24 of {classes} classes",
        f"manifest.json has all {1001 * schemes}",
        "experiment.toml has all",
        "nodes are drawn in",
    ):
        assert words in page, words
