"""Wireshark and Scapy read the packets that Raddle writes, and all agree on every field."""

import json
import os
import shutil
import subprocess
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Our name of a field, Wireshark's, and how Wireshark's text becomes our value.
FIELDS = {
    "source": "ip.src",
    "destination": "ip.dst",
    "ip_checksum": "ip.checksum",
    "dscp": "ip.dsfield.dscp",
    "ecn": "ip.dsfield.ecn",
    "identification": "ip.id",
    "source_port": "udp.srcport",
    "destination_port": "udp.dstport",
    "udp_length": "udp.length",
    "udp_checksum": "udp.checksum",
    "vlan": "vlan.id",
    "priority": "vlan.priority",
    "opcode": "infiniband.bth.opcode",
    "pad": "infiniband.bth.padcnt",
    "partition_key": "infiniband.bth.p_key",
    "destination_qp": "infiniband.bth.destqp",
    "acknowledge": "infiniband.bth.a",
    "psn": "infiniband.bth.psn",
    "queue_key": "infiniband.deth.q_key",
    "source_qp": "infiniband.deth.srcqp",
    "syndrome": "infiniband.aeth.syndrome",
    "msn": "infiniband.aeth.msn",
}
# Shown by Wireshark with the checks switched on.
STATUS = {"ip.checksum.status": "1", "udp.checksum.status": None}
CNP = 0x81


@dataclass(frozen=True)
class Capture:
    """A capture file and what is in it."""

    file: Path
    packets: list[dict[str, Any]]


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Capture:
    file = tmp_path_factory.mktemp("wire") / "all.pcap"
    command = ["cargo", "run", "--locked", "--quiet", "-p", "raddle-wire"]
    command += ["--example", "wire_packets", "--", str(file)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return Capture(file, [json.loads(line) for line in done.stdout.splitlines()])


def number(text: str) -> int | str:
    """Wireshark's text of a number, or the text itself."""
    try:
        return int(text, 0)
    except ValueError:
        return text


def swapped(icrc: int) -> int:
    """The number that others show for an ICRC: they read its bytes in network order."""
    return int.from_bytes(icrc.to_bytes(4, "little"), "big")


def dissect(file: Path, fields: list[str]) -> list[dict[str, str]]:
    """Give the fields that tshark finds in each packet."""
    command = ["tshark", "-n", "-r", str(file), "-T", "fields", "-E", "separator=/t"]
    command += ["-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE"]
    # Payloads are ours; guesses of other protocols are wrong.
    command += ["--disable-protocol", "rpcordma", "--disable-protocol", "nvme-rdma"]
    for field in fields:
        command += ["-e", field]
    environment = {**os.environ, "LC_ALL": "C", "HOME": str(file.parent)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return [
        {field: text for field, text in zip(fields, line.split("\t"), strict=True) if text}
        for line in done.stdout.splitlines()
    ]


@pytest.mark.skipif(not shutil.which("tshark"), reason="tshark is not installed (package tshark)")
def test_wireshark_reads_every_field(capture: Capture) -> None:
    names = [*FIELDS.values(), *STATUS, "infiniband.invariant.crc", "_ws.malformed"]
    found = dissect(capture.file, names)
    assert len(found) == len(capture.packets)
    for packet, seen in zip(capture.packets, found, strict=True):
        ours = {name: packet[name] for name in FIELDS if name in packet}
        theirs = {name: number(seen[FIELDS[name]]) for name in ours}
        assert theirs == ours, packet["name"]
        # What we do not have, Wireshark does not see.
        extra = [name for name in FIELDS if name not in packet and FIELDS[name] in seen]
        assert extra == [], packet["name"]
        assert "_ws.malformed" not in seen, packet["name"]
        assert seen["ip.checksum.status"] == "1", packet["name"]
        # 1 good, 3 not present.
        assert seen["udp.checksum.status"] == ("1" if packet["udp_checksum"] else "3")
        # This version does not know congestion notifications and takes their ICRC for data.
        if "icrc" in packet and packet["opcode"] != CNP:
            assert number(seen["infiniband.invariant.crc"]) == swapped(packet["icrc"])


@pytest.mark.skipif(not shutil.which("tshark"), reason="tshark is not installed (package tshark)")
def test_wireshark_sees_damage(capture: Capture) -> None:
    """The check of the check: a flipped address bit is not accepted."""
    damaged = capture.file.with_name("damaged.pcap")
    data = bytearray(capture.file.read_bytes())
    first_packet, address = 24 + 16, 14 + 15
    data[first_packet + address] ^= 1
    damaged.write_bytes(data)
    seen = dissect(damaged, ["ip.checksum.status"])
    assert [packet["ip.checksum.status"] for packet in seen[:2]] == ["0", "1"]


def test_scapy_reads_every_field_and_computes_the_same_sums(capture: Capture) -> None:
    pytest.importorskip("scapy", reason="scapy is not installed (pip install 'raddle[dev]')")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from scapy.contrib.roce import AETH, BTH
        from scapy.layers.inet import IP, UDP
        from scapy.layers.l2 import Dot1Q, Ether
        from scapy.utils import rdpcap

        read = rdpcap(str(capture.file))
    assert len(read) == len(capture.packets)
    for packet, seen in zip(capture.packets, read, strict=True):
        name = packet["name"]
        assert len(seen) == packet["length"], name
        theirs: dict[str, Any] = {
            "source": seen[IP].src,
            "destination": seen[IP].dst,
            "ip_checksum": seen[IP].chksum,
            "dscp": seen[IP].tos >> 2,
            "ecn": seen[IP].tos & 3,
            "identification": seen[IP].id,
            "source_port": seen[UDP].sport,
            "destination_port": seen[UDP].dport,
            "udp_length": seen[UDP].len,
            "udp_checksum": seen[UDP].chksum,
        }
        if Dot1Q in seen:
            theirs |= {"vlan": seen[Dot1Q].vlan, "priority": seen[Dot1Q].prio}
        if BTH in seen:
            bth = seen[BTH]
            theirs |= {
                "opcode": bth.opcode,
                "pad": bth.padcount,
                "partition_key": bth.pkey,
                "becn": bool(bth.becn),
                "destination_qp": bth.dqpn,
                "acknowledge": bool(bth.ackreq),
                "psn": bth.psn,
                "icrc": swapped(bth.icrc),
            }
        if AETH in seen:
            theirs |= {"syndrome": seen[AETH].syndrome, "msn": seen[AETH].msn}
        # Scapy has no DETH, and no word for what is behind the headers.
        ours = {key: packet[key] for key in theirs}
        assert theirs == ours, name
        assert ("icrc" in packet, "vlan" in packet) == (BTH in seen, Dot1Q in seen), name

        # Without its sums, Scapy makes them anew: the same bytes, ICRC included.
        original = bytes(seen)
        del seen[IP].chksum
        if packet["udp_checksum"]:
            del seen[UDP].chksum
        if BTH in seen:
            del seen[BTH].icrc
        rebuilt = Ether(bytes(seen.__class__(seen.build())))
        if packet["udp_checksum"] and BTH in seen:
            # Scapy computes the UDP checksum before it has the ICRC.
            rebuilt[UDP].chksum = packet["udp_checksum"]
        assert bytes(rebuilt) == original, name
