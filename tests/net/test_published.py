"""The published in-network Allreduce over real raddle-switches; every sum is checked."""

import json
import os
import shutil
import struct
import subprocess
import warnings
from pathlib import Path
from typing import Any

import pytest

import switch_harness as harness
from switch_harness import SWITCH_ADDRESS, TARGET, Net, Switch

ROUNDS = TARGET / "release" / "examples" / "published_rounds"
pytestmark = [
    pytest.mark.skipif(bool(harness.missing()), reason=harness.missing()),
    pytest.mark.skipif(not ROUNDS.exists(), reason=f"needs {ROUNDS}: run make build"),
]
CAPTURE = """
import socket, struct, sys, time
taps = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
taps.bind(("e0", 0))
print("ready", flush=True)
with open(sys.argv[1], "wb") as file:
    file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
    taps.settimeout(float(sys.argv[2]))
    try:
        while True:
            frame = taps.recv(65535)
            file.write(struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame)
            file.flush()
    except TimeoutError:
        pass
"""


def network(net: Net, tors: list[int], **settings: Any) -> list[Switch]:
    """TORs with so many hosts each; a SPINE above them if there are several."""
    protocols = {"protocols": ["native", "published"], **settings}
    switches = []
    spine = net.add_switch("spine", SWITCH_ADDRESS, tier=2) if len(tors) > 1 else None
    number = 1
    for index, count in enumerate(tors):
        tor = net.add_switch(f"tor{index}", f"10.77.0.{240 + index}")
        for _ in range(count):
            net.add_host(number, tor)
            number += 1
        if spine is not None:
            net.uplink(tor, spine)
        switches.append(tor)
    switches += [spine] if spine is not None else []
    for switch in switches:
        switch.settings |= protocols
        switch.start()
    return switches


def leaders(net: Net, hosts: int, *words: str, sockets: int = 1) -> list[subprocess.Popen[str]]:
    """Start all leaders."""
    nodes = ",".join(f"10.77.0.{host}" for host in range(1, hosts + 1))
    words = ("--nodes", nodes, "--sockets", str(sockets), *words)
    return [
        net.spawn(f"h{number // sockets + 1}", ROUNDS, str(number), *words)
        for number in range(hosts * sockets)
    ]


def reports(running: list[subprocess.Popen[str]]) -> list[dict[str, Any]]:
    """What they print."""
    found = [process.communicate(timeout=60)[0] for process in running]
    assert [process.returncode for process in running] == [0] * len(running), found
    return [json.loads(text) for text in found]


@pytest.mark.parametrize(
    ("tors", "sockets", "words"),
    [
        ([4], 1, []),
        ([2], 1, ["--rc"]),
        ([3, 3, 3], 1, []),
        ([2, 2], 2, []),
        ([3, 3, 3], 2, ["--rc"]),
    ],
)
def test_all_rounds_are_offloaded(
    tmp_path: Path, tors: list[int], sockets: int, words: list[str]
) -> None:
    with Net(tmp_path) as net:
        switches = network(net, tors)
        rounds = 500
        running = leaders(net, sum(tors), "--rounds", str(rounds), *words, sockets=sockets)
        found = reports(running)
        all_leaders = sum(tors) * sockets
        assert [(r["rounds"], r["plain"], r["wrong"]) for r in found] == [
            (rounds, 0, 0)
        ] * all_leaders
        assert {r["local"] for r in found} == {tors[0] * sockets}
        states = [switch.status()["published"] for switch in switches]
        # Each round ends once in each switch; kill has left nothing.
        assert [(state["rounds"], state["groups"]) for state in states] == [(rounds, 0)] * len(
            states
        )
        held = [state["held"] for state in states[: len(tors)]]
        assert held == [rounds * count * sockets for count in tors]


def test_a_switch_that_starts_anew_ends_offload_for_all(tmp_path: Path) -> None:
    with Net(tmp_path) as net:
        tor = network(net, [3])[0]
        running = leaders(net, 3, "--rounds", "1000000")
        harness.until(lambda: tor.status()["published"]["rounds"] > 1000, "a thousand rounds")
        assert tor.process is not None
        tor.process.kill()
        tor.process.wait()
        tor.status_socket.unlink(missing_ok=True)
        tor.start()
        found = reports(running)
        # All leave after the same round, and nobody has taken a neighbour's operands for a sum.
        assert len({r["rounds"] for r in found}) == 1
        assert {r["wrong"] for r in found} == {0}
        assert all(r["plain"] > 0 for r in found)


