"""Measure in-network Allreduce against plain MPI in a lab: limit and measured value of each ratio.

Every comparison is paired and interleaved: plain and offloaded runs alternate in two labs of the
same shape, and whoever begins alternates too. Allreduce programs run side by side and take turns of
about a second, asleep in between, so that what disturbs the machine hits both; all of them start
anew several times. A comparison holds when the median of at least 20 ratios is inside the limit and
its bootstrap 95 % interval is narrower than 10 %; a wider one is "not measured", never a pass.
While an interval is too wide, pairs are added, up to six times as many: the width alone decides.
Needs root, Open MPI, and what `make build` builds. Leaves out/bench-mpi.json; exit status 1 if a
ratio does not hold.
"""

import argparse
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench import OUT, SOURCES, openfoam
from bench.comparison import FEWEST_PAIRS, Comparison, compare
from bench.turns import MOST_TIMES, Judge, ProgramInTurns, Side, Times, alternate, say
from raddle.files import write_json
from raddle.services.lab import Backend, Lab, LabSpec
from raddle.services.lab.tools import mpi_library, switch_program

SOURCE = SOURCES / "allreduce.c"
NAME = "bench-mpi"
SIZES = (4, 8, 16, 32, 64, 128, 256)
ITERATIONS = {4: 1000, 9: 300, 16: 150}
"""Allreduces of a size in a turn, by hosts."""

TURNS = 5
"""Turns of a program until it starts anew."""

LONG = 65_536
LONG_ITERATIONS = {4: 300, 9: 100, 16: 50}
ALGORITHMS = range(1, 7)
"""Allreduce algorithms of Open MPI's `tuned`: linear to Rabenseifner."""

LEAST = {4: 1.8, 9: 2.0, 16: 3.0}
"""How many times faster than plain MPI, by hosts."""

LEAST_FOAM = {4: 1 / 0.8, 9: 1.8, 16: 1.8}
LEAST_ELSEWHERE = 0.97
DISABLED = {"RADDLE_DISABLE": "1"}
PARTS = ("small", "long", "foam")
LONG_TIMES = 3
"""Pairs of the size that offload leaves alone, likewise."""


@dataclass(frozen=True)
class Bench:
    """A lab of the kernel's bridges, one of our switches, the program, and how much is measured."""

    plain: Lab
    offload: Lab
    program: Path
    pairs: int

    def allreduce(self, hosts: int, at_least: float) -> list[Comparison]:
        """Small sizes against the default of Open MPI, and beside it its best forced algorithm.

        What users run is the default: the limit is for it. The other says what tuning would give.
        """
        forced = self._best_algorithm(hosts)
        say(f"{hosts} hosts: the best forced algorithm is {forced}")
        sides = {
            "default": Side(self.plain, hosts),
            "forced": Side(self.plain, hosts, force(forced)),
            "offload": Side(self.offload, hosts),
        }

        def judge(rounds: list[dict[str, Times]]) -> list[Comparison]:
            return [
                compare(
                    f"{hosts} hosts, {size} B, against {words}",
                    limit,
                    [r[plain][size] / r["offload"][size] for r in rounds],
                )
                for plain, words, limit in (
                    ("default", "default", at_least),
                    ("forced", f"algorithm {forced}", None),
                )
                for size in SIZES
            ]

        return self._by_turns(f"{hosts} hosts", sides, ITERATIONS[hosts], SIZES, judge)

    def elsewhere(self, hosts: int) -> list[Comparison]:
        """A size at which offload is not to help: the library may cost little.

        Both run over the same switches. Against the kernel's bridge one would measure how fast a
        software switch forwards, which no network card asks.
        """
        sides = {
            "plain": Side(self.offload, hosts, variables=DISABLED),
            "offload": Side(self.offload, hosts),
        }
        what = f"{hosts} hosts, {LONG} B"
        judge = ratio_of(f"{what}, not to be slower", LEAST_ELSEWHERE, LONG)
        # The limit is near what two equal programs give: the median must be known well.
        many = replace(self, pairs=LONG_TIMES * self.pairs)
        return many._by_turns(what, sides, LONG_ITERATIONS[hosts], (LONG,), judge)

    def foam(self, hosts: int, case: Path, at_least: float) -> tuple[list[Comparison], bool]:
        """OpenFOAM's icoFoam: wall time, and whether all residual logs are identical."""
        logs: set[str] = set()
        words = ["icoFoam", "-parallel", "-case", str(case)]

        def side(lab: Lab) -> Callable[[], Times]:
            def run() -> Times:
                log, seconds = Side(lab, hosts, variables=openfoam.ENVIRONMENT).run(words)
                logs.add("\n".join(filter(openfoam.RESIDUALS.match, log.splitlines())))
                return {0: seconds}

            return run

        found = alternate(
            f"icoFoam, {hosts} hosts",
            self.pairs,
            lambda: nullcontext({"plain": side(self.plain), "offload": side(self.offload)}),
            self.pairs,
            ratio_of(f"icoFoam cavity, {hosts} hosts", at_least, 0),
        )
        return found, len(logs) == 1

    def _best_algorithm(self, hosts: int) -> int:
        totals = {}
        for number in ALGORITHMS:
            side = Side(self.plain, hosts, force(number))
            with ProgramInTurns(side, self.program, ITERATIONS[hosts], SIZES) as waiting:
                totals[number] = sum(waiting.turn().values())
        return min(totals, key=lambda number: totals[number])

    def _by_turns(
        self,
        what: str,
        sides: Mapping[str, Side],
        iterations: int,
        sizes: tuple[int, ...],
        judge: Judge,
    ) -> list[Comparison]:
        """Compare Allreduce programs that run side by side."""

        @contextmanager
        def start() -> Iterator[dict[str, Callable[[], Times]]]:
            with ExitStack() as stack:
                turns = {}
                for name, side in sides.items():
                    waiting = ProgramInTurns(side, self.program, iterations, sizes)
                    turns[name] = stack.enter_context(waiting).turn
                    turns[name]()
                yield turns

        return alternate(what, self.pairs, start, TURNS, judge)


