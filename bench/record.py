"""Measure what recording costs: nanoseconds per call, and its share of the time of real programs.

Runs with and without the recorder alternate, and whoever begins alternates too. The cost of a call
is processor time of one rank that sends to itself. LAMMPS says its time itself, icoFoam's is that
of mpirun. The limit holds when the median of at least 20 ratios (without / with) is inside it and
its bootstrap 95 % interval is narrower than 10 %. Needs an MPI library and what `make build`
builds; programs that are not installed are left out.
Leaves out/bench-record.json; exit status 1 if a ratio does not hold.
"""

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench import OUT, ROOT, SOURCES, openfoam
from bench.comparison import FEWEST_PAIRS, Comparison, compare
from raddle.files import write_json
from raddle.services.lab.tools import mpi_library
from raddle.services.record import Launcher, with_recorder

SOURCE = SOURCES / "messages.c"
LEAST = 1 / 1.03
"""Time without / time with: recording costs less than 3 %."""

LAUNCHERS: dict[Launcher, tuple[str, ...]] = {
    Launcher.OPENMPI: (
        *("mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"),
        *("--mca", "mpi_yield_when_idle", "1"),
    ),
    Launcher.MPICH: ("mpiexec.mpich",),
}
MELT = ROOT / "experiments" / "replay" / "lammps-melt.in"

MESSAGES = "messages"
PARTS = (MESSAGES, "icofoam", "lammps")

Time = Callable[[str, float], float]
"""From what a program prints, and the seconds that mpirun took."""


@dataclass(frozen=True)
class Program:
    """What is run, and how its time is read from what it prints."""

    name: str
    words: tuple[str, ...]
    launcher: Launcher
    ranks: int
    time: Time


def ran(program: Program, *, recorded: bool) -> float:
    """Run it once; its time in seconds."""
    command: Sequence[str] = [*LAUNCHERS[program.launcher], "-np", str(program.ranks)]
    command = [*command, *program.words]
    variables: dict[str, str] = {}
    with tempfile.TemporaryDirectory(dir=OUT) as folder:
        if recorded:
            command, variables = with_recorder(
                command, program.launcher, mpi_library(), Path(folder)
            )
        begun = time.monotonic()
        done = subprocess.run(
            command, env={**os.environ, **openfoam.ENVIRONMENT, **variables}, cwd=folder,
            capture_output=True, text=True, timeout=600, check=True,
        )  # fmt: skip
        seconds = time.monotonic() - begun
        if recorded and len([*Path(folder).glob("rank-*.rec")]) != program.ranks:
            msg = f"{program.name}: not all ranks were recorded\n{done.stderr[-1000:]}"
            raise RuntimeError(msg)
    return program.time(done.stdout, seconds)


def paired(program: Program, pairs: int) -> list[tuple[float, float]]:
    """Times without and with the recorder."""
    times = []
    for number in range(pairs):
        order = (False, True) if number % 2 == 0 else (True, False)
        found = {recorded: ran(program, recorded=recorded) for recorded in order}
        times.append((found[False], found[True]))
        print(f"{program.name}: {number + 1}: {found[False]:.4g} s, recorded {found[True]:.4g} s",
              file=sys.stderr, flush=True)  # fmt: skip
    return times


def last(pattern: str) -> Time:
    """Read the last number that follows a pattern."""
    return lambda text, _: float(re.findall(pattern + r"\s*=?\s*([0-9.]+)", text)[-1])


def of_mpirun(_: str, seconds: float) -> float:
    """Take mpirun's time for the program's."""
    return seconds


def real_programs(parts: Sequence[str]) -> list[Program]:
    """Those of these programs that are installed here."""
    programs = []
    if "icofoam" in parts and openfoam.installed():
        case = OUT / "cavity-record"
        openfoam.prepare(case, 4)
        foam = ("icoFoam", "-parallel", "-case", str(case))
        programs.append(Program("icoFoam cavity", foam, Launcher.OPENMPI, 4, of_mpirun))
    if "lammps" in parts and shutil.which("lmp"):
        size = ("-var", "n", "20", "-var", "steps", "250")
        lammps = ("lmp", "-in", str(MELT), *size, "-log", "none")
        programs.append(Program("LAMMPS melt", lammps, Launcher.OPENMPI, 2, last("Loop time of")))
    return programs


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(
        prog="python3 -m bench.record", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--pairs", type=int, default=FEWEST_PAIRS, help="(%(default)s)")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--rounds", type=int, default=100_000, help="of short messages")
    parser.add_argument("--out", type=Path, default=OUT / "bench-record.json")
    options = parser.parse_args()
    OUT.mkdir(exist_ok=True)
    costs: dict[str, float] = {}
    for launcher in Launcher if MESSAGES in options.parts else ():
        program = OUT / f"messages-{launcher}"
        if shutil.which(f"mpicc.{launcher}") is None:
            continue
        subprocess.run([f"mpicc.{launcher}", "-O2", "-o", program, SOURCE], check=True)
        words = (str(program), str(options.rounds))
        times = paired(
            Program(f"messages, {launcher}", words, launcher, 1, last("seconds")), options.pairs
        )
        calls = options.rounds * 17
        costs[launcher] = median(1e9 * (after - before) / calls for before, after in times)
        plain = median(1e9 * before / calls for before, _ in times)
        print(f"{launcher}: {costs[launcher]:.0f} ns per call, which takes {plain:.0f} ns without")
    comparisons: list[Comparison] = []
    for real in real_programs(options.parts):
        times = paired(real, options.pairs)
        ratios = [before / after for before, after in times]
        comparisons.append(compare(real.name, LEAST, ratios))
        print(comparisons[-1].line(), flush=True)
    judged = bool(comparisons) or set(options.parts) == {MESSAGES}
    good = judged and not any(c.fails for c in comparisons)
    write_json(
        options.out,
        {
            "schema": 1,
            "holds": good,
            "machine": {"kernel": platform.release(), "cores": os.cpu_count()},
            "command": " ".join(sys.orig_argv),
            "cost_per_call_ns": {str(k): round(v, 1) for k, v in costs.items()},
            "comparisons": [c.as_json() for c in comparisons],
        },
    )
    print(json.dumps({"holds": good, "out": str(options.out)}), file=sys.stderr)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
