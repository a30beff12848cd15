"""What a lab consists of: hosts, switches, links, names and addresses. No system call here."""

import re
from dataclasses import dataclass, field
from enum import StrEnum

from raddle import core
from raddle.errors import LabError
from raddle.text import many

__all__ = [
    "UNSHAPED_BPS",
    "Backend",
    "Host",
    "LabSpec",
    "Link",
    "Mode",
    "Protocol",
    "Switch",
    "Topology",
    "parse_rate",
]

MOST_HOSTS = 250
MOST_RAILS = 8
NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")
SLOWEST_BPS, FASTEST_BPS = 10**5, 10**12
UNSHAPED_BPS = 10**11
"""What a link without a rate counts as in the simulator: hosts spend more on bytes than links."""
DELAY = "100ns"
"""The same of a delay: a frame is with the next node before its sender is through with it."""

TOR, SPINE = 1, 2
"""Tiers of switches."""

SPINE_NAME = "spine1"
"""The SPINE of rail 0."""


class Backend(StrEnum):
    """What joins the links inside a switch."""

    OFF = "off"
    SOCKETS = "sockets"
    XDP = "xdp"


class Mode(StrEnum):
    """Who leads: one process per node, or one per CPU socket."""

    NODE = "node"
    SOCKET = "socket"


class Protocol(StrEnum):
    """How leaders and switches speak: by our protocol, or by that of the paper."""

    NATIVE = "native"
    PUBLISHED = "published"

    def check(self, backend: Backend) -> None:
        """Refuse a back-end whose switches do not compute by it."""
        if self is Protocol.PUBLISHED and backend is Backend.XDP:
            msg = (
                "the kernel forwards past the published protocol\n"
                "  hint: take --offload sockets, or --protocol native"
            )
            raise LabError(msg)


def parse_rate(text: str) -> int:
    """A rate in bit/s.

    >>> parse_rate("400Mbps")
    400000000
    >>> parse_rate("2.5Gbps")
    2500000000
    """
    try:
        rate = core.build.parse_quantity("rate", text)
    except ValueError as error:
        msg = f"{error}\n  hint: write the rate of a link like 100Mbps or 2.5Gbps"
        raise LabError(msg) from None
    if not SLOWEST_BPS <= rate <= FASTEST_BPS:
        msg = f"`{text}` is no rate of a lab's links: write one from 100kbps to 1000Gbps"
        raise LabError(msg)
    return rate


@dataclass(frozen=True, slots=True)
class LabSpec:
    """What a user asks for. `rates` has one rate per rail in bit/s, or none: not shaped."""

    name: str = "lab"
    hosts: int = 4
    hosts_per_tor: int = 4
    sockets: int = 1
    rails: int = 1
    rates: tuple[int, ...] = ()
    protocol: Protocol = Protocol.NATIVE

    def __post_init__(self) -> None:
        """Refuse what cannot be built, with the way out."""
        check_name(self.name)
        for what, value, most in (
            ("hosts", self.hosts, MOST_HOSTS),
            ("hosts per TOR", self.hosts_per_tor, MOST_HOSTS),
            ("sockets", self.sockets, 64),
            ("rails", self.rails, MOST_RAILS),
        ):
            if not 1 <= value <= most:
                msg = f"{value} {what}: a lab has 1 to {most}"
                raise LabError(msg)
        if self.rates and len(self.rates) != self.rails:
            msg = (
                f"{many(len(self.rates), 'rate')} for {many(self.rails, 'rail')}\n"
                "  hint: --rates takes one rate per rail, as in --rails 2 --rates 400Mbps,100Mbps"
            )
            raise LabError(msg)

    def fabric(self) -> str:
        """Give rail 0 as a fabric of the simulator, host i as its i-th; the last TOR is full.

        Examples
        --------
        >>> print(LabSpec(hosts=6, rates=(400_000_000,)).fabric())
        [fabric]
        kind = "leaf-spine"
        leaves = 2
        spines = 1
        hosts_per_leaf = 4
        host_rate = "400000000bps"
        fabric_rate = "100000000000bps"
        delay = "100ns"
        """
        host_rate = self.rates[0] if self.rates else UNSHAPED_BPS
        return (
            f'[fabric]\nkind = "leaf-spine"\nleaves = {-(-self.hosts // self.hosts_per_tor)}\n'
            f"spines = 1\nhosts_per_leaf = {min(self.hosts, self.hosts_per_tor)}\n"
            f'host_rate = "{host_rate}bps"\nfabric_rate = "{UNSHAPED_BPS}bps"\n'
            f'delay = "{DELAY}"'
        )


def check_name(name: str) -> None:
    """Refuse a name that cannot be part of paths and control groups."""
    if not NAME.fullmatch(name):
        msg = f"`{name}` is not a name for a lab: take small letters, digits and -, at most 32"
        raise LabError(msg)


@dataclass(frozen=True, slots=True)
class Host:
    """A host; `addresses[k]` is the one of rail k (interface ek)."""

    name: str
    addresses: tuple[str, ...]
    tor: str


