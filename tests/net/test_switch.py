"""The software switch between real hosts: a plain Ethernet switch, and its own address."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import switch_harness as harness
from switch_harness import SWITCH, SWITCH_ADDRESS, Net, Switch, run, transfer, until

pytestmark = pytest.mark.skipif(bool(harness.missing()), reason=harness.missing())

LISTENER = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("", 5002))
s.settimeout(5)
print("ready", flush=True)
print(s.recv(2000).decode(), flush=True)
"""
SHOUT = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
s.sendto(b"to all", (sys.argv[1], 5002))
"""
# Ethertype 0x88b5 is for experiments (IEEE 802).
VLAN_LISTENER = """
import socket, struct
SOL_PACKET, PACKET_AUXDATA = 263, 8
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
s.bind(("e0", 3))
s.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
s.settimeout(5)
print("ready", flush=True)
while True:
    data, control, *_ = s.recvmsg(2000, 200)
    if data[12:14] != b"\\x88\\xb5":
        continue
    aux = next(c for level, kind, c in control if (level, kind) == (SOL_PACKET, PACKET_AUXDATA))
    tci = struct.unpack("IIIHHHH", aux)[5]
    print(f"{tci:04x} {data[12:14].hex()} {data[14:].rstrip(bytes(1)).decode()}", flush=True)
    break
"""
VLAN_SENDER = """
import socket
s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
s.bind(("e0", 0))
s.send(b"\\xff" * 6 + b"\\x02\\x00\\x00\\x00\\x00\\x42" + bytes.fromhex("8100a02a88b5")
       + b"of vlan 42".ljust(60, bytes(1)))
