"""`mpirun` inside a lab, with and without Raddle's library under the program."""

import os
import secrets
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from raddle.errors import LabError
from raddle.services.advice import Advice
from raddle.services.lab.jobs import job_key
from raddle.services.lab.tools import check_machine, mpi_library
from raddle.services.lab.topology import Backend, Host, Mode, Protocol
from raddle.services.lab.virtual import Lab
from raddle.text import many

__all__ = ["Mpi", "MpiRun", "execute", "parse_hosts", "parse_ppn", "prepared"]

JOBS = 2**32 - 1
MOST_RANKS_PER_HOST = 512
PATIENCE_S = 4.0


class Mpi(StrEnum):
    """Which MPI library starts the program."""

    OPENMPI = "openmpi"
    MPICH = "mpich"


OPENMPI_PARAMETERS = {
    "plm": "rsh",
    # A tree would start agents from other hosts than the first.
    "plm_rsh_no_tree_spawn": "1",
    "oob_tcp_if_include": "e0",
    "pml": "ob1",
    "btl": "tcp,self,vader",
    # More ranks than cores is the rule here: bound or spinning ones would wait for each other's
    # time slices, milliseconds for every message.
    "hwloc_base_binding_policy": "none",
    "rmaps_base_oversubscribe": "1",
    "mpi_yield_when_idle": "1",
}

HWLOC_COMPONENTS = "-pci,-linuxio"
"""A lab's hosts have no devices; in a virtual machine the look for them is a third of a launch."""

PMIX_STORE = "hash"
"""Ranks of other hosts cannot share memory, and a shared store takes 3 ms per host to set up."""

PROGRAMS = {Mpi.OPENMPI: "mpirun.openmpi", Mpi.MPICH: "mpiexec.mpich"}


