"""The life of a lab: up, use, down."""

import contextlib
import os
import secrets
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from raddle.errors import LabError
from raddle.lab import cgroups, network, switches
from raddle.lab.cgroups import Groups
from raddle.lab.namespaces import Holder, entering, joining, start_holders
from raddle.lab.reach import unreachable
from raddle.lab.state import State, names
from raddle.lab.tools import NEEDED, check_machine, program_path, switch_program
from raddle.lab.topology import Backend, LabSpec, Topology, check_name

__all__ = ["Lab"]

READY_S = 10.0
SECRET_BYTES = 32

AGENT = """\
#!/bin/sh
# What mpirun calls in place of ssh: agent [-option...] HOST COMMAND...
while [ "${{1#-}}" != "$1" ]; do shift; done
process=$(cat "{nodes}/$1") || exit 255
shift
exec nsenter --target "$process" --net --uts --ipc --mount -- /bin/sh -c "$*"
"""


def _quiet(step: str) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class Lab:
    """A lab that is up: `up` builds one, `find` opens one that is there."""

    topology: Topology
    holders: Mapping[str, Holder]
    since: float
    state: State
    groups: Groups

    @classmethod
    def up(
        cls,
        spec: LabSpec,
        backend: Backend = Backend.OFF,
        *,
        replace: bool = False,
        tell: Callable[[str], None] = _quiet,
    ) -> Self:
        """Build a lab, and return when hosts reach each other and all switches answer.

        Raises
        ------
        LabError
            It is up already (and not `replace`), or this machine cannot; then nothing is left.
        """
        check_machine(*NEEDED)
        if backend is not Backend.OFF:
            switch_program()
        state, groups = State(spec.name), Groups(spec.name)
        if state.folder.exists() or groups.exists():
            with state.changing("see whether it is up"):
                whole = not replace and cls._open(spec.name) is not None
            if whole:
                msg = (
                    f"lab `{spec.name}` is up already\n  hint: `raddle lab down`, --replace, or "
                    "another --name"
                )
                raise LabError(msg)
            tell("removing what is left of it")
            cls.down(spec.name)
        ours = True
        try:
            try:
                state.make()
            except FileExistsError:
                ours = False
                msg = f"another raddle is building lab `{spec.name}`: wait for it, or take --name"
                raise LabError(msg) from None
            with state.changing("build it"):
                return cls._build(spec, backend, state, groups, tell)
        except BaseException:
            if ours:
                _remove(state, groups)
            raise

    @classmethod
    def find(cls, name: str) -> Self:
        """Open a lab that is up."""
        check_machine()
        check_name(name)
        lab = cls._open(name)
        if lab is None:
            msg = (
                f"lab `{name}` is not complete: it is being built, or parts of it were killed\n"
                "  hint: `raddle lab down` removes what is left of it"
                if name in cls.known()
                else f"there is no lab `{name}`\n  hint: `raddle lab up` makes one"
            )
            raise LabError(msg)
        return lab

    @classmethod
    def known(cls) -> list[str]:
        """Names of all labs of which anything exists."""
        check_machine()
        return sorted(names() | cgroups.known_names())

    @classmethod
    def down(cls, name: str) -> bool:
        """End all that runs in a lab and remove every trace of it; whether there was one.

        Needs only the name: it also removes a lab that is half built, whose processes were
        killed, or whose folder is lost.
        """
        check_machine()
        check_name(name)
        state, groups = State(name), Groups(name)
        if not state.folder.exists() and not groups.exists():
            return False
        with state.changing("take it down"):
            _remove(state, groups)
        return True

    @property
    def backend(self) -> Backend:
        """What its switches run."""
        return self.state.read_backend()[0]

    def use(self, backend: Backend) -> None:
        """Give all switches another back-end, in place, and return when they answer."""
        if backend is self.backend:
            return
        if backend is not Backend.OFF:
            switch_program()
        with self.state.alone(backend), self.state.changing(f"change to {backend}"):
            switches.change(self.state, self.groups, self.topology, self.holders, backend)
            self._await_answers(hosts=False)

    def command(self, node: str, words: list[str], part: str = "exec") -> list[str]:
        """`words` as a command that runs on a host or switch, in the folder where the user is."""
        if node not in self.holders:
            self.topology.host(node)
        inside = entering(self.holders[node].process, words, Path.cwd())
        return joining(self.groups.files(part), inside)

    def environment(self) -> dict[str, str]:
        """The environment of programs inside."""
        return {
            **os.environ,
            "PATH": program_path(),
            "TMPDIR": str(self.state.temporary),
        }

    @contextmanager
    def run(self) -> Iterator[str]:
        """A part of the lab for one run; at its end all that is left in it is killed."""
        part = f"run-{os.getpid()}-{secrets.token_hex(2)}"
        (self.groups.track / part).mkdir()
        try:
            with self.state.running():
                yield part
        finally:
            self.groups.end(part)
            self.groups.remove(part)

    def end_switch(self, name: str, *, at_once: bool = False) -> None:
        """End the `raddle-switch` of a switch, or kill it without a word (`at_once`)."""
        with self.state.changing(f"end {name}"):
            switches.stop([self._switch_process(name)], at_once=at_once)

    def start_switch(self, name: str) -> None:
        """Start the `raddle-switch` of a switch that was ended."""
        with self.state.changing(f"start {name}"):
            process = self._switch_process(name)
            if process.alive():
                return
            backend, running = self.state.read_backend()
            switch = self.topology.switch(name)
            running[name] = switches.start(
                self.state, self.groups, switch, self.holders[name], backend
            )
            self.state.write_backend(backend, running)
            self._await_answers(hosts=False)

    def status(self) -> dict[str, Any]:
        """Everything about the lab, as JSON."""
        backend, running = self.state.read_backend()
        spec = self.topology.spec
        bridge = backend is Backend.OFF
        ours = {*self.groups.processes("nodes"), *self.groups.processes("switches")}
        return {
            "name": spec.name,
            "offload": backend.value,
            "sockets": spec.sockets,
            "hosts_per_tor": spec.hosts_per_tor,
            "rates_bps": list(spec.rates) or None,
            "up_s": round(time.time() - self.since, 1),
            "processes": len(set(self.groups.processes()) - ours),
            "folder": str(self.state.folder),
            "hosts": [
                {
                    "name": host.name,
                    "addresses": list(host.addresses),
                    "tor": host.tor,
                    "holder": self.holders[host.name].process,
                }
                for host in self.topology.hosts
            ],
            "switches": [
                {
                    "name": switch.name,
                    "address": switch.address,
                    "tier": switch.tier,
                    "rail": switch.rail,
                    "ports": [port.interface for port in switch.ports],
                    "holder": self.holders[switch.name].process,
                    "process": None if bridge else running[switch.name].process,
                    "works": bridge or running[switch.name].alive(),
                    "log": str(self.state.logs / f"{switch.name}.log"),
                    "status_socket": str(switches.status_socket(self.state, switch.name)),
                }
                for switch in self.topology.switches
            ],
        }

    @classmethod
    def _open(cls, name: str) -> Self | None:
        """The lab, if it is complete and all that keeps it is alive."""
        state = State(name)
        noted = state.read()
        if noted is None:
            return None
        spec, holders, since = noted
        if not all(holder.alive() for holder in holders.values()):
            return None
        return cls(Topology(spec), holders, since, state, Groups(name))

    @classmethod
    def _build(
        cls,
        spec: LabSpec,
        backend: Backend,
        state: State,
        groups: Groups,
        tell: Callable[[str], None],
    ) -> Self:
        topology = Topology(spec)
        groups.make()
        tell(f"namespaces of {len(topology.hosts)} hosts, {len(topology.switches)} switches")
        state.hosts.write_text(topology.hosts_file())
        state.secret.touch(mode=0o600)
        state.secret.write_text(secrets.token_hex(SECRET_BYTES) + "\n")
        state.agent.write_text(AGENT.format(nodes=state.nodes))
        state.agent.chmod(0o755)
        holders = start_holders(topology.nodes, state.folder, groups)
        for node, holder in holders.items():
            (state.nodes / node).write_text(f"{holder.process}\n")
        tell(f"{len(topology.links)} links")
        network.build_links(topology, holders)
        tell("switches")
        switches.change(state, groups, topology, holders, backend)
        lab = cls(topology, holders, time.time(), state, groups)
        tell("waiting until all answer")
        lab._await_answers(hosts=True)
        state.write(spec, holders)
        return lab

    def _await_answers(self, *, hosts: bool) -> None:
        _, running = self.state.read_backend()
        dead: list[str] = []

        def hope() -> bool:
            dead[:] = [name for name, process in running.items() if not process.alive()]
            return not dead

        missing = unreachable(self.topology, self.holders, READY_S, hope, hosts=hosts)
        if not missing:
            return
        if dead:
            msg = f"raddle-switch of {dead[0]} ended:{switches.log_tail(self.state, dead[0])}"
            raise LabError(msg)
        by_address = {s.address: s.name for s in self.topology.switches}
        silent = sorted({by_address[target] for _, target in missing if target in by_address})
        pairs = ", ".join(f"{host} to {by_address.get(t, t)}" for host, t in missing[:4])
        logs = {name: switches.log_tail(self.state, name) for name in silent[:2]}
        tails = "".join(f"\nlog of {name}:{tail}" for name, tail in logs.items() if tail)
        msg = (
            f"{len(missing)} ways of lab `{self.topology.spec.name}` do not work after "
            f"{READY_S:.0f} s: {pairs}{tails}"
        )
        raise LabError(msg)

    def _switch_process(self, name: str) -> Holder:
        self.topology.switch(name)
        backend, running = self.state.read_backend()
        if backend is Backend.OFF:
            msg = f"{name} is a bridge of the kernel (--offload off): it has no process"
            raise LabError(msg)
        return running[name]


def _remove(state: State, groups: Groups) -> None:
    """Kill everything inside, then remove groups and folder."""
    if os.getpid() in groups.processes():
        msg = "this shell runs inside the lab and would end with it: run `raddle lab down` outside"
        raise LabError(msg)
    for process in _strangers(state):
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    groups.end()
    groups.remove()
    state.remove()


def _strangers(state: State) -> list[int]:
    """Processes in the lab's networks that came there by other ways, as by `nsenter`.

    Only the namespaces of holders that still live are asked for: a dead one's number may be
    somebody else's by now.
    """
    noted = state.read()
    if noted is None:
        return []
    _, holders, _ = noted
    networks: set[int] = set()
    for holder in holders.values():
        if holder.alive():
            with contextlib.suppress(OSError):
                networks.add(holder.namespace("net"))
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            with contextlib.suppress(OSError):
                if (entry / "ns" / "net").stat().st_ino in networks:
                    found.append(int(entry.name))
    return found
