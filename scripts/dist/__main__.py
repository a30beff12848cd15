"""Make the packages of a release.

    python -m scripts.dist              all that this machine can make, into dist/
    python -m scripts.dist --out DIR    into another folder

Says at its end what it left out, and what would bring it.
"""

import argparse
import hashlib
import itertools
import re
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from scripts.dist import build, debs, notices, recipes, wheels
from scripts.dist.bill import bill, python_parts
from scripts.dist.common import ROOT, SCRATCH, TARGETS, Left, Target, fail, run, say, version
from scripts.dist.crates import explorer, linked

CRATES = {
    "raddle": ("raddle-python",),
    "raddle-perf": ("raddle-perf",),
    "raddle-switch": ("raddle-switch",),
    "libraddle-mpi": ("raddle-mpi",),
    "libraddle-opensm": ("raddle-opensm",),
    "libraddle-rails0": ("raddle-rails-c",),
}
"""Which crates a Debian package has."""

SUMS = "SHA256SUMS"


def compiled(target: Target) -> tuple[dict[str, Path], Path]:
    """Compile the programs, by name, and the wheel, unpacked, for a target."""
    programs = {file.name: file for file in build.programs(target)}
    return programs, wheels.compiled(target)


def make(out: Path) -> dict[str, str]:
    """Make all packages; give what was left out, and why."""
    left: dict[str, str] = {}
    here = next((target for target in TARGETS if target.is_this_one), None)
    if here is None:
        fail(f"packages are made on {' or '.join(one.machine for one in TARGETS)}")
    say("packing the sources")
    source = wheels.source(out)
    say(f"compiling programs and wheel for {here.machine}")
    programs, unpacked = compiled(here)
    say("writing man pages and licences")
    pages = SCRATCH / "man"
    shutil.rmtree(pages, ignore_errors=True)
    words: list[str | Path] = [sys.executable, "-m", "scripts.dist.manuals", pages]
    # What is unpacked is packed again: nothing may be left in it.
    settings = {"PYTHONPATH": str(unpacked), "PYTHONDONTWRITEBYTECODE": "1"}
    run([*words, *programs.values()], environment=settings)
    parts = [*linked((*CRATES["raddle"], *build.PROGRAMS), here), *explorer()]
    licences = SCRATCH / "NOTICES"
    licences.write_text(notices.notices(parts))
    wheel = wheels.complete(unpacked, programs.values(), pages, licences, out)
    try:
        debs.ready()
        say("compiling the libraries")
        libraries = build.libraries()
    except Left as why:
        left["the Debian packages"] = str(why)
    others = [target for target in TARGETS if target != here]
    with ThreadPoolExecutor(1) as crew:
        # Packing is work of one core, and so are a compiler's last minutes.
        say(f"compiling programs and wheel for {' and '.join(one.machine for one in others)}")
        started = {target: crew.submit(compiled, target) for target in others}
        if not left:
            say("packing the Debian packages")
            environment = debs.environment(wheel, SCRATCH / "environment")
            inside = {package: linked(crates, here) for package, crates in CRATES.items()}
            inside["raddle"] += explorer()
            parts += [*python_parts(environment), *itertools.chain.from_iterable(inside.values())]
            told = {package: notices.notices(own) for package, own in inside.items()}
            built = debs.Built(environment, programs, libraries, pages, told, bill(parts))
            debs.debs(built, out / "debian")
    for target, job in started.items():
        try:
            theirs, files = job.result()
            wheels.complete(files, theirs.values(), pages, licences, out)
        except Left as why:
            left[f"the wheel for {target.machine}"] = str(why)
    (out / f"raddle-{version()}.cdx.json").write_text(bill(parts))
    (out / "RELEASE-NOTES.md").write_text(release_notes())
    recipes.write(source, out / "recipes")
    return left


def release_notes() -> str:
    """What the changelog says of this version."""
    sections = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    (own,) = (text for text in sections[1:] if version() in text.partition("\n")[0])
    return f"# Raddle {version()}\n{own.partition(chr(10))[2]}"


def emptied(out: Path) -> None:
    """Make way for new packages; what is no folder of packages stays."""
    if out.exists() and any(out.iterdir()) and not (out / SUMS).is_file():
        fail(f"{out} is not empty and has no {SUMS}: it is no folder of packages")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    (out / SUMS).touch()


def main() -> None:
    """Make the packages, and the sums of all of them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="where they go")
    out = parser.parse_args().out.resolve()
    started = time.monotonic()
    emptied(out)
    left = make(out)
    files = sorted(file for file in out.rglob("*") if file.is_file() and file.name != SUMS)
    sums = [
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.relative_to(out)}\n"
        for file in files
    ]
    (out / SUMS).write_text("".join(sums))
    for file in files:
        print(f"{file.stat().st_size / 1e6:8.1f} MB  {file.relative_to(out)}")
    say(f"made {len(files)} files in {time.monotonic() - started:.0f} s")
    for what, why in left.items():
        say(f"left out: {what}: {why}")


if __name__ == "__main__":
    main()
