"""The plugin in stock OpenSM on a simulated subnet: small, for `make test`."""

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import subnet_harness as harness
from subnet_harness import Fabric, Subnet, changed_entries, check

pytestmark = pytest.mark.skipif(bool(harness.missing()), reason=harness.missing())


def small() -> Fabric:
    """40 switches, 32 hosts, four levels."""
    return Fabric(m=2, q=4, p=2, k=2, w=2, terminals=2, cns=4)


def random_groups(fabric: Fabric, count: int, size: int, seed: int) -> dict[int, list[str]]:
    draw = random.Random(seed)
    return {number: draw.sample(fabric.hosts, size) for number in range(count)}


@pytest.fixture(scope="module")
def subnet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Subnet]:
    with Subnet(small(), tmp_path_factory.mktemp("subnet")) as subnet:
        subnet.start(plugin=True)
        yield subnet


@pytest.fixture(scope="module")
def groups(subnet: Subnet) -> dict[int, list[str]]:
    groups = random_groups(subnet.fabric, 24, 5, 1)
    assert {status for status, _ in subnet.join(groups)} == {0}
    subnet.settle()
    return groups


def test_the_fat_tree_is_recognised_and_routed(subnet: Subnet) -> None:
    assert "fat tree m=2, q=4, p=2, k=2, w=2, CNs=4" in subnet.log_text()
    hosts = subnet.fabric.hosts
    ways = [(a, b) for a in hosts for b in hosts if a != b]
    hops = subnet.walk(ways)
    assert min(hops) > 0
    # up and down: within an L0, a CN, a block of CNs, the whole tree
    assert set(hops) == {2, 4, 6, 8}


def test_every_member_gets_every_packet_once(subnet: Subnet, groups: dict[int, list[str]]) -> None:
    mlids, table = subnet.stable(groups)
    result = check(subnet.fabric, table, groups, mlids, sources=5)
    assert result.faults == (0, 0, 0)
    assert result.foreign == 0
    assert len(set(mlids.values())) < len(groups), "no MLID is shared"


def test_changed_mlids_are_told_once_for_all(subnet: Subnet, groups: dict[int, list[str]]) -> None:
    subnet.stable(groups)
    moved = json.loads(subnet.statistics.read_text())["groups_moved"]
    assert moved, "no group has grown into another one"

    def told() -> list[int]:
        found = re.findall(
            r"raddle: (\d+) groups? with another MLID: \d+ by growing", subnet.log_text()
        )
        return [int(count) for count in found]

    harness.wait_for(lambda: sum(told()) == moved, "line for each burst", 60)
    assert len(told()) < moved


def test_a_sweep_changes_nothing(subnet: Subnet, groups: dict[int, list[str]]) -> None:
    mlids, before = subnet.stable(groups)
    sent = json.loads(subnet.statistics.read_text())["blocks_sent"]
    subnet.sweep()
    subnet.settle()
    assert subnet.mlids(groups) == mlids
    assert subnet.tables(mlids.values()) == before
    assert json.loads(subnet.statistics.read_text())["blocks_sent"] == sent


def test_a_dead_link_moves_what_used_it(subnet: Subnet, groups: dict[int, list[str]]) -> None:
    fabric = subnet.fabric
    mlids = subnet.mlids(groups)
    before = subnet.tables(mlids.values())
    port = fabric.port("l0.1.0", "l1.1.0")
    users = {mlid for mlid, ports in before["l0.1.0"].items() if port in ports}
    assert users
    sweeps = subnet.sweeps()
    subnet.unlink("l0.1.0", "l1.1.0")
    subnet.wait_for_sweep(sweeps)
    subnet.settle()
    cut_mlids, _ = subnet.stable(groups)
    cut = subnet.tables({*mlids.values(), *cut_mlids.values()})
    assert port not in {p for ports in cut["l0.1.0"].values() for p in ports}
    assert check(fabric, cut, groups, cut_mlids).faults == (0, 0, 0)
    moved = {number for number in groups if cut_mlids[number] != mlids[number]}
    assert {mlids[number] for number in moved} <= users
    assert min(subnet.walk([(a, b) for a in fabric.hosts[:9] for b in fabric.hosts[9:]])) > 0

    sweeps = subnet.sweeps()
    subnet.relink("l0.1.0", "l1.1.0")
    subnet.wait_for_sweep(sweeps)
    subnet.settle()
    mended, table = subnet.stable(groups)
    assert check(fabric, table, groups, mended).faults == (0, 0, 0)


def test_groups_that_leave_free_their_entries(subnet: Subnet, groups: dict[int, list[str]]) -> None:
    extra = {100 + number: members for number, members in groups.items()}
    before_mlids, _ = subnet.stable(groups)
    before = subnet.tables(range(harness.FIRST_MLID, harness.FIRST_MLID + 96))
    subnet.join(extra)
    subnet.settle()
    mlids, _ = subnet.stable(extra)
    table = subnet.tables(range(harness.FIRST_MLID, harness.FIRST_MLID + 96))
    assert check(subnet.fabric, table, extra, mlids).faults == (0, 0, 0)
    assert {status for status, _ in subnet.join(extra, verb="L")} == {0}
    subnet.stable(groups)
    after = subnet.tables(range(harness.FIRST_MLID, harness.FIRST_MLID + 96))
    assert subnet.mlids(groups) == before_mlids
    assert changed_entries(before, after) == (0, 0)


