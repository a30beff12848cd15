"""The programs and libraries of a release, compiled."""

import os
import shutil
import subprocess
from pathlib import Path

from scripts.dist.common import GLIBC, ROOT, SCRATCH, Left, Target, available, run

__all__ = ["ENVIRONMENT", "PROGRAMS", "has_libraries", "libraries", "programs"]

PROGRAMS = ("raddle-switch", "raddle-perf")


ENVIRONMENT = {
    "CARGO_TARGET_DIR": str(SCRATCH / "build"),
    # Names of functions stay, for the trace of a defect; lines do not.
    "CARGO_PROFILE_RELEASE_DEBUG": "0",
    "CARGO_PROFILE_RELEASE_STRIP": "debuginfo",
    # zig as the linker: python-zig is found beside this Python.
    "PATH": f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}",
}


def programs(target: Target) -> list[Path]:
    """Compile the programs for a target, for the C library of `GLIBC` or newer."""
    available(target)
    words = ["cargo", "zigbuild", "--release", "--locked", "--quiet"]
    words += ["--target", f"{target.triple}.{GLIBC}"]
    words += [f"--bin={name}" for name in PROGRAMS]
    words += [f"--package={name}" for name in PROGRAMS]
    run(words, environment=ENVIRONMENT)
    folder = SCRATCH / "build" / target.triple / "release"
    return [folder / name for name in PROGRAMS]


def compiles(compiler: str, header: str) -> bool:
    """Whether a C compiler finds a header."""
    if shutil.which(compiler) is None:
        return False
    text = f"#include <{header}>\n"
    words = [compiler, "-fsyntax-only", "-x", "c", "-"]
    return subprocess.run(words, input=text.encode(), capture_output=True).returncode == 0


def has_libraries() -> None:
    """Check that this machine has the headers that the libraries need.

    Raises
    ------
    Left
        It has not.
    """
    wanted = {
        "libopenmpi-dev": compiles("mpicc.openmpi", "mpi.h"),
        "libmpich-dev": compiles("mpicc.mpich", "mpi.h"),
        "libopensm-dev": compiles("cc", "infiniband/opensm/osm_version.h"),
    }
    missing = [package for package, there in wanted.items() if not there]
    if missing:
        msg = f"headers are missing: apt-get install {' '.join(missing)}"
        raise Left(msg)


def libraries() -> Path:
    """Compile, for this machine, what is loaded into other programs; gives the folder.

    Raises
    ------
    Left
        Headers of MPI libraries or of OpenSM are missing.
    """
    has_libraries()
    words = ["cargo", "build", "--release", "--locked", "--quiet", "--lib"]
    run([*words, "--package=raddle-mpi", "--package=raddle-opensm"], environment=ENVIRONMENT)
    # Programs in C remember the name that the library gives itself.
    words = ["cargo", "rustc", "--release", "--locked", "--quiet", "--package=raddle-rails-c"]
    words += ["--lib", "--crate-type=cdylib", "--"]
    words += [f"-Clink-arg=-Wl,-soname,{rails_name()}"]
    run(words, environment=ENVIRONMENT)
    return SCRATCH / "build" / "release"


def rails_name() -> str:
    """The name by which programs load the library of rails; with a new one they are built anew."""
    return "libraddle_rails.so.0"
