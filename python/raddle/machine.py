"""What this machine has."""

import os
import platform
from pathlib import Path

__all__ = ["cores", "cores_of_each", "cpu_name"]


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def cores_of_each(at_once: int) -> int:
    """Cores that each of so many runs at the same time has for itself, at least 1."""
    return max(1, cores() // max(1, at_once))


def cpu_name() -> str | None:
    """The processor's name, where the system knows one."""
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or None