@dataclass(frozen=True, slots=True)
class MpiRun:
    """A program under MPI. `ppn` has the ranks of each host; ranks of a host are consecutive."""

    hosts: tuple[Host, ...]
    ppn: tuple[int, ...]
    backend: Backend
    program: tuple[str, ...]
    mode: Mode | None = None
    protocol: Protocol | None = None
    mpi: Mpi = Mpi.OPENMPI
    mpi_args: tuple[str, ...] = ()
    recordings: Path | None = None
    """Folder where ranks record what they call."""
    profile: Path | None = None
    """An advice that Raddle's library follows."""
    takes_messages: bool = False
    """Whether the advice has the library carry point-to-point messages."""
    has_protocol: bool = False
    """Whether the advice names the protocol; otherwise it is the lab's."""

    def settings(self, lab: Lab, job: int) -> dict[str, str]:
        """What Raddle's library is told, by environment; nothing if the program runs without."""
        recorder = {} if self.recordings is None else {"RADDLE_RECORD": str(self.recordings)}
        if self.profile is not None:
            recorder["RADDLE_PROFILE"] = str(self.profile.absolute())
        if self.backend is Backend.OFF:
            return recorder
        key = job_key(lab.state.secret, job)
        settings = {"RADDLE_JOB": str(job), "RADDLE_JOB_KEY": key, **recorder}
        if self.mode is not None:
            settings["RADDLE_MODE"] = self.mode.value
        if self.protocol is not None:
            self.protocol.check(self.backend)
            settings["RADDLE_PROTOCOL"] = self.protocol.value
        return settings

    def command(self, lab: Lab) -> list[str]:
        """The words of mpirun. Only the program itself gets the library under it."""
        places = ",".join(f"{h.name}:{n}" for h, n in zip(self.hosts, self.ppn, strict=True))
        ranks = str(sum(self.ppn))
        layers = ("RADDLE_SCHEDULE", "RADDLE_RAILS")
        schedules = any(os.environ.get(name, "off") != "off" for name in layers)
        schedules |= self.takes_messages
        plain = self.backend is Backend.OFF and self.recordings is None and not schedules
        library = None if plain else mpi_library()
        if self.mpi is Mpi.OPENMPI:
            words = ["-H", places, "-np", ranks]
            preload = ["-x", f"LD_PRELOAD={library}"]
        else:
            words = ["-launcher", "ssh", "-launcher-exec", str(lab.state.agent), "-iface", "e0"]
            words += ["-hosts", places, "-n", ranks]
            preload = ["-genv", "LD_PRELOAD", str(library)]
        if library is not None:
            words += preload
        return [PROGRAMS[self.mpi], *words, *self.mpi_args, *self.program]

    def environment(self, lab: Lab, settings: Mapping[str, str]) -> dict[str, str]:
        """The environment of mpirun, which the agent hands on to every host.

        What the user has set wins. Parameters of the MPI library go by environment, so that
        `--mpi-args` win too.
        """
        ours = {
            "RADDLE_SOCKETS": str(lab.topology.spec.sockets),
            "RADDLE_PROTOCOL": lab.topology.spec.protocol.value,
            "RADDLE_INTERFACE": "e0",
            "HWLOC_COMPONENTS": HWLOC_COMPONENTS,
        }
        if self.has_protocol:
            del ours["RADDLE_PROTOCOL"]
        rails = ",".join(f"e{k}" for k in range(lab.topology.spec.rails))
        if self.mpi is Mpi.OPENMPI:
            defaults = {f"OMPI_MCA_{k}": v for k, v in OPENMPI_PARAMETERS.items()}
            defaults |= {
                "OMPI_MCA_plm_rsh_agent": str(lab.state.agent),
                "OMPI_MCA_btl_tcp_if_include": rails,
                "PMIX_MCA_gds": PMIX_STORE,
                "OMPI_ALLOW_RUN_AS_ROOT": "1",
                "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            }
        else:
            defaults = {"UCX_NET_DEVICES": rails, "UCX_TLS": "tcp,self,sysv,posix,cma"}
        return {**ours, **defaults, **lab.environment(), **settings}


@contextmanager
def prepared(lab: Lab, run: MpiRun) -> Iterator[tuple[list[str], dict[str, str]]]:
    """Command and environment of a run, for which the switches are ready while the block runs.

    At its end, also by an interrupt, nothing of the run is left. If this process itself is killed,
    mpirun is asked to end by the kernel.
    """
    check_machine(PROGRAMS[run.mpi], "setpriv")
    settings = run.settings(lab, 1 + secrets.randbelow(JOBS))
    while True:
        lab.use(run.backend)
        with lab.run() as part:
            if lab.backend is not run.backend:
                continue  # somebody else was faster
            inside = lab.command(run.hosts[0].name, run.command(lab), part)
            yield ["setpriv", "--pdeathsig", "TERM", *inside], run.environment(lab, settings)
            return


def execute(lab: Lab, run: MpiRun) -> int:
    """Run a program and wait for it; its exit status, or 128 and the signal that it died of."""
    with prepared(lab, run) as (command, environment):
        status = _wait(subprocess.Popen(command, env=environment))
    return status if status >= 0 else 128 - status


def _wait(process: subprocess.Popen[bytes]) -> int:
    """Wait for mpirun; an interrupt gives it time to end the program by itself."""
    try:
        return process.wait()
    except KeyboardInterrupt:
        # From a terminal it has had the signal too; TERM is for a signal to us alone.
        for patience in (PATIENCE_S / 4, PATIENCE_S):
            try:
                process.wait(patience)
            except subprocess.TimeoutExpired:
                process.terminate()
        raise


def parse_hosts(lab: Lab, text: str | None) -> tuple[Host, ...]:
    """Hosts of a run: a number of them (the first ones), names with commas, or all."""
    hosts = lab.topology.hosts
    if text is None:
        return hosts
    if text.isdecimal():
        number = int(text)
        if not 1 <= number <= len(hosts):
            msg = f"{many(number, 'host')}: lab `{lab.topology.spec.name}` has {len(hosts)}"
            raise LabError(msg)
        return hosts[:number]
    names = text.split(",")
    if len(set(names)) < len(names):
        msg = f"`{text}` names a host twice; --ppn says how many ranks a host has"
        raise LabError(msg)
    return tuple(lab.topology.host(name) for name in names)


def advised_hosts(lab: Lab, advice: Advice) -> tuple[tuple[Host, ...], tuple[int, ...]] | None:
    """Hosts of an advice, and the ranks of each; None if it names none, or others than a lab's."""
    known = {host.name: host for host in lab.topology.hosts}
    if not advice.hosts or any(name not in known for name, _ in advice.hosts):
        return None
    names, ranks = zip(*advice.hosts, strict=True)
    return tuple(known[name] for name in names), ranks


def parse_ppn(text: str, hosts: int) -> tuple[int, ...]:
    """Ranks of each host: one number for all, or one for each.

    >>> parse_ppn("2", 3)
    (2, 2, 2)
    >>> parse_ppn("1,3,2", 3)
    (1, 3, 2)
    """
    words = text.split(",")
    if not all(w.isdecimal() and 1 <= int(w) <= MOST_RANKS_PER_HOST for w in words):
        msg = f"`{text}` is not a number of ranks: write 2, or 1,3,2 for three hosts"
        raise LabError(msg)
    numbers = tuple(map(int, words))
    if len(numbers) == 1:
        return numbers * hosts
    if len(numbers) != hosts:
        msg = f"--ppn {text} has {len(numbers)} numbers for {many(hosts, 'host')}"
        raise LabError(msg)
    return numbers
