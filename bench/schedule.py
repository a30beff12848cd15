"""Measure what joining the messages of a superstep gives, by the library and by hand.

Messages: every rank sends 32 messages to every other: each by itself (direct), packed into one by
the program (packed), or each by itself with RADDLE_SCHEDULE=on under it (ours), after the trial has
decided. All run side by side over the kernel's bridges and take turns. Each size runs in a program
of its own, since the trial decides for a communicator. Programs: LAMMPS and OpenFOAM's icoFoam as
they are, with and without RADDLE_SCHEDULE=on, by the time that mpirun takes; what they print of
their results must be the same. Needs root, Open MPI, and what `make build` builds.
"""

import argparse
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import OUT, SOURCES, openfoam
from bench.comparison import FEWEST_PAIRS, Comparison, compare
from bench.record import MELT
from bench.turns import ProgramInTurns, Side, Times, alternate, say
from raddle.files import write_json
from raddle.services.lab import Lab, LabSpec
from raddle.services.lab.tools import mpi_library

SOURCE = SOURCES / "superstep.c"
GAINS = {64: 8.0, 256: 8.0, 1024: 4.0, 4096: 1.5, 16_384: 0.98, 65_536: 0.98}
"""Least ratio direct / ours, by size."""

OF_PACKED = 0.6
"""Least ratio packed / ours where there is something to join."""

JOINED = 4096
SIZES = tuple(GAINS)
SUPERSTEPS = {64: 500, 256: 500, 1024: 500, 4096: 200, 16_384: 200, 65_536: 50}
"""Of a turn, by size: half a second or more of the slowest; shorter turns are disturbed."""

TURNS = 5
TRIAL = 8
"""Turns of 30 collectives each, in which the trial is decided."""

MESSAGES = "messages"
LEAST_PROGRAM = 0.98
"""Least ratio direct / ours of a whole program: it is never more than 2 % slower."""

THERMO = re.compile(r"\s+\d+(\s+-?\d[\d.e+-]*){4,}\s*$")
"""Lines of a LAMMPS log that say what the atoms do."""

NAME = "bench-schedule"


@dataclass(frozen=True)
class Program:
    """A program as users run it, and the lines of its log that its results decide."""

    name: str
    words: tuple[str, ...]
    results: re.Pattern[str]
    installed: bool


def lammps(_: int) -> Program:
    """LAMMPS melts 32,000 atoms."""
    words = ("lmp", "-in", str(MELT), "-var", "n", "20", "-var", "steps", "250", "-log", "none")
    return Program("LAMMPS melt", words, THERMO, shutil.which("lmp") is not None)


def icofoam(hosts: int) -> Program:
    """OpenFOAM's cavity, as it is shipped."""
    case = OUT / f"cavity-schedule-{hosts}"
    installed = openfoam.installed()
    if installed:
        openfoam.prepare(case, hosts)
    words = ("icoFoam", "-parallel", "-case", str(case))
    return Program("icoFoam cavity", words, openfoam.RESIDUALS, installed)


PROGRAMS: dict[str, Callable[[int], Program]] = {"lammps": lammps, "icofoam": icofoam}
"""What is measured, on so many hosts."""

PARTS = (MESSAGES, *PROGRAMS)


def judge(size: int, rounds: list[dict[str, Times]]) -> list[Comparison]:
    """Ratios of one size."""
    what = f"32 x {size} B to each peer"

    def ratios(before: str, after: str) -> list[float]:
        return [r[before][size] / r[after][size] for r in rounds]

    return [
        compare(f"{what}: direct / ours", GAINS[size], ratios("direct", "ours")),
        compare(
            f"{what}: packed / ours",
            OF_PACKED if size <= JOINED else None,
            ratios("packed", "ours"),
        ),
    ]