@dataclass(frozen=True, slots=True)
class Port:
    """A port of a switch, named after the neighbour at its other end."""

    interface: str
    uplink: bool


@dataclass(frozen=True, slots=True)
class Switch:
    """A switch of one rail; tier 1 joins hosts (TOR), tier 2 joins TORs (SPINE)."""

    name: str
    address: str
    mac: str
    tier: int
    rail: int
    ports: tuple[Port, ...]


@dataclass(frozen=True, slots=True)
class Link:
    """A veth pair between interface `a_interface` of node `a` and `b_interface` of node `b`."""

    a: str
    a_interface: str
    a_mac: str
    b: str
    b_interface: str
    b_mac: str


@dataclass(frozen=True, slots=True)
class Topology:
    """Every host, switch and link of a lab, derived from its `LabSpec`."""

    spec: LabSpec
    hosts: tuple[Host, ...] = field(init=False)
    switches: tuple[Switch, ...] = field(init=False)
    links: tuple[Link, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Lay it out: every rail is a plane of its own with equal wiring."""
        spec = self.spec
        tors = -(-spec.hosts // spec.hosts_per_tor)
        hosts = tuple(
            Host(
                name=f"h{i + 1}",
                addresses=tuple(f"{network(k)}.0.{i + 1}" for k in range(spec.rails)),
                tor=f"tor{i // spec.hosts_per_tor + 1}",
            )
            for i in range(spec.hosts)
        )
        switches: list[Switch] = []
        links: list[Link] = []
        for rail in range(spec.rails):
            spine = plane(SPINE_NAME, rail)
            for t in range(tors):
                tor = plane(f"tor{t + 1}", rail)
                below = hosts[t * spec.hosts_per_tor : (t + 1) * spec.hosts_per_tor]
                ports = [Port(host.name, uplink=False) for host in below]
                links += (
                    Link(
                        host.name, f"e{rail}", mac(rail, 0, t * spec.hosts_per_tor + j),
                        tor, host.name, mac(rail, 1, t * spec.hosts_per_tor + j),
                    )
                    for j, host in enumerate(below)
                )  # fmt: skip
                if tors > 1:
                    ports.append(Port(spine, uplink=True))
                    links.append(Link(tor, spine, mac(rail, 2, t), spine, tor, mac(rail, 3, t)))
                address = f"{network(rail)}.255.{t + 1}"
                switches.append(Switch(tor, address, mac(rail, 4, t), TOR, rail, tuple(ports)))
            if tors > 1:
                down = tuple(Port(plane(f"tor{t + 1}", rail), uplink=False) for t in range(tors))
                address = f"{network(rail)}.254.1"
                switches.append(Switch(spine, address, mac(rail, 5, 0), SPINE, rail, down))
        object.__setattr__(self, "hosts", hosts)
        object.__setattr__(self, "switches", tuple(switches))
        object.__setattr__(self, "links", tuple(links))

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of all hosts and switches."""
        return (*(h.name for h in self.hosts), *(s.name for s in self.switches))

    def host(self, name: str) -> Host:
        """The host of that name."""
        for host in self.hosts:
            if host.name == name:
                return host
        last = self.hosts[-1].name
        msg = f"there is no host `{name}` in lab `{self.spec.name}`: it has h1 to {last}"
        raise LabError(msg)

    def switch(self, name: str) -> Switch:
        """The switch of that name."""
        for switch in self.switches:
            if switch.name == name:
                return switch
        known = ", ".join(s.name for s in self.switches)
        msg = f"there is no switch `{name}` in lab `{self.spec.name}`: it has {known}"
        raise LabError(msg)

    def way(self, host: Host, switch: Switch) -> tuple[str, ...]:
        """Names of the switches between a host and a switch, which is the last of them."""
        tor, spine = plane(host.tor, switch.rail), plane(SPINE_NAME, switch.rail)
        before = () if switch.name == tor else (tor,) if switch.name == spine else (tor, spine)
        return (*before, switch.name)

    def hosts_file(self) -> str:
        """/etc/hosts of every node: h3 is its address on rail 0, h3-e1 the one on rail 1."""
        lines = ["127.0.0.1 localhost"]
        for host in self.hosts:
            for rail, address in enumerate(host.addresses):
                alias = f" {host.name}-e0" if rail == 0 else ""
                lines.append(f"{address} {plane(host.name, rail)}{alias}")
        lines += [f"{switch.address} {switch.name}" for switch in self.switches]
        return "\n".join(lines) + "\n"


def network(rail: int) -> str:
    """First half of the addresses of a rail; the other half tells host, TOR and SPINE apart."""
    return f"10.{100 + rail}"


def plane(name: str, rail: int) -> str:
    """The name of a node on a rail: plain on rail 0, with the interface on others."""
    return name if rail == 0 else f"{name}-e{rail}"


def mac(rail: int, kind: int, index: int) -> str:
    """A locally administered hardware address: equal labs have equal frames."""
    return f"02:52:61:{rail:02x}:{kind:02x}:{index:02x}"
