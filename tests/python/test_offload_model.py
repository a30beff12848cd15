"""The fit of in-network Allreduce: what it may read of the published tables, what it may not."""

import dataclasses
import importlib
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np
import pytest


@pytest.fixture(scope="module")
def model() -> ModuleType:
    return importlib.import_module("experiments.offload.model")


@pytest.fixture(scope="module")
def base(model: ModuleType) -> dict[str, Any]:
    made: dict[str, Any] = model.base_machine(model.Reading())
    return made


def ns(text: str) -> float:
    return int(text.removesuffix("ps")) / 1000


def on_paper(machine: dict[str, Any], cells: Sequence[Any]) -> list[float]:
    """Stand in for the simulator: a round per doubling, linear in every cost."""
    costs = {key: ns(value) for key, value in machine["costs"].items() if value.endswith("ps")}
    gap, gap_per_byte = ns(machine["nic_gap"]), ns(machine["nic_gap_per_byte"])
    times = []
    for cell in cells:
        local = costs["local_overhead"] + costs["local_copy_per_byte"] * cell.bytes
        local += costs["contention_per_rank"] * (cell.ppn / 2 - 1)
        remote = costs["send_overhead"] + costs["copy_per_byte"] * cell.bytes
        remote += ns(machine["delay"])
        inside, between = np.log2(cell.ppn), np.log2(cell.nodes)
        own = 2 * local * inside + costs["cross_latency"]
        if cell.mode == "plain":
            times.append(
                own + between * (2 * remote + (gap + gap_per_byte * cell.bytes) * cell.ppn)
            )
        else:
            times.append(2 * own + 2 * remote + cell.nodes * ns(machine.get("compute", "0ps")))
    return [time / 1000 for time in times]


def test_published_tables_are_whole(model: ModuleType) -> None:
    cells = model.read_published()
    assert len(cells) == 189
    assert len({(c.nodes, c.bytes, c.ppn, c.mode) for c in cells}) == 189
    # Corners of the three tables.
    by_key = {(c.nodes, c.bytes, c.ppn, c.mode): c.published_us for c in cells}
    assert by_key[4, 4, 8, "plain"] == 6.89
    assert by_key[9, 8, 8, "node"] == 8.6
    assert by_key[16, 256, 64, "socket"] == 22.34


def test_no_fitted_value_reads_another_offload_cell(
    model: ModuleType, base: dict[str, Any]
) -> None:
    cells = model.read_published()
    known = model.switch_cell(cells)
    spoiled = [
        cell
        if cell.mode == "plain" or cell == known
        else dataclasses.replace(cell, published_us=cell.published_us * 3 + 1)
        for cell in cells
    ]
    assert sum(a != b for a, b in zip(cells, spoiled, strict=True)) == 125

    def fitted(published: Sequence[Any]) -> tuple[dict[str, float], float]:
        costs, _ = model.fit_hosts(published, base, on_paper, evaluations=20)
        return costs, model.fit_switch(published, model.machine(base, costs), on_paper)

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


def test_no_table_is_predicted_by_its_own_offloaded_cells(
    model: ModuleType, base: dict[str, Any]
) -> None:
    cells = model.read_published()

    def spoil(which: Sequence[bool]) -> list[Any]:
        return [
            dataclasses.replace(cell, published_us=cell.published_us * 3 + 1) if chosen else cell
            for cell, chosen in zip(cells, which, strict=True)
        ]

    def fitted(published: Sequence[Any], nodes: int) -> dict[str, float]:
        costs, logs = model.fit_others(published, nodes, base, on_paper, evaluations=5)
        assert len(logs) == 63 + 84
        assert model.SWITCH in costs
        return dict(costs)

    for nodes in model.NODES:
        true = fitted(cells, nodes)
        own = [cell.nodes == nodes and cell.mode != "plain" for cell in cells]
        assert sum(own) == 42
        assert fitted(spoil(own), nodes) == true
        # The fit does read what it may read.
        plain = [cell.nodes == nodes and cell.mode == "plain" for cell in cells]
        assert fitted(spoil(plain), nodes) != true
        others = [cell.nodes != nodes and cell.mode == "socket" for cell in cells]
        assert fitted(spoil(others), nodes) != true


