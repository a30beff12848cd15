"""Rounds of in-network Allreduce over raddle-switches; every sum is checked."""

from pathlib import Path

import pytest

import switch_harness as harness
from switch_harness import ROUNDS, SWITCH_ADDRESS, Net, Switch, until

pytestmark = [
    pytest.mark.skipif(bool(harness.missing()), reason=harness.missing()),
    pytest.mark.skipif(not ROUNDS.exists(), reason=f"needs {ROUNDS}: run make build"),
]
FAULTS = "[faults]\nloss = {0}\nduplication = {0}\nreordering = {0}\nseed = 5\n"


def one_switch(net: Net, hosts: int, *, faults: float = 0) -> Switch:
    switch = net.add_switch("tor1")
    switch.extra = FAULTS.format(faults) if faults else ""
    for number in range(1, hosts + 1):
        net.add_host(number, switch)
    switch.start()
    return switch


def two_tiers(net: Net, hosts: list[int]) -> list[tuple[Switch, Switch | None, list[int]]]:
    """A SPINE above as many TORs as `hosts` has numbers of hosts."""
    spine = net.add_switch("spine", SWITCH_ADDRESS, tier=2)
    tree: list[tuple[Switch, Switch | None, list[int]]] = [(spine, None, [])]
    first = 1
    for index, count in enumerate(hosts):
        tor = net.add_switch(f"tor{index}", f"10.77.0.{240 + index}")
        below = list(range(first, first + count))
        first += count
        for number in below:
            net.add_host(number, tor)
        net.uplink(tor, spine)
        tree.append((tor, spine, below))
    for switch, _, _ in tree:
        switch.start()
    return tree


def test_four_hosts_under_one_switch(tmp_path: Path) -> None:
    with Net(tmp_path) as net:
        switch = one_switch(net, 4)
        results = net.allreduce([(switch, None, [1, 2, 3, 4])], "--rounds", "2000")
        assert [(r["rounds"], r["wrong"]) for r in results] == [(2000, 0)] * 4
        # Several segments of a window of slots, all in one round.
        results = net.allreduce(
            [(switch, None, [1, 2, 3, 4])], "--rounds", "50", "--elements", "1000", job=8
        )
        assert [(r["rounds"], r["wrong"]) for r in results] == [(50, 0)] * 4
        # All members have left: nothing stays.
        until(lambda: switch.status()["jobs"] == [], "no jobs")
        assert switch.stop() == 0


def test_uneven_switches_below_another_one(tmp_path: Path) -> None:
    with Net(tmp_path) as net:
        tree = two_tiers(net, [3, 1, 2])
        results = net.allreduce(tree, "--rounds", "1000")
        assert [(r["rounds"], r["wrong"]) for r in results] == [(1000, 0)] * 6


@pytest.mark.parametrize(("faults", "rounds"), [(0.01, 2000), (0.1, 300)])
def test_sums_are_right_whatever_is_lost_doubled_or_late(
    tmp_path: Path, faults: float, rounds: int
) -> None:
    with Net(tmp_path) as net:
        switch = one_switch(net, 3, faults=faults)
        results = net.allreduce([(switch, None, [1, 2, 3])], "--rounds", str(rounds))
        assert [(r["rounds"], r["wrong"]) for r in results] == [(rounds, 0)] * 3
        assert sum(r["resent"] for r in results) > rounds * faults


@pytest.mark.scale
@pytest.mark.parametrize(("faults", "rounds"), [(0.01, 1_000_000), (0.1, 100_000)])
def test_a_million_rounds_with_faults(tmp_path: Path, faults: float, rounds: int) -> None:
    with Net(tmp_path) as net:
        switch = one_switch(net, 3, faults=faults)
        results = net.allreduce([(switch, None, [1, 2, 3])], "--rounds", str(rounds))
        assert [(r["rounds"], r["wrong"]) for r in results] == [(rounds, 0)] * 3


def test_a_drain_waits_for_the_groups_that_are_there(tmp_path: Path) -> None:
    with Net(tmp_path) as net:
        switch = one_switch(net, 2)
        first = net.start_allreduce([(switch, None, [1, 2])], "--rounds", "4000", job=1)
        until(lambda: len(switch.status()["jobs"]) == 1, "one job")
        assert switch.process is not None
        switch.process.terminate()
        until(lambda: switch.status()["state"] == "draining", "draining")
        results = net.finish(first)
        assert [(r["rounds"], r["wrong"]) for r in results] == [(4000, 0)] * 2
        assert switch.process.wait(timeout=10) == 0
        switch.process = None
