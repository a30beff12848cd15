"""The life of a lab: up, use, down."""

import contextlib
import os
import secrets
import signal
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from raddle.errors import LabError
from raddle.services.lab import cgroups, network, switches
from raddle.services.lab.cgroups import Groups
from raddle.services.lab.namespaces import Holder, entering, joining, start_holders
from raddle.services.lab.reach import unreachable
from raddle.services.lab.state import Running, State, names
from raddle.services.lab.tools import NEEDED, check_machine, program_path, switch_program
from raddle.services.lab.topology import Backend, LabSpec, Topology, check_name
from raddle.text import many, verb

__all__ = ["Lab"]

READY_S = 10.0
READY_PER_SWITCH_S = 2.0
"""How long it may take until all answer: the kernel checks the XDP program of each switch, a third
of a second of one core."""

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
        spec.protocol.check(backend)
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
    def find(cls, name: str, *, say: Callable[[str], None] = _quiet) -> Self:
        """Open a lab that is up.

        If a change of its back-end was cut off, what ran before runs again, and `say` is told.
        """
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
        lab._mend(say)
        return lab

    @classmethod
    def seen(cls, name: str) -> Self | None:
        """The lab if it is up and complete, left as it is: nobody's change is mended."""
        return cls._open(name)

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
    def name(self) -> str:
        """What it is called."""
        return self.topology.spec.name

    @property
    def backend(self) -> Backend:
        """What its switches run."""
        return self.state.read_running().backend

    def use(self, backend: Backend, *, tell: Callable[[str], None] = _quiet) -> None:
        """Give all switches another back-end, in place, and return when they answer.

        Raises
        ------
        LabError
            A program runs inside, or the switches do not answer; then what ran before runs again.
        """
        if self.state.read_running().settled_on(backend):
            return
        if backend is not Backend.OFF:
            switch_program()
        with self.state.changing(f"change to {backend}"):
            before = self.state.read_running()
            if before.settled_on(backend):
                return  # somebody else was faster
            with self.state.alone(backend):
                self._change(before, backend, tell)

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
            process = self._switch_process(name)
            switches.stop([] if process is None else [process], at_once=at_once)

    def start_switch(self, name: str) -> None:
        """Start the `raddle-switch` of a switch that was ended."""
        with self.state.changing(f"start {name}"):
            process = self._switch_process(name)
            if process is not None and process.alive():
                return
            running = self.state.read_running()
            logged = {name: switches.log_end(self.state, name)}
            running.processes[name] = switches.start(
                self.state, self.groups, self.topology.switch(name), self.holders[name],
                running.backend,
            )  # fmt: skip
            self.state.write_running(running)
            started = {name: running.processes[name]}
            self._await_answers(started, logged, hosts=False, idle=self.idle_switches())

    def idle_switches(self) -> list[str]:
        """Names of the switches that forward nothing, because their `raddle-switch` has ended."""
        running = self.state.read_running()
        return [s.name for s in self.topology.switches if not running.works(s.name)]

    def status(self) -> dict[str, Any]:
        """Everything about the lab, as JSON."""
        running = self.state.read_running()
        spec = self.topology.spec
        ours = {*self.groups.processes("nodes"), *self.groups.processes("switches")}
        return {
            "name": spec.name,
            "offload": running.backend.value,
            "changing_to": None if running.changing_to is None else running.changing_to.value,
            "protocol": spec.protocol.value,
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
                    "process": running.process(switch.name),
                    "works": running.works(switch.name),
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
        tell(
            f"namespaces of {many(len(topology.hosts), 'host')}, "
            f"{many(len(topology.switches), 'switch')}"
        )
        state.hosts.write_text(topology.hosts_file())
        state.secret.touch(mode=0o600)
        state.secret.write_text(secrets.token_hex(SECRET_BYTES) + "\n")
        state.agent.write_text(AGENT.format(nodes=state.nodes))
        state.agent.chmod(0o755)
        holders = start_holders(topology.nodes, state.folder, groups)
        for node, holder in holders.items():
            (state.nodes / node).write_text(f"{holder.process}\n")
        tell(many(len(topology.links), "link"))
        network.build_links(topology, holders)
        tell("switches")
        state.write_running(Running(Backend.OFF, {}, changing_to=backend))
        lab = cls(topology, holders, time.time(), state, groups)
        lab._put(backend, tell, hosts=True)
        state.write(spec, holders)
        return lab

    def _change(self, before: Running, to: Backend, tell: Callable[[str], None]) -> None:
        """Change what the switches run; if that fails, or is interrupted, change it back."""
        self.state.write_running(replace(before, changing_to=to))
        tell(f"the switches change from {before.backend} to {to}")
        try:
            self._put(to, tell)
        except LabError as failure:
            self._put_back(before.backend, tell, f"{failure}\n  ")
            msg = f"{failure}\n  lab `{self.name}` runs {before.backend} again"
            raise LabError(msg) from failure
        except BaseException:
            self._put_back(before.backend, tell)
            raise

    def _put_back(self, backend: Backend, tell: Callable[[str], None], failure: str = "") -> None:
        tell(f"the switches change back to {backend}")
        try:
            self._put(backend, tell)
        except LabError as again:
            msg = (
                f"{failure}{backend} cannot be put back: {again}\n  hint: `raddle lab up --name "
                f"{self.name} --replace` builds the lab anew"
            )
            raise LabError(msg) from again

    def _put(self, to: Backend, tell: Callable[[str], None], *, hosts: bool = False) -> None:
        """Put a back-end into all switches, whatever is there, and wait until they answer."""
        place = (self.state, self.groups, self.topology, self.holders)
        switches.clear(*place)
        logged = {s.name: switches.log_end(self.state, s.name) for s in self.topology.switches}
        processes = switches.fill(*place, to)
        tell("waiting until all answer")
        self._await_answers(processes, logged, hosts=hosts)
        self.state.write_running(Running(to, processes))

    def _mend(self, say: Callable[[str], None]) -> None:
        """Put back what ran before a change whose raddle was killed."""
        if self.state.read_running().changing_to is None:
            return
        with self.state.unless_changing() as ours:
            cut_off = self.state.read_running()
            if not ours or cut_off.changing_to is None:
                return
            self._put_back(cut_off.backend, _quiet)
        say(
            f"lab `{self.name}`: a change from {cut_off.backend} to "
            f"{cut_off.changing_to} was cut off; {cut_off.backend} runs again"
        )

    def _await_answers(
        self,
        processes: Mapping[str, Holder],
        logged: Mapping[str, int],
        *,
        hosts: bool,
        idle: Collection[str] = (),
    ) -> None:
        """Wait until all switches answer but those that are `idle`, and `hosts` each other.

        `processes` are the `raddle-switch` just started, `logged` what each had logged before.
        """
        dead: list[str] = []

        def hope() -> bool:
            dead[:] = [name for name, process in processes.items() if not process.alive()]
            return not dead

        def tail(name: str) -> str:
            return switches.log_tail(self.state, name, logged.get(name, 0))

        patience_s = READY_S + READY_PER_SWITCH_S * len(processes)
        missing = unreachable(self.topology, self.holders, patience_s, hope, hosts=hosts, idle=idle)
        if not missing:
            return
        if dead:
            msg = f"raddle-switch of {dead[0]} ended:{tail(dead[0]) or ' it logged nothing'}"
            raise LabError(msg)
        by_address = {s.address: s.name for s in self.topology.switches}
        silent = sorted({by_address[target] for _, target in missing if target in by_address})
        pairs = ", ".join(f"{host} to {by_address.get(t, t)}" for host, t in missing[:4])
        logs = {name: tail(name) for name in silent[:2]}
        tails = "".join(f"\nlog of {name}:{text}" for name, text in logs.items() if text)
        msg = (
            f"{many(len(missing), 'way')} of lab `{self.name}` "
            f"{verb(len(missing), 'does', 'do')} not work after "
            f"{patience_s:.0f} s: {pairs}{tails}"
        )
        raise LabError(msg)

    def _switch_process(self, name: str) -> Holder | None:
        self.topology.switch(name)
        running = self.state.read_running()
        if running.backend is Backend.OFF:
            msg = f"{name} is a bridge of the kernel (--offload off): it has no process"
            raise LabError(msg)
        return running.processes.get(name)


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
