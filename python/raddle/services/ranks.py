"""One run shared out over MPI ranks: each simulates a part of the fabric, rank 0 writes.

How many ranks there are changes no byte of the results. Ranks other than 0 wait for runs to take
part in; they need the same files as rank 0 and the same version of Raddle.
"""

import signal
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from raddle import core
from raddle.errors import ExperimentError, RaddleError
from raddle.plan import Plan, RunStats

__all__ = ["Communicator", "RankGroup", "world"]


HEAD = 8
"""Bytes of a letter's length."""
SLOT = 1024
"""Bytes that ranks give each other in every exchange."""
ROOM = SLOT - HEAD


class Communicator(Protocol):
    """What is needed of `mpi4py.MPI.Comm`."""

    def Get_rank(self) -> int:
        """Give the number of this rank."""

    def Get_size(self) -> int:
        """Give the number of ranks."""

    def bcast(self, obj: Any, root: int = 0) -> Any:  # noqa: ANN401
        """Give all ranks what the root has."""

    def Alltoall(self, sendbuf: Any, recvbuf: Any) -> None:  # noqa: ANN401
        """Give each rank equally many bytes and take them from each."""

    def Isend(self, buf: Any, dest: int) -> Any:  # noqa: ANN401
        """Begin to send to a rank."""

    def Recv(self, buf: Any, source: int) -> None:  # noqa: ANN401
        """Take what a rank sends."""

    def Abort(self, errorcode: int = 0) -> Any:  # noqa: ANN401
        """End all ranks."""


def world() -> Communicator:
    """All ranks that `mpirun` has started.

    Raises
    ------
    ExperimentError
        There is no MPI for Python here.
    """
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:
        msg = (
            f"raddle-mpi-run needs the package mpi4py and an MPI library ({error})\n"
            "  hint: pip install 'raddle[mpi]', and Open MPI or MPICH from the system's packages"
        )
        raise ExperimentError(msg) from error
    if MPI.Query_thread() < MPI.THREAD_SERIALIZED:
        msg = (
            f"{MPI.Get_library_version().split(',')[0]} cannot be called from several threads\n"
            "  hint: raddle-mpi-run needs an MPI library with MPI_THREAD_SERIALIZED or more"
        )
        raise ExperimentError(msg)
    return MPI.COMM_WORLD


class RankGroup:
    """The ranks that share runs."""

    def __init__(self, comm: Communicator) -> None:
        self._comm = comm
        self.rank = comm.Get_rank()
        self.ranks = comm.Get_size()
        self.busy = False
        """Whether a run is under way."""

    def run(
        self, planned: Plan, index: int, out: Path, threads: int, progress: core.runs.Progress
    ) -> RunStats:
        """Simulate a run as `raddle.core.runs.run` does, together with the ranks that `serve`."""
        self.busy = True
        self._comm.bcast((planned.text, index, threads))
        try:
            return core.runs.run_leading(
                planned, index, out, threads, progress, self.ranks, self.exchange
            )
        finally:
            self.busy = False

    def serve(self) -> None:
        """Take part in runs until rank 0 dismisses this one.

        Ctrl-C and SIGTERM are rank 0's to hear, which ends the run for all.
        """
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        while (order := self._comm.bcast(None)) is not None:
            plan_text, index, threads = order
            try:
                core.runs.run_following(
                    plan_text, index, threads, self.rank, self.ranks, self.exchange
                )
            except RaddleError:
                continue  # rank 0 has been told and says it
            except BaseException:
                traceback.print_exc()
                self.abort()
                raise

    def dismiss(self) -> None:
        """Let the ranks go that `serve`; those that wait for a run's next window are ended."""
        if self.busy:
            self.abort()
        self._comm.bcast(None)

    def abort(self) -> None:
        """End all ranks at once."""
        self._comm.Abort(1)

    def exchange(self, letters: Sequence[bytes]) -> list[bytes]:
        """Give each rank its letter and take one from each, by rank.

        Most letters are short and go together; what a long one has beside goes to its rank alone.
        """
        slots = bytearray(self.ranks * SLOT)
        sending = []
        for rank, letter in enumerate(letters):
            begin = rank * SLOT
            slots[begin : begin + HEAD] = len(letter).to_bytes(HEAD, "little")
            first = letter[:ROOM]
            slots[begin + HEAD : begin + HEAD + len(first)] = first
            if len(letter) > ROOM:
                sending.append(self._comm.Isend([letter[ROOM:], "B"], rank))
        taken = bytearray(self.ranks * SLOT)
        self._comm.Alltoall([slots, "B"], [taken, "B"])
        found = []
        for rank in range(self.ranks):
            slot = taken[rank * SLOT : (rank + 1) * SLOT]
            length = int.from_bytes(slot[:HEAD], "little")
            letter = bytes(slot[HEAD : HEAD + min(length, ROOM)])
            if length > ROOM:
                rest = bytearray(length - ROOM)
                self._comm.Recv([rest, "B"], rank)
                letter += rest
            found.append(letter)
        for request in sending:
            request.Wait()
        return found
