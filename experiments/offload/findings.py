"""In-network Allreduce in the simulator beside the tables of Li et al. (2022).

python3 -m experiments.offload.findings --fit-hosts    write hosts.toml: the hosts' costs
python3 -m experiments.offload.findings --fit-switch   write switch.toml: the switch's time
python3 -m experiments.offload.findings                print the tables of docs/results/offload.md

The plain columns alone decide the hosts' costs, one cell of the others the switch's time per
packet. Both are read back from their files.
"""

import json
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import brentq, least_squares

from experiments import command_line

HERE = Path(__file__).resolve().parent
PUBLISHED = HERE / "published.csv"
MACHINE = HERE / "machine.toml"
HOSTS = HERE / "hosts.toml"
SWITCH = HERE / "switch.toml"
OPENFOAM = HERE / "openfoam.csv"
OPENFOAM_BYTES = 8
"""Nearly all Allreduces of icoFoam are sums of one double."""
NODES = (4, 9, 16)
PPN = (8, 32, 64)
SIZES = (4, 8, 16, 32, 64, 128, 256)
CLAIMS = {
    (4, "node"): "3 to 15 % at 64 processes, else little",
    (9, "node"): "10 to 20 %",
    (16, "node"): "15 to 30 %",
    (4, "socket"): "2 to 25 %",
    (9, "socket"): "20 to 30 %",
    (16, "socket"): "25 to 35 %",
}
"""What the paper says its tables show: less time than plain."""

START_NS = {
    "overhead": 400.0,
    "copy_per_byte": 1.0,
    "nic_gap": 30.0,
    "nic_gap_per_byte": 0.3,
    "local_overhead": 200.0,
    "local_copy_per_byte": 0.5,
    "cross_extra": 100.0,
}
"""The fitted costs, in ns, and where the fit starts."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One published figure: microseconds of an Allreduce."""

    nodes: int
    bytes: int
    ppn: int
    mode: str
    published_us: float


Simulate = Callable[[dict[str, Any], Sequence[Cell]], list[float]]
"""Gives the time in microseconds of each cell on a machine."""


def read_published(path: Path = PUBLISHED) -> list[Cell]:
    """Read the published tables."""
    lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
    rows = (line.split(",") for line in lines[1:])
    return [Cell(int(a), int(b), int(c), mode, float(us)) for a, b, c, mode, us in rows]


