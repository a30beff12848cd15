"""What runs inside a lab's switches: a bridge of the kernel, or `raddle-switch` with a back-end."""

import contextlib
import os
import signal
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

import tomli_w

from raddle.errors import LabError
from raddle.services.lab import network
from raddle.services.lab.cgroups import Groups
from raddle.services.lab.namespaces import Holder, entering, start_detached
from raddle.services.lab.processes import started_at
from raddle.services.lab.state import State
from raddle.services.lab.tools import switch_program
from raddle.services.lab.topology import Backend, Protocol, Switch, Topology

__all__ = ["clear", "fill", "log_end", "log_tail", "start", "status_socket", "stop"]

METRICS_PORT = 9310
QUIET_END_S = 0.5
"""How long a `raddle-switch` may take to end by itself before it is killed."""

KILLED_END_S = 10.0
"""How long it may take all told. The kernel takes XDP off a port in some ten milliseconds."""


def clear(state: State, groups: Groups, topology: Topology, holders: Mapping[str, Holder]) -> None:
    """Take out of all switches whatever is in them; links and hosts stay as they are."""
    stop(state.read_running().processes.values())
    groups.end("switches")  # also what an interrupted change has started
    network.remove_bridges(topology.switches, holders)


def fill(
    state: State, groups: Groups, topology: Topology, holders: Mapping[str, Holder], to: Backend
) -> dict[str, Holder]:
    """Put a back-end into all switches, which are empty; gives its processes."""
    if to is Backend.OFF:
        network.build_bridges(topology.switches, holders)
        return {}
    return {
        switch.name: start(state, groups, switch, holders[switch.name], to)
        for switch in topology.switches
    }


def start(state: State, groups: Groups, switch: Switch, holder: Holder, backend: Backend) -> Holder:
    """Start the `raddle-switch` of one switch."""
    file = state.switches / f"{switch.name}.toml"
    logged = log_end(state, switch.name)
    file.write_text(_config(state, switch, backend))
    command = entering(holder.process, [switch_program(), "--config", file], None)
    process = start_detached(groups.files("switches"), command, state.logs / f"{switch.name}.log")
    started = started_at(process)
    if started is None:
        tail = log_tail(state, switch.name, logged)
        msg = f"raddle-switch of {switch.name} ended at once{tail}"
        raise LabError(msg)
    return Holder(switch.name, process, started)


def stop(switches: Iterable[Holder], *, at_once: bool = False) -> None:
    """End `raddle-switch` processes: asked twice (once means: drain), then killed."""
    alive = [s for s in switches if s.alive()]
    orders = (signal.SIGKILL,) if at_once else (signal.SIGTERM, signal.SIGTERM)
    for order in orders:
        for switch in alive:
            with contextlib.suppress(ProcessLookupError):
                os.kill(switch.process, order)
        if not at_once:
            time.sleep(0.02)  # two signals of one number that wait together are one
    begun = time.monotonic()
    while alive := [s for s in alive if s.alive()]:
        waited = time.monotonic() - begun
        if waited > QUIET_END_S:
            for switch in alive:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(switch.process, signal.SIGKILL)
        if waited > KILLED_END_S:
            numbers = ", ".join(f"{s.process} ({s.node})" for s in alive[:8])
            msg = f"these raddle-switch cannot be killed: {numbers} (waiting in the kernel?)"
            raise LabError(msg)
        time.sleep(0.002)


def log_end(state: State, name: str) -> int:
    """How many bytes a switch has logged so far."""
    try:
        return (state.logs / f"{name}.log").stat().st_size
    except OSError:
        return 0


def log_tail(state: State, name: str, since: int = 0, lines: int = 6) -> str:
    """The last lines that a switch logged after `since` bytes, to follow a message."""
    try:
        text = (state.logs / f"{name}.log").read_bytes()[since:].decode(errors="replace")
    except OSError:
        return ""
    return "".join(f"\n  {line}" for line in text.splitlines()[-lines:])


def status_socket(state: State, name: str) -> Path:
    """Where the `raddle-switch` of that name answers `raddle-switch status`."""
    return state.switches / f"{name}.sock"


def _config(state: State, switch: Switch, backend: Backend) -> str:
    return tomli_w.dumps(
        {
            "schema": 1,
            "name": switch.name,
            "address": switch.address,
            # The same for every back-end: what hosts remember of it (ARP) stays true.
            "mac": switch.mac,
            "tier": switch.tier,
            "backend": backend.value,
            **(
                {"forward": "kernel"}
                if backend is Backend.XDP
                else {"protocols": [protocol.value for protocol in Protocol]}
            ),
            "secret_file": str(state.secret),
            "metrics": f"127.0.0.1:{METRICS_PORT}",
            "status": str(status_socket(state, switch.name)),
            "ports": [
                {"interface": port.interface, **({"uplink": True} if port.uplink else {})}
                for port in switch.ports
            ],
        }
    )
