"""The plugin beside stock OpenSM on larger simulated subnets; pytest -s shows the figures."""

import json
import random
import time
from collections import Counter
from pathlib import Path

import pytest

import subnet_harness as harness
from subnet_harness import Fabric, Flood, Subnet, changed_entries, check

pytestmark = [
    pytest.mark.scale,
    pytest.mark.skipif(bool(harness.missing()), reason=harness.missing()),
]


def middle() -> Fabric:
    """480 switches, 1,024 hosts: 16 CNs of 16 L0 and 4 L1, 20 TNs of 4 L2 and 4 L3 switches."""
    fabric = Fabric(m=4, q=16, p=5, k=4, w=4, terminals=4, cns=16)
    assert (len(fabric.switches), len(fabric.hosts)) == (480, 1024)
    return fabric


def random_groups(fabric: Fabric, count: int, size: int, first: int = 0) -> dict[int, list[str]]:
    draw = random.Random(7)
    return {first + number: draw.sample(fabric.hosts, size) for number in range(count)}


def groups_in_cns(fabric: Fabric, count: int, step: int = 1) -> dict[int, list[str]]:
    """Groups of 8 random hosts of one CN, the CNs in turn."""
    draw = random.Random(8)
    size = fabric.q * fabric.terminals
    return {
        number * step: draw.sample(fabric.hosts[cn * size : (cn + 1) * size], 8)
        for number in range(count)
        for cn in [number % fabric.cns]
    }


def broadcast_foreign(fabric: Fabric, groups: dict[int, list[str]]) -> int:
    """Foreign deliveries when every group uses one broadcast tree and sends one packet."""
    return sum(len(fabric.hosts) - len(members) for members in groups.values())


def say(title: str, **figures: object) -> None:
    print(f"\n{title}: " + ", ".join(f"{key} {value}" for key, value in figures.items()))


def uplinks(fabric: Fabric, table: harness.Table) -> dict[str, list[int]]:
    """MLIDs on every uplink of an L0 switch and of the L1 switches of its CN."""
    groups = {"l0.3.2": [f"l1.3.{g}" for g in range(fabric.m)]}
    for g in range(fabric.m):
        groups[f"l1.3.{g}"] = [f"l2.{g * fabric.p + i}.0" for i in range(fabric.p)]
    return {
        low: [sum(fabric.port(low, up) in ports for ports in table[low].values()) for up in ups]
        for low, ups in groups.items()
    }


def cut_and_mend(
    subnet: Subnet, groups: dict[int, list[str]], link: tuple[str, str], *, plugin: bool
) -> tuple[Flood, Flood]:
    """Cut an uplink and mend it; print what changed."""
    fabric = subnet.fabric
    name = "raddle" if plugin else "stock"

    def sent() -> int:
        if plugin:
            return int(json.loads(subnet.statistics.read_text())["blocks_sent"])
        return subnet.blocks_written()

    mlids, before = subnet.stable(groups)
    on_it = sum(fabric.port(*link) in ports for ports in before[link[0]].values())
    results = []
    for verb, action in (("Unlink", subnet.unlink), ("Relink", subnet.relink)):
        blocks, sweeps, started = sent(), subnet.sweeps(), time.monotonic()
        action(*link)
        subnet.wait_for_sweep(sweeps, 300)
        took = time.monotonic() - started
        subnet.settle(300)
        now, table = subnet.stable(groups)
        table = subnet.tables({*mlids.values(), *now.values()})
        result = check(fabric, table, groups, now)
        entries, changed = changed_entries(before, table)
        say(
            f"{name}, {verb} {link}",
            mlids_on_it=on_it,
            entries=f"{entries} of {sum(map(len, before.values()))}",
            mlids=changed,
            moved=sum(now[group] != mlids[group] for group in groups),
            SMPs=sent() - blocks,
            seconds=f"{took:.1f}",
            **vars(result),
        )
        before, mlids = table, now
        results.append(result)
    return results[0], results[1]


