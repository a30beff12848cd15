"""Control groups of a lab: one that gives it the CPUs, one that knows all its processes.

The scheduler's autogroups would make a lab's processes compete as one session with everything
else on the machine, and a round would take milliseconds. In a control group of their own they are
peers. With version 1 that group is in the hierarchy of `cpu`; the processes are tracked in version
2 if it is mounted beside (as systemd does), else in another version 1 hierarchy. With version 2
alone one tree does both; the groups of runs below it are not CPU groups, because that controller
is not switched on for them: the processes stay peers.
"""

import contextlib
import os
import signal
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from raddle.errors import LabError
from raddle.services.lab.processes import started_at

__all__ = ["CPU_FACTOR", "Groups", "find_mounts", "known_names"]

PREFIX = "raddle-lab-"
"""Begins the name of every group of ours; nothing else is touched."""

CPU_FACTOR = 8
"""A lab's weight on a busy CPU, in that of an ordinary session."""

DEFAULT_SHARES, DEFAULT_WEIGHT = 1024, 100
TRACKERS = ("pids", "freezer", "name=systemd")
PATIENCE_S = 5.0


@dataclass(frozen=True, slots=True)
class Mounts:
    """Where the hierarchies are mounted: `cpu_v1` is None if version 2 has the CPUs."""

    cpu_v1: Path | None
    tracking: Path


@cache
def mounts() -> Mounts:
    """The hierarchies of this machine."""
    return find_mounts(Path("/proc/self/mountinfo").read_text())


def find_mounts(table: str) -> Mounts:
    """Find the hierarchies in a table of mounts (proc(5), mountinfo)."""
    version2: Path | None = None
    version1: dict[str, Path] = {}
    for line in table.splitlines():
        head, _, tail = line.partition(" - ")
        point = Path(head.split()[4])
        kind, _, options = tail.split(" ", 2)
        if kind == "cgroup2":
            version2 = version2 or point
        elif kind == "cgroup":
            for controller in options.split(" ")[-1].split(","):
                version1.setdefault(controller, point)
    tracking = version2 or next((version1[t] for t in TRACKERS if t in version1), None)
    if tracking is None:
        msg = (
            "no control groups are mounted: a lab needs them to find its processes again\n"
            "  hint: mount -t cgroup2 none /sys/fs/cgroup"
        )
        raise LabError(msg)
    return Mounts(version1.get("cpu"), tracking)


def known_names() -> set[str]:
    """Names of labs that have a group, with or without anything else."""
    roots = {mounts().tracking, mounts().cpu_v1 or mounts().tracking}
    found = (group for root in roots for group in root.glob(f"{PREFIX}*"))
    return {group.name.removeprefix(PREFIX) for group in found}


class Groups:
    """The groups of one lab."""

    def __init__(self, name: str) -> None:
        self.track = mounts().tracking / f"{PREFIX}{name}"
        cpu = mounts().cpu_v1
        self.cpu = None if cpu is None else cpu / f"{PREFIX}{name}"

    def make(self) -> None:
        """Make the groups, and give the lab its share of the CPUs."""
        self.track.mkdir(exist_ok=True)
        if self.cpu is not None:
            self.cpu.mkdir(exist_ok=True)
            (self.cpu / "cpu.shares").write_text(str(DEFAULT_SHARES * CPU_FACTOR))
        else:
            root = self.track.parent
            # Without the right to switch the controller on, the lab works, only slower.
            with contextlib.suppress(OSError):
                (root / "cgroup.subtree_control").write_text("+cpu")
                (self.track / "cpu.weight").write_text(str(DEFAULT_WEIGHT * CPU_FACTOR))
        for part in ("nodes", "switches", "exec"):
            (self.track / part).mkdir(exist_ok=True)

    def files(self, part: str) -> list[Path]:
        """The files into which a process writes its id to become part of the lab."""
        joins = [self.track / part / "cgroup.procs"]
        if self.cpu is not None:
            joins.append(self.cpu / "cgroup.procs")
        return joins

    def exists(self) -> bool:
        """Whether any group of the lab is there."""
        return self.track.exists() or (self.cpu is not None and self.cpu.exists())

    def processes(self, part: str = "") -> list[int]:
        """Ids of the processes in a part of the lab, or in all of it."""
        found: list[int] = []
        for folder in _tree(self.track / part):
            with contextlib.suppress(OSError):
                found += map(int, (folder / "cgroup.procs").read_text().split())
        return found

    def end(self, part: str = "", patience_s: float = PATIENCE_S) -> None:
        """Kill all processes of a part, or of the lab, and wait until they are gone."""
        top = self.track / part
        deadline = time.monotonic() + patience_s
        # A group forgets a process before its last thread has given back what it holds.
        ending: dict[int, int] = {}
        while True:
            members = self.processes(part)
            ending |= {p: started for p in members if (started := started_at(p)) is not None}
            # A group can be killed as a whole since Linux 5.14; else until no fork is left.
            with contextlib.suppress(OSError):
                (top / "cgroup.kill").write_text("1")
            for process in members:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
            ending = {p: started for p, started in ending.items() if started_at(p) == started}
            left = sorted({*ending, *self.processes(part)})
            if not left:
                return
            if time.monotonic() > deadline:
                numbers = ", ".join(map(str, left[:8]))
                msg = f"these processes cannot be killed: {numbers} (waiting in the kernel?)"
                raise LabError(msg)
            time.sleep(0.005)

    def remove(self, part: str = "") -> None:
        """Remove the group of a part, or all groups of the lab; their processes are gone."""
        tops = [self.track / part]
        if not part and self.cpu is not None:
            tops.append(self.cpu)
        for folder in [f for top in tops for f in reversed(_tree(top))]:
            _remove(folder)


def _tree(top: Path) -> list[Path]:
    """A group and those below it, parents first."""
    if not top.is_dir():
        return []
    return [top, *(Path(folder) for folder, _, _ in os.walk(top) if Path(folder) != top)]


def _remove(folder: Path) -> None:
    """Remove a group; a process that has just ended may keep it busy for a moment."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            folder.rmdir()
        except FileNotFoundError:
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.005)
        else:
            return
