"""The machine of Li et al. (2022) in the simulator, and what is fitted to their tables.

python3 -m experiments.offload.model    write hosts.toml and others.toml: the fitted costs

Two fits. By the first, the plain columns alone decide the costs of hosts, one cell of the others
the switch's time per packet. What the paper's text leaves open is a `Reading`: every one has costs
of its own. By the second, all costs of a number of nodes come from the plain columns and from the
offloaded ones of the other numbers of nodes.
"""

import json
import subprocess
import sys
import tomllib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy.optimize import brentq, least_squares

from experiments import command_line

HERE = Path(__file__).resolve().parent
PUBLISHED = HERE / "published.csv"
MACHINE = HERE / "machine.toml"
HOSTS = HERE / "hosts.toml"
OTHERS = HERE / "others.toml"
NODES = (4, 9, 16)
PPN = (8, 32, 64)
SIZES = (4, 8, 16, 32, 64, 128, 256)

START_NS = {
    "overhead": 400.0,
    "copy_per_byte": 1.0,
    "nic_gap": 30.0,
    "nic_gap_per_byte": 0.3,
    "local_overhead": 200.0,
    "local_copy_per_byte": 0.5,
    "cross_extra": 100.0,
    "die_extra": 100.0,
    "contention": 2.0,
    "delay": 300.0,
}
"""The fitted costs, in ns, and where the fit starts."""

OTHER_START_NS = {"cross_extra": 1000.0, "die_extra": 1000.0}
"""A second start, in what differs: least squares ends where no small step is better."""

SWITCH = "switch"
"""The switch's time per packet, among costs that offloaded columns decide."""
START_SWITCH_NS = 350.0

BINDINGS: dict[str, Any] = {
    "even": "even",
    "by socket": "turns",
    "by core": {"fill": {"cores": 48}},
}
"""Where ranks sit, as the simulator has it."""


Start = Literal["after a barrier", "together"]
STARTS: tuple[Start, ...] = ("after a barrier", "together")
"""When ranks begin the call: OSU's loop has a barrier before each."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One published figure: microseconds of an Allreduce."""

    nodes: int
    bytes: int
    ppn: int
    mode: str
    published_us: float


@dataclass(frozen=True, slots=True)
class Reading:
    """What the text leaves open."""

    binding: str = "even"
    """A name of `BINDINGS`. By equations (1) and (2) a socket's ranks follow each other, and
    sockets have the same number of them."""
    start: Start = "after a barrier"
    """OSU's loop has a barrier before each call."""
    tree: Literal["text", "library"] = "text"
    """How a leader reaches the ranks of its node or socket: as the text says, or as the library
    that was published."""
    units: Literal[1, 64] = 1
    """Packets that a switch computes on at the same time."""
    protocol: Literal["published-rc", "published-ud", "native"] = "published-rc"

    @property
    def hosts(self) -> str:
        """The name of its costs: plain calls depend on nothing else."""
        return f"{self.binding}, {self.start}"


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
        command = ("cargo", "run", "--quiet", "--locked", "--release", "-p", "raddle-engine")
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

    def close(self) -> None:
        """End the process."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()


def plain(cells: Sequence[Cell]) -> list[Cell]:
    """Give what the hosts' costs may be fitted to."""
    return [cell for cell in cells if cell.mode == "plain"]


def base_machine(reading: Reading) -> dict[str, Any]:
    """Read the machine as its file describes it, without what is fitted."""
    base = tomllib.loads(MACHINE.read_text())
    return {
        **{key: value for key, value in base.items() if key != "cores_per_die"},
        "dies": {"cores": base["cores_per_die"], "latency": base["costs"]["socket_latency"]},
        "binding": BINDINGS[reading.binding],
        "after_barrier": reading.start == "after a barrier",
        "tree": reading.tree,
        "units": reading.units,
        "protocol": reading.protocol,
    }


