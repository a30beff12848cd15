"""Whether nodes answer: echo requests (RFC 792) from every host to every other and to switches."""

import select
import socket
import struct
import time
from collections.abc import Callable, Collection, Mapping

from raddle.services.lab.namespaces import Holder, in_network
from raddle.services.lab.topology import Topology

__all__ = ["unreachable"]

ECHO_REPLY, ECHO_REQUEST = 0, 8
AGAIN_S = 0.1
MOST_ASKED = 16
IDENTIFIER = 0x5261


def unreachable(
    topology: Topology,
    holders: Mapping[str, Holder],
    patience_s: float,
    hope: Callable[[], bool],
    *,
    hosts: bool = True,
    idle: Collection[str] = (),
) -> list[tuple[str, str]]:
    """Pairs (host, address) without an answer after `patience_s`, or when there is no more hope.

    Every host asks its TORs, the first one all switches; with `hosts` also the `MOST_ASKED` hosts
    after it. An answer proves both directions. In larger labs these are not all pairs, but they
    cross every link. Nobody asks by way of switches that are `idle`.
    """
    sockets: dict[int, tuple[str, socket.socket]] = {}
    waiting: dict[tuple[int, str], None] = {}
    try:
        for index, host in enumerate(topology.hosts):
            endpoint = in_network(holders[host.name].process, _endpoint)
            sockets[endpoint.fileno()] = (host.name, endpoint)
            others = topology.hosts[index + 1 : index + 1 + MOST_ASKED] if hosts else ()
            targets = [a for other in others for a in other.addresses]
            targets += [
                switch.address
                for switch in topology.switches
                if (index == 0 or any(port.interface == host.name for port in switch.ports))
                and not any(name in idle for name in topology.way(host, switch))
            ]
            waiting.update(dict.fromkeys((endpoint.fileno(), target) for target in targets))
        _exchange(sockets, waiting, time.monotonic() + patience_s, hope)
        return [(sockets[number][0], target) for number, target in waiting]
    finally:
        for _, endpoint in sockets.values():
            endpoint.close()


def _exchange(
    sockets: Mapping[int, tuple[str, socket.socket]],
    waiting: dict[tuple[int, str], None],
    deadline: float,
    hope: Callable[[], bool],
) -> None:
    """Ask until nobody is missing or the time is over; takes what answered out of `waiting`."""
    request = _request()
    while waiting and time.monotonic() < deadline and hope():
        for number, target in waiting:
            try:
                sockets[number][1].sendto(request, (target, 0))
            except OSError:
                continue  # no way yet: asked again
        again = time.monotonic() + AGAIN_S
        while waiting and (left := again - time.monotonic()) > 0:
            readable, _, _ = select.select(list(sockets), [], [], left)
            for number in readable:
                try:
                    packet, (sender, _) = sockets[number][1].recvfrom(2048)
                except OSError:
                    continue  # a host that sends us its own troubles
                header = (packet[0] & 15) * 4
                kind, _, _, identifier = struct.unpack_from(">BBHH", packet, header)
                if kind == ECHO_REPLY and identifier == IDENTIFIER:
                    waiting.pop((number, sender), None)


def _endpoint() -> socket.socket:
    endpoint = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
    endpoint.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    endpoint.setblocking(False)
    return endpoint


def _request() -> bytes:
    """An echo request without payload; its checksum is the complement of the sum of its words."""
    total = (ECHO_REQUEST << 8) + IDENTIFIER + 1
    return struct.pack(">BBHHH", ECHO_REQUEST, 0, ~(total + (total >> 16)) & 0xFFFF, IDENTIFIER, 1)
