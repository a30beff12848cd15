"""What runs inside a lab's switches: a bridge of the kernel, or `raddle-switch` with a back-end."""

import contextlib
import os
import signal
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from raddle.errors import LabError
from raddle.lab import network
from raddle.lab.cgroups import Groups
from raddle.lab.namespaces import Holder, entering, start_detached, started_at
from raddle.lab.state import State
from raddle.lab.tools import switch_program
from raddle.lab.topology import Backend, Switch, Topology

__all__ = ["change", "log_tail", "start", "status_socket", "stop"]

METRICS_PORT = 9310
QUIET_END_S = 0.5
"""How long a `raddle-switch` may take to end by itself before it is killed."""


def change(
    state: State, groups: Groups, topology: Topology, holders: Mapping[str, Holder], to: Backend
) -> None:
    """Put the back-end `to` into all switches, in place; links and hosts stay as they are."""
    before, running = state.read_backend()
    if before is Backend.OFF and (state.folder / "backend.json").exists():
        network.remove_bridges(topology.switches, holders)
    stop(running.values())
    if to is Backend.OFF:
        network.build_bridges(topology.switches, holders)
        state.write_backend(to, {})
        return
    started: dict[str, Holder] = {}
    try:
        for switch in topology.switches:
            started[switch.name] = start(state, groups, switch, holders[switch.name], to)
    finally:
        state.write_backend(to, started)


def start(state: State, groups: Groups, switch: Switch, holder: Holder, backend: Backend) -> Holder:
    """Start the `raddle-switch` of one switch."""
    file = state.switches / f"{switch.name}.toml"
    file.write_text(_config(state, switch, backend))
    command = entering(holder.process, [switch_program(), "--config", file], None)
    process = start_detached(groups.files("switches"), command, state.logs / f"{switch.name}.log")
    started = started_at(process)
    if started is None:
        msg = f"raddle-switch of {switch.name} ended at once{log_tail(state, switch.name)}"
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
    deadline = time.monotonic() + QUIET_END_S
    while alive := [s for s in alive if s.alive()]:
        if time.monotonic() > deadline:
            for switch in alive:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(switch.process, signal.SIGKILL)
        time.sleep(0.002)


def log_tail(state: State, name: str, lines: int = 6) -> str:
    """The last lines that a switch logged, to follow a message; empty if there are none."""
    try:
        text = (state.logs / f"{name}.log").read_text(errors="replace")
    except OSError:
        return ""
    return "".join(f"\n  {line}" for line in text.splitlines()[-lines:])


def status_socket(state: State, name: str) -> Path:
    """Where the `raddle-switch` of that name answers `raddle-switch status`."""
    return state.switches / f"{name}.sock"


def _config(state: State, switch: Switch, backend: Backend) -> str:
    import tomli_w

    return tomli_w.dumps(
        {
            "schema": 1,
            "name": switch.name,
            "address": switch.address,
            # The same for every back-end: what hosts remember of it (ARP) stays true.
            "mac": switch.mac,
            "tier": switch.tier,
            "backend": backend.value,
            **({"forward": "kernel"} if backend is Backend.XDP else {}),
            "secret_file": str(state.secret),
            "metrics": f"127.0.0.1:{METRICS_PORT}",
            "status": str(status_socket(state, switch.name)),
            "ports": [
                {"interface": port.interface, **({"uplink": True} if port.uplink else {})}
                for port in switch.ports
            ],
        }
    )
