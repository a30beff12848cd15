"""The published in-network Allreduce over real raddle-switches; every sum is checked."""

import json
import os
import shutil
import subprocess
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


@pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark")
@pytest.mark.parametrize("words", [[], ["--rc"]])
def test_tshark_reads_the_frames_as_rocev2(tmp_path: Path, words: list[str]) -> None:
    with Net(tmp_path) as net:
        network(net, [2])
        file = tmp_path / "frames.pcap"
        tap = net.spawn("h1", "python3", "-c", CAPTURE, file, "3")
        assert tap.stdout is not None
        assert tap.stdout.readline() == "ready\n"
        reports(leaders(net, 2, "--rounds", "3", *words))
        tap.communicate(timeout=20)
        fields = [
            "udp.dstport",
            "infiniband.bth.opcode",
            "infiniband.bth.destqp",
            "ip.src",
            "_ws.malformed",
        ]
        command = [
            "tshark",
            "-n",
            "--disable-protocol",
            "rpcordma",
            "-r",
            str(file),
            "-T",
            "fields",
        ]
        command += [word for field in fields for word in ("-e", field)]
        env = os.environ | {"HOME": str(tmp_path)}
        shown = subprocess.run(command, capture_output=True, text=True, check=True, env=env)
        rows = [line.split("\t") for line in shown.stdout.splitlines()]
        rocev2 = [row for row in rows if row[0] == "4791"]
        opcode = "4" if words else "100"
        # At least a query and a notify, three packets up and three down, a kill.
        assert len(rocev2) >= 9, rocev2
        assert {row[1] for row in rocev2} == {opcode}
        assert {int(row[2], 0) for row in rocev2} == {2, 3}
        assert all(row[4] == "" for row in rocev2), rocev2
