"""Programs that a lab needs, and where Raddle's own ones are."""

import os
import shutil
import sys
import sysconfig
from pathlib import Path

from raddle.errors import LabError

__all__ = ["NEEDED", "check_machine", "mpi_library", "program_path", "switch_program"]

PACKAGES = {
    "ip": "iproute2",
    "tc": "iproute2",
    "unshare": "util-linux",
    "setpriv": "util-linux",
    "nsenter": "util-linux",
    "mount": "mount",
    "mpirun.openmpi": "openmpi-bin",
    "mpiexec.mpich": "mpich",
}
"""Which Debian package brings a program."""

NEEDED = ("ip", "tc", "unshare", "nsenter", "mount")
"""What building a lab takes."""

LIBRARY = "libraddle_mpi.so"

OWN = Path(sys.executable).parent
"""Where the programs are that were installed with this Python package."""


def check_machine(*programs: str) -> None:
    """Refuse to go on without root, on another system than Linux, or without `programs`."""
    if not sys.platform.startswith("linux"):
        msg = f"a lab needs Linux namespaces; this is {sys.platform}"
        raise LabError(msg)
    if os.geteuid() != 0:
        msg = (
            "a lab needs root: it makes network namespaces and links\n"
            "  hint: sudo -E env PATH=$PATH raddle lab ..."
        )
        raise LabError(msg)
    missing = [name for name in programs if shutil.which(name, path=program_path()) is None]
    if missing:
        packages = sorted({PACKAGES[name] for name in missing})
        msg = (
            f"{', '.join(missing)}: not installed\n"
            f"  hint: install the Debian packages {' '.join(packages)}"
        )
        raise LabError(msg)


def program_path() -> str:
    """PATH inside a lab: the caller's, then Raddle's programs, and where system tools are.

    The caller's comes first: beside `raddle` there may be a `python3` that is not the caller's.
    """
    parts = os.environ.get("PATH", os.defpath).split(":")
    return ":".join(dict.fromkeys([*parts, str(OWN), "/usr/sbin", "/sbin"]))


def switch_program() -> Path:
    """`raddle-switch`: beside `raddle`, or on PATH."""
    found = shutil.which("raddle-switch", path=f"{OWN}:{program_path()}")
    if found is None:
        msg = (
            "raddle-switch is not there; --offload sockets and xdp need it\n"
            "  hint: install the Debian package raddle-switch, or `make build` in a checkout of"
            " raddle; --offload off works without"
        )
        raise LabError(msg)
    return Path(found)


def mpi_library() -> Path:
    """libraddle_mpi.so: in the environment of `raddle`, in its checkout, or a package's."""
    prefix = OWN.parent
    checkout = Path(__file__).resolve().parents[4]
    target = Path(os.environ.get("CARGO_TARGET_DIR", "target"))
    packaged = Path("/usr/lib", sysconfig.get_config_var("MULTIARCH") or "", "raddle")
    for folder in (
        prefix / "lib" / "raddle",
        prefix / "lib",
        checkout / target / "release",
        packaged,
    ):
        if (folder / LIBRARY).is_file():
            return folder / LIBRARY
    msg = (
        f"{LIBRARY} is not there; --offload sockets and xdp need it\n"
        "  hint: install the Debian package libraddle-mpi; or libopenmpi-dev, then `make build` in"
        " a checkout of raddle"
    )
    raise LabError(msg)
