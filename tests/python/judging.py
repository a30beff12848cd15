"""Results folders of a few flows, so that a verdict on them can be told beforehand."""

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from raddle.results import TABLES, load
from raddle.statistics.summary import summarise
from raddle.statistics.verdict import Verdict, verdict_of

IDEAL_PS = 10_000
Times = Sequence[int | None]
"""Completion time of each flow in ps, None if it did not finish."""
Runs = Mapping[tuple[str, int], Times]


def table(runs: Runs, classes: Sequence[str] = ("flow",)) -> pa.Table:
    """The flows of runs: flow i of a run goes from host i to host 100, in the class i mod n."""
    rows: list[dict[str, Any]] = [
        {
            "scheme": scheme, "seed": seed, "src": i, "dst": 100, "sport": 1, "size_bytes": 1000,
            "start_ps": i, "fct_ps": fct, "class": classes[i % len(classes)],
            "ideal_fct_ps": IDEAL_PS,
        }
        for (scheme, seed), times in runs.items() for i, fct in enumerate(times)
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, TABLES["flows"])


def write(
    folder: Path,
    runs: Runs,
    alone: Runs | None = None,
    *,
    classes: Sequence[str] = ("flow",),
    planned: int | None = None,
    experiment: str = "",
) -> Path:
    """A results folder of these runs, with its summary."""
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(table(runs, classes), folder / "flows.parquet")
    if alone is not None:
        (folder / "isolated").mkdir()
        pq.write_table(table(alone, classes), folder / "isolated" / "flows.parquet")
    manifest = {
        "schema": 1, "name": "judged", "schemes": list(dict.fromkeys(s for s, _ in runs)),
        "traffic": {"flows": planned},
        "runs": [
            {"name": f"{s}-seed{n}-loaded", "scheme": s, "seed": n, "variant": "loaded",
             "done": True, "stamp": sha256(experiment.encode()).hexdigest(), "flows": 0,
             "finished": 0, "simulated_ps": 0, "packet_hops": 0}
            for s, n in runs
        ],
    }  # fmt: skip
    (folder / "manifest.json").write_text(json.dumps(manifest))
    if experiment:
        (folder / "experiment.toml").write_text(experiment)
    summary = summarise(load(folder), name="judged", complete=True, parameters={})
    (folder / "summary.json").write_text(json.dumps(summary))
    return folder


def judged(folder: Path, runs: Runs, alone: Runs | None = None, **more: Any) -> Verdict:
    """The verdict on these runs."""
    return verdict_of(load(write(folder, runs, alone, **more)).summary)