"""


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Net]:
    with Net(tmp_path_factory.mktemp("net")) as net:
        switch = net.add_switch("tor1")
        for number in (1, 2, 3):
            net.add_host(number, switch)
        switch.start()
        yield net


@pytest.fixture
def switch(net: Net) -> Switch:
    return net.switches[0]


def test_hosts_reach_each_other_and_the_switch(net: Net) -> None:
    assert net.ping("h1", "10.77.0.2")
    assert net.ping("h3", "10.77.0.1")
    for host in ("h1", "h2", "h3"):
        assert net.ping(host, SWITCH_ADDRESS)
    assert "02:52:0a:4d:00:fd" in net.exec("h1", "ip", "neigh", "show", SWITCH_ADDRESS)


def test_tcp_arrives_intact_while_hosts_leave_checksums_and_segments_to_their_cards(
    net: Net, switch: Switch
) -> None:
    features = net.exec("h1", "ethtool", "-k", "e0", check=False)
    if "tcp-segmentation-offload" in features:
        assert "tcp-segmentation-offload: on" in features
    before = switch.status()
    transfer(net, "h1", "h2", "10.77.0.2", 16)
    after = switch.status()
    frames = after["ports"][0]["received"] - before["ports"][0]["received"]
    # Trains of segments cross as they are: far fewer frames than 16 MiB / 1448 B.
    assert frames < 8000
    # Nobody else saw them, once the hosts were known.
    strangers = after["ports"][2]["sent"] - before["ports"][2]["sent"]
    assert strangers < 20


def test_a_broadcast_reaches_all_others(net: Net) -> None:
    listeners = [net.spawn(host, "python3", "-c", LISTENER) for host in ("h2", "h3")]
    for listener in listeners:
        assert listener.stdout is not None
        assert listener.stdout.readline() == "ready\n"
    net.exec("h1", "python3", "-c", SHOUT, "10.77.0.255")
    for listener in listeners:
        out, _ = listener.communicate(timeout=10)
        assert out == "to all\n"


def test_vlan_tags_are_kept(net: Net) -> None:
    with net.spawn("h2", "python3", "-c", VLAN_LISTENER) as listener:
        assert listener.stdout is not None
        assert listener.stdout.readline() == "ready\n"
        net.exec("h1", "python3", "-c", VLAN_SENDER)
        # Priority 5, VLAN 42, and what follows the tag.
        assert listener.stdout.readline() == "a02a 88b5 of vlan 42\n"


def test_trains_of_segments_cross_in_vlans(net: Net) -> None:
    probe = net.exec(
        "h3", "ip", "link", "add", "link", "e0", "name", "v", "type", "vlan", "id", "9", check=False
    )
    if "Unknown device type" in probe:
        pytest.skip("needs a kernel with VLAN interfaces (8021q)")
    for host, last in (("h1", 1), ("h2", 2)):
        net.exec(
            host, "ip", "link", "add", "link", "e0", "name", "e0.42", "type", "vlan", "id", "42"
        )
        net.exec(host, "ip", "addr", "add", f"10.42.0.{last}/24", "dev", "e0.42")
        net.exec(host, "ip", "link", "set", "e0.42", "up")
    assert net.ping("h1", "10.42.0.2")
    transfer(net, "h1", "h2", "10.42.0.2", 8)
    # Untagged hosts do not hear it.
    assert not net.ping("h3", "10.42.0.2", "-W", "1")


def test_metrics_and_status_tell_the_same(net: Net, switch: Switch) -> None:
    fetch = "import urllib.request as u; r = u.urlopen('http://127.0.0.1:9464/metrics');"
    text = net.exec("tor1", "python3", "-c", fetch + "print(r.read().decode())")
    status = switch.status()
    assert text.rstrip().endswith("# EOF")
    values = dict(line.rsplit(" ", 1) for line in text.splitlines() if line and line[0] != "#")
    assert values['raddle_switch_port_up{port="p1"}'] == "1"
    assert values["raddle_switch_tier"] == "1"
    received = int(values['raddle_switch_port_received_frames_total{port="p1"}'])
    assert 0 < received <= status["ports"][0]["received"]
    assert values['raddle_switch_drops_total{reason="malformed"}'] == "0"
    page = run(SWITCH, "status", "--socket", switch.status_socket).stdout
    assert page.startswith(f"tor1  {SWITCH_ADDRESS}")
    assert "p3" in page
    elsewhere = "import urllib.request as u; u.urlopen('http://127.0.0.1:9464/')"
    assert "404" in net.exec("tor1", "python3", "-c", elsewhere, check=False)


def test_a_port_that_goes_is_noticed_and_used_again_when_it_returns(
    net: Net, switch: Switch
) -> None:
    assert net.ping("h3", "10.77.0.1")
    net.exec("tor1", "ip", "link", "del", "p3")
    until(lambda: not switch.up()["p3"], "p3 down")
    assert net.ping("h1", "10.77.0.2")
    net.connect(3, switch)
    until(lambda: switch.up()["p3"], "p3 up")
    assert net.ping("h3", "10.77.0.1")
    assert switch.status()["ports"][2]["losses"] == 1
    messages = [(entry["message"], entry.get("port")) for entry in switch.log()]
    assert ("port down", "p3") in messages


def test_bad_packets_are_counted_and_harm_nobody(net: Net, switch: Switch) -> None:
    send = (
        "import socket, os; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM);"
        f"[s.sendto(os.urandom(i), ('{SWITCH_ADDRESS}', 61347)) for i in range(400)]"
    )

    def malformed() -> int:
        counts = {drop["reason"]: drop["count"] for drop in switch.status()["drops"]}
        return int(counts["message_malformed"])

    before = malformed()
    net.exec("h1", "python3", "-c", send)
    until(lambda: malformed() == before + 400, "400 messages counted")
    assert net.ping("h1", "10.77.0.2")


def test_sigterm_ends_an_idle_switch_at_once_and_kill_leaves_nothing(tmp_path: Path) -> None:
    with Net(tmp_path) as net:
        switch = net.add_switch("tor9")
        net.add_host(1, switch)
        switch.start()
        begin = time.monotonic()
        assert switch.stop() == 0
        assert time.monotonic() - begin < 2
        assert not switch.status_socket.exists()
        switch.start()
        assert switch.stop(signal.SIGKILL) == -signal.SIGKILL
        # The path of the dead one is taken over.
        switch.start()
        assert net.ping("h1", SWITCH_ADDRESS)
