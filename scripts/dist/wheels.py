"""Wheels, with the programs and man pages inside, and the source distribution."""

import shutil
from collections.abc import Iterable
from pathlib import Path

from scripts.dist.build import ENVIRONMENT
from scripts.dist.common import GLIBC, ROOT, SCRATCH, Target, available, run

__all__ = ["source", "tree", "wheel"]

MATURIN = ROOT / ".venv" / "bin" / "maturin"


def tree() -> Path:
    """Copy what git keeps, as it is now, to a place of its own."""
    place = SCRATCH / "source"
    names = run(["git", "ls-files", "-z"]).rstrip("\0").split("\0")
    kept = {Path(name) for name in names if (ROOT / name).is_file()}
    for old in [file for file in place.rglob("*") if file.is_file() or file.is_symlink()]:
        if old.relative_to(place) not in kept:
            old.unlink()
    for name in kept:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, place / name)  # with its time, so that cargo builds no file twice
    return place


def source(place: Path, out: Path) -> Path:
    """Make the source distribution from the copy at `place`."""
    run([MATURIN, "sdist", "--quiet", "--out", out], cwd=place)
    (made,) = out.glob("*.tar.gz")
    return made


def wheel(
    place: Path,
    target: Target,
    programs: Iterable[Path],
    manuals: Path,
    notices: Path,
    out: Path,
) -> Path:
    """Make the wheel of a target.

    Parameters
    ----------
    place
        The copy of the sources.
    programs
        They land in the folder of programs of the environment.
    manuals
        A folder of man pages, `man1` and so on below it; `man` finds them from there.
    notices
        The licences of what is linked in.
    """
    available(target)
    data = place / "python" / "raddle.data"
    shutil.rmtree(data, ignore_errors=True)
    (data / "scripts").mkdir(parents=True)
    for program in programs:
        shutil.copy2(program, data / "scripts")
    shutil.copytree(manuals, data / "data" / "share" / "man")
    (data / "data" / "share" / "doc" / "raddle").mkdir(parents=True)
    shutil.copy2(notices, data / "data" / "share" / "doc" / "raddle")
    words: list[str | Path] = [MATURIN, "build", "--quiet", "--release", "--locked", "--zig"]
    words += ["--target", target.triple]
    words += ["--compatibility", f"manylinux_{GLIBC.replace('.', '_')}"]
    words += ["--out", out]
    run(words, cwd=place, environment=ENVIRONMENT)
    shutil.rmtree(data)
    (made,) = out.glob(f"*_{target.machine}.whl")
    return made
