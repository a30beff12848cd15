"""Processes of a lab: which of them still live.

A process with several threads is not over when its number belongs to a zombie: the first thread has
ended, and others may still hold what all share, such as sockets, interfaces and locks.
"""

from pathlib import Path

__all__ = ["started_at"]


def started_at(process: int) -> int | None:
    """When a process started, in clock ticks since boot; None if no thread of it is left."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return None
    return parse_stat(stat)


def parse_stat(stat: str) -> int | None:
    """Find the same in what /proc says of a process (proc(5), stat).

    Examples
    --------
    >>> fields = " ".join(["1"] * 16)
    >>> parse_stat(f"7 (a) b) S {fields} 1 0 4711 0")
    4711
    >>> parse_stat(f"7 (switch) Z {fields} 2 0 4711 0")
    4711
    >>> parse_stat(f"7 (switch) Z {fields} 1 0 4711 0")
    """
    # The name in brackets may hold anything. State is field 3, the number of threads field 20, the
    # start field 22.
    fields = stat.rpartition(")")[2].split()
    state, threads, started = fields[0], int(fields[17]), int(fields[19])
    ended = state == "X" or (state == "Z" and threads <= 1)
    return None if ended else started
