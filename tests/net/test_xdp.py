"""The fast path between hosts in namespaces: rounds are right, and the kernel does them."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from switch_harness import Net, Switch, missing, transfer, until

REASON = missing()
pytestmark = pytest.mark.skipif(bool(REASON), reason=REASON)

WITHOUT = "was built without it"
HOOKS = pytest.mark.parametrize("hook", ["tc", "generic", "native"])
"""Where the program sits: in traffic control, as on veths by itself, or in XDP."""
BUFFERS = pytest.mark.parametrize("hook", ["tc", "generic"])
"""The places on the kernel's own buffers."""


@pytest.fixture
def net(tmp_path: Path) -> Iterator[Net]:
    """An empty net whose switches have the fast path."""
    with Net(tmp_path) as made:
        yield made


def add_hosts(net: Net, switch: Switch, numbers: range, *, poll: bool = False) -> None:
    """Add hosts; `poll`: their interfaces take frames of native XDP (docs/reference/switch.md)."""
    for number in numbers:
        host = net.add_host(number, switch)
        if poll:
            net.exec(host, "ethtool", "-K", "e0", "gro", "on")


def start(*switches: Switch, extra: str = "") -> None:
    """Start switches with the fast path; skip where they were built without it."""
    for switch in switches:
        switch.extra = f'backend = "xdp"\n{extra}'
    try:
        for switch in switches:
            switch.start()
    except AssertionError:
        log = (switches[0].net.folder / f"{switches[0].name}.log").read_text()
        if WITHOUT in log:
            pytest.skip("raddle-switch was built without XDP: needs clang and libbpf-dev")
        raise


def rounds_in_the_kernel(
    net: Net, tree: list[tuple[Switch, Switch | None, list[int]]], *options: str
) -> None:
    """Run rounds; all sums are right, and of each switch the sockets see next to nothing."""
    # The first group tells the switches where everybody is, a few times per second.
    net.allreduce(tree, "--rounds", "10", job=1)
    time.sleep(0.5)
    before = [switch.status()["counters"]["messages"] for switch, _, _ in tree]
    results = net.allreduce(tree, *options, job=2)
    assert not any(result["wrong"] for result in results)
    for (switch, _, _), messages in zip(tree, before, strict=True):
        # The program that installs the group, leases and goodbyes.
        seen = switch.status()["counters"]["messages"] - messages
        assert seen < 500, f"{switch.name}: {seen}"


@HOOKS
def test_rounds_of_one_switch_run_in_the_kernel(net: Net, hook: str) -> None:
    """Four hosts, 40,000 contributions."""
    switch = net.add_switch("tor")
    add_hosts(net, switch, range(1, 5), poll=hook == "native")
    start(switch, extra=f'attach = "{hook}"')
    rounds_in_the_kernel(net, [(switch, None, [1, 2, 3, 4])], "--rounds", "10000")


@HOOKS
def test_two_tiers_run_in_the_kernel_with_vectors(net: Net, hook: str) -> None:
    """TORs of three hosts under a spine; 32 doubles a round."""
    spine = net.add_switch("spine", "10.77.0.250", tier=2)
    tors = [net.add_switch(f"tor{n}", f"10.77.0.{251 + n}") for n in range(2)]
    for at, tor in enumerate(tors):
        add_hosts(net, tor, range(1 + 3 * at, 4 + 3 * at), poll=hook == "native")
        net.uplink(tor, spine)
    start(spine, *tors, extra=f'attach = "{hook}"')
    tree: list[tuple[Switch, Switch | None, list[int]]] = [
        (spine, None, []),
        (tors[0], spine, [1, 2, 3]),
        (tors[1], spine, [4, 5, 6]),
    ]
    rounds_in_the_kernel(net, tree, "--rounds", "3000", "--elements", "32")


@BUFFERS
def test_programs_go_with_the_process_however_it_ends(net: Net, hook: str) -> None:
    """What forwards while the process stands still does not after SIGTERM or SIGKILL."""
    switch = net.add_switch("tor")
    add_hosts(net, switch, range(1, 3))
    for number in (signal.SIGTERM, signal.SIGKILL):
        start(switch, extra=f'forward = "kernel"\nattach = "{hook}"')
        assert net.ping("h1", "10.77.0.2")
        time.sleep(0.5)  # the program is told of stations a few times per second
        assert switch.process is not None
        switch.process.send_signal(signal.SIGSTOP)
        assert net.ping("h1", "10.77.0.2")
        switch.process.send_signal(signal.SIGCONT)
        switch.stop(number)
        assert not net.ping("h1", "10.77.0.2")


@BUFFERS
def test_ports_come_and_go_while_the_program_runs(net: Net, hook: str) -> None:
    """A reload adds a host and takes one away; rounds go on, with the new one too."""
    switch = net.add_switch("tor")
    add_hosts(net, switch, range(1, 4))
    start(switch, extra=f'forward = "kernel"\nattach = "{hook}"')
    rounds_in_the_kernel(net, [(switch, None, [1, 2, 3])], "--rounds", "2000")
    members = net.start_allreduce([(switch, None, [2, 3])], "--rounds", "50000", job=3)
    add_hosts(net, switch, range(4, 5))
    switch.ports.remove(("p1", False))
    switch.reload()
    until(lambda: switch.up() == {"p2": True, "p3": True, "p4": True}, "p4 up")
    assert not any(result["wrong"] for result in net.finish(members))
    assert net.ping("h4", "10.77.0.2")
    assert not net.ping("h1", "10.77.0.2", "-W", "1")
    rounds_in_the_kernel(net, [(switch, None, [2, 3, 4])], "--rounds", "2000")


@HOOKS
def test_ordinary_frames_pass(net: Net, hook: str) -> None:
    """What the program does not know goes on to the sockets."""
    switch = net.add_switch("tor")
    add_hosts(net, switch, range(1, 3))
    start(switch, extra=f'attach = "{hook}"')
    assert net.ping("h1", "10.77.0.2")
    assert net.ping("h1", switch.address)


@BUFFERS
def test_tcp_crosses_in_the_kernel_with_unfinished_checksums(net: Net, hook: str) -> None:
    """Segments pass while the switch's process stands still; XDP leaves trains of them to it."""
    switch = net.add_switch("tor")
    add_hosts(net, switch, range(1, 3))
    start(switch, extra=f'forward = "kernel"\nattach = "{hook}"')
    assert net.ping("h1", "10.77.0.2")
    time.sleep(0.5)  # the program is told of stations a few times per second
    transfer(net, "h1", "h2", "10.77.0.2", 16)
    if hook == "generic":
        net.exec("h1", "ethtool", "-K", "e0", "tso", "off", "gso", "off")
    assert switch.process is not None
    switch.process.send_signal(signal.SIGSTOP)
    try:
        transfer(net, "h1", "h2", "10.77.0.2", 16)
    finally:
        switch.process.send_signal(signal.SIGCONT)


def test_a_group_goes_back_to_sockets_where_hosts_do_not_get_what_xdp_sends(net: Net) -> None:
    """Veth ends without GRO throw away what a program sends: slow for a moment, and right."""
    switch = net.add_switch("tor")
    add_hosts(net, switch, range(1, 4))
    start(switch, extra='attach = "native"')
    results = net.allreduce([(switch, None, [1, 2, 3])], "--rounds", "3000")
    assert not any(result["wrong"] for result in results)
    assert any("do not arrive" in str(line) for line in switch.log()), switch.log()
