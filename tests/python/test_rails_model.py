"""Rails in the simulator beside the paper: what was fitted, and what a lab's file must hold."""

import copy
import importlib
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def machine() -> ModuleType:
    return importlib.import_module("experiments.rails.machine")


def test_published_numbers_are_the_papers(machine: ModuleType) -> None:
    published = machine.read(machine.MYRINET)["published"]
    assert published == {
        "one_link_MBps": 202.0,
        "two_links_MBps": 268.0,
        "gain_pct": 34.0,
        "same_direction_pct": 50.0,
        "opposite_directions_pct": 80.0,
    }


def test_the_file_has_the_fitted_constants(machine: ModuleType) -> None:
    """And they are what they say: with them, two equations on paper give the two cells."""
    myrinet = machine.read(machine.MYRINET)
    given = myrinet["machine"]
    fitted = machine.fit(myrinet)
    assert given["nic_gap"] == f"{fitted['nic_gap']:.0f}ns"
    assert given["bus"]["cut"] == f"{fitted['cut']:.0f}ns"
    # 4096 B and an 80 B head at 250 B/us; the bus at 315 and 372 B/us.
    assert 4096 / (fitted["nic_gap"] / 1e3 + 4176 / 250) == pytest.approx(202)
    assert 4096 / (fitted["cut"] / 1e3 + 4096 / 315 + 4096 / 372) == pytest.approx(0.8 * 202)


def test_no_other_published_number_moves_a_constant(machine: ModuleType) -> None:
    myrinet = machine.read(machine.MYRINET)
    spoiled = copy.deepcopy(myrinet)
    for key in ("two_links_MBps", "gain_pct", "same_direction_pct"):
        spoiled["published"][key] *= 3
    assert machine.fit(spoiled) == machine.fit(myrinet)
    for key in ("one_link_MBps", "opposite_directions_pct"):
        moved = copy.deepcopy(myrinet)
        moved["published"][key] *= 0.9
        assert machine.fit(moved) != machine.fit(myrinet)


def test_a_card_that_keeps_80_percent_is_one_whose_both_ways_are_160(machine: ModuleType) -> None:
    myrinet = machine.read(machine.MYRINET)
    assert machine.card_rate(myrinet, 80) == "2.5856Gbps"
    # Two turns take what a packet of 80 % of 202 MB/s takes.
    turn = machine.card_turn_ns(myrinet, 80) / 1e3
    assert 4096 / (2 * turn) == pytest.approx(0.8 * 202)


def test_a_labs_goodput_is_read_by_rates() -> None:
    beyond = importlib.import_module("experiments.rails.beyond")
    medians = {
        "400M, 1MiB": {"1": {"goodput_bps": 365e6}, "UDP 2": {"goodput_bps": 7e8}},
        "400M, 4MiB": {"1": {"goodput_bps": 1.0}},
        "rails of 4:1, 1MiB": {"e0": {"goodput_bps": 1.0}, "e0,e1": {"goodput_bps": 450e6}},
    }
    known = beyond.lab_goodput({"result": {"medians": medians}})
    assert known == {(400_000_000,): 365.0, (400_000_000, 100_000_000): 450.0}
    assert beyond.lab_goodput(None) == {}


def test_rates_and_sizes_of_the_files_are_read(machine: ModuleType) -> None:
    assert machine.rate_bps("400Mbps") == 400e6
    assert machine.rate_bps("2.52Gbps") == 2.52e9
    with pytest.raises(ValueError, match="is no rate"):
        machine.rate_bps("2 furlongs")
    assert machine.microseconds("1500ns") == 1.5
    with pytest.raises(ValueError, match="is no time"):
        machine.microseconds("a while")
    for path in (machine.LAB, machine.MODERN, machine.MYRINET):
        assert "fabric" in machine.read(path)["machine"]
    assert machine.mebibytes("4MiB") == 4 << 20


def test_every_point_of_the_search_is_fitted_to_the_same_two_figures(machine: ModuleType) -> None:
    search = importlib.import_module("experiments.rails.search")
    myrinet = machine.read(machine.MYRINET)
    points = search.SEARCH.points(quick=False)
    assert len(points) == len({str(point) for point in points})
    for point in points[:: len(points) // 20]:
        made = search.machine_at(myrinet, point)
        segment = made["protocol"]["segment"]
        each = float(made["nic_gap"].removesuffix("ns")) / 1e3 + (segment + 80) / 250
        assert segment / each == pytest.approx(202, rel=1e-3)


def test_a_ratio_of_the_lab_counts_only_by_its_rule() -> None:
    opposite = importlib.import_module("experiments.rails.opposite")
    narrow = {"what": "narrow", "pairs": 20, "median": 2.0, "low": 1.95, "high": 2.05}
    wide = narrow | {"what": "wide", "low": 1.8, "high": 2.2}
    few = narrow | {"what": "few", "pairs": 19}
    document = {"samples": 20, "result": {"comparisons": [narrow, wide, few]}}
    known = opposite.ratios(document)
    assert set(known) == {"narrow", "wide"}

    def verdict(lab: object) -> str:
        row = opposite.beside("one link", 2.1, lab, 2.0, "predicted", 100.0)
        return str(row.verdict)

    assert verdict(known["narrow"]) == "holds"
    assert verdict(known["wide"]) == "not_shown"
    assert verdict(None) == "not_shown"


def test_an_order_in_the_lab_needs_an_interval_on_one_side_of_1() -> None:
    opposite = importlib.import_module("experiments.rails.opposite")
    names = ("unidirectional / static, same rail", "unidirectional / dynamic")
    intervals = ((1.1, 1.5), (0.6, 0.9))
    known = {
        f"opposite, cards: {name}": opposite.Ratio(sum(ends) / 2, *ends)
        for name, ends in zip(names, intervals, strict=True)
    }
    verdicts = [row.verdict for row in opposite.orders("cards", known)]
    assert verdicts == ["holds", "misses", "not_shown"]
