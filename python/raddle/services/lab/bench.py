"""Times of messages, sums and exchanges between hosts of a lab, measured by `host_costs.c`.

Ranks are pinned to processors, since the kernel else moves two that wait and compute onto one now
and then.
"""

import json
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from raddle.errors import LabError
from raddle.services.lab.mpi import MpiRun, prepared
from raddle.services.lab.topology import Backend
from raddle.services.lab.virtual import Lab
from raddle.statistics.host_costs import Row, middle
from raddle.text import many

__all__ = ["BLOCKS", "BYTES", "PROGRAMS", "Bench", "Loop", "compiled", "pinned"]

SOURCE = Path(__file__).resolve().parent / "host_costs.c"
COMPILER = "mpicc.openmpi"
BYTES = (8, 512, 2048, 8192, 16384, 32768)
"""Up to Open MPI's eager limit for TCP, 64 KiB."""
BLOCKS = 20
PROGRAMS = 3
"""Each is run so often, since a program's pages and threads lie better in one than in another."""
PROFILES = {
    "scheduled": 'schema = 1\n[environment]\nRADDLE_SCHEDULE = "on"\nRADDLE_OFFLOAD = "never"\n',
    "offloaded": 'schema = 1\n[environment]\nRADDLE_OFFLOAD = "always"\n',
}
"""Advice under which Raddle's library carries messages, or sums."""


def compiled(folder: Path) -> Path:
    """The measuring program, compiled in `folder`.

    Raises
    ------
    LabError
        There is no compiler for MPI programs, or it fails.
    """
    if shutil.which(COMPILER) is None:
        msg = (
            f"{COMPILER}: not installed; the measuring program is compiled with it\n"
            "  hint: install the Debian package libopenmpi-dev"
        )
        raise LabError(msg)
    program = folder / SOURCE.stem
    words = [COMPILER, "-O2", "-o", str(program), str(SOURCE)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        msg = f"{COMPILER} cannot compile {SOURCE.name}:\n{done.stderr.strip()[:1000]}"
        raise LabError(msg)
    return program


def pinned(words: Sequence[str], processors: int) -> tuple[str, ...]:
    """The words that give each rank one of so many processors, in turn."""
    pin = f'exec taskset --cpu-list "$((OMPI_COMM_WORLD_RANK % {processors}))" "$@"'
    return ("sh", "-c", pin, "sh", *words)


@dataclass(frozen=True, slots=True)
class Loop:
    """A walk through memory, then a sum ("sums") or an exchange with both neighbours ("ring").

    `carrier` has the sums: "host" or "offload".
    """

    what: str
    carrier: str
    size: int
    hosts: int
    processors: int


@dataclass(frozen=True, slots=True)
class Bench:
    """A lab that is up, and the program that measures there.

    `tell` is told what is measured.
    """

    lab: Lab
    program: Path
    folder: Path
    tell: Callable[[str], None]

    def messages(self, ppn: int = 1, *, scheduled: bool = False) -> list[Row]:
        """Times between two ranks: of two hosts, or of one that has both (`ppn` 2).

        Raises
        ------
        LabError
            The program fails.
        """
        how = ", scheduled" if scheduled else ""
        where = "between hosts" if ppn == 1 else "inside a host"
        self.tell(f"messages {where}{how}")
        hosts = 2 // ppn
        words = ("pairs", "1", "2", str(BLOCKS), *map(str, BYTES))
        profile = "scheduled" if scheduled else None
        return self._middle(hosts, ppn, words, hosts * ppn, Backend.OFF, profile)

    def loop(self, loop: Loop, backend: Backend = Backend.OFF) -> Row:
        """Times of a walk through memory and what a loop does after it, a rank on each host.

        Raises
        ------
        LabError
            The program fails.
        """
        where = f"{many(loop.hosts, 'host')} on {many(loop.processors, 'processor')}"
        self.tell(f"{loop.what} of {loop.size} B, {where}, switches {backend}")
        profile = None if backend is Backend.OFF else "offloaded"
        words = (loop.what, str(BLOCKS), str(loop.size))
        (row,) = self._middle(loop.hosts, 1, words, loop.processors, backend, profile)
        return row

    def _middle(
        self,
        hosts: int,
        ppn: int,
        words: Sequence[str],
        processors: int,
        backend: Backend,
        profile: str | None,
    ) -> list[Row]:
        advice = None
        if profile is not None:
            advice = self.folder / f"{profile}.toml"
            advice.write_text(PROFILES[profile])
        run = MpiRun(
            hosts=self.lab.topology.hosts[:hosts],
            ppn=(ppn,) * hosts,
            backend=backend,
            program=pinned((str(self.program), *words), processors),
            profile=advice,
            takes_messages=profile == "scheduled",
        )
        return middle([self._run(run) for _ in range(PROGRAMS)])

    def _run(self, run: MpiRun) -> list[Row]:
        with prepared(self.lab, run) as (command, environment):
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, check=False
            )
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
            msg = f"the measuring program ended with status {done.returncode}: {last[:200]}"
            raise LabError(msg)
        return [json.loads(row) for row in done.stdout.splitlines() if row.startswith("{")]
