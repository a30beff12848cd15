"""What a lab consists of, without building one."""

import pytest

from raddle.errors import LabError
from raddle.services.lab.mpi import parse_ppn
from raddle.services.lab.topology import SPINE, TOR, LabSpec, Topology, parse_rate


@pytest.mark.parametrize(
    ("hosts", "per_tor", "tors"),
    [(1, 4, 1), (4, 4, 1), (5, 4, 2), (9, 4, 3), (16, 4, 4), (16, 1, 16), (250, 16, 16)],
)
def test_hosts_fill_tors_and_a_spine_joins_several(hosts: int, per_tor: int, tors: int) -> None:
    topology = Topology(LabSpec(hosts=hosts, hosts_per_tor=per_tor))
    assert len(topology.hosts) == hosts
    assert sum(s.tier == TOR for s in topology.switches) == tors
    assert sum(s.tier == SPINE for s in topology.switches) == (tors > 1)
    # A tree: one link fewer than nodes.
    assert len(topology.links) == len(topology.nodes) - 1
    uplinks = [p for s in topology.switches for p in s.ports if p.uplink]
    assert len(uplinks) == (tors if tors > 1 else 0)


@pytest.mark.parametrize("rails", [1, 2, 4])
def test_no_two_things_have_one_name(rails: int) -> None:
    topology = Topology(LabSpec(hosts=9, hosts_per_tor=2, rails=rails))
    ends = [(link.a, link.a_interface) for link in topology.links]
    ends += [(link.b, link.b_interface) for link in topology.links]
    assert len(set(ends)) == len(ends)
    assert all(len(interface) <= 15 for _, interface in ends)  # IFNAMSIZ
    macs = [m for link in topology.links for m in (link.a_mac, link.b_mac)]
    macs += [switch.mac for switch in topology.switches]
    assert len(set(macs)) == len(macs)
    addresses = [a for host in topology.hosts for a in host.addresses]
    addresses += [switch.address for switch in topology.switches]
    assert len(set(addresses)) == len(addresses) == 9 * rails + (5 + 1) * rails
    ports = {(s.name, p.interface) for s in topology.switches for p in s.ports}
    assert ports == {end for end in ends if end[0] not in {h.name for h in topology.hosts}}


def test_rails_are_planes_that_do_not_touch() -> None:
    topology = Topology(LabSpec(hosts=8, rails=2))
    rail_of = {s.name: s.rail for s in topology.switches}
    for link in topology.links:
        rails = {rail_of[node] for node in (link.a, link.b) if node in rail_of}
        assert len(rails) == 1
        if link.a not in rail_of:
            assert link.a_interface == f"e{rails.pop()}"


def test_every_address_has_its_names() -> None:
    topology = Topology(LabSpec(hosts=5, hosts_per_tor=4, rails=2))
    names = {
        name: line.split()[0]
        for line in topology.hosts_file().splitlines()
        for name in line.split()[1:]
    }
    assert names["h3"] == names["h3-e0"] == "10.100.0.3"
    assert names["h3-e1"] == "10.101.0.3"
    assert {"localhost", "tor1", "tor2", "spine1", "tor1-e1", "spine1-e1"} <= set(names)


@pytest.mark.parametrize(
    ("text", "bps"), [("100Mbps", 10**8), ("2.5Gbps", 25 * 10**8), ("512kbps", 512_000)]
)
def test_rates(text: str, bps: int) -> None:
    assert parse_rate(text) == bps


@pytest.mark.parametrize("text", ["", "100", "100MBps", "fast", "1bps", "-5Mbps", "9999999Gbps"])
def test_a_rate_without_unit_or_sense_is_refused(text: str) -> None:
    with pytest.raises(LabError, match=r"100Mbps or 2\.5Gbps|from 100kbps to 1000Gbps"):
        parse_rate(text)


@pytest.mark.parametrize("name", ["", "../etc", "a/b", "UPPER", "-x", "a" * 33, "a b"])
def test_a_name_that_could_be_a_path_is_refused(name: str) -> None:
    with pytest.raises(LabError, match="is not a name for a lab"):
        LabSpec(name=name)


@pytest.mark.parametrize("text", ["0", "", "x", "1,2", "1,2,3,4", "1,,2", "-1", "100000"])
def test_ranks_that_do_not_fit_the_hosts_are_refused(text: str) -> None:
    with pytest.raises(LabError):
        parse_ppn(text, 3)
