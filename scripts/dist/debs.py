"""Debian packages, by debhelper, from what is built: for the distribution of this machine.

packaging/debian has their descriptions and rules. This lays a folder for each package, as its files
shall lie on a system, and has `dpkg-buildpackage` do the rest.
"""

import platform
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from email.utils import format_datetime
from pathlib import Path

from scripts.dist import build
from scripts.dist.common import ROOT, SCRATCH, Left, committed, fail, run, version

__all__ = ["Built", "debs", "environment", "ready"]

PACKAGING = ROOT / "packaging" / "debian"
PYTHON = Path("/usr/bin/python3")
"""The distribution's own; another one that is first on PATH is not that of its packages."""

DESCRIPTION = "messages over several networks, for programs in C"
PKG_CONFIG = f"""\
Name: raddle-rails
Description: {DESCRIPTION}
Version: {{version}}
Cflags: -I/usr/include
Libs: -lraddle_rails
"""


@dataclass(frozen=True)
class Built:
    """What goes into the packages."""

    environment: Path
    """What `environment` has made."""
    programs: dict[str, Path]
    """By name."""
    libraries: Path
    """The folder of the libraries."""
    manuals: Path
    """The folder of `man1` and so on."""
    notices: dict[str, str]
    """What is inside, by package."""
    bill: str
    """The bill of materials of all."""


def distribution() -> dict[str, str]:
    """What the distribution says of itself."""
    try:
        return platform.freedesktop_os_release()
    except OSError:
        return {}


def ready() -> None:
    """Check that this machine can make Debian packages.

    Raises
    ------
    Left
        It cannot.
    """
    if not PYTHON.exists() or "debian" not in distribution().get(
        "ID_LIKE", ""
    ) + distribution().get("ID", ""):
        msg = "this is no Debian or Ubuntu, for which they are made"
        raise Left(msg)
    tools = {"dpkg-buildpackage": "dpkg-dev", "dh": "debhelper", "lintian": "lintian"}
    missing = [package for tool, package in tools.items() if shutil.which(tool) is None]
    if missing:
        msg = f"tools are missing: apt-get install {' '.join(missing)}"
        raise Left(msg)


def debian_version() -> str:
    """The version of the packages: they hold Python packages for this distribution's Python."""
    told = distribution()
    return f"{version()}+{told['ID']}{told['VERSION_ID'].replace('.', '')}"