def test_without_the_protocol_in_the_switch_nothing_is_offloaded(tmp_path: Path) -> None:
    with Net(tmp_path) as net:
        network(net, [2], protocols=["native"])
        found = reports(leaders(net, 2, "--rounds", "10"))
        assert [(r.get("rounds"), r["computing"]) for r in found] == [(None, False)] * 2


def test_lost_packets_end_offload_and_no_sum_is_wrong(tmp_path: Path) -> None:
    with Net(tmp_path) as net:
        tor = net.add_switch("tor0", "10.77.0.240")
        for number in range(1, 4):
            net.add_host(number, tor)
        tor.settings["protocols"] = ["published"]
        tor.extra = "[faults]\nloss = 0.0005\nduplication = 0.05\nreordering = 0.05\nseed = 5\n"
        tor.start()
        found = reports(leaders(net, 3, "--rounds", "20000"))
        assert len({r.get("rounds") for r in found}) == 1
        assert {r.get("wrong", 0) for r in found} == {0}


UD, RC = 100, 4
"""Opcodes of the BTH: SEND only, of a datagram and of a connection."""

HEAD_AT = {UD: 14 + 20 + 8 + 12 + 8 + 8 + 8, RC: 14 + 20 + 8 + 12 + 1 + 8 + 14}
"""Where the head begins in a frame: behind DETH, neth and tag; behind AM id, tag and padding."""

QUERY, NOTIFY, KILL = 0, 1, 4


def captured(net: Net, tmp_path: Path, hosts: int, taps: list[str], *words: str) -> list[Path]:
    """Run three rounds of all leaders; what passed the interfaces of these hosts, a file each."""
    files, running = [], []
    for host in taps:
        file = tmp_path / f"{host}.pcap"
        tap = net.spawn(host, "python3", "-c", CAPTURE, file, "2")
        assert tap.stdout is not None
        assert tap.stdout.readline() == "ready\n"
        files.append(file)
        running.append(tap)
    reports(leaders(net, hosts, "--rounds", "3", *words))
    for tap in running:
        tap.communicate(timeout=20)
    return files


def frames(file: Path) -> list[bytes]:
    """The frames of a file that are to UDP port 4791."""
    data, at, found = file.read_bytes(), 24, []
    while at < len(data):
        (length,) = struct.unpack_from("<8xI", data, at)
        frame = data[at + 16 : at + 16 + length]
        if frame[12:14] == b"\x08\x00" and frame[23] == 17 and frame[36:38] == b"\x12\xb7":
            found.append(frame)
        at += 16 + length
    return found


def control(sender: int, receiver: int, kind: int, **switches: int) -> bytes:
    """Head and body of a control packet as the published library writes it, by its layout.

    `switches` has what switches on the way write.
    """
    leaders = switches.get("leaders", 3)
    head = struct.pack(
        ">4sIBBHBBBBH4s", bytes.fromhex("44332211"), sender, switches.get("flag", 0), 1, 0, 0, 0,
        0, 0, 0, bytes.fromhex("88776655"),
    )  # fmt: skip
    return head + struct.pack(
        ">HBBBBHHHHHIII4s4s4s16x", 0, 0, 1, switches.get("hops", 0) << 4 | kind, 1,
        switches.get("operations", 0xFFFF), switches.get("types", 0x47FF), 256, leaders,
        switches.get("local", 0), 7, 0, receiver, bytes([10, 77, 0, 240]) * ("tor" in switches),
        b"", b"",
    )  # fmt: skip