def test_opensm_sends_no_table_beside_the_plugin(
    subnet: Subnet, groups: dict[int, list[str]]
) -> None:
    """OpenSM's record of a table may be older than what the plugin has sent since."""
    short = {200 + number: members[:2] for number, members in groups.items()}
    for _ in range(4):
        assert {status for status, _ in subnet.join(short)} == {0}
        assert {status for status, _ in subnet.join(short, verb="L")} == {0}
    subnet.stable(groups)
    assert subnet.blocks_written() == 0


def test_opensm_tells_the_tables_that_switches_have(
    subnet: Subnet, groups: dict[int, list[str]]
) -> None:
    subnet.stable(groups)
    tables = subnet.tables([harness.FIRST_MLID])
    assert {switch: subnet.recorded_block(switch) for switch in tables} == {
        switch: {mlid: ports for mlid, ports in rows.items() if mlid < harness.FIRST_MLID + 32}
        for switch, rows in tables.items()
    }
    assert subnet.blocks_written() == 0


def test_few_mlids_are_shared_where_stock_opensm_refuses(tmp_path: Path) -> None:
    fabric = Fabric(m=2, q=4, p=1, k=2, w=2, terminals=4, cns=4)
    per_cn = fabric.q * fabric.terminals
    draw = random.Random(2)
    groups = {
        number: draw.sample(fabric.hosts[cn * per_cn : (cn + 1) * per_cn], 4)
        for number in range(80)
        for cn in [number % fabric.cns]
    }
    with Subnet(fabric, tmp_path, mlids=32) as subnet:
        subnet.start(plugin=True)
        assert {status for status, _ in subnet.join(groups)} == {0}
        subnet.settle()
        mlids, table = subnet.stable(groups)
        result = check(fabric, table, groups, mlids)
        assert result.faults == (0, 0, 0)
        assert len(set(mlids.values())) <= 32
        assert max(mlids.values()) < harness.FIRST_MLID + 32
        subnet.stop()
    with Subnet(fabric, tmp_path / "stock", mlids=32) as subnet:
        subnet.start(plugin=False)
        assert 0x100 in {status for status, _ in subnet.join(groups)}, "stock OpenSM has room"


def test_a_fabric_that_is_no_fat_tree_is_left_to_opensm(tmp_path: Path) -> None:
    fabric = Fabric(m=1, q=2, p=0, k=1, w=1, terminals=2, cns=1)
    for end, peer in (("l0.0.0", "l0.0.1"), ("l0.0.1", "l0.0.0")):  # siblings joined
        fabric.ports[end].append((peer, len(fabric.ports[peer]) + (end == "l0.0.0")))
    fabric.radix += 2
    with Subnet(fabric, tmp_path) as subnet:
        subnet.start(plugin=True)
        log = subnet.log_text()
        assert (
            log.count("raddle: OpenSM's own routing is used: no CN/TN fat tree") == 2
        )  # log, syslog
        groups = {1: fabric.hosts}
        subnet.join(groups)
        subnet.settle()
        mlids, table = subnet.stable(groups)
        result = check(fabric, table, groups, mlids)
        assert result.faults == (0, 0, 0)


def test_multicast_survives_the_fallback_of_ftree_to_minimum_hops(tmp_path: Path) -> None:
    fabric = small()
    groups = random_groups(fabric, 12, 5, 3)
    with Subnet(fabric, tmp_path) as subnet:
        subnet.start(plugin=True, settings='unicast = "opensm"\n', options="routing_engine ftree")
        assert {status for status, _ in subnet.join(groups)} == {0}
        mlids, table = subnet.stable(groups)
        assert check(fabric, table, groups, mlids).faults == (0, 0, 0)
        sweeps = subnet.sweeps()
        subnet.unlink("l0.0.0", "l1.0.0")
        subnet.wait_for_sweep(sweeps)
        tables = re.findall(r"(\w+) tables configured on all switches", subnet.log_text())
        assert (tables[0], tables[-1]) == ("ftree", "minhop")
        more = random_groups(fabric, 20, 5, 3)
        subnet.join(more)
        mlids, table = subnet.stable(more)
        assert check(fabric, table, more, mlids).faults == (0, 0, 0)
        assert len(set(mlids.values())) < len(more), "no MLID is shared any more"
        ways = [(a, b) for a in fabric.hosts for b in fabric.hosts if a != b]
        assert min(subnet.walk(ways)) > 0


def test_the_flood_check_sees_what_is_wrong() -> None:
    fabric = Fabric(m=2, q=2, p=0, k=1, w=1, terminals=2, cns=1)
    mlid, members = harness.FIRST_MLID, {"h0", "h2"}

    def table(**ports: list[str]) -> harness.Table:
        named = {name.replace("_", "."): peers for name, peers in ports.items()}
        return {
            switch: {mlid: frozenset(fabric.port(switch, peer) for peer in named[switch])}
            if switch in named
            else {}
            for switch in fabric.switches
        }

    def result(**ports: list[str]) -> tuple[int, ...]:
        flood = harness.flood(fabric, table(**ports), mlid, "h0", members)
        return (flood.missing, flood.foreign, flood.duplicate, flood.looping)

    left, right = ["h0", "l1.0.0"], ["h2", "l1.0.0"]
    top = ["l0.0.0", "l0.0.1"]
    assert result(l0_0_0=left, l1_0_0=top, l0_0_1=right) == (0, 0, 0, 0)
    assert result(l0_0_0=left, l1_0_0=top) == (1, 0, 0, 0)
    assert result(l0_0_0=left, l1_0_0=top, l0_0_1=[*right, "h3"]) == (0, 1, 0, 0)
    both = [*left, "l1.0.1"]
    ring = [*right, "l1.0.1"]
    loops = result(l0_0_0=both, l1_0_0=top, l1_0_1=top, l0_0_1=ring)
    assert loops[3] > 0
