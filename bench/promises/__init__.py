"""Promises that have a number: what one is, and how its figure is measured.

A promise is a function that returns an `Outcome` below `@promise(...)`, in the module of its topic.
Nothing is simulated here: each promise runs a command of the project.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from bench import PYTHON, ROOT

RADDLE = ROOT / ".venv" / "bin" / "raddle"
EXPERIMENTS = ROOT / "experiments"

PASS, FAIL, NOT_RUN = "pass", "fail", "not run"


@dataclass(frozen=True)
class Outcome:
    """What came out: the figure with its unit, and whether it keeps the limit."""

    measured: str
    verdict: str


@dataclass(frozen=True)
class Promise:
    """One line of the list."""

    name: str
    command: str
    limit: str
    measure: Callable[[Path], Outcome]
    minutes: int


PROMISES: list[Promise] = []


def promise(
    name: str, command: str, limit: str, *, minutes: int = 1
) -> Callable[[Callable[[Path], Outcome]], Callable[[Path], Outcome]]:
    """Put a promise on the list; `minutes` of 5 or more are left out without --full."""

    def add(measure: Callable[[Path], Outcome]) -> Callable[[Path], Outcome]:
        PROMISES.append(Promise(name, command, limit, measure, minutes))
        return measure

    return add


def judge(measured: str, *, kept: bool) -> Outcome:
    """Turn a comparison into an outcome."""
    return Outcome(measured, PASS if kept else FAIL)


@dataclass(frozen=True)
class Done:
    """A command that ended."""

    status: int
    stdout: str
    stderr: str
    seconds: float
    peak_bytes: int

    @property
    def last_words(self) -> str:
        """The last line that it said."""
        lines = (self.stderr.strip() or self.stdout.strip()).splitlines()
        return lines[-1].strip() if lines else "nothing was said"


MEASURED = """
import os, sys, time
started = time.monotonic()
process = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(process, 0)
with open(sys.argv[1], "w") as told:
    print(status, time.monotonic() - started, usage.ru_maxrss, file=told)
"""
"""Runs a command.

A process's peak of memory is at least what its parent had when it started it: a small one has to.
"""


def run(*command: str | Path, environment: Mapping[str, str] | None = None) -> Done:
    """Run a command to its end; with wall time and peak memory."""
    with tempfile.TemporaryDirectory() as folder:
        told = Path(folder) / "told"
        done = subprocess.run(
            [sys.executable, "-S", "-c", MEASURED, told, *command],
            cwd=ROOT,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if not told.exists():
            msg = f"{command[0]} cannot be started: {done.stderr}"
            raise OSError(msg)
        status, seconds, peak_kib = told.read_text().split()
    return Done(
        os.waitstatus_to_exitcode(int(status)),
        done.stdout,
        done.stderr,
        float(seconds),
        int(peak_kib) * 1024,
    )


class Broken(Exception):
    """A command of the project failed where it should not."""


def simulate(folder: Path, experiment: str | Path, *words: str) -> tuple[Done, dict[str, Any]]:
    """Call `raddle run`; the experiment is a file or TOML text. Also gives its summary."""
    if isinstance(experiment, str):
        file = folder / f"{hashlib.sha256(experiment.encode()).hexdigest()[:8]}.toml"
        file.write_text(experiment, encoding="utf-8")
    else:
        file = experiment
    done = run(RADDLE, "run", file, "--json", "--quiet", *words)
    if done.status != 0:
        raise Broken(done.last_words)
    return done, json.loads(done.stdout)


def unfinished(summary: Mapping[str, Any]) -> int:
    """Flows that did not end."""
    return sum(s["flows"] - s["finished"] for s in summary["schemes"].values())


def test_line(output: str) -> Outcome:
    """Read the totals of a test command out of what it printed."""
    from scripts.run_tests import count

    total = count(output)
    text = f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped"
    if total.failed:
        return Outcome(text, FAIL)
    return Outcome(text, PASS if total.passed else NOT_RUN)


def rust_tests(*patterns: str, crate: str = "engine") -> Outcome:
    """Run integration tests of a crate; `not run` as long as there are none of these names."""
    manifests = (ROOT / "crates").glob("*/*/Cargo.toml")
    manifest = next(m for m in manifests if f'name = "raddle-{crate}"' in m.read_text())
    folder = manifest.parent / "tests"
    files = [*folder.glob("*.rs"), *(main.parent for main in folder.glob("*/main.rs"))]
    names = sorted({f.stem for f in files if any(fnmatch(f.stem, p) for p in patterns)})
    if not names:
        return Outcome("no such test yet", NOT_RUN)
    chosen = [word for name in names for word in ("--test", name)]
    done = run("cargo", "test", "--locked", "--no-fail-fast", "-p", f"raddle-{crate}", *chosen)
    outcome = test_line(done.stdout + done.stderr)
    broken = done.status != 0 and outcome.verdict != FAIL
    return Outcome(done.last_words, FAIL) if broken else outcome


def python_tests(*words: str) -> Outcome:
    """Run some of the Python tests."""
    done = run(PYTHON, "-m", "pytest", "-q", *words)
    outcome = test_line(done.stdout)
    broken = done.status not in (0, 5) and outcome.verdict != FAIL
    return Outcome(done.last_words, FAIL) if broken else outcome


def example(crate: str, name: str) -> Path:
    """Build an example program for speed; gives its place.

    A profile that the environment changes is not what users run: it is left out, and what is built
    without it has a folder of its own.
    """
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    changes = [variable for variable in os.environ if variable.startswith("CARGO_PROFILE_")]
    if changes:
        target /= "measured"
    words = ("cargo", "build", "--release", "--locked", "-p", f"raddle-{crate}", "--example", name)
    without = [word for variable in changes for word in ("-u", variable)]
    built = run("env", *without, *words, "--target-dir", str(target))
    if built.status != 0:
        raise Broken(built.last_words)
    return target / "release" / "examples" / name


@contextmanager
def scratch() -> Iterator[Path]:
    """Give a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="raddle-accept-") as name:
        yield Path(name)


def cargo_test(crate: str, test: str, *words: str) -> Outcome:
    """Run some tests of one integration test, long ones where `--ignored` is among the words."""
    done = run("cargo", "test", "--locked", "-p", f"raddle-{crate}", "--test", test, *words)
    outcome = test_line(done.stdout + done.stderr)
    return judge(outcome.measured, kept=outcome.verdict == PASS and done.status == 0)


def compared(folder: Path, module: str) -> Outcome:
    """Run a program of paired comparisons; what does not hold is named."""
    out = folder / "compared.json"
    done = run(PYTHON, "-m", module, "--out", out)
    if not out.exists():
        raise Broken(done.last_words)
    document = json.loads(out.read_text())
    limited = [one for one in document["comparisons"] if one["at_least"] is not None]
    others = [one for one in limited if one["verdict"] != "holds"]
    missed = [f"{one['what']} {one['median']} ({one['verdict']})" for one in others]
    checks = document.get("checks", [])
    missed += [f"{one['what']} {one['measured']}" for one in checks if not one["holds"]]
    count = len(limited) + len(checks)
    text = "; ".join([f"{count - len(missed)} of {count} hold", *missed])
    return judge(text, kept=document["holds"])
