"""Links, addresses, rates and bridges, by iproute2: one batch per node, not a call per link."""

import shlex
import subprocess
from collections.abc import Iterable, Mapping, Sequence

from raddle.errors import LabError
from raddle.services.lab.namespaces import Holder
from raddle.services.lab.topology import Switch, Topology

__all__ = ["build_bridges", "build_links", "remove_bridges"]

BRIDGE = "br0"
QUEUE_MS = 50
"""Longest wait in the queue of a shaped link."""

MOST_LEARNT = 512
"""Most pairs of hosts that learn each other's hardware address by asking."""

ASK_AGAIN_MS = 20
"""How long a host waits for an answer to ARP before it asks again; Linux' own second hides how long
a program takes to use a link that is back, where the first question came before the switch's port
let it through. It gives up after as long as ever, three seconds."""

ASKS_AT_MOST = 3000 // ASK_AGAIN_MS

FIRST_INDEX = 10_000
"""Numbers of interfaces whose links have one end here. Where both ends happen to have the same, the
kernel takes a change of the link for one that can wait, up to a second: till then the interface is
not said to run, and UCX does not use it."""

QUICK_LOOPBACK = [
    f"route replace table local local {to} dev lo proto kernel scope host src 127.0.0.1 quickack 1"
    for to in ("127.0.0.0/8", "127.0.0.1")
]
"""Inside a host nobody waits for acknowledgements: PMIx writes the parts of a message one by one to
the launcher's daemon, and each run of Open MPI would end with the 40 ms after which Linux
acknowledges the first of them."""

SHORTEST_BURST_BYTES = 32 * 1024
PATIENCE_S = 60.0
"""How long the kernel may take over all links or bridges of a lab on a busy machine."""


def build_links(topology: Topology, holders: Mapping[str, Holder]) -> None:
    """Join the nodes, give hosts their addresses and rates, and set everything up."""
    # Both ends are born inside their namespaces: a lab has no name outside, at no time.
    lines = [
        f"link add name {link.a_interface} index {index} address {link.a_mac} "
        f"netns {holders[link.a].process} "
        f"type veth peer name {link.b_interface} address {link.b_mac} "
        f"netns {holders[link.b].process}"
        for index, link in enumerate(topology.links, FIRST_INDEX)
    ]
    _run(["ip", "-batch", "-"], "\n".join(lines), "links")
    jobs: list[tuple[Holder, str, list[str]]] = []
    known = _neighbours(topology)
    for host in topology.hosts:
        lines = ["link set lo up", *QUICK_LOOPBACK]
        for rail, address in enumerate(host.addresses):
            lines += [
                f"addr add {address}/16 dev e{rail}",
                f"link set e{rail} up",
                f"ntable change name arp_cache dev e{rail} retrans {ASK_AGAIN_MS} "
                f"ucast_probes {ASKS_AT_MOST} mcast_probes {ASKS_AT_MOST}",
            ]
            lines += [
                line for other, line in known if other != host.name and line.endswith(f"e{rail}")
            ]
        jobs.append((holders[host.name], "ip", lines))
        if topology.spec.rates:
            shapes = [_shape(f"e{k}", rate) for k, rate in enumerate(topology.spec.rates)]
            jobs.append((holders[host.name], "tc", shapes))
    for switch in topology.switches:
        lines = ["link set lo up", *(f"link set {port.interface} up" for port in switch.ports)]
        jobs.append((holders[switch.name], "ip", lines))
    _batches(jobs, "addresses")


def build_bridges(switches: Iterable[Switch], holders: Mapping[str, Holder]) -> None:
    """Let the kernel's bridge join the ports of each switch, at the switch's address."""
    jobs: list[tuple[Holder, str, list[str]]] = []
    for switch in switches:
        lines = [f"link add {BRIDGE} address {switch.mac} type bridge stp_state 0 forward_delay 0"]
        lines += [f"link set {port.interface} xdp off" for port in switch.ports]
        lines += [f"link set {port.interface} master {BRIDGE}" for port in switch.ports]
        lines += [f"addr add {switch.address}/16 dev {BRIDGE}", f"link set {BRIDGE} up"]
        jobs.append((holders[switch.name], "ip", lines))
    _batches(jobs, "bridges")


def remove_bridges(switches: Iterable[Switch], holders: Mapping[str, Holder]) -> None:
    """Set the ports of all switches free; where there is no bridge, they are."""
    script = f"ip link show {BRIDGE} >/dev/null 2>&1 || exit 0; ip link del {BRIDGE}"
    within = (f"nsenter --target {holders[switch.name].process} --net" for switch in switches)
    _together([f"{enter} sh -c {shlex.quote(script)}" for enter in within], "bridges")


def _neighbours(topology: Topology) -> list[tuple[str, str]]:
    """Host and what others are told of it, in labs so large that they cannot ask.

    The kernel keeps what it learnt by ARP in one table for all namespaces, of 1,024 entries unless
    somebody made it larger (`net.ipv4.neigh.default.gc_thresh3`). What it is told does not count.
    """
    hosts = topology.hosts
    if len(hosts) * (len(hosts) - 1) * topology.spec.rails <= MOST_LEARNT:
        return []
    macs = {(link.a, link.a_interface): link.a_mac for link in topology.links}
    return [
        (host.name, f"neigh add {address} lladdr {macs[host.name, f'e{k}']} dev e{k}")
        for host in hosts
        for k, address in enumerate(host.addresses)
    ]


def _shape(interface: str, rate_bps: int) -> str:
    # A bucket of 2 ms at full rate: the kernel's timers are exact to a fraction of that.
    burst = max(SHORTEST_BURST_BYTES, rate_bps // 8 // 500)
    return (
        f"qdisc add dev {interface} root tbf rate {rate_bps}bit burst {burst}b latency {QUEUE_MS}ms"
    )


def _batches(jobs: Sequence[tuple[Holder, str, list[str]]], what: str) -> None:
    """Run a batch of `ip` or `tc` lines in the network of each holder, all at the same time."""
    script = [
        f"printf %s {shlex.quote(chr(10).join(lines) + chr(10))} | "
        f"nsenter --target {holder.process} --net {tool} -batch -"
        for holder, tool, lines in jobs
    ]
    _together(script, what)


def _together(commands: Sequence[str], what: str) -> None:
    """Run shell commands at the same time; all have to succeed."""
    lines = [f'( {command} ) & all="$all $!"' for command in commands]
    lines += ["status=0", 'for one in $all; do wait "$one" || status=1; done', "exit $status"]
    _run(["/bin/sh", "-s"], "\n".join(lines), what)


def _run(command: list[str], text: str, what: str) -> None:
    try:
        done = subprocess.run(
            command, input=text + "\n", capture_output=True, text=True, check=False, cwd="/",
            timeout=PATIENCE_S,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        msg = f"the {what} of the lab cannot be set: no end within {PATIENCE_S:.0f} s"
        raise LabError(msg) from None
    if done.returncode != 0:
        words = " / ".join(dict.fromkeys(done.stderr.strip().splitlines()))
        msg = f"the {what} of the lab cannot be set: {words[-800:] or done.returncode}"
        raise LabError(msg)
