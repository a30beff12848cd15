"""The fit of in-network Allreduce: what it may read of the published tables, what it may not."""

import dataclasses
import importlib
import tomllib
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments" / "offload"


@pytest.fixture(scope="module")
def findings() -> ModuleType:
    return importlib.import_module("experiments.offload.findings")


def ns(text: str) -> float:
    return int(text.removesuffix("ps")) / 1000


def on_paper(machine: dict[str, Any], cells: Sequence[Any]) -> list[float]:
    """Stand in for the simulator: a round per doubling, linear in every cost."""
    costs = {key: ns(value) for key, value in machine["costs"].items() if value.endswith("ps")}
    gap, gap_per_byte = ns(machine["nic_gap"]), ns(machine["nic_gap_per_byte"])
    times = []
    for cell in cells:
        local = costs["local_overhead"] + costs["local_copy_per_byte"] * cell.bytes
        remote = costs["send_overhead"] + costs["copy_per_byte"] * cell.bytes
        inside, between = np.log2(cell.ppn), np.log2(cell.nodes)
        own = 2 * local * inside + costs["cross_latency"]
        if cell.mode == "plain":
            times.append(
                own + between * (2 * remote + (gap + gap_per_byte * cell.bytes) * cell.ppn)
            )
        else:
            times.append(2 * own + 2 * remote + cell.nodes * ns(machine.get("compute", "0ps")))
    return [time / 1000 for time in times]


def test_published_tables_are_whole(findings: ModuleType) -> None:
    cells = findings.read_published()
    assert len(cells) == 189
    assert len({(c.nodes, c.bytes, c.ppn, c.mode) for c in cells}) == 189
    # Corners of the three tables.
    by_key = {(c.nodes, c.bytes, c.ppn, c.mode): c.published_us for c in cells}
    assert by_key[4, 4, 8, "plain"] == 6.89
    assert by_key[9, 8, 8, "node"] == 8.6
    assert by_key[16, 256, 64, "socket"] == 22.34


def test_no_fitted_value_reads_another_offload_cell(findings: ModuleType) -> None:
    base = tomllib.loads(findings.MACHINE.read_text())
    cells = findings.read_published()
    known = findings.switch_cell(cells)
    spoiled = [
        cell
        if cell.mode == "plain" or cell == known
        else dataclasses.replace(cell, published_us=cell.published_us * 3 + 1)
        for cell in cells
    ]
    assert sum(a != b for a, b in zip(cells, spoiled, strict=True)) == 125

    def fitted(published: Sequence[Any]) -> tuple[dict[str, float], float]:
        costs, _ = findings.fit_hosts(published, base, on_paper, evaluations=20)
        return costs, findings.fit_switch(published, findings.machine(base, costs), on_paper)

    true = fitted(cells)
    assert fitted(spoiled) == true
    # The fit does read what it may read.
    other = [
        dataclasses.replace(cell, published_us=cell.published_us * 1.1)
        if cell.mode == "plain"
        else cell
        for cell in cells
    ]
    assert fitted(other)[0] != true[0]
    other = [
        dataclasses.replace(cell, published_us=cell.published_us * 1.1) if cell == known else cell
        for cell in cells
    ]
    assert fitted(other)[0] == true[0]
    assert fitted(other)[1] != true[1]


def test_a_known_machine_is_found_again(findings: ModuleType) -> None:
    base = tomllib.loads(findings.MACHINE.read_text())
    truth = {name: value * 1.7 for name, value in findings.START_NS.items()}
    cells = findings.read_published()
    made = on_paper(findings.machine(base, truth), cells)
    cells = [
        dataclasses.replace(cell, published_us=us) for cell, us in zip(cells, made, strict=True)
    ]
    costs, logs = findings.fit_hosts(cells, base, on_paper)
    # Where the fit comes to rest depends on the processor's rounding: 0.6 % was seen, and a cost
    # 8 % off. What is published leaves 7 % unexplained.
    assert findings.largest(logs) < 1
    for name in ("overhead", "nic_gap", "copy_per_byte", "local_overhead"):
        assert costs[name] == pytest.approx(truth[name], rel=0.1)


@pytest.mark.scale
def test_the_files_are_what_the_fit_gives(findings: ModuleType) -> None:
    """With the simulator itself: minutes."""
    cells, simulate = findings.read_published(), findings.Simulator()
    base = tomllib.loads(findings.MACHINE.read_text())
    costs, logs = findings.fit_hosts(cells, base, simulate)
    kept = tomllib.loads(findings.HOSTS.read_text())["ns"]
    fitted = np.array(simulate(findings.read_machine(), cells))
    again = np.array(simulate(findings.machine(base, costs), findings.plain(cells)))
    assert findings.rms(logs) < 7.5
    # Costs that hardly matter may wander; what follows from them may not.
    plain = np.array([cell.mode == "plain" for cell in cells])
    assert again == pytest.approx(fitted[plain], rel=0.02)
    switch = findings.fit_switch(cells, findings.machine(base, kept), simulate)
    kept_switch = tomllib.loads(findings.SWITCH.read_text())["ns"]["compute"]
    assert switch == pytest.approx(kept_switch, rel=0.02)
    published = np.array([cell.published_us for cell in cells])
    known = findings.switch_cell(cells)
    predicted = np.array([cell.mode != "plain" and cell != known for cell in cells])
    logs = np.log(fitted / published)[predicted]
    assert logs.size == 125
    assert findings.median(logs) < 11
