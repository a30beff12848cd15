"""The programs and libraries of a release, compiled."""

import functools
import shutil
import subprocess
from pathlib import Path

from scripts.dist.common import GLIBC, ROOT, SCRATCH, TARGETS, Left, Target, available, run

__all__ = ["PROGRAMS", "environment", "has_libraries", "libraries", "programs"]

PROGRAMS = ("raddle-switch", "raddle-perf")


@functools.cache
def environment() -> dict[str, str]:
    """What cargo is to know whatever it compiles.

    zig compiles and links, for the C library of `GLIBC`, through cargo-zigbuild, which knows what
    options of rustc it does not take. The linkers of all targets are named each time: a crate that
    was compiled with others is compiled anew.
    """
    bin_folder = ROOT / ".venv" / "bin"
    known = {
        "CARGO_TARGET_DIR": str(SCRATCH / "build"),
        # Names of functions stay, for the trace of a defect; lines do not.
        "CARGO_PROFILE_RELEASE_DEBUG": "0",
        "CARGO_PROFILE_RELEASE_STRIP": "debuginfo",
        "CARGO_ZIGBUILD_ZIG_COMMAND": str(bin_folder / "python"),
        "CARGO_ZIGBUILD_ZIG_COMMAND_ARGS": "-m ziglang",
    }
    archiver = script("ar", f"{bin_folder / 'python'} -m ziglang ar")
    for target in TARGETS:
        words = f"{bin_folder / 'cargo-zigbuild'} zig cc -- -fno-sanitize=all"
        words += f" -target {target.machine}-linux-gnu.{GLIBC}"
        compiler = script(f"cc-{target.machine}", words)
        name = target.triple.replace("-", "_")
        known |= {f"CC_{name}": compiler, f"AR_{name}": archiver}
        known[f"CARGO_TARGET_{name.upper()}_LINKER"] = compiler
    return known


def script(name: str, words: str) -> str:
    """Write a program that runs another with these words before its own; gives its path."""
    path = SCRATCH / "tools" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
    path.chmod(0o755)
    return str(path)


def programs(target: Target) -> list[Path]:
    """Compile the programs for a target, for the C library of `GLIBC` or newer."""
    available(target)
    words = ["cargo", "build", "--release", "--locked", "--quiet", "--target", target.triple]
    words += [f"--bin={name}" for name in PROGRAMS]
    words += [f"--package={name}" for name in PROGRAMS]
    run(words, environment=environment())
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
    here = next(target for target in TARGETS if target.is_this_one)
    # The headers are this system's, and so is the compiler that reads them.
    known = environment() | {f"CC_{here.triple.replace('-', '_')}": "cc"}
    words = ["--release", "--locked", "--quiet", "--target", here.triple, "--lib"]
    packages = ["--package=raddle-mpi", "--package=raddle-opensm"]
    run(["cargo", "build", *words, *packages], environment=known)
    # Programs in C remember the name that the library gives itself.
    words += ["--package=raddle-rails-c", "--crate-type=cdylib"]
    run(
        ["cargo", "rustc", *words, "--", f"-Clink-arg=-Wl,-soname,{rails_name()}"],
        environment=known,
    )
    return SCRATCH / "build" / here.triple / "release"


def rails_name() -> str:
    """The name by which programs load the library of rails; with a new one they are built anew."""
    return "libraddle_rails.so.0"