@pytest.mark.parametrize("words", [[], ["--rc"]])
def test_all_frames_have_the_bytes_of_the_layout(tmp_path: Path, words: list[str]) -> None:
    """Three leaders below one TOR: what they send, and what the TOR makes of it."""
    opcode = RC if words else UD
    at = HEAD_AT[opcode]
    with Net(tmp_path) as net:
        network(net, [3])
        h1, h3 = map(frames, captured(net, tmp_path, 3, ["h1", "h3"], *words))
    assert {frame[42] for frame in h1 + h3} == {opcode}

    def payloads(found: list[bytes], source: int, control: bool) -> list[bytes]:
        of = [frame for frame in found if frame[29] == source]
        # Without the bytes that BTH counts as padding, and the ICRC.
        return [
            frame[at : len(frame) - 4 - (frame[43] >> 4 & 3)]
            for frame in of
            if (frame[at + 9] == 1) is control
        ]

    computes = {"operations": 0x03FF, "types": 0x07FE & 0x47FF, "flag": 1, "hops": 1, "tor": 1}
    # The query of rank 2 as it leaves, and as it comes to the master.
    assert payloads(h3, 3, control=True) == [control(2, 0, QUERY)]
    assert payloads(h1, 3, control=True) == [control(2, 0, QUERY, **computes)]
    # Notify and kill as they leave the master, for ranks 1 and 2, and as they come to rank 2.
    merged = {"operations": 0x03FF, "types": 0x07FE & 0x47FF}
    assert payloads(h1, 1, control=True) == [
        *(control(0, rank, NOTIFY, **merged) for rank in (1, 2)),
        *(control(0, rank, KILL, **merged, local=3) for rank in (1, 2)),
    ]
    assert payloads(h3, 1, control=True) == [
        control(0, 2, NOTIFY, **computes, local=3),
        control(0, 2, KILL, **computes, local=3),
    ]
    # The test vector: rank 2, group 7, SUM of one double, round 1, value 1.0; padded to an element.
    sent = payloads(h3, 3, control=False)
    vector = "44332211 00000002 00 07 0000 03 0a 01 00 0001 88776655 3ff0000000000000"
    assert sent[0] == bytes.fromhex(vector) + bytes(len(sent[0]) - 30)
    assert len(sent[0]) == (32 if opcode == UD else 48 - 14)
    # It goes on to rank 0, with the flag and the sum of 0, 0.5 and 1 in it.
    result = vector.replace("00 07", "01 07").replace("3ff0", "3ff8")
    came = payloads(h1, 3, control=False)
    assert came[0] == bytes.fromhex(result) + bytes(len(sent[0]) - 30)
    assert [frame[14] for frame in came] == [1, 2, 3]


@pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark")
@pytest.mark.parametrize("words", [[], ["--rc"]])
def test_tshark_and_scapy_read_the_frames_as_rocev2(tmp_path: Path, words: list[str]) -> None:
    with Net(tmp_path) as net:
        network(net, [2])
        (file,) = captured(net, tmp_path, 2, ["h1"], *words)
    opcode = RC if words else UD
    fields = [
        "udp.dstport",
        "infiniband.bth.opcode",
        "infiniband.bth.destqp",
        "ip.src",
        "_ws.malformed",
    ]
    # A host that has ended may refuse the kill by an ICMP message, which quotes the frame.
    command = ["tshark", "-n", "--disable-protocol", "rpcordma", "-r", str(file), "-T", "fields"]
    command += ["-Y", "udp.dstport == 4791 and not icmp"]
    command += [word for field in fields for word in ("-e", field)]
    env = os.environ | {"HOME": str(tmp_path)}
    shown = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
    rows = [line.split("\t") for line in shown.stdout.splitlines()]
    rocev2 = [row for row in rows if row[0] == "4791"]
    # A query, a notify and a kill, three packets up and three down.
    assert len(rocev2) == 9, rocev2
    assert {row[1] for row in rocev2} == {str(opcode)}
    assert {int(row[2], 0) for row in rocev2} == {2, 3}
    assert all(row[4] == "" for row in rocev2), rocev2
    check_with_scapy(file, opcode)


def check_with_scapy(file: Path, opcode: int) -> None:
    """Scapy finds the same, and computes the same ICRC."""
    pytest.importorskip("scapy", reason="scapy is not installed (pip install 'raddle[dev]')")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from scapy.contrib.roce import BTH
        from scapy.layers.inet import ICMP
        from scapy.utils import rdpcap

        found = rdpcap(str(file))
        packets = [packet for packet in found if BTH in packet and ICMP not in packet]
    assert len(packets) == 9
    for packet in packets:
        bth, original = packet[BTH], bytes(packet)
        assert (bth.opcode, bth.dqpn in {2, 3}) == (opcode, True)
        del bth.icrc
        assert bytes(packet) == original
