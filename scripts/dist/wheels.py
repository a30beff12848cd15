"""Wheels, with the programs and man pages inside, and the source distribution."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from scripts.dist.build import environment
from scripts.dist.common import GLIBC, ROOT, SCRATCH, Target, available, committed, run, version

__all__ = ["complete", "compiled", "source"]

BIN = ROOT / ".venv" / "bin"


def source(out: Path) -> Path:
    """Make the source distribution: all that git keeps."""
    run([BIN / "maturin", "sdist", "--out", out])
    (made,) = out.glob("*.tar.gz")
    return made


def compiled(target: Target) -> Path:
    """Make the wheel of a target without programs and man pages; give it as a folder.

    Raises
    ------
    Left
        rustc cannot compile for it.
    """
    available(target)
    place = SCRATCH / f"wheel-{target.machine}"
    shutil.rmtree(place, ignore_errors=True)
    words: list[str | Path] = [BIN / "maturin", "build", "--release", "--locked"]
    words += ["--target", target.triple]
    words += ["--compatibility", f"manylinux_{GLIBC.replace('.', '_')}"]
    run([*words, "--out", place], environment=environment())
    (made,) = place.glob("*.whl")
    run([BIN / "wheel", "unpack", "--dest", place, made])
    return place / f"raddle-{version()}"


def complete(
    unpacked: Path, programs: Iterable[Path], manuals: Path, notices: Path, out: Path
) -> Path:
    """Add what goes beside Python's modules, and pack the wheel.

    Parameters
    ----------
    unpacked
        The folder that `compiled` gave.
    programs
        They land in the folder of programs of an environment.
    manuals
        A folder of man pages, `man1` and so on below it; `man` finds them from there.
    notices
        The licences of what is linked in.
    """
    data = unpacked / f"raddle-{version()}.data"
    (data / "scripts").mkdir(parents=True)
    for program in programs:
        shutil.copy2(program, data / "scripts")
    shutil.copytree(manuals, data / "data" / "share" / "man")
    (data / "data" / "share" / "doc" / "raddle").mkdir(parents=True)
    shutil.copy2(notices, data / "data" / "share" / "doc" / "raddle")
    before = set(out.glob("*.whl"))
    when = {"SOURCE_DATE_EPOCH": f"{committed().timestamp():.0f}"}
    run([BIN / "wheel", "pack", "--dest-dir", out, unpacked], environment=when)
    (made,) = set(out.glob("*.whl")) - before
    return made
