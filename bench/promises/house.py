# ruff: noqa: D103 (the promise above a function says what it measures)
"""What holds for all: input, report, wheel, build, tests."""

import sys
from pathlib import Path

from bench import ROOT
from bench.promises import PASS, Broken, Outcome, judge, promise, python_tests, run


@promise("bad input", "pytest tests/house/test_bad_input.py", "all refused on one screen")
def bad_input(_: Path) -> Outcome:
    return python_tests("tests/house/test_bad_input.py")


@promise("report in Chromium", "pytest -m browser", "1280 and 390 px, no console error")
def browser(_: Path) -> Outcome:
    return python_tests("-m", "browser")


@promise("wheel in a fresh environment", "maturin build; pip install; raddle --version", "runs")
def wheel(folder: Path) -> Outcome:
    maturin = ROOT / ".venv" / "bin" / "maturin"
    built = run(maturin, "build", "--release", "--locked", "--out", folder)
    if built.status != 0:
        raise Broken(built.last_words)
    (file,) = folder.glob("*.whl")
    fresh = folder / "venv"
    for command in (
        (sys.executable, "-m", "venv", fresh),
        (fresh / "bin" / "pip", "install", "-q", file),
        (fresh / "bin" / "raddle", "--version"),
    ):
        done = run(*command)
        if done.status != 0:
            raise Broken(done.last_words)
    return Outcome(f"{done.stdout.strip()}, wheel {file.stat().st_size / 1e6:.1f} MB", PASS)


@promise("build from nothing", "make build in a fresh clone", "< 600 s", minutes=5)
def build(folder: Path) -> Outcome:
    clone = folder / "raddle"
    run("git", "clone", "-q", ROOT, clone)
    done = run(
        "make", "-C", clone, "build", environment={"CARGO_TARGET_DIR": str(clone / "target")}
    )
    if done.status != 0:
        raise Broken(done.last_words)
    return judge(f"{done.seconds:.0f} s", kept=done.seconds < 600)


@promise("tests from nothing", "make test in a fresh clone", "< 1,200 s", minutes=20)
def tests(folder: Path) -> Outcome:
    clone = folder / "raddle"
    run("git", "clone", "-q", ROOT, clone)
    done = run("make", "-C", clone, "test", environment={"CARGO_TARGET_DIR": str(clone / "target")})
    return judge(
        f"{done.seconds:.0f} s, {done.stdout.strip().splitlines()[-1]}",
        kept=done.status == 0 and done.seconds < 1200,
    )
