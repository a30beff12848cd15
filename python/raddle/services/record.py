"""Recordings: a command runs with libraddle_mpi.so under its ranks, which makes a trace.

Every rank writes a file to one folder, which all hosts must share; it lies beside the trace.
"""

import os
import secrets
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from raddle import core
from raddle.core.trace import Trace
from raddle.errors import RaddleError, TraceError
from raddle.results.trace import check_name
from raddle.services.lab.tools import mpi_library
from raddle.text import verb

__all__ = ["Launcher", "Recorded", "assembled", "record", "with_recorder"]

LAUNCHERS = ("mpirun", "mpiexec", "orterun", "prterun")
PATIENCE_S = 20.0


class Launcher(StrEnum):
    """Whose mpirun a command begins with: by it variables reach other hosts."""

    OPENMPI = "openmpi"
    MPICH = "mpich"


@dataclass(frozen=True, slots=True)
class Recorded:
    """What came of a command: its exit status, and what the trace says of it; None: no trace."""

    status: int
    trace: Trace | None


def record(command: Sequence[str], out: Path, run: Callable[..., int]) -> Recorded:
    """Run a command and leave its trace in `out`.

    `run` takes the words and the environment of a command and gives its exit status.
    """
    launcher = _launcher(command[0])

    def start(folder: Path) -> int:
        words, variables = with_recorder(command, launcher, mpi_library(), folder)
        return run(words, {**os.environ, **variables})

    return assembled(out, start)


def with_recorder(
    command: Sequence[str], launcher: Launcher | None, library: Path, folder: Path
) -> tuple[list[str], dict[str, str]]:
    """The words of a command with the recorder under its ranks, and variables to add for it.

    A known mpirun hands the variables to the ranks and is left alone itself.

    Examples
    --------
    >>> words = ["mpirun", "-np", "2", "./a"]
    >>> with_recorder(words, Launcher.OPENMPI, Path("/l.so"), Path("/r"))[0]
    ['mpirun', '-x', 'LD_PRELOAD=/l.so', '-x', 'RADDLE_RECORD=/r', '-np', '2', './a']
    >>> with_recorder(["./a"], None, Path("/l.so"), Path("/r"))
    (['./a'], {'LD_PRELOAD': '/l.so', 'RADDLE_RECORD': '/r'})
    """
    before = os.environ.get("LD_PRELOAD")
    variables = {
        "LD_PRELOAD": f"{library}:{before}" if before else str(library),
        "RADDLE_RECORD": str(folder),
    }
    first, *rest = command
    match launcher:
        case Launcher.OPENMPI:
            words = [w for name, value in variables.items() for w in ("-x", f"{name}={value}")]
        case Launcher.MPICH:
            words = [w for name, value in variables.items() for w in ("-genv", name, value)]
        case None:
            return [first, *rest], variables
    return [first, *words, *rest], {}


def assembled(
    out: Path,
    run: Callable[[Path], int],
    *,
    fabric: str = "",
    processors: int | None = None,
    cure: str | None = None,
) -> Recorded:
    """Run something that records into the folder it is given; make a trace of that.

    The folder goes with success. If recordings do not make a trace, it stays, and the error names
    it; a command that failed by itself is only said to have left no trace.
    """
    check_name(out)
    if os.environ.get("RADDLE_DISABLE") == "1":
        msg = "RADDLE_DISABLE=1 is set: nothing can be recorded\n  hint: unset RADDLE_DISABLE"
        raise TraceError(msg)
    out.parent.mkdir(parents=True, exist_ok=True)
    folder = out.parent.resolve() / f".{out.name}-{secrets.token_hex(4)}"
    folder.mkdir()
    try:
        status = run(folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    files = sorted(folder.glob("rank-*.rec"))
    if not files:
        folder.rmdir()
        if status != 0:
            return Recorded(status, None)
        msg = (
            "nothing was recorded: no MPI program ran, its MPI library is neither Open MPI 4 nor "
            "MPICH 4, or its hosts do not see this folder\n  hint: "
            + (cure or f"RADDLE_LOG=info says what the library finds; put {out} on a shared disk")
        )
        raise TraceError(msg)
    try:
        trace = core.trace.assemble(folder, out, fabric, processors)
    except RaddleError as error:
        if status != 0:
            shutil.rmtree(folder)
            return Recorded(status, None)
        kept = verb(len(files), "the recording is", "the recordings are")
        msg = f"{error}\n  hint: {kept} kept in {folder}"
        raise TraceError(msg) from error
    shutil.rmtree(folder)
    return Recorded(status, trace)


def _launcher(program: str) -> Launcher | None:
    """Whose mpirun this is, by what it says of itself."""
    if not Path(program).name.startswith(LAUNCHERS):
        return None
    try:
        said = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=PATIENCE_S, check=False
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return None
    if any(name in said for name in ("Open MPI", "OpenRTE", "PRRTE")):
        return Launcher.OPENMPI
    return Launcher.MPICH if "HYDRA" in said else None
