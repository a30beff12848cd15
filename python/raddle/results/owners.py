"""Who works at which run of a results folder, where several processes and machines may write it.

All of it lies in ``OUT/.runs/claims`` as long as somebody works:

``owners/TOKEN.json``
    a process: host, process id, start, and how far its runs are. It is written again every
    `BEAT_S`, so that the time of its last change is a sign of life.
``RUN.1``, ``RUN.2``, ...
    claims of a run. Who creates the next number owns the run; creating a file that must not exist
    yet is the one step that a file system must make atomic, and NFS does since version 3. A claim
    is never deleted or renamed, so that nobody can remove another's by mistake: a run whose owner
    died is taken over by creating the number after its.

A process of this machine is dead if the system does not know it. One of another machine is dead if
it gave no sign of life for `STALE_S`, by the clock of the file server alone: times of files are
compared with the time of a file that this process has just written. So clocks need not agree. An
owner that only slept and wakes up sees at its next beat that it lost its claims, and stops; what
it may have finished meanwhile is dropped by `raddle.results.parts.publish`.
"""

import json
import os
import secrets
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from raddle.files import replacing

__all__ = ["BEAT_S", "STALE_S", "Claim", "Claims", "Owner", "Process", "Work"]

BEAT_S = 10.0
"""A process gives a sign of life so often."""

STALE_S = 120.0
"""A process of another machine that gave no sign of life for so long is dead. NFS clients keep the
attributes of files for up to 60 s."""


@dataclass(frozen=True, slots=True)
class Process:
    """A process that works at runs."""

    token: str
    """Its name among all processes of all machines."""
    host: str
    pid: int
    started: str
    """When it started, as the system counts."""
    place: str
    """The start of the machine and the space of process ids that `pid` belongs to."""
    shard: str | None = None
    """Its part of the runs, as in `2/8`."""

    @classmethod
    def this(cls, shard: str | None = None) -> "Process":
        """The process that calls."""
        pid = os.getpid()
        return cls(
            token=secrets.token_hex(8),
            host=socket.gethostname(),
            pid=pid,
            started=_started(pid) or "",
            place=_place(),
            shard=shard,
        )

    @property
    def here(self) -> bool:
        """Whether the process ids of this machine are its own."""
        return self.place == _place()

    def runs(self) -> bool:
        """Whether the process is there; only for one that is `here`."""
        started = _started(self.pid)
        if started is not None:
            return started == self.started
        try:
            os.kill(self.pid, 0)
        except PermissionError:
            return True  # another user's, of whom the system does not tell
        except OSError:
            return False
        return not self.started  # where nobody knows starts, the number is all there is


@dataclass(frozen=True, slots=True)
class Work:
    """How far a run is, by its owner's last sign of life."""

    since: float
    """When it was begun, in seconds since 1970 by the owner's clock."""
    share: float = 0.0
    packet_hops: int = 0


@dataclass(frozen=True, slots=True)
class Claim:
    """The last claim of a run."""

    number: int
    """1, or more if the run was taken over."""
    process: Process | None
    """None if it died between creating the claim and writing it."""
    released: bool
    """Whether the process gave the run back."""
    beat: float
    """When its process gave the last sign of life, by the file server's clock."""
    work: Work | None = None