def test_a_table_is_simulated_by_the_costs_that_do_not_know_it(
    model: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = {**model.START_NS, model.SWITCH: 350.0, "rms_percent": 1.0, "within_10_percent": 9.0}
    kept = {nodes: {**start, "nic_gap": 10.0 * nodes} for nodes in model.NODES}
    monkeypatch.setattr(model, "read_others", lambda: kept)
    cells = model.read_published()
    machines = {}

    def simulate(machine: dict[str, Any], table: Sequence[Any]) -> list[float]:
        machines[ns(machine["nic_gap"])] = {cell.nodes for cell in table}
        return on_paper(machine, table)

    times = model.times_by_others(cells, simulate)
    assert machines == {40.0: {4}, 90.0: {9}, 160.0: {16}}
    costs = {name: kept[9][name] for name in (*model.START_NS, model.SWITCH)}
    machine = model.machine(model.base_machine(model.Reading()), costs)
    expected = on_paper(machine, cells)
    for cell, us, by_nine in zip(cells, times, expected, strict=True):
        if cell.nodes == 9:
            assert us == by_nine


def test_a_known_machine_is_found_again(model: ModuleType, base: dict[str, Any]) -> None:
    truth = {name: value * 1.7 for name, value in model.START_NS.items()}
    cells = model.read_published()
    made = on_paper(model.machine(base, truth), cells)
    cells = [
        dataclasses.replace(cell, published_us=us) for cell, us in zip(cells, made, strict=True)
    ]
    costs, logs = model.fit_hosts(cells, base, on_paper)
    # Where the fit comes to rest depends on the processor's rounding: 0.6 % was seen, and a cost
    # 8 % off. What is published leaves 7 % unexplained.
    assert model.largest(logs) < 1
    # What a message costs at its ends and on its way can only be told as a sum.
    for name in ("nic_gap", "copy_per_byte", "local_overhead"):
        assert costs[name] == pytest.approx(truth[name], rel=0.1)


@pytest.mark.scale
def test_the_files_are_what_the_fit_gives(model: ModuleType) -> None:
    """With the simulator itself: half an hour."""
    cells, simulate, reading = model.read_published(), model.Simulator(), model.Reading()
    costs, logs = model.fit_hosts(cells, model.base_machine(reading), simulate)
    kept = model.read_hosts()[reading.hosts]
    assert model.rms(logs) == pytest.approx(kept["rms_percent"], rel=0.02)
    # Costs that hardly matter may wander; what follows from them may not.
    plain = model.plain(cells)
    fitted = np.array(simulate(model.fitted_machine(reading), plain))
    again = np.array(simulate(model.machine(model.base_machine(reading), costs), plain))
    assert again == pytest.approx(fitted, rel=0.02)
    for nodes, kept in model.read_others().items():
        _, logs = model.fit_others(cells, nodes, model.base_machine(reading), simulate)
        assert model.rms(logs) == pytest.approx(kept["rms_percent"], rel=0.02)


def test_every_reading_has_its_costs(model: ModuleType) -> None:
    readings = [
        model.Reading(binding, start) for binding in model.BINDINGS for start in model.STARTS
    ]
    hosts = model.read_hosts()
    assert set(hosts) == {reading.hosts for reading in readings}
    for costs in hosts.values():
        assert set(costs) == {*model.START_NS, "rms_percent", "within_10_percent"}
    others = model.read_others()
    assert set(others) == set(model.NODES)
    for costs in others.values():
        own = {*model.START_NS, model.SWITCH, "rms_percent", "within_10_percent"}
        assert set(costs) == own


def test_cells_that_exclude_each_other_are_counted(model: ModuleType) -> None:
    bounds = importlib.import_module("experiments.offload.bounds")

    def cells(*times: float) -> list[Any]:
        return [model.Cell(4, 4 << i, 8, "node", us) for i, us in enumerate(times)]

    assert bounds.most_monotone(cells(1.0, 2.0, 3.0)) == 3
    # 10 % each way is just enough.
    assert bounds.most_monotone(cells(1.2, 1.0)) == 2
    assert bounds.most_monotone(cells(1.3, 1.0)) == 1
    assert bounds.most_monotone(cells(9.0, 1.0, 2.0, 3.0)) == 3
    assert bounds.most_monotone(cells(9.0, 5.0, 1.0)) == 1


def test_models_that_know_other_cells_find_times_that_follow_their_rule(model: ModuleType) -> None:
    bounds = importlib.import_module("experiments.offload.bounds")
    ways = {"plain": 0.0, "node": 0.3}
    cells = [
        model.Cell(nodes, size, ppn, mode, np.exp(0.2 * i + 0.01 * i**2 + share * nodes**0.5))
        for nodes in model.NODES
        for ppn in model.PPN
        for i, size in enumerate(model.SIZES)
        for mode, share in ways.items()
    ]
    for cell in cells:
        assert bounds.interpolated(cell, cells) == pytest.approx(cell.published_us)
    # Where the offloaded time is a power law of the plain one, nodes and processes.
    lawful = [
        dataclasses.replace(c, published_us=c.published_us**0.8 * c.nodes**0.2 * c.ppn**-0.1)
        if c.mode == "node"
        else c
        for c in [dataclasses.replace(c, published_us=float(c.bytes)) for c in cells]
    ]
    for cell in lawful:
        if cell.mode == "node":
            assert bounds.regressed(cell, lawful) == pytest.approx(cell.published_us)