class Simulator:
    """The simulator as a process that answers requests."""

    def __init__(self) -> None:
        command = ("cargo", "run", "--quiet", "--locked", "-p", "raddle-engine")
        self._process = subprocess.Popen(
            (*command, "--example", "allreduce"),
            cwd=HERE,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __call__(self, machine: dict[str, Any], cells: Sequence[Cell]) -> list[float]:
        """Simulate cells on a machine (with `hosts_per_leaf` by number of nodes)."""
        leaves = machine["hosts_per_leaf"]
        request = {
            "machine": {key: value for key, value in machine.items() if key != "hosts_per_leaf"},
            "cells": [
                {
                    "hosts": cell.nodes,
                    "hosts_per_leaf": leaves[str(cell.nodes)],
                    "ranks_per_host": cell.ppn,
                    "bytes": cell.bytes,
                    "way": cell.mode,
                }
                for cell in cells
            ],
        }
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None:
            raise AssertionError
        stdin.write(json.dumps(request) + "\n")
        stdin.flush()
        answer = stdout.readline()
        if not answer:
            message = "the simulator ended; its error is above"
            raise SystemExit(message)
        return [time["mean_us"] for time in json.loads(answer)]


def plain(cells: Sequence[Cell]) -> list[Cell]:
    """Give what the hosts' costs may be fitted to."""
    return [cell for cell in cells if cell.mode == "plain"]


def machine(base: dict[str, Any], costs_ns: dict[str, float]) -> dict[str, Any]:
    """Put fitted costs into the machine as the file describes it."""

    def span(name: str) -> str:
        return ps(costs_ns[name])

    costs = {
        **base["costs"],
        "send_overhead": span("overhead"),
        "receive_overhead": span("overhead"),
    }
    names = ("copy_per_byte", "local_overhead", "local_copy_per_byte")
    costs |= {name: span(name) for name in names}
    # Between sockets it takes at least as long as within one.
    near = int(base["costs"]["socket_latency"].removesuffix("ns"))
    costs["cross_latency"] = ps(near + costs_ns["cross_extra"])
    card = {name: span(name) for name in ("nic_gap", "nic_gap_per_byte")}
    return {**base, "costs": costs, **card}


def fit_hosts(
    cells: Sequence[Cell], base: dict[str, Any], simulate: Simulate, evaluations: int = 60
) -> tuple[dict[str, float], np.ndarray]:
    """Fit the costs: least squares on the logarithm of simulated / published, plain cells only.

    Returns costs in ns, and the logarithms at the end.
    """
    known = plain(cells)
    names = list(START_NS)
    published = np.log([cell.published_us for cell in known])

    def residuals(logs: np.ndarray) -> np.ndarray:
        costs = dict(zip(names, np.exp(logs), strict=True))
        return np.log(simulate(machine(base, costs), known)) - published

    found = least_squares(
        residuals,
        np.log(list(START_NS.values())),
        # 1 ps to 0.1 ms; steps of 2 % are above the rounding to picoseconds.
        bounds=(np.log(1e-3), np.log(1e5)),
        diff_step=[0.02] * len(names),
        max_nfev=evaluations,
    )
    costs = {name: float(np.exp(log)) for name, log in zip(names, found.x, strict=True)}
    return costs, residuals(found.x)


def switch_cell(cells: Sequence[Cell]) -> Cell:
    """Give the one cell that the switch's time may be fitted to."""
    (cell,) = (
        cell for cell in cells if (cell.nodes, cell.bytes, cell.ppn, cell.mode) == (9, 8, 8, "node")
    )
    return cell


def fit_switch(cells: Sequence[Cell], fitted: dict[str, Any], simulate: Simulate) -> float:
    """Find the ns per packet with which the cell comes out as published; 0: slow already."""
    cell = switch_cell(cells)

    def miss(ns: float) -> float:
        return simulate({**fitted, "compute": ps(ns)}, [cell])[0] - cell.published_us

    if miss(0.0) >= 0:
        return 0.0
    return float(brentq(miss, 0.0, 20_000.0, xtol=0.01))


def ps(ns: float) -> str:
    """Write nanoseconds as the simulator reads them."""
    return f"{round(ns * 1000)}ps"


def write_hosts(costs: dict[str, float], logs: np.ndarray) -> None:
    """Keep the fitted costs of hosts."""
    lines = [
        "# Costs of the hosts of Li et al. (2022), in ns. Fitted to the 63 plain cells of its",
        "# tables 4, 5 and 6 and to nothing else: least squares on log(simulated / published), by",
        "# `python3 -m experiments.offload.findings --fit-hosts`.",
        f"# Error of the fit: median {median(logs):.1f} %, root mean square {rms(logs):.1f} %, "
        f"largest {largest(logs):.1f} %.",
        "[ns]",
        *(f"{name} = {value:.4g}" for name, value in costs.items()),
    ]
    HOSTS.write_text("\n".join(lines) + "\n")


def write_switch(ns: float) -> None:
    """Keep the fitted time of the switch."""
    SWITCH.write_text(
        "# Time of a switch's unit per packet of a reduction, in ns. Fitted to one cell of table\n"
        "# 5 of Li et al. (2022): 9 nodes, 8 bytes, 8 processes per node, Node mode, 8.6 us; with\n"
        "# the costs of hosts.toml and no other cell of the offload columns, by\n"
        "# `python3 -m experiments.offload.findings --fit-switch`.\n"
        f"[ns]\ncompute = {ns:.4g}\n"
    )


def median(logs: np.ndarray) -> float:
    """Give the median error in per cent."""
    return float(np.median(np.abs(np.expm1(logs)))) * 100


def rms(logs: np.ndarray) -> float:
    """Give the root mean square error in per cent."""
    return float(np.sqrt(np.mean(logs**2))) * 100


def largest(logs: np.ndarray) -> float:
    """Give the largest error in per cent."""
    return float(np.max(np.abs(np.expm1(logs)))) * 100


def read_machine(*, with_switch: bool = True) -> dict[str, Any]:
    """Read the machine with all that was fitted."""
    base = tomllib.loads(MACHINE.read_text())
    made = machine(base, tomllib.loads(HOSTS.read_text())["ns"])
    if with_switch:
        made["compute"] = ps(tomllib.loads(SWITCH.read_text())["ns"]["compute"])
    return made


def error_table(cells: Sequence[Cell], simulated: Sequence[float], mode: str) -> Iterator[str]:
    """Yield the error of every cell of a mode in per cent, a row per message size."""
    by_key = {
        (cell.nodes, cell.bytes, cell.ppn): (us / cell.published_us - 1) * 100
        for cell, us in zip(cells, simulated, strict=True)
        if cell.mode == mode
    }
    columns = [(nodes, ppn) for nodes in NODES for ppn in PPN]
    yield "| bytes | " + " | ".join(f"{nodes} x {ppn}" for nodes, ppn in columns) + " |"
    yield "|--:|" + "--:|" * len(columns)
    for size in SIZES:
        row = (by_key[nodes, size, ppn] for nodes, ppn in columns)
        yield f"| {size} | " + " | ".join(f"{error:+.0f}" for error in row) + " |"


def gains(cells: Sequence[Cell], times: Sequence[float], mode: str, nodes: int) -> np.ndarray:
    """Give how much less time a mode takes than plain, in per cent, over all sizes."""
    by_key = {
        (cell.bytes, cell.ppn, cell.mode): us
        for cell, us in zip(cells, times, strict=True)
        if cell.nodes == nodes
    }
    pairs = [(by_key[b, p, mode], by_key[b, p, "plain"]) for b in SIZES for p in PPN]
    return np.array([(1 - offloaded / host) * 100 for offloaded, host in pairs])


def spread(values: np.ndarray) -> str:
    """Write the median, and the range of a set of per cents."""
    return f"{np.median(values):+.0f} ({values.min():+.0f} to {values.max():+.0f})"


def tables(cells: Sequence[Cell], simulate: Simulate) -> Iterator[str]:
    """Yield all lines of the page's tables."""
    simulated = simulate(read_machine(), cells)
    published = [cell.published_us for cell in cells]
    logs = np.log(np.array(simulated) / np.array(published))
    known = switch_cell(cells)
    is_plain = np.array([cell.mode == "plain" for cell in cells])
    predicted = np.array([cell.mode != "plain" and cell != known for cell in cells])
    yield "| cells | number | median error | root mean square | largest | within 10 % |"
    yield "|---|--:|--:|--:|--:|--:|"
    modes = {mode: np.array([cell.mode == mode for cell in cells]) for mode in ("node", "socket")}
    parts = [
        ("plain, fitted", is_plain),
        ("offload, predicted", predicted),
        ("of these Node", predicted & modes["node"]),
        ("of these Socket", predicted & modes["socket"]),
    ]
    for name, which in parts:
        some = logs[which]
        close = int(np.sum(np.abs(np.expm1(some)) <= 0.1))
        yield (
            f"| {name} | {some.size} | {median(some):.1f} % | {rms(some):.1f} % | "
            f"{largest(some):.0f} % | {close} |"
        )
    for mode in ("plain", "node", "socket"):
        yield f"\n{mode}: simulated - published, per cent; columns are nodes x processes per node\n"
        yield from error_table(cells, simulated, mode)
    yield "\n| nodes | mode | the paper's words | its table | here |"
    yield "|--:|---|---|---|---|"
    for nodes in NODES:
        for mode in ("node", "socket"):
            own = spread(gains(cells, published, mode, nodes))
            ours = spread(gains(cells, simulated, mode, nodes))
            yield f"| {nodes} | {mode} | {CLAIMS[nodes, mode]} | {own} | {ours} |"


def openfoam(simulate: Simulate) -> Iterator[str]:
    """Yield the lines of OpenFOAM's table.

    The number of Allreduces is in no table. It follows from the seconds saved in one cell (9 nodes,
    8 processes) and is taken for all others; what one of them saves is simulated.
    """
    lines = [line for line in OPENFOAM.read_text().splitlines() if not line.startswith("#")]
    rows = [tuple(map(float, line.split(","))) for line in lines[1:]]
    shapes = [(int(nodes), int(ppn)) for nodes, ppn, _, _ in rows]
    saved: dict[str, list[float]] = {}
    for mode in ("node", "socket"):
        pairs = [
            Cell(nodes, OPENFOAM_BYTES, ppn, which, 0.0)
            for nodes, ppn in shapes
            for which in ("plain", mode)
        ]
        times = simulate(read_machine(), pairs)
        saved[mode] = [times[2 * i] - times[2 * i + 1] for i in range(len(rows))]
    known = shapes.index((9, 8))
    calls = {
        mode: (rows[known][2] - rows[known][3]) * 1e6 / us[known] for mode, us in saved.items()
    }
    yield "| nodes x processes | saved, published | Node | Socket |"
    yield "|---|--:|--:|--:|"
    for index, (nodes, ppn, plain_s, offload_s) in enumerate(rows):
        ours = " | ".join(
            f"{calls[mode] * us[index] / 1e6 / plain_s * 100:.1f} %" for mode, us in saved.items()
        )
        mark = ", taken" if index == known else ""
        published = (1 - offload_s / plain_s) * 100
        yield f"| {nodes:.0f} x {ppn:.0f}{mark} | {published:.1f} % | {ours} |"
    yield "\nAllreduces that this takes: " + ", ".join(
        f"{mode} {number / 1e6:.1f} million" for mode, number in calls.items()
    )


def main() -> int:
    """Fit, or print."""
    parser = command_line(__file__, __doc__)
    parser.add_argument("--fit-hosts", action="store_true", help="write hosts.toml")
    parser.add_argument("--fit-switch", action="store_true", help="write switch.toml")
    options = parser.parse_args()
    cells, simulate = read_published(), Simulator()
    if options.fit_hosts:
        base = tomllib.loads(MACHINE.read_text())
        costs, logs = fit_hosts(cells, base, simulate)
        write_hosts(costs, logs)
        print(HOSTS.read_text(), end="")
    if options.fit_switch:
        write_switch(fit_switch(cells, read_machine(with_switch=False), simulate))
        print(SWITCH.read_text(), end="")
    if not (options.fit_hosts or options.fit_switch):
        print(*tables(cells, simulate), "", *openfoam(simulate), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