@pytest.mark.parametrize("plugin", [True, False], ids=["raddle", "stock"])
def test_600_groups_on_480_switches(tmp_path: Path, plugin: bool) -> None:
    fabric = middle()
    groups = random_groups(fabric, 500, 8) | random_groups(fabric, 100, 1024, first=500)
    with Subnet(fabric, tmp_path) as subnet:
        up = subnet.start(plugin=plugin, wait=300)
        started = time.monotonic()
        assert {status for status, _ in subnet.join(groups)} == {0}
        joined = time.monotonic() - started
        subnet.settle(600)
        settled = time.monotonic() - started
        mlids, table = subnet.stable(groups)
        result = check(fabric, table, groups, mlids)
        name = "raddle" if plugin else "stock"
        blocks = (
            json.loads(subnet.statistics.read_text())["blocks_sent"]
            if plugin
            else subnet.blocks_written()
        )
        say(
            f"{name}, 500 x 8 and 100 x 1,024",
            up=f"{up:.1f} s",
            joined=f"{joined:.1f} s",
            settled=f"{settled:.1f} s",
            SMPs=blocks,
            mlids=len(set(mlids.values())),
            **vars(result),
        )
        if plugin:
            print(subnet.statistics.read_text())
            assert result.faults == (0, 0, 0)
            merged = json.loads(subnet.statistics.read_text())["merged_groups"]
            assert merged or not result.foreign
        for place, load in uplinks(fabric, table).items():
            say(f"{name}, MLIDs on the uplinks of {place}", mlids=load)
        # the same links for both: every uplink of one L0 switch in turn, then one of an L1 switch
        links = [("l0.3.2", f"l1.3.{g}") for g in range(fabric.m)]
        for link in [*links, ("l1.3.0", "l2.0.0")]:
            for flood in cut_and_mend(subnet, groups, link, plugin=plugin):
                if plugin:
                    assert flood.faults == (0, 0, 0)


@pytest.mark.parametrize("recolour", ["sweep", "growth"])
@pytest.mark.parametrize(
    ("count", "step"), [(1000, 1), (250, 1), (250, 4)], ids=["1000", "250", "250-one-tree"]
)
def test_groups_within_a_cn_and_32_mlids(
    tmp_path: Path, count: int, step: int, recolour: str
) -> None:
    """`step` 4 = m: all MGIDs have the same tree group, so that the groups of a CN share a tree."""
    fabric = middle()
    groups = groups_in_cns(fabric, count, step)
    with Subnet(fabric, tmp_path, mlids=32) as subnet:
        subnet.start(plugin=True, settings=f'recolour = "{recolour}"\n', wait=300)
        assert {status for status, _ in subnet.join(groups)} == {0}
        subnet.settle(600)
        joined = json.loads(subnet.statistics.read_text())
        subnet.sweep()
        subnet.settle(600)
        mlids, table = subnet.stable(groups)
        result = check(fabric, table, groups, mlids)
        statistics = json.loads(subnet.statistics.read_text())
        bound = statistics["most_groups_on_a_switch"]
        broadcast = broadcast_foreign(fabric, groups)
        say(
            f"-M 32, {recolour}, {count} groups of 8 in a CN, MGIDs by {step}",
            mlids=len(set(mlids.values())),
            most_groups_on_a_switch=bound,
            before_the_sweep=f"{joined['mlids']} MLIDs, foreign {joined['foreign_deliveries']}",
            merged=statistics["merged_groups"],
            foreign_per_round=statistics["foreign_deliveries"],
            broadcast=broadcast,
            **vars(result),
        )
        assert result.faults == (0, 0, 0)
        assert statistics["foreign_deliveries"] * 5 <= broadcast
        if recolour == "sweep" and bound <= 32:
            assert statistics["merged_groups"] == 0
            assert len(set(mlids.values())) == bound
        subnet.stop()
    if recolour != "sweep":
        return
    with Subnet(fabric, tmp_path / "stock", mlids=32) as subnet:
        subnet.start(plugin=False, wait=300)
        refused = Counter(status for status, _ in subnet.join(groups))
        say("stock, the same", statuses={f"{s:#x}": n for s, n in refused.items()})
        assert refused[0x100] > 0