def machine(base: dict[str, Any], costs_ns: dict[str, float]) -> dict[str, Any]:
    """Put fitted costs into the machine."""

    def span(name: str) -> str:
        return ps(costs_ns[name])

    costs = {
        **base["costs"],
        "send_overhead": span("overhead"),
        "receive_overhead": span("overhead"),
        "contention_per_rank": span("contention"),
    }
    names = ("copy_per_byte", "local_overhead", "local_copy_per_byte")
    costs |= {name: span(name) for name in names}
    # Between dies and between sockets it takes at least as long as within one.
    near = int(base["costs"]["socket_latency"].removesuffix("ns"))
    costs["cross_latency"] = ps(near + costs_ns["cross_extra"])
    dies = {**base["dies"], "latency": ps(near + costs_ns["die_extra"])}
    network = {name: span(name) for name in ("nic_gap", "nic_gap_per_byte", "delay")}
    switch = {"compute": span(SWITCH)} if SWITCH in costs_ns else {}
    return {**base, "dies": dies, "costs": costs, **network, **switch}


def fit(
    known: Sequence[Cell],
    start_ns: dict[str, float],
    base: dict[str, Any],
    simulate: Simulate,
    evaluations: int = 30,
) -> tuple[dict[str, float], np.ndarray]:
    """Fit costs: least squares on the logarithm of simulated / published, over the known cells.

    Of two starts the better end is taken.

    Returns costs in ns, and the logarithms at the end.
    """
    names = list(start_ns)
    published = np.log([cell.published_us for cell in known])

    def residuals(logs: np.ndarray) -> np.ndarray:
        costs = dict(zip(names, np.exp(logs), strict=True))
        return np.log(simulate(machine(base, costs), known)) - published

    ends = [
        least_squares(
            residuals,
            np.log(list(start.values())),
            # 1 ps to 0.1 ms; steps of 2 % are above the rounding to picoseconds.
            bounds=(np.log(1e-3), np.log(1e5)),
            diff_step=[0.02] * len(names),
            max_nfev=evaluations,
        )
        for start in (start_ns, {**start_ns, **OTHER_START_NS})
    ]
    found = min(ends, key=lambda end: end.cost)
    costs = {name: float(np.exp(log)) for name, log in zip(names, found.x, strict=True)}
    return costs, residuals(found.x)


def fit_hosts(
    cells: Sequence[Cell], base: dict[str, Any], simulate: Simulate, evaluations: int = 30
) -> tuple[dict[str, float], np.ndarray]:
    """Fit the costs of hosts to the plain cells and to nothing else."""
    return fit(plain(cells), START_NS, base, simulate, evaluations)


def fit_others(
    cells: Sequence[Cell],
    nodes: int,
    base: dict[str, Any],
    simulate: Simulate,
    evaluations: int = 30,
) -> tuple[dict[str, float], np.ndarray]:
    """Fit all costs to all cells but the offloaded ones of a number of nodes."""
    known = [cell for cell in cells if cell.nodes != nodes or cell.mode == "plain"]
    start = {**START_NS, SWITCH: START_SWITCH_NS}
    return fit(known, start, base, simulate, evaluations)


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


def median(logs: np.ndarray) -> float:
    """Give the median error in per cent."""
    return float(np.median(np.abs(np.expm1(logs)))) * 100


def rms(logs: np.ndarray) -> float:
    """Give the root mean square error in per cent."""
    return float(np.sqrt(np.mean(logs**2))) * 100


def largest(logs: np.ndarray) -> float:
    """Give the largest error in per cent."""
    return float(np.max(np.abs(np.expm1(logs)))) * 100


def within(logs: np.ndarray, share: float = 0.1) -> int:
    """Count what is within a share of the published figure."""
    return int(np.sum(np.abs(np.expm1(logs)) <= share))


def read_hosts(path: Path = HOSTS) -> dict[str, dict[str, float]]:
    """Read the fitted costs in ns, by `Reading.hosts`, with `rms_percent`, the error of the fit."""
    return {name: dict(costs) for name, costs in tomllib.loads(path.read_text()).items()}


def read_others(path: Path = OTHERS) -> dict[int, dict[str, float]]:
    """Read the costs in ns by which a number of nodes is predicted, with `rms_percent`."""
    named = tomllib.loads(path.read_text()).items()
    return {int(name.removesuffix(" nodes")): dict(costs) for name, costs in named}


