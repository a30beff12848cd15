"""What is written about a lab under /run/raddle/lab, and who may change it when.

Only `lab.json` and `backend.json` are ever read back. The folder is locked (flock) while a lab is
built, taken down or changes its back-end; a run inside holds a shared lock on `runs`, so that
nobody changes the switches under it. The kernel gives up the locks of a process that dies.
"""

import contextlib
import fcntl
import json
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raddle.errors import LabError
from raddle.files import write_json
from raddle.services.lab.namespaces import Holder
from raddle.services.lab.topology import Backend, LabSpec, Protocol

__all__ = ["BASE", "Running", "State", "names"]

BASE = Path("/run/raddle/lab")
PATIENCE_S = 30.0


@dataclass(frozen=True, slots=True)
class Running:
    """What the switches of a lab run."""

    backend: Backend
    processes: dict[str, Holder]
    """The `raddle-switch` of each switch; none for a bridge of the kernel."""

    changing_to: Backend | None = None
    """The back-end that somebody is putting in its place, or was when they were killed."""

    def settled_on(self, backend: Backend) -> bool:
        """Whether they run this one and are not about to change."""
        return self.backend is backend and self.changing_to is None

    def process(self, switch: str) -> int | None:
        """Number of the process of a switch; None for a bridge, or if there never was one."""
        process = self.processes.get(switch)
        return None if process is None else process.process

    def works(self, switch: str) -> bool:
        """Whether a switch forwards frames."""
        process = self.processes.get(switch)
        return self.backend is Backend.OFF or (process is not None and process.alive())


def names() -> set[str]:
    """Names of labs that have a folder."""
    return {entry.name for entry in BASE.iterdir() if entry.is_dir()} if BASE.is_dir() else set()


class State:
    """The folder of one lab."""

    def __init__(self, name: str) -> None:
        self.folder = BASE / name
        self.hosts = self.folder / "hosts"
        self.secret = self.folder / "secret"
        self.agent = self.folder / "agent"
        self.nodes = self.folder / "nodes"
        self.switches = self.folder / "switches"
        self.logs = self.folder / "log"
        self.temporary = self.folder / "tmp"

    def make(self) -> None:
        """Make the folder. Fails if it is there."""
        BASE.mkdir(parents=True, exist_ok=True)
        self.folder.mkdir(mode=0o755)
        # `tmp` and `sys` are where holders mount.
        for folder in (self.nodes, self.switches, self.logs, self.temporary, self.folder / "sys"):
            folder.mkdir()

    def remove(self) -> None:
        """Remove the folder, and those above it that are empty."""
        shutil.rmtree(self.folder, ignore_errors=True)
        if self.folder.exists():
            shutil.rmtree(self.folder)  # the reason why it could not be removed
        for above in (BASE, BASE.parent):
            with contextlib.suppress(OSError):
                above.rmdir()

    def write(self, spec: LabSpec, holders: dict[str, Holder]) -> None:
        """Note that the lab is complete, and which processes keep it."""
        document = {
            "schema": 1,
            "spec": {
                "name": spec.name,
                "hosts": spec.hosts,
                "hosts_per_tor": spec.hosts_per_tor,
                "sockets": spec.sockets,
                "rails": spec.rails,
                "rates": list(spec.rates),
                "protocol": spec.protocol.value,
            },
            "holders": {h.node: [h.process, h.started] for h in holders.values()},
            "since": time.time(),
        }
        write_json(self.folder / "lab.json", document)

    def read(self) -> tuple[LabSpec, dict[str, Holder], float] | None:
        """What `write` noted: the wish, the holders, since when; None if the lab is incomplete."""
        document = self._json("lab.json")
        if document is None:
            return None
        spec = document["spec"]
        holders = {n: Holder(n, p, s) for n, (p, s) in document["holders"].items()}
        rates, protocol = tuple(spec.pop("rates")), Protocol(spec.pop("protocol"))
        return LabSpec(**spec, rates=rates, protocol=protocol), holders, float(document["since"])

    def write_running(self, running: Running) -> None:
        """Note what the switches run."""
        processes = {name: [h.process, h.started] for name, h in running.processes.items()}
        document = {
            "schema": 1,
            "backend": running.backend.value,
            "processes": processes,
            "changing_to": None if running.changing_to is None else running.changing_to.value,
        }
        write_json(self.folder / "backend.json", document)

    def read_running(self) -> Running:
        """What the switches run, as far as it is noted."""
        document = self._json("backend.json")
        if document is None:
            return Running(Backend.OFF, {})
        processes = {n: Holder(n, p, s) for n, (p, s) in document["processes"].items()}
        to = document.get("changing_to")
        return Running(Backend(document["backend"]), processes, None if to is None else Backend(to))

    @contextmanager
    def changing(self, doing: str) -> Iterator[None]:
        """Nobody else builds, changes or removes the lab while the block runs."""
        with self._locked(self.folder, fcntl.LOCK_EX, PATIENCE_S) as got:
            if not got:
                msg = (
                    f"another raddle is at work on lab `{self.folder.name}`; waited "
                    f"{PATIENCE_S:.0f} s to {doing}"
                )
                raise LabError(msg)
            yield

    @contextmanager
    def unless_changing(self) -> Iterator[bool]:
        """The same if nobody is at work on it; else false, at once."""
        with self._locked(self.folder, fcntl.LOCK_EX, 0.0) as got:
            yield got

    @contextmanager
    def running(self) -> Iterator[None]:
        """The switches stay as they are while the block runs."""
        with self._locked(self.switches, fcntl.LOCK_SH, PATIENCE_S) as got:
            if not got:
                msg = "another raddle is changing the back-end of this lab and does not end"
                raise LabError(msg)
            yield

    @contextmanager
    def alone(self, wanted: Backend) -> Iterator[None]:
        """No program runs inside while the block runs."""
        with self._locked(self.switches, fcntl.LOCK_EX, 0.0) as got:
            if not got:
                backend = self.read_running().backend
                msg = (
                    f"a program runs in lab `{self.folder.name}` with --offload {backend}: the "
                    f"switches cannot change to {wanted} now\n"
                    "  hint: wait for it, or make another lab with --name"
                )
                raise LabError(msg)
            yield

    @contextmanager
    def _locked(self, folder: Path, how: int, patience_s: float) -> Iterator[bool]:
        try:
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            yield True  # taken down meanwhile: nothing to protect
            return
        try:
            yield _flock(handle, how, patience_s)
        finally:
            os.close(handle)

    def _json(self, name: str) -> dict[str, Any] | None:
        try:
            document: dict[str, Any] = json.loads((self.folder / name).read_text())
        except (OSError, ValueError):
            return None
        return document


def _flock(handle: int, how: int, patience_s: float) -> bool:
    deadline = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(handle, how | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.01)
        else:
            return True
