#!/usr/bin/env python3
"""Run the tests of every room, then print how many passed, failed and were skipped.

Every stage runs even if an earlier one failed. Exit status 1 if a test failed or a stage broke.
TEST_PROFILE names a profile of cargo for the tests in Rust, instead of `dev`.
"""

import argparse
import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON = ROOT / ".venv" / "bin" / "python"


@dataclass(frozen=True)
class Stage:
    """A command that runs tests."""

    name: str
    command: tuple[str | Path, ...]


@dataclass
class Count:
    """Outcome of a stage."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0


def stages(*, scale: bool) -> list[Stage]:
    """List what `make test` or, with `scale`, `make test-scale` runs."""
    # raddle-python holds conversions only: pytest tests it; linking it would need libpython.
    cargo: tuple[str, ...] = ("cargo", "test", "--workspace", "--exclude", "raddle-python")
    profile = os.environ.get("TEST_PROFILE", "dev")
    cargo += ("--profile", profile, "--locked", "--no-fail-fast", "--quiet")
    pytest = (PYTHON, "-m", "pytest", "-q", "--durations=15", "--durations-min=2")
    # On all cores, but for labs, whose rounds and rates need the machine for themselves.
    spread = (*pytest, "-n", "auto", "--dist", "loadfile")
    pure = ("python/raddle", "tests/python", "tests/wire", "tests/opensm")
    if scale:
        # Tests that are too long for `make test` are marked #[ignore = "scale: …"] or `scale`.
        return [
            Stage("rust, long ones", (*cargo, "--", "--ignored")),
            Stage("python, long ones", (*pytest, "-m", "scale")),
        ]
    return [
        Stage("arrows", (sys.executable, ROOT / "scripts" / "check_arrows.py")),
        Stage("rust", cargo),
        Stage("python", (*spread, *pure)),
        Stage("house, examples", (*spread, "tests/house")),
        Stage("labs", (*pytest, "tests/net", "tests/lab", "tests/mpi")),
    ]


def count(output: str) -> Count:
    """Add up the summary lines of cargo and pytest in `output`."""
    total = Count()
    for passed, failed, ignored in re.findall(
        r"^test result: \S+ (\d+) passed; (\d+) failed; (\d+) ignored", output, re.MULTILINE
    ):
        total.passed += int(passed)
        total.failed += int(failed)
        total.skipped += int(ignored)
    # "3 failed, 120 passed, 2 skipped in 4.20s"; the last one counts.
    lines = re.findall(r"^=*\s*((?:\d+ \w+(?:, )?)+) in [\d.]+s.*$", output, re.MULTILINE)
    for number, word in re.findall(r"(\d+) (\w+)", lines[-1]) if lines else []:
        if word == "passed":
            total.passed += int(number)
        elif word in ("failed", "error", "errors", "xpassed"):
            total.failed += int(number)
        elif word in ("skipped", "xfailed"):
            total.skipped += int(number)
    return total


def run(stage: Stage) -> Count:
    """Run a stage, passing its output through."""
    print(f"\n== {stage.name}: {' '.join(map(str, stage.command))}", flush=True)
    started = time.monotonic()
    environment = {**os.environ, "COLUMNS": "100"}
    process = subprocess.Popen(
        stage.command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    lines = []
    for line in process.stdout or ():
        lines.append(line)
        print(line, end="", flush=True)
    status = process.wait()
    result = count("".join(lines))
    if result == Count():  # a check, not a collection of tests
        result.passed = int(status == 0)
    nothing_selected = status == 5 and "pytest" in stage.command
    if status != 0 and result.failed == 0 and not nothing_selected:
        result.failed = 1  # it did not build, or broke before it could count
    result.seconds = time.monotonic() - started
    return result


def main() -> int:
    """Run the stages and print the totals."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--scale", action="store_true", help="run the long tests instead")
    parser.add_argument("--only", metavar="NAME", help="run only the stages whose name has NAME")
    options = parser.parse_args()
    chosen = [s for s in stages(scale=options.scale) if not options.only or options.only in s.name]
    counts = {stage.name: run(stage) for stage in chosen}
    print(f"\n{'stage':<20}{'passed':>8}{'failed':>8}{'skipped':>9}{'seconds':>9}")
    for name, c in counts.items():
        print(f"{name:<20}{c.passed:>8}{c.failed:>8}{c.skipped:>9}{c.seconds:>9.0f}")
    passed, failed, skipped = (
        sum(getattr(c, field) for c in counts.values()) for field in ("passed", "failed", "skipped")
    )
    print(f"\n{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not counts else 0


if __name__ == "__main__":
    sys.exit(main())
