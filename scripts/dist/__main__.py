"""Make the packages of a release.

    python -m scripts.dist              all that this machine can make, into dist/
    python -m scripts.dist --out DIR    into another folder

Says at its end what it left out, and what would bring it.
"""

import argparse
import hashlib
import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from scripts.dist import build, debs, notices, recipes, wheels
from scripts.dist.bill import bill, python_parts
from scripts.dist.common import ROOT, SCRATCH, TARGETS, Left, Target, run, say, version
from scripts.dist.crates import Part, explorer, linked

CRATES = {
    "raddle": ("raddle-python",),
    "raddle-perf": ("raddle-perf",),
    "raddle-switch": ("raddle-switch",),
    "libraddle-mpi": ("raddle-mpi",),
    "libraddle-opensm": ("raddle-opensm",),
    "libraddle-rails0": ("raddle-rails-c",),
}
"""Which crates a Debian package has."""


def wheel_parts() -> list[Part]:
    """What of others is in a wheel."""
    crates = ("raddle-python", "raddle-perf", "raddle-switch")
    return [*linked(crates, TARGETS[0]), *explorer()]


def compiled(target: Target) -> tuple[dict[str, Path], Path]:
    """Compile the programs, by name, and the wheel, unpacked, for a target."""
    programs = {file.name: file for file in build.programs(target)}
    return programs, wheels.compiled(target)


def make(out: Path) -> dict[str, str]:
    """Make all packages; give what was left out, and why."""
    left: dict[str, str] = {}
    (here,) = (target for target in TARGETS if target.is_this_one)
    say("packing the sources")
    source = wheels.source(out)
    say(f"compiling programs and wheels for {' and '.join(one.machine for one in TARGETS)}")
    with ThreadPoolExecutor(len(TARGETS)) as crew:
        # What a compiler does last, it does on one core.
        started = {target: crew.submit(compiled, target) for target in TARGETS}
    programs, unpacked = started[here].result()
    say("writing man pages and licences")
    pages = SCRATCH / "man"
    shutil.rmtree(pages, ignore_errors=True)
    words: list[str | Path] = [sys.executable, "-m", "scripts.dist.manuals", pages, *programs.values()]
    run(words, environment={"PYTHONPATH": str(unpacked)})
    licences = SCRATCH / "NOTICES"
    licences.write_text(notices.notices(wheel_parts()))
    made = {}
    for target, job in started.items():
        try:
            theirs, files = job.result()
            made[target] = wheels.complete(files, theirs.values(), pages, licences, out)
        except Left as why:
            left[f"the wheel for {target.machine}"] = str(why)
    parts = wheel_parts()
    try:
        debs.ready()
        say("compiling the libraries")
        libraries = build.libraries()
        site = debs.environment(made[here], SCRATCH / "environment")
        parts += [*python_parts(site), *linked(sum(CRATES.values(), ()), here)]
        shutil.rmtree(SCRATCH / "environment")
        told = {
            package: notices.notices([*linked(crates, here), *(explorer() if package == "raddle" else [])])
            for package, crates in CRATES.items()
        }
        say("packing the Debian packages")
        built = debs.Built(made[here], programs, libraries, pages, told, bill(parts))
        debs.debs(built, out / "debian")
    except Left as why:
        left["the Debian packages"] = str(why)
    (out / f"raddle-{version()}.cdx.json").write_text(bill(parts))
    recipes.write(source, out / "recipes")
    return left


def main() -> None:
    """Make the packages, and the sums of all of them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="where they go")
    out = parser.parse_args().out.resolve()
    started = time.monotonic()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    left = make(out)
    files = sorted(file for file in out.rglob("*") if file.is_file())
    sums = [
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.relative_to(out)}\n"
        for file in files
    ]
    (out / "SHA256SUMS").write_text("".join(sums))
    for file in files:
        print(f"{file.stat().st_size / 1e6:8.1f} MB  {file.relative_to(out)}")
    say(f"made {len(files)} files in {time.monotonic() - started:.0f} s")
    for what, why in left.items():
        say(f"left out: {what}: {why}")


if __name__ == "__main__":
    main()
