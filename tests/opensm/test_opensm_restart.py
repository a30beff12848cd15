"""Joins while OpenSM sweeps, and after it was killed and started again: small, for `make test`."""

import random
from collections import Counter
from pathlib import Path

import pytest

import subnet_harness as harness
from subnet_harness import Fabric, Subnet, check

pytestmark = pytest.mark.skipif(bool(harness.missing()), reason=harness.missing())

#: MTU 2,048 and 10 Gbit/s, "exactly": what ibsim's links have.
LINKS = "8483"


def small() -> Fabric:
    """40 switches, 32 hosts, four levels."""
    return Fabric(m=2, q=4, p=2, k=2, w=2, terminals=2, cns=4)


def wide() -> Fabric:
    """Two L0 switches with 18 hosts each: their ports fill two positions of a multicast table."""
    return Fabric(m=2, q=2, p=0, k=1, w=1, terminals=18, cns=1)


def random_groups(fabric: Fabric, count: int, size: int, first: int = 0) -> dict[int, list[str]]:
    draw = random.Random(first)
    return {first + number: draw.sample(fabric.hosts, size) for number in range(count)}


def answers_by_kind(answers: list[tuple[int, str]]) -> Counter[tuple[int, str]]:
    """How many answers had each status, MTU and rate."""
    return Counter((status, value[4:]) for status, value in answers)


def test_groups_that_are_made_while_opensm_sweeps_take_all_members(tmp_path: Path) -> None:
    fabric = small()
    groups: dict[int, list[str]] = {}
    with Subnet(fabric, tmp_path) as subnet:
        subnet.start(plugin=True)
        for batch in range(4):
            more = random_groups(fabric, 300, 3, 1000 * batch)
            groups |= more
            requests = subnet.send(subnet.join_lines(more), window=4)
            while requests.under_way():
                sweeps = subnet.sweeps()
                subnet.ask_for_sweep()
                subnet.wait_for_sweep(sweeps)
            assert answers_by_kind(requests.answers()) == {(0, LINKS): 900}
        assert answers_by_kind(subnet.join(groups)) == {(0, LINKS): 3600}
        mlids, table = subnet.stable(groups)
        assert check(fabric, table, groups, mlids, sources=1).faults == (0, 0, 0)


def test_a_port_that_comes_back_makes_groups_that_take_all_members(tmp_path: Path) -> None:
    fabric = small()
    groups = {number: ["h7", "h9"] for number in range(200)}
    with Subnet(fabric, tmp_path) as subnet:
        subnet.start(plugin=True)
        sweeps = subnet.sweeps()
        subnet.unlink("h7", "l0.0.3")
        subnet.ask_for_sweep()
        subnet.wait_for_sweep(sweeps)
        lines = [line for line in subnet.join_lines(groups) for _ in range(4)]
        joins = subnet.send(lines, window=2)
        subnet.relink("h7", "l0.0.3")
        sweeps = subnet.sweeps()
        subnet.ask_for_sweep()
        subnet.wait_for_sweep(sweeps)
        assert answers_by_kind(joins.answers()).keys() <= {(0, LINKS), (0x200, "0000")}
        assert answers_by_kind(subnet.join(groups)) == {(0, LINKS): 400}


def test_a_restart_loses_no_group(tmp_path: Path) -> None:
    fabric = small()
    groups = random_groups(fabric, 40, 6)
    with Subnet(fabric, tmp_path) as subnet:
        subnet.start(plugin=True)
        assert answers_by_kind(subnet.join(groups)) == {(0, LINKS): 240}
        for early in (False, True, False, False):
            subnet.kill()
            # early ones are repeated: OpenSM ignores requests until its first sweep is done
            joins = subnet.send(subnet.join_lines(groups)) if early else None
            subnet.start_again()
            joins = joins or subnet.send(subnet.join_lines(groups))
            assert answers_by_kind(joins.answers()) == {(0, LINKS): 240}
            assert answers_by_kind(subnet.join(groups)) == {(0, LINKS): 240}
        mlids, table = subnet.stable(groups)
        assert check(fabric, table, groups, mlids).faults == (0, 0, 0)


def test_a_restart_leaves_no_old_ports_in_tables_that_are_used_again(tmp_path: Path) -> None:
    fabric = wide()
    old, new = {1: fabric.hosts}, {2: fabric.hosts[:2]}
    with Subnet(fabric, tmp_path) as subnet:
        subnet.start(plugin=True)
        subnet.join(old)
        subnet.stable(old)
        subnet.kill()
        subnet.start_again()
        subnet.join(new)
        mlids, table = subnet.stable(new)
        assert set(mlids.values()) == {harness.FIRST_MLID}
        assert table["l0.0.0"] == {
            harness.FIRST_MLID: frozenset(fabric.port("l0.0.0", host) for host in new[2])
        }


IPOIB_BROADCAST = "ff12401bffff000000000000ffffffff"
#: 0: not said. The selectors: 0x00 greater than, 0x40 less than, 0x80 exactly, 0xc0 the largest.
MTUS = [0, 0x03, 0x04, 0x44, 0x45, 0x83, 0x84, 0x85, 0xC1]
RATES = [0, 0x02, 0x03, 0x43, 0x46, 0x82, 0x83, 0x86, 0xC2]


def answers_to_wishes(folder: Path, *, plugin: bool) -> list[tuple[int, str]]:
    """Make a group for each pair of MTU and rate and let others join; join one of a partition."""
    fabric = small()
    partitions = folder / "partitions.conf"
    with Subnet(fabric, folder) as subnet:
        partitions.write_text(
            "Default=0x7fff, ipoib, mtu=1, rate=2, Q_Key=0x80010000 : ALL=full;\n"
        )
        subnet.start(plugin=plugin, options=f"partition_config_file {partitions}")
        lines = []
        for number, (mtu, rate) in enumerate((mtu, rate) for mtu in MTUS for rate in RATES):
            gid, guid = harness.mgid(number), subnet.fabric.guid
            lines.append(f"J {gid} {guid('h3'):x} {mtu:x} {rate:x}")
            lines.append(f"J {gid} {guid('h9'):x}")
            lines.append(f"J {gid} {guid('h4'):x} {mtu:x} {rate:x}")
        lines += [f"J {IPOIB_BROADCAST} {guid('h5'):x}", f"L {harness.mgid(0)} {guid('h6'):x}"]
        return [(status, value[4:]) for status, value in subnet.request(lines)]


def test_mtu_and_rate_of_groups_are_those_of_stock_opensm(tmp_path: Path) -> None:
    ours = answers_to_wishes(tmp_path / "ours", plugin=True)
    stock = answers_to_wishes(tmp_path / "stock", plugin=False)
    assert ours == stock
    assert {status for status, _ in stock} == {0, 0x200}
    assert (0, "8182") in stock, "the group of the partition is not there"


def test_one_thread_for_all_requests(tmp_path: Path) -> None:
    fabric = small()
    groups = random_groups(fabric, 8, 5)
    with Subnet(fabric, tmp_path) as subnet:
        subnet.start(plugin=True, options="single_thread TRUE")
        assert answers_by_kind(subnet.join(groups)) == {(0, LINKS): 40}
        mlids, table = subnet.stable(groups)
        assert check(fabric, table, groups, mlids).faults == (0, 0, 0)
