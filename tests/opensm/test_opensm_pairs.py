"""Fault-tolerant pairs in OpenSM: two copies for every member, one still when a link is cut.

Tables are read out of the switches of the simulated subnet, and packets walk through them.
"""

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

import subnet_harness as harness
from pair_packets import Packets, cables_between_switches, pair
from subnet_harness import Cable, Fabric, Subnet, Table

pytestmark = pytest.mark.skipif(bool(harness.missing()), reason=harness.missing())

Pairs = dict[int, list[str]]


def of_pairs(pairs: Pairs) -> dict[int, list[str]]:
    """The groups of pairs: each member joins both."""
    return {group: members for number, members in pairs.items() for group in pair(number)}


@pytest.fixture(scope="module")
def subnet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Subnet]:
    """44 switches, 24 hosts; each copy has two tree groups, and so another one after a cut."""
    fabric = Fabric(m=4, q=3, p=1, k=2, w=2, terminals=2, cns=4)
    with Subnet(fabric, tmp_path_factory.mktemp("pairs")) as subnet:
        subnet.start(plugin=True, settings="pairs = true\n")
        yield subnet


@pytest.fixture(scope="module")
def pairs(subnet: Subnet) -> Pairs:
    """Pairs of few hosts, and one of all; ordinary groups beside them."""
    draw = random.Random(4)
    pairs = {number: draw.sample(subnet.fabric.hosts, 6) for number in range(10)}
    pairs[10] = subnet.fabric.hosts
    ordinary = {number: draw.sample(subnet.fabric.hosts, 6) for number in range(10)}
    assert {status for status, _ in subnet.join(of_pairs(pairs) | ordinary)} == {0}
    return pairs


def walk_every_cut(
    fabric: Fabric, table: Table, pairs: Pairs, mlids: dict[int, int], dead: tuple[Cable, ...] = ()
) -> int:
    """Walk the tables whole, then with each cable cut in turn; how many of these cost a copy."""
    ways = {number: [mlids[group] for group in pair(number)] for number in pairs}
    packets = Packets(fabric, table, pairs, ways, dead)
    whole = packets.copies()
    deliveries = sum(len(members) * (len(members) - 1) for members in pairs.values())
    assert (whole.count, whole.looping) == ({2: deliveries}, 0)
    cables = [cable for cable in cables_between_switches(fabric) if cable not in dead]
    costly = 0
    for cable in cables:
        result = packets.copies(cable)
        assert result.looping == 0
        assert result.count.keys() <= {1, 2}, f"cut {sorted(cable)}: {result.count}"
        costly += 1 in result.count
    print(
        f"{len(pairs)} pairs, {len(cables)} cuts tried one by one: every member has 1 or 2 copies; "
        f"{costly} cuts cost one"
    )
    return costly


def test_any_one_cut_leaves_a_copy_also_after_a_reroute(subnet: Subnet, pairs: Pairs) -> None:
    fabric, groups = subnet.fabric, of_pairs(pairs)
    mlids, table = subnet.stable(groups)
    assert len(cables_between_switches(fabric)) == 12 * 4 + 16 + 16
    for number in pairs:
        first, second = (mlids[group] for group in pair(number))
        assert (first % 2, second % 2) == (0, 1)
    # The pair of all hosts: 12 L0 switches, 4 CNs and 2 L2 switches have a link up in each tree.
    assert walk_every_cut(fabric, table, {10: pairs[10]}, mlids) == 2 * (12 + 4 + 2)
    assert walk_every_cut(fabric, table, pairs, mlids) >= 2 * (12 + 4 + 2)

    # The check can fail: with both copies on the first one's tree a cut loses both.
    one_tree = Packets(fabric, table, {10: pairs[10]}, {10: [mlids[pair(10)[0]]] * 2})
    losing = [
        cable for cable in cables_between_switches(fabric) if 0 in one_tree.copies(cable).count
    ]
    assert len(losing) == 12 + 4 + 2

    # A real cut, of a cable that the first copies of the pair of all hosts use.
    port = next(p for p in sorted(table["l0.1.0"][mlids[pair(10)[0]]]) if p > fabric.terminals)
    above = fabric.ports["l0.1.0"][port - 1][0]
    dead = frozenset(("l0.1.0", above))
    sweeps = subnet.sweeps()
    subnet.unlink("l0.1.0", above)
    subnet.wait_for_sweep(sweeps)
    cut_mlids, cut = subnet.stable(groups)
    assert port not in {p for ports in cut["l0.1.0"].values() for p in ports}
    assert walk_every_cut(fabric, cut, pairs, cut_mlids, (dead,))
    statistics = json.loads(subnet.statistics.read_text())
    assert (statistics["pairs"], statistics["pairs_on_a_common_link"]) == (len(pairs), 0)

    sweeps = subnet.sweeps()
    subnet.relink("l0.1.0", above)
    subnet.wait_for_sweep(sweeps)
    mended_mlids, mended = subnet.stable(groups)
    assert walk_every_cut(fabric, mended, pairs, mended_mlids) >= 2 * (12 + 4 + 2)


def test_a_fabric_without_second_trees_is_told(tmp_path: Path) -> None:
    fabric = Fabric(m=1, q=2, p=0, k=1, w=1, terminals=2, cns=1)
    with Subnet(fabric, tmp_path) as subnet:
        subnet.start(plugin=True, settings="pairs = true\n")
        assert "raddle: OpenSM's own routing is used: " in subnet.log_text()
