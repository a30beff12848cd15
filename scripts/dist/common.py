"""What all parts of `make dist` need: places, the version, and running programs."""

import functools
import os
import platform
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

__all__ = [
    "GLIBC",
    "ROOT",
    "SCRATCH",
    "TARGETS",
    "Left",
    "Target",
    "available",
    "committed",
    "fail",
    "run",
    "say",
    "version",
]

ROOT = Path(__file__).resolve().parents[2]
SCRATCH = ROOT / "target" / "dist"
"""Where packages are made; only the finished ones leave it."""

GLIBC = "2.28"
"""Oldest C library that wheels run on, as for numpy: Debian 10, RHEL 8, Ubuntu 20.04."""


class Left(Exception):
    """A package cannot be made on this machine; says what to install."""


@dataclass(frozen=True)
class Target:
    """A kind of machine that packages are made for."""

    machine: str
    """As `uname -m` and wheels name it."""

    @property
    def triple(self) -> str:
        """As rustc names it."""
        return f"{self.machine}-unknown-linux-gnu"

    @property
    def is_this_one(self) -> bool:
        """Whether it is the machine that builds."""
        return self.machine == platform.machine()


TARGETS = (Target("x86_64"), Target("aarch64"))


def say(text: str) -> None:
    """Say what happens, on standard error."""
    print(f"dist: {text}", file=sys.stderr, flush=True)


def fail(text: str) -> NoReturn:
    """End with an error."""
    sys.exit(f"dist: error: {text}")


def run(
    command: Sequence[str | Path],
    *,
    cwd: Path = ROOT,
    environment: Mapping[str, str] | None = None,
) -> str:
    """Run a program; give what it printed, or end with all that it said."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        fail(f"{' '.join(map(str, command))} failed\n{done.stdout}{done.stderr}")
    return done.stdout


def version() -> str:
    """The version of all packages, from its one place."""
    told: str = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    return told


@functools.cache
def committed() -> datetime:
    """When what is packed was committed: the time of all packages, which can be made again."""
    return datetime.fromtimestamp(int(run(["git", "log", "-1", "--format=%ct"])), UTC)


def compiler() -> str:
    """rustc, or what RUSTC names instead."""
    return os.environ.get("RUSTC", "rustc")


def available(target: Target) -> None:
    """Have rustc compile for a target.

    Raises
    ------
    Left
        Its standard library is not installed, and cannot be.
    """
    libraries = Path(run([compiler(), "--print", "sysroot"]).strip(), "lib", "rustlib")
    if (libraries / target.triple / "lib").is_dir():
        return
    if "RUSTC" not in os.environ:
        words = ["rustup", "target", "add", target.triple]
        try:
            done = subprocess.run(words, cwd=ROOT, capture_output=True, check=False)
        except FileNotFoundError:
            pass
        else:
            if done.returncode == 0:
                return
    msg = f"rustc has no standard library for it: rustup target add {target.triple}"
    raise Left(msg)