@pytest.mark.parametrize("recolour", ["sweep", "growth"])
def test_random_groups_and_32_mlids(tmp_path: Path, recolour: str) -> None:
    fabric = middle()
    groups = random_groups(fabric, 300, 8)
    with Subnet(fabric, tmp_path, mlids=32) as subnet:
        subnet.start(plugin=True, settings=f'recolour = "{recolour}"\n', wait=300)
        assert {status for status, _ in subnet.join(groups)} == {0}
        subnet.sweep()
        subnet.settle(600)
        mlids, table = subnet.stable(groups)
        result = check(fabric, table, groups, mlids)
        statistics = json.loads(subnet.statistics.read_text())
        say(
            f"-M 32, {recolour}, 300 random groups of 8",
            mlids=len(set(mlids.values())),
            most_groups_on_a_switch=statistics["most_groups_on_a_switch"],
            trees=statistics["trees"],
            merged=statistics["merged_groups"],
            foreign_per_round=statistics["foreign_deliveries"],
            broadcast=broadcast_foreign(fabric, groups),
            **vars(result),
        )
        assert result.faults == (0, 0, 0)


def test_thirty_restarts_lose_no_group(tmp_path: Path) -> None:
    """160 groups of 20 of 512 hosts; OpenSM is killed and started again; all join after 8 s."""
    fabric = Fabric(m=4, q=8, p=2, k=8, w=4, terminals=4, cns=16)
    assert (len(fabric.switches), len(fabric.hosts)) == (288, 512)
    draw = random.Random(10)
    groups = {number: draw.sample(fabric.hosts, 20) for number in range(160)}
    lost = []
    with Subnet(fabric, tmp_path) as subnet:
        subnet.start(plugin=True, options="sweep_interval 5", wait=300)
        assert {status for status, _ in subnet.join(groups)} == {0}
        for number in range(30):
            subnet.kill()
            subnet.start_again(300)
            time.sleep(8)
            first = Counter(answer for answer, _ in subnet.join(groups))
            time.sleep(4)
            answers = iter(subnet.join(groups))
            refused = [
                group
                for group, members in groups.items()
                if any(status for status, _ in [next(answers) for _ in members])
            ]
            say(f"restart {number + 1}", first_joins=dict(first), groups_lost=len(refused))
            lost.append(len(refused))
        mlids, table = subnet.stable(groups)
        result = check(fabric, table, groups, mlids)
    say("30 restarts", with_lost_groups=sum(count > 0 for count in lost), **vars(result))
    assert sum(lost) == 0
    assert result.faults == (0, 0, 0)


def test_the_papers_fabric(tmp_path: Path) -> None:
    """40,448 nodes: the subnet comes up, unicast arrives, 100 groups are delivered."""
    fabric = Fabric(m=16, q=32, p=6, k=32, w=16, terminals=16, cns=64)
    draw = random.Random(9)
    with Subnet(fabric, tmp_path) as subnet:
        # joins by proxy for far hosts find the requester through the same lock as the sweep
        up = subnet.start(plugin=True, options="max_wire_smps 32", wait=900)
        say("40,448 nodes", switches=len(fabric.switches), up=f"{up:.0f} s")
        ways = [tuple(draw.sample(fabric.hosts, 2)) for _ in range(1000)]
        hops = subnet.walk([(a, b) for a, b in ways])
        say("1,000 walks", hops=dict(sorted(Counter(hops).items())))
        assert min(hops) > 0
        groups = {number: draw.sample(fabric.hosts, 64) for number in range(100)}
        started = time.monotonic()
        assert {status for status, _ in subnet.join(groups)} == {0}
        joined = time.monotonic() - started
        subnet.settle(600)
        mlids, table = subnet.stable(groups)
        result = check(fabric, table, groups, mlids)
        statistics = json.loads(subnet.statistics.read_text())
        say("100 groups of 64", joined=f"{joined:.1f} s", **vars(result), **statistics)
        assert result.faults == (0, 0, 0)