def measure(lab: Lab, hosts: int, program: Path, size: int, pairs: int) -> list[Comparison]:
    """Let the three run in turns."""
    plain, ours = both(lab, hosts)
    sides = {"direct": (plain, ()), "packed": (plain, ("-p",)), "ours": (ours, ())}

    @contextmanager
    def start() -> Iterator[dict[str, Callable[[], Times]]]:
        with ExitStack() as stack:
            turns = {}
            for name, (side, words) in sides.items():
                waiting = ProgramInTurns(side, program, SUPERSTEPS[size], (size,), *words)
                turns[name] = stack.enter_context(waiting).turn
            for _ in range(TRIAL):
                turns["ours"]()
            yield turns

    return alternate(f"{size} B", pairs, start, TURNS, lambda rounds: judge(size, rounds))


def messages(lab: Lab, hosts: int, sizes: Sequence[int], pairs: int) -> list[Comparison]:
    """Supersteps of all sizes."""
    program = OUT / "superstep"
    subprocess.run(["mpicc.openmpi", "-O2", "-o", program, SOURCE], check=True)
    return [one for size in sizes for one in measure(lab, hosts, program, size, pairs)]


def both(lab: Lab, hosts: int) -> tuple[Side, Side]:
    """Without and with scheduling."""
    scheduled = f"-x LD_PRELOAD={mpi_library()} -x RADDLE_SCHEDULE=on"
    return Side(lab, hosts, variables=openfoam.ENVIRONMENT), Side(
        lab, hosts, scheduled, variables=openfoam.ENVIRONMENT
    )


def measure_program(
    lab: Lab, hosts: int, program: Program, pairs: int
) -> tuple[list[Comparison], dict[str, Any]]:
    """Let a program run with and without in turns; and whether its results were always the same."""
    results: set[str] = set()

    def runs(side: Side) -> Callable[[], Times]:
        def run() -> Times:
            log, seconds = side.run(list(program.words))
            results.add("\n".join(filter(program.results.match, log.splitlines())))
            return {0: seconds}

        return run

    def judge_program(rounds: list[dict[str, Times]]) -> list[Comparison]:
        ratios = [r["direct"][0] / r["ours"][0] for r in rounds]
        return [compare(f"{program.name}: direct / ours", LEAST_PROGRAM, ratios)]

    if program.installed:
        direct, ours = both(lab, hosts)
        sides = nullcontext({"direct": runs(direct), "ours": runs(ours)})
        found = alternate(program.name, pairs, lambda: sides, pairs, judge_program)
    else:
        found = judge_program([])
    same = len(results) == 1 and "" not in results
    told = f"{len(results)} different" if program.installed else "not installed"
    return found, {"what": f"{program.name}: same results", "measured": told, "holds": same}


def main() -> int:
    """Measure and print; 1 if a limit was not seen to hold."""
    parser = argparse.ArgumentParser(
        prog="python3 -m bench.schedule", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--pairs", type=int, default=FEWEST_PAIRS)
    parser.add_argument("--sizes", type=int, nargs="+", choices=SIZES, default=SIZES)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--out", type=Path, default=OUT / f"{NAME}.json")
    options = parser.parse_args()
    OUT.mkdir(exist_ok=True)
    comparisons: list[Comparison] = []
    checks: list[dict[str, Any]] = []
    try:
        lab = Lab.up(LabSpec(name=NAME, hosts=options.hosts), replace=True)
        for part in options.parts:
            if part == MESSAGES:
                comparisons += messages(lab, options.hosts, options.sizes, options.pairs)
            else:
                program = PROGRAMS[part](options.hosts)
                found, check = measure_program(lab, options.hosts, program, options.pairs)
                comparisons += found
                checks.append(check)
    finally:
        Lab.down(NAME)
    print(f"{'before / after':<44}{'least':>7}  {'median [95 % interval]':<24}")
    for comparison in comparisons:
        print(comparison.line())
    for check in checks:
        print(f"{check['what']:<44}{'holds' if check['holds'] else check['measured']}")
    holds = not any(c.fails for c in comparisons) and all(c["holds"] for c in checks)
    measured = [comparison.as_json() for comparison in comparisons]
    document = {"schema": 1, "holds": holds, "comparisons": measured, "checks": checks}
    write_json(options.out, document)
    say(f"wrote {options.out}")
    return int(not holds)


if __name__ == "__main__":
    sys.exit(main())