@dataclass(frozen=True, slots=True)
class Times:
    """What a reading gives for all cells."""

    us: Sequence[float]
    switch_ns: float


def fitted_machine(reading: Reading) -> dict[str, Any]:
    """Give the machine with the costs that are kept, without the switch's time."""
    costs = {k: v for k, v in read_hosts()[reading.hosts].items() if k in START_NS}
    return machine(base_machine(reading), costs)


def times(reading: Reading, cells: Sequence[Cell], simulate: Simulate) -> Times:
    """Simulate all published cells, the switch's time taken from its one."""
    fitted = fitted_machine(reading)
    ns = fit_switch(cells, fitted, simulate)
    return Times(simulate({**fitted, "compute": ps(ns)}, cells), ns)


def times_by_others(cells: Sequence[Cell], simulate: Simulate) -> list[float]:
    """Simulate all cells in us, each by the costs of its number of nodes (`fit_others`)."""
    base = base_machine(Reading())
    us: dict[Cell, float] = {}
    for nodes, kept in read_others().items():
        costs = {k: v for k, v in kept.items() if k in START_NS or k == SWITCH}
        table = [cell for cell in cells if cell.nodes == nodes]
        us |= dict(zip(table, simulate(machine(base, costs), table), strict=True))
    return [us[cell] for cell in cells]


Fits = dict[str, tuple[dict[str, float], np.ndarray]]

HOSTS_ARE = """
# Costs of the hosts of Li et al. (2022), in ns. Fitted to the 63 plain cells of tables 4, 5 and 6
# and to nothing else: least squares on log(simulated / published), for each reading of where ranks
# sit and when they start: `python3 -m experiments.offload.model`.
"""
OTHERS_ARE = """
# Costs of the hosts and the switch of Li et al. (2022), in ns, by which the offloaded cells of a
# number of nodes are predicted. Fitted to the 63 plain cells of tables 4, 5 and 6 and to the 84
# offloaded ones of the other two numbers of nodes: `python3 -m experiments.offload.model`.
"""


def write(path: Path, what: str, fits: Fits) -> None:
    """Keep fitted costs."""
    lines = what.strip().splitlines()
    for name, (costs, logs) in fits.items():
        lines += [
            "",
            f'["{name}"]',
            *(f"{cost} = {value:.4g}" for cost, value in costs.items()),
            f"rms_percent = {rms(logs):.3f}",
            f"within_10_percent = {within(logs)}",
        ]
    path.write_text("\n".join(lines) + "\n")


def main() -> int:
    """Fit, on two cores."""
    command_line(__file__, __doc__).parse_args()
    cells = read_published()

    def hosts(reading: Reading, simulate: Simulate) -> tuple[dict[str, float], np.ndarray]:
        return fit_hosts(cells, base_machine(reading), simulate)

    def others(nodes: int, simulate: Simulate) -> tuple[dict[str, float], np.ndarray]:
        return fit_others(cells, nodes, base_machine(Reading()), simulate)

    readings = [Reading(binding, start) for binding in BINDINGS for start in STARTS]
    jobs: dict[str, Callable[[Simulate], tuple[dict[str, float], np.ndarray]]] = {
        **{f"{nodes} nodes": partial(others, nodes) for nodes in NODES},
        **{reading.hosts: partial(hosts, reading) for reading in readings},
    }

    def one(name: str) -> tuple[dict[str, float], np.ndarray]:
        simulate = Simulator()
        fitted = jobs[name](simulate)
        simulate.close()
        print(name, f"{rms(fitted[1]):.2f} %", flush=True)
        return fitted

    with ThreadPoolExecutor(max_workers=2) as pool:
        fits = dict(zip(jobs, pool.map(one, jobs), strict=True))
    write(HOSTS, HOSTS_ARE, {reading.hosts: fits[reading.hosts] for reading in readings})
    write(OTHERS, OTHERS_ARE, {name: fits[name] for name in (f"{n} nodes" for n in NODES)})
    return 0


if __name__ == "__main__":
    sys.exit(main())