def ratio_of(what: str, at_least: float, key: int) -> Judge:
    """Judge one ratio: sides `plain` and `offload`, what they say under `key`."""

    def judge(rounds: list[dict[str, Times]]) -> list[Comparison]:
        return [compare(what, at_least, [r["plain"][key] / r["offload"][key] for r in rounds])]

    return judge


def force(algorithm: int) -> str:
    """Words for mpirun that force an Allreduce algorithm."""
    return f"--mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_allreduce_algorithm {algorithm}"


def allreduce_program() -> Path:
    """The program that is measured, compiled.

    Raises
    ------
    LabError
        The switch or the library of MPI is not built.
    """
    switch_program(), mpi_library()
    program = OUT / "allreduce"
    OUT.mkdir(exist_ok=True)
    subprocess.run(["mpicc.openmpi", "-O2", "-o", program, SOURCE], check=True)
    return program


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(
        prog="python3 -m bench.mpi", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument(
        "--hosts", default="4,9,16", help="comma-separated; limits are for 4, 9, 16"
    )
    parser.add_argument(
        "--pairs", type=int, default=FEWEST_PAIRS,
        help=f"pairs of each comparison (%(default)s); up to {MOST_TIMES} times as many while an "
        "interval is too wide, fewer than the default are never a pass",
    )  # fmt: skip
    parser.add_argument("--offload", choices=("sockets", "xdp"), default="xdp")
    parser.add_argument(
        "--parts", default=",".join(PARTS), help=f"comma-separated, of {', '.join(PARTS)}"
    )
    parser.add_argument("--out", type=Path, default=OUT / "bench-mpi.json")
    options = parser.parse_args()
    numbers = [int(text) for text in options.hosts.split(",")]
    unknown = [n for n in numbers if n not in LEAST]
    if unknown:
        parser.error(f"no limits for {unknown} hosts: choose of {sorted(LEAST)}")
    parts = options.parts.split(",")
    if not set(parts) <= set(PARTS):
        parser.error(f"--parts {options.parts}: choose of {', '.join(PARTS)}")
    program = allreduce_program()
    begun = time.monotonic()
    comparisons: list[Comparison] = []
    notes: list[str] = []
    backend = Backend(options.offload)
    names = {Backend.OFF: f"{NAME}-off", backend: f"{NAME}-{backend}"}
    try:
        labs = {
            one: Lab.up(LabSpec(name=name, hosts=max(numbers)), replace=True)
            for one, name in names.items()
        }
        labs[backend].use(backend)
        bench = Bench(labs[Backend.OFF], labs[backend], program, options.pairs)
        for hosts in numbers:
            if "small" in parts:
                comparisons += bench.allreduce(hosts, LEAST[hosts])
            if "long" in parts:
                comparisons += bench.elsewhere(hosts)
        if "foam" in parts:
            comparisons += foam(bench, numbers, notes)
    finally:
        for name in names.values():
            Lab.down(name)
    print(f"{'plain / offload':<44}{'least':>7}  {'median [95 % interval]':<24}")
    for comparison in comparisons:
        print(comparison.line())
    for note in notes:
        print(note)
    good = not any(c.fails for c in comparisons) and not notes
    document: dict[str, Any] = {
        "schema": 1,
        "holds": good,
        "offload": options.offload,
        "machine": {"kernel": platform.release(), "cores": os.cpu_count()},
        "command": " ".join(sys.orig_argv),
        "seconds": round(time.monotonic() - begun),
        "comparisons": [c.as_json() for c in comparisons],
        "notes": notes,
    }
    write_json(options.out, document)
    say(f"wrote {options.out}")
    return 0 if good else 1


def foam(bench: Bench, numbers: list[int], notes: list[str]) -> list[Comparison]:
    """Solve OpenFOAM's cavity, as it is shipped; what stands in the way goes to `notes`."""
    if not openfoam.installed():
        notes.append("icoFoam: not measured (install openfoam and openfoam-examples)")
        return [compare(f"icoFoam cavity, {n} hosts", LEAST_FOAM[n], []) for n in numbers]
    found = []
    for hosts in numbers:
        case = OUT / f"cavity-{hosts}"
        openfoam.prepare(case, hosts)
        comparisons, equal = bench.foam(hosts, case, LEAST_FOAM[hosts])
        found += comparisons
        if not equal:
            notes.append(f"icoFoam, {hosts} hosts: residual logs differ")
    return found


if __name__ == "__main__":
    sys.exit(main())
