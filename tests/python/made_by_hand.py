"""A results folder whose figures can be checked by hand: four hosts at one switch, two schemes.

Hosts 0, 1 and 2 each send 100 kB to host 3 over links of 100 Gb/s; the switch is node 4. On an idle
fabric that takes 10 µs.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from raddle.results import TABLES, load
from raddle.statistics.summary import summarise

__all__ = ["Scheme", "write"]

US = 1_000_000
SWITCH = 4


class Scheme:
    """What is measured under a scheme; times in µs.

    `fct` of the flows of hosts 0, 1 and 2; `queue` in bytes at the switch's port to host 3, `held`
    the samples of it every 10 µs; `pauses` of hosts: (host, from, to).
    """

    def __init__(
        self,
        fct: Sequence[float | None],
        *,
        queue: int = 0,
        held: Sequence[int] = (0, 0, 0, 0),
        pauses: Sequence[tuple[int, float, float]] = (),
        drops: int = 0,
    ) -> None:
        self.fct, self.queue, self.held = fct, queue, held
        self.pauses, self.drops = pauses, drops


def write(
    out: Path, schemes: Mapping[str, Scheme], *, seeds: Sequence[int] = (1,), kind: str = "short"
) -> Path:
    """Write the folder, with its summary; each seed measures the same."""
    rows: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}
    for node in range(5):
        host = node != SWITCH
        rows["nodes"].append(
            {"node": node, "kind": "host" if host else "switch", "level": int(not host),
             "name": f"{'h' if host else 's'}{node}"}
        )  # fmt: skip
        if host:
            rows["links"].append(
                {"link": node, "node_a": node, "port_a": 1, "node_b": SWITCH, "port_b": node + 1,
                 "rate_bps": 10**11, "delay_ps": US}
            )  # fmt: skip
    for name, scheme in schemes.items():
        for seed in seeds:
            _run(rows, {"scheme": name, "seed": seed}, scheme, kind)
    out.mkdir(parents=True, exist_ok=True)
    for name, schema in TABLES.items():
        pq.write_table(pa.Table.from_pylist(rows[name], schema), out / f"{name}.parquet")
    (out / "manifest.json").write_text(json.dumps({"schemes": list(schemes), "complete": True}))
    summary = summarise(load(out), name="by hand", complete=True, parameters={})
    (out / "summary.json").write_text(json.dumps(summary))
    return out


def _run(
    rows: dict[str, list[dict[str, Any]]], run: Mapping[str, Any], scheme: Scheme, kind: str
) -> None:
    for host, fct in enumerate(scheme.fct):
        rows["flows"].append(
            {**run, "src": host, "dst": 3, "sport": 10000, "size_bytes": 100_000, "start_ps": 0,
             "fct_ps": None if fct is None else round(fct * US), "class": kind,
             "ideal_fct_ps": 10 * US}
        )  # fmt: skip
    paused = {host: (end - start) * US for host, start, end in scheme.pauses}
    for host, start, end in scheme.pauses:
        rows["pauses"].append(
            {**run, "node": host, "port": 1, "start_ps": round(start * US),
             "end_ps": round(end * US)}
        )  # fmt: skip
    for host in range(4):
        for node, peer in ((host, SWITCH), (SWITCH, host)):
            at_queue = (node, peer) == (SWITCH, 3)
            rows["ports"].append(
                {**run, "node": node, "port": 1 if node == host else host + 1, "peer": peer,
                 "rate_bps": 10**11, "tx_bytes": 100_000, "tx_packets": 100, "ecn_marks": 0,
                 "max_queue_bytes": scheme.queue if at_queue else 0,
                 "pause_ps": round(paused.get(node, 0)), "drops": scheme.drops * at_queue}
            )  # fmt: skip
    for place, held in enumerate(scheme.held, 1):
        rows["queues"].append(
            {**run, "time_ps": place * 10 * US, "buffered_bytes": held, "max_port_bytes": held,
             "paused_ports": 0}
        )  # fmt: skip