def place(files: Iterable[Path], folder: Path) -> None:
    """Copy files, programs or libraries, into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        shutil.copy2(file, folder)


def environment(wheel: Path, prefix: Path) -> Path:
    """Make an environment of Python at `prefix` that will work at /usr/lib/raddle; give it back."""
    shutil.rmtree(prefix, ignore_errors=True)
    run([PYTHON, "-m", "venv", "--without-pip", "--symlinks", prefix])
    pip: list[str | Path] = [ROOT / ".venv" / "bin" / "pip", "--python", prefix / "bin" / "python3"]
    run([*pip, "install", "--quiet", "--no-compile", "--only-binary=:all:", wheel])
    (site,) = prefix.glob("lib/python3.*/site-packages")
    # Programs of others, the parts that are in packages of their own, and tests.
    for program in (prefix / "bin").iterdir():
        if program.is_symlink() or program.name in ("raddle", "raddle-mpi-run"):
            continue
        program.unlink()
    shutil.rmtree(prefix / "share", ignore_errors=True)
    shutil.rmtree(prefix / "include", ignore_errors=True)
    (prefix / "lib64").unlink(missing_ok=True)
    for folder in [*site.glob("*/tests"), *site.glob("*/*/tests"), site / "pyarrow" / "include"]:
        shutil.rmtree(folder, ignore_errors=True)
    for name in ("raddle", "raddle-mpi-run"):
        file = prefix / "bin" / name
        file.write_text(file.read_text().replace(str(prefix), "/usr/lib/raddle"))
    settings = prefix / "pyvenv.cfg"
    kept = [line for line in settings.read_text().splitlines() if not line.startswith("command")]
    settings.write_text("\n".join(kept) + "\n")
    for link in (prefix / "bin").glob("python*"):
        link.unlink()
    (prefix / "bin" / "python3").symlink_to(PYTHON.resolve())
    return prefix


def lay(built: Built, stage: Path, multiarch: str) -> None:
    """Lay the files of all packages below `stage`."""
    library = Path("usr/lib", multiarch)
    raddle = stage / "raddle"
    (raddle / "usr/bin").mkdir(parents=True)
    shutil.copytree(built.environment, raddle / "usr/lib/raddle", symlinks=True)
    for name in ("raddle", "raddle-mpi-run"):
        (raddle / "usr/bin" / name).symlink_to(f"../lib/raddle/bin/{name}")
    for file in built.manuals.glob("man*/*"):
        owner = file.stem if file.stem in built.programs else "raddle"
        place([file], stage / owner / "usr/share/man" / file.parent.name)
    for name, program in built.programs.items():
        place([program], stage / name / "usr/bin")
    parts = {
        "libraddle-mpi": ["libraddle_mpi.so"],
        "libraddle-mpi-openmpi": ["libraddle_mpi_openmpi.so"],
        "libraddle-mpi-mpich": ["libraddle_mpi_mpich.so"],
    }
    for package, names in parts.items():
        place([built.libraries / name for name in names], stage / package / library / "raddle")
    place([built.libraries / "libraddle.so"], stage / "libraddle-opensm" / library)
    rails, headers = stage / "libraddle-rails0" / library, stage / "libraddle-rails-dev"
    rails.mkdir(parents=True)
    shutil.copy2(built.libraries / "libraddle_rails.so", rails / build.rails_name())
    place([ROOT / "crates/real/rails-c/include/raddle_rails.h"], headers / "usr/include")
    (headers / library / "pkgconfig").mkdir(parents=True)
    (headers / library / "libraddle_rails.so").symlink_to(build.rails_name())
    text = PKG_CONFIG.format(version=version())
    (headers / library / "pkgconfig/raddle-rails.pc").write_text(text)
    (stage / "raddle-switch/etc/raddle").mkdir(parents=True)
    examples = {"raddle-switch": ["switch.toml", "xdp.conf"]}
    examples["libraddle-opensm"] = ["opensm.conf", "raddle.toml"]
    for package, names in examples.items():
        folder = stage / package / "usr/share/doc" / package / "examples"
        place([PACKAGING / "examples" / name for name in names], folder)
    for package, text in built.notices.items():
        folder = stage / package / "usr/share/doc" / package
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "NOTICES").write_text(text)
    (raddle / "usr/share/doc/raddle/raddle.cdx.json").write_text(built.bill)
    place([ROOT / "README.md"], raddle / "usr/share/doc/raddle")


def debs(built: Built, out: Path) -> list[Path]:
    """Make all Debian packages into `out`; give them."""
    above = SCRATCH / "debian"
    shutil.rmtree(above, ignore_errors=True)
    work = above / "raddle"
    shutil.copytree(PACKAGING, work / "debian")
    multiarch = run(["dpkg-architecture", "-qDEB_HOST_MULTIARCH"]).strip()
    lay(built, work / "stage", multiarch)
    when = format_datetime(committed())
    (maintainer,) = [
        line.partition(": ")[2]
        for line in (work / "debian/control").read_text().splitlines()
        if line.startswith("Maintainer: ")
    ]
    (work / "debian/changelog").write_text(
        f"raddle ({debian_version()}) unstable; urgency=medium\n\n"
        "  * What changed: CHANGELOG.md of the sources.\n\n"
        f" -- {maintainer}  {when}\n"
    )
    major, minor = run([PYTHON, "-c", "import sys; print(*sys.version_info[:2])"]).split()
    python = f"python3 (>= {major}.{minor}~), python3 (<< {major}.{int(minor) + 1})"
    settings = {"RADDLE_PYTHON": python, "SOURCE_DATE_EPOCH": f"{committed().timestamp():.0f}"}
    run(["dpkg-buildpackage", "-b", "--no-sign"], cwd=work, environment=settings)
    out.mkdir(parents=True, exist_ok=True)
    made = sorted(above.glob("*.deb"))
    if not made:
        fail("dpkg-buildpackage made no package")
    for package in made:
        shutil.copy2(package, out)
    return [out / package.name for package in made]