class Claims:
    """The claims of the results folder `top`; runs are named by their path from there."""

    def __init__(self, top: Path, *, stale_s: float = STALE_S) -> None:
        self.folder = top / ".runs" / "claims"
        self.stale_s = stale_s

    def last(self, key: str) -> Claim | None:
        """The last claim of a run; None if nobody ever claimed it."""
        number, found = 1, None
        while (read := _read(self.file(key, number))) is not None:
            found, number = read, number + 1
        if found is None:
            return None
        raw, written = found
        process = _process(raw.get("process"))
        beat, work = written, None
        if process is not None:
            sign = _read(self.sign(process.token))
            if sign is not None:
                beat, work = sign[1], _work(sign[0], key)
        return Claim(number - 1, process, bool(raw.get("released")), beat, work)

    def dead(self, claim: Claim, now: float) -> bool:
        """Whether a run may be taken over, at the time `now` of the file server."""
        return claim.released or not self._lives(claim.process, claim.beat, now)

    def _lives(self, process: Process | None, beat: float, now: float) -> bool:
        if process is not None and process.here:
            return process.runs()
        return now - beat <= self.stale_s

    def at_work(self) -> list[Process]:
        """Processes that are at work, by this machine's clock where they are on others."""
        return [
            process
            for process, beat, _ in self.processes()
            if self._lives(process, beat, time.time())
        ]

    def history(self, key: str) -> Iterator[tuple[Process | None, bool]]:
        """The process of every claim of a run, in order, and whether it gave the run back."""
        number = 1
        while (read := _read(self.file(key, number))) is not None:
            yield _process(read[0].get("process")), bool(read[0].get("released"))
            number += 1

    def processes(self) -> list[tuple[Process, float, Mapping[str, Work]]]:
        """Who is at work: each process, its last sign of life, and its runs."""
        found: list[tuple[Process, float, Mapping[str, Work]]] = []
        try:
            files = sorted((self.folder / "owners").iterdir())
        except OSError:
            return found
        for file in files:
            sign = _read(file) if file.suffix == ".json" else None
            process = None if sign is None else _process(sign[0].get("process"))
            if sign is not None and process is not None:
                runs = {key: _work(sign[0], key) or Work(0.0) for key in sign[0].get("runs", {})}
                found.append((process, sign[1], runs))
        return found

    @contextmanager
    def owner(self, shard: str | None = None, *, beat_s: float = BEAT_S) -> Iterator["Owner"]:
        """Be a process that claims runs while the block runs."""
        owner = Owner(self, Process.this(shard))
        stopped = threading.Event()

        def beat() -> None:
            while not stopped.wait(beat_s):
                owner.beat()

        with _naming(self.folder):
            (self.folder / "owners").mkdir(parents=True, exist_ok=True)
            owner.write()
        thread = threading.Thread(target=beat, name="raddle-beat", daemon=True)
        thread.start()
        try:
            yield owner
        finally:
            stopped.set()
            thread.join()
            with suppress(OSError):
                self.sign(owner.process.token).unlink()
                (self.folder / "owners").rmdir()  # where nothing else is left
                self.folder.rmdir()

    def clear(self) -> None:
        """Delete all claims: nothing is left to do, or nobody else can be at work."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def file(self, key: str, number: int) -> Path:
        """The file of a claim of a run."""
        return self.folder / f"{key}.{number}"

    def sign(self, token: str) -> Path:
        """The file by which a process gives its signs of life."""
        return self.folder / "owners" / f"{token}.json"


@dataclass(frozen=True, slots=True)
class _Held:
    """A run that is ours."""

    number: int
    since: float
    look: Callable[[], tuple[float, int]]
    lost: Callable[[], None]


class Owner:
    """A process, as it sees itself among the owners of runs; made by `Claims.owner`."""

    def __init__(self, claims: Claims, process: Process) -> None:
        self.claims = claims
        self.process = process
        self._sign = claims.sign(process.token)
        self._lock = threading.Lock()
        self._held: dict[str, _Held] = {}
        self._server = (time.time(), time.monotonic())

    @property
    def now(self) -> float:
        """The file server's time."""
        time_there, then = self._server
        return time_there + time.monotonic() - then

    def take(
        self,
        key: str,
        look: Callable[[], tuple[float, int]],
        lost: Callable[[], None],
        *,
        force: bool = False,
    ) -> Claim | None:
        """Claim a run, if nobody has it who lives; with `force` also then.

        Parameters
        ----------
        look
            Gives share and packet-hops; asked by every sign of life.
        lost
            Is called once if another process has taken the run over.

        Returns
        -------
        Claim | None
            Our claim, or None if the run is another's. After it, look again whether the run is
            done: it may have been finished before it was claimed.
        """
        if not self.wanted:
            return None
        before = self.claims.last(key)
        if before is not None and not force and not self.claims.dead(before, self.now):
            return None
        number = 1 if before is None else before.number + 1
        file = self.claims.file(key, number)
        with _naming(file):
            file.parent.mkdir(parents=True, exist_ok=True)
            try:
                with file.open("x", encoding="utf-8") as opened:
                    self._fill(opened.write)
            except FileExistsError:
                return None
            except OSError:
                with suppress(OSError):
                    file.unlink()  # nobody has had the time to find it stale
                raise
        with self._lock:
            self._held[key] = _Held(number, time.time(), look, lost)
        self.beat()
        return Claim(number, self.process, False, self.now)

    def release(self, key: str, *, done: bool) -> None:
        """Give up a claim; if the run is not `done`, others may take it at once."""
        with self._lock:
            held = self._held.pop(key, None)
        if held is None:
            return
        if not done:
            with suppress(OSError), replacing(self.claims.file(key, held.number)) as temporary:
                self._fill(lambda text: temporary.write_text(text), released=True)
        self.beat()

    @property
    def wanted(self) -> bool:
        """Whether the claims are still there: they are cleared when all is done or given up."""
        return self._sign.is_file()

    def lost(self, key: str) -> bool:
        """Whether a run that we took is another's now, or nobody's."""
        with self._lock:
            held = self._held.get(key)
        if held is None or not self.wanted:
            return True
        return self.claims.file(key, held.number + 1).exists()

    def beat(self) -> None:
        """Give a sign of life, and give up what others have taken over.

        Where the claims were cleared, nobody wants anything any more.
        """
        with self._lock:
            held = dict(self._held)
        for key, one in held.items():
            if self.lost(key):
                with self._lock:
                    self._held.pop(key, None)
                one.lost()
        if self.wanted:
            self.write(quietly=True)

    def write(self, *, quietly: bool = False) -> None:
        """Write the sign of life; `quietly` without an error if the disk is full."""
        with self._lock:
            runs = {key: asdict(Work(one.since, *one.look())) for key, one in self._held.items()}
            file = self._sign
            text = json.dumps({"process": asdict(self.process), "runs": runs}) + "\n"
            try:
                with replacing(file) as temporary:
                    temporary.write_text(text, encoding="utf-8")
            except OSError:
                if not quietly:
                    raise
                with suppress(OSError):
                    os.utime(file)  # without times of ours the server's clock is taken
            with suppress(OSError):
                self._server = (file.stat().st_mtime, time.monotonic())

    def _fill(self, write: Callable[[str], object], *, released: bool = False) -> None:
        raw = {"process": asdict(self.process), "released": released}
        write(json.dumps(raw) + "\n")


