"""A lab as it is at this moment, for the page of `raddle lab view`: nodes, links, counters."""

import json
import socket
import time
from pathlib import Path
from typing import Any

from raddle.errors import LabError
from raddle.services.lab.virtual import Lab

__all__ = ["counters_of", "snapshot"]

TELLS_IN_S = 1.0
"""How long a switch may take to tell its status."""
LONGEST = 1 << 20
"""Bytes of the longest status that is read."""


def snapshot(name: str) -> dict[str, Any]:
    """Give a lab's nodes and links, and what was counted on them so far.

    Counters of hosts and bridges are the kernel's; those of a `raddle-switch`, and its jobs and
    drops, are what it tells.

    Raises
    ------
    LabError
        The lab is not up, or not complete.
    """
    lab = Lab.seen(name)
    if lab is None:
        msg = f"lab `{name}` is not up"
        raise LabError(msg)
    status = lab.status()
    rates = status["rates_bps"]
    nodes = [
        {"name": host["name"], "level": 0, "holder": host["holder"]} for host in status["hosts"]
    ]
    nodes += [
        {"name": switch["name"], "level": switch["tier"], "holder": switch["holder"]}
        for switch in status["switches"]
    ]
    rail = {switch["name"]: switch["rail"] for switch in status["switches"]}
    told_by = {
        switch["name"]: told(Path(switch["status_socket"]))
        for switch in status["switches"]
        if switch["process"] is not None
    }
    return {
        "time_s": time.time(),
        "lab": {key: status[key] for key in ("name", "offload", "up_s", "processes")},
        "nodes": [
            {
                "name": node["name"],
                "level": node["level"],
                "interfaces": counters(node["holder"]) | ports_of(told_by.get(node["name"])),
            }
            for node in nodes
        ],
        "links": [
            {
                "a": link.a,
                "a_interface": link.a_interface,
                "b": link.b,
                "b_interface": link.b_interface,
                "rate_bps": rates[rail[link.b]] if rates else None,
            }
            for link in lab.topology.links
        ],
        "hosts": [
            {"name": host["name"], "addresses": host["addresses"], "tor": host["tor"]}
            for host in status["hosts"]
        ],
        "switches": [
            {
                "name": switch["name"],
                "address": switch["address"],
                "tier": switch["tier"],
                "works": switch["works"],
                "status": told_by.get(switch["name"]),
            }
            for switch in status["switches"]
        ],
    }


def counters(process: int) -> dict[str, dict[str, int]]:
    """Read the counters of all interfaces in the network of a process; none if it has ended."""
    try:
        return counters_of(Path(f"/proc/{process}/net/dev").read_text())
    except OSError:
        return {}


def counters_of(text: str) -> dict[str, dict[str, int]]:
    r"""Read what `/proc/net/dev` says; the loopback is left out.

    >>> counters_of("head\nhead\n  e0: 10 1 0 2 0 0 0 0 20 3 0 4 0 0 0 0\n lo: 1 1\n")
    {'e0': {'received': 10, 'sent': 20, 'lost': 6}}
    """
    found = {}
    for line in text.splitlines()[2:]:
        name, _, numbers = line.partition(":")
        told = [int(number) for number in numbers.split()]
        if name.strip() != "lo":
            found[name.strip()] = {
                "received": told[0],
                "sent": told[8],
                "lost": told[2] + told[3] + told[10] + told[11],
            }
    return found


def ports_of(status: dict[str, Any] | None) -> dict[str, dict[str, int]]:
    """Counters of ports as a `raddle-switch` has them: the kernel does not count its fast path."""
    return {
        port["interface"]: {
            "received": port["received_bytes"],
            "sent": port["sent_bytes"],
            "lost": port["refused"],
        }
        for port in (status or {}).get("ports", [])
    }


def told(path: Path) -> dict[str, Any] | None:
    """Ask a `raddle-switch` for its status; None if it does not answer."""
    data = b""
    try:
        with socket.socket(socket.AF_UNIX) as asked:
            asked.settimeout(TELLS_IN_S)
            asked.connect(str(path))
            while (part := asked.recv(1 << 16)) and len(data) < LONGEST:
                data += part
        status: dict[str, Any] = json.loads(data)
    except (OSError, ValueError):
        return None
    return status
