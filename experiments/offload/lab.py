"""Node against Socket on real hosts (`bench.published`), beside the simulated machine of the paper.

A lab's ranks share the machine's processors, so that its times are those of messages and wake-ups:
what can be compared with the simulator is which mode takes less time, and where that changes.
"""

from collections.abc import Mapping
from typing import Any

from experiments.offload.model import Cell, Simulate
from raddle.results.reproduction import Row, Table, finding

__all__ = ["HOSTS", "MEASURED", "RANKS", "reproduce"]

MEASURED = "offload-lab"
"""The measurement, in experiments/measurements.toml."""
HOSTS = (4, 9)
RANKS = (2, 4, 8)
"""Of a host."""
BYTES = 8
MODES = ("node", "socket")
SIDES = ("plain", *(f"{protocol}, {m}" for protocol in ("native", "published") for m in MODES))


def reproduce(
    measured: Mapping[str, Any], machine: dict[str, Any], simulate: Simulate
) -> tuple[list[Row], dict[str, Table]]:
    """Rows of what was measured, not shown where nothing was; and the times of all sides."""
    shapes = [(hosts, ppn) for hosts in HOSTS for ppn in RANKS]
    cells = [Cell(hosts, BYTES, ppn, mode, 0.0) for hosts, ppn in shapes for mode in MODES]
    times = dict(zip(cells, simulate(machine, cells), strict=True))
    found = measured.get(MEASURED, {}).get("result", {})
    ratios = {one["what"]: one for one in found.get("comparisons", ())}
    rows, table = [], []
    for hosts, ppn in shapes:
        what = f"{hosts} hosts, {ppn} ranks each"
        node, socket = (times[Cell(hosts, BYTES, ppn, mode, 0.0)] for mode in MODES)
        simulated = node / socket
        for statement, before, after, note in (
            (
                "Socket mode takes less time than Node mode",
                "published, node",
                "published, socket",
                f"simulated on the paper's machine: {simulated:.2f}",
            ),
            ("Node mode takes less time than plain", "plain", "published, node", ""),
            ("Socket mode takes less time than plain", "plain", "published, socket", ""),
        ):
            ratio = ratios.get(f"{what}, {BYTES} B: {before} / {after}")
            rows.append(_row(f"{what}, {before} / {after}", statement, ratio, note))
        us = found.get("medians_us", {}).get(what, {})
        table.append(
            (
                hosts,
                ppn,
                *(f"{us[side][str(BYTES)]:,.0f}" if side in us else "" for side in SIDES),
                f"{simulated:.2f}",
            )
        )
    columns = (
        "hosts", "ranks of a host", *(f"{side}, us" for side in SIDES),
        "simulated, Node / Socket",
    )  # fmt: skip
    return rows, {"lab": Table(columns, table), "lab-solver": _solver(found)}


def _row(setting: str, statement: str, ratio: Mapping[str, Any] | None, note: str) -> Row:
    """A ratio says something if its interval does not have 1."""
    if ratio is None or ratio["low"] is None:
        words = "; ".join(filter(None, ("not measured yet", note)))
        return finding(
            item="Real hosts", setting=setting, statement=statement, holds=None, note=words
        )
    low, high = ratio["low"], ratio["high"]
    return finding(
        item="Real hosts",
        setting=setting,
        statement=statement,
        holds=None if low <= 1 <= high else low > 1,
        ours=ratio["median"],
        ci=(low, high),
        unit="times as fast",
        note=note,
    )


def _solver(found: Mapping[str, Any]) -> Table:
    """OpenFOAM's solver, once by each way."""
    rows = []
    for hosts, runs in found.get("icofoam", {}).items():
        for way, equal in runs["logs_equal_plain"].items():
            run = runs[way]
            rows.append(
                (
                    hosts,
                    way,
                    f"{run['seconds']:.1f}",
                    f"{run.get('calls', 0):,}",
                    f"{run.get('offloaded', 0):,}",
                    run.get("fallbacks", 0),
                    f"{runs['lines'][way]:,}",
                    "yes" if equal else "no",
                )
            )
    columns = (
        "hosts", "way", "seconds", "collective calls", "offloaded", "returns to plain MPI",
        "lines of residuals", "equal to plain",
    )  # fmt: skip
    return Table(columns, rows)
