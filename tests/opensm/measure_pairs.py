"""Measure what one cut link costs in OpenSM: fault-tolerant pairs beside single trees.

On a simulated subnet of 64 switches and 64 hosts, 20 groups of 8 random hosts and one of all: every
member sends a packet, which walks through the tables that the switches have; then again with each
of the 128 cables between switches cut in turn, before anything is routed anew. With pairs 20 cables
are also cut in the subnet; after OpenSM has routed anew all walks are made again. The cables and
members are drawn by seed 1. Writes a JSON file.

    python3 tests/opensm/measure_pairs.py out/opensm-pairs.json
"""

import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import subnet_harness as harness
from pair_packets import Packets, cables_between_switches, pair
from subnet_harness import Cable, Fabric, Subnet, Table

GROUPS, SIZE, REAL_CUTS, SEED = 20, 8, 20, 1
Groups = dict[int, list[str]]
Ways = Mapping[int, Sequence[int]]


def walk_all(
    fabric: Fabric, table: Table, groups: Groups, ways: Ways, dead: tuple[Cable, ...] = ()
) -> dict[str, Any]:
    """Walk the tables whole, and with every cable cut in turn."""
    packets = Packets(fabric, table, groups, ways, dead)
    whole = packets.copies()
    cables = [cable for cable in cables_between_switches(fabric) if cable not in dead]
    count: Counter[int] = Counter()
    costly, losing, looping = 0, 0, whole.looping
    for cable in cables:
        found = packets.copies(cable)
        count += found.count
        looping += found.looping
        losing += 0 in found.count
        costly += found.count != whole.count
    return {
        "copies": _by_number(whole.count),
        "cuts": len(cables),
        "cuts_that_cost_a_copy": costly,
        "cuts_that_lose_a_delivery": losing,
        "copies_over_all_cuts": _by_number(count),
        "looping": looping,
    }


def _by_number(count: Counter[int]) -> dict[str, int]:
    return {str(number): count[number] for number in sorted(count)}


def cut_and_reroute(subnet: Subnet, groups: Groups, asked: Groups) -> list[dict[str, Any]]:
    """Cut cables in the subnet one after the other, and walk when OpenSM has routed anew."""
    results = []
    for cable in random.Random(SEED).sample(cables_between_switches(subnet.fabric), REAL_CUTS):
        a, b = sorted(cable)
        sweeps = subnet.sweeps()
        subnet.unlink(a, b)
        subnet.wait_for_sweep(sweeps)
        mlids, table = subnet.stable(asked)
        ways = {number: [mlids[group] for group in pair(number)] for number in groups}
        results.append({"cut": [a, b]} | walk_all(subnet.fabric, table, groups, ways, (cable,)))
        sweeps = subnet.sweeps()
        subnet.relink(a, b)
        subnet.wait_for_sweep(sweeps)
        print(f"{a} {b}: {results[-1]}", flush=True)
    return results


def main(out: Path) -> None:
    """Measure all ways to route, one after the other."""
    if reason := harness.missing():
        sys.exit(f"error: {reason}")
    fabric = Fabric(m=4, q=4, p=2, k=2, w=2, terminals=4, cns=4)
    draw = random.Random(SEED)
    groups = {number: draw.sample(fabric.hosts, SIZE) for number in range(GROUPS)}
    groups[GROUPS] = fabric.hosts
    both = {group: members for number, members in groups.items() for group in pair(number)}
    result: dict[str, Any] = {
        "switches": len(fabric.switches),
        "hosts": len(fabric.hosts),
        "groups": len(groups),
        "seed": SEED,
    }
    with tempfile.TemporaryDirectory(prefix="pairs-") as folder:
        for name, asked, plugin, settings in (
            ("pairs", both, True, "pairs = true\n"),
            ("single", groups, True, ""),
            ("stock", groups, False, ""),
        ):
            with Subnet(fabric, Path(folder) / name) as subnet:
                subnet.start(plugin=plugin, settings=settings)
                if any(status for status, _ in subnet.join(asked)):
                    sys.exit(f"error: {name}: a join was refused")
                mlids, table = subnet.stable(asked)
                ways: dict[int, list[int]] = {
                    number: [
                        mlids[group] for group in (pair(number) if asked is both else [number])
                    ]
                    for number in groups
                }
                result[name] = walk_all(fabric, table, groups, ways)
                print(f"{name}: {result[name]}", flush=True)
                if name == "stock":
                    # The tree of the group of all, used by all groups: a global broadcast tree.
                    everywhere = dict.fromkeys(groups, ways[GROUPS])
                    result["broadcast"] = walk_all(fabric, table, groups, everywhere)
                    print(f"broadcast: {result['broadcast']}", flush=True)
                if asked is both:
                    result["after_real_cuts"] = cut_and_reroute(subnet, groups, asked)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python3 tests/opensm/measure_pairs.py FILE.json")
    main(Path(sys.argv[1]))