def _read(file: Path) -> tuple[dict[str, Any], float] | None:
    """What a small JSON file says, and when it was written; None if it is not there.

    Opening asks an NFS server anew, which a question for the attributes alone would not.
    """
    try:
        with file.open(encoding="utf-8") as opened:
            text, written = opened.read(), os.fstat(opened.fileno()).st_mtime
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        raw = json.loads(text)
    except ValueError:
        return {}, written  # its writer is about to fill it, or died
    return (raw if isinstance(raw, dict) else {}), written


def _process(raw: object) -> Process | None:
    try:
        return Process(**raw) if isinstance(raw, dict) else None
    except TypeError:
        return None


def _work(sign: Mapping[str, Any], key: str) -> Work | None:
    try:
        return Work(**sign["runs"][key])
    except (KeyError, TypeError):
        return None


@contextmanager
def _naming(file: Path) -> Iterator[None]:
    """Errors of the system name this file."""
    try:
        yield
    except OSError as error:
        error.filename, error.filename2 = str(file), None
        raise


@cache
def _place() -> str:
    boot = _text("/proc/sys/kernel/random/boot_id")
    with suppress(OSError):
        boot += f" {Path('/proc/self/ns/pid').readlink()}"
    return boot or f"{socket.gethostname()} {time.time() - time.monotonic():.0f}"


def _started(pid: int) -> str | None:
    """When a process started, in ticks since the machine did; None if it is over."""
    fields = _text(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return None if len(fields) < 20 or fields[0] in "ZX" else fields[19]


def _text(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8").strip()
    except OSError:
        return ""
