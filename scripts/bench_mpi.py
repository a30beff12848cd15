#!/usr/bin/env python3
"""Measure in-network Allreduce against plain MPI in a lab: limit and measured value of each ratio.

Every comparison is paired and interleaved: plain and offloaded runs alternate in the same lab, and
whoever begins alternates too. It holds when the median of at least 20 ratios is inside the limit
and its bootstrap 95 % interval is narrower than 10 %; a wider one is "not measured", never a pass.
While an interval is too wide, pairs are added, up to three times as many: the width alone decides.
Needs root, Open MPI, and what `make build` builds. Leaves out/bench-mpi.json; exit status 1 if a
ratio does not hold.
"""

import argparse
import json
import math
import os
import platform
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from pairs import FEWEST_PAIRS, Comparison, Verdict, compare

from raddle.errors import LabError
from raddle.files import write_json
from raddle.lab import Backend, Lab, LabSpec, Mode
from raddle.lab.mpi import MpiRun, prepared
from raddle.lab.tools import mpi_library, switch_program

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "benches" / "mpi" / "allreduce.c"
NAME = "bench-mpi"
SIZES = (4, 8, 16, 32, 64, 128, 256)
ITERATIONS = {4: 4000, 9: 2000, 16: 1000}
"""Allreduces of a size in a run, by hosts."""

LONG = 65_536
LONG_ITERATIONS = 300
ALGORITHMS = range(1, 7)
"""Allreduce algorithms of Open MPI's `tuned`: linear to Rabenseifner."""

LEAST = {4: 1.8, 9: 2.0, 16: 3.0}
"""How many times faster than plain MPI, by hosts."""

LEAST_FOAM = {4: 1 / 0.8, 9: 1.8, 16: 1.8}
LEAST_ELSEWHERE = 0.97
DISABLED = {"RADDLE_DISABLE": "1"}
PARTS = ("small", "long", "foam")
FOAM_STEPS = 50
FOAM_ENVIRONMENT = {"WM_PROJECT_DIR": "/usr/share/openfoam"}
PATIENCE_S = 600

MOST_TIMES = 3
"""Most pairs, in multiples of what is asked for."""

Times = dict[int, float]
Judge = Callable[[list[dict[str, Times]]], list[Comparison]]


@dataclass(frozen=True)
class Bench:
    """The lab, the program, and how much is measured."""

    lab: Lab
    backend: Backend
    program: Path
    pairs: int

    def run(
        self,
        hosts: int,
        backend: Backend,
        words: list[str],
        mpi_args: str = "",
        variables: Mapping[str, str] | None = None,
    ) -> tuple[str, float]:
        """What a program prints under MPI, and how long mpirun took in seconds."""
        run = MpiRun(
            hosts=self.lab.topology.hosts[:hosts],
            ppn=(1,) * hosts,
            backend=backend,
            program=tuple(words),
            mode=Mode.NODE,
            mpi_args=tuple(mpi_args.split()),
        )
        with prepared(self.lab, run) as (command, environment):
            begun = time.monotonic()
            done = subprocess.run(
                command, env={**environment, **FOAM_ENVIRONMENT, **(variables or {})},
                capture_output=True, text=True, check=False, timeout=PATIENCE_S,
            )  # fmt: skip
            seconds = time.monotonic() - begun
        if done.returncode != 0:
            msg = f"{' '.join(command)}\n{done.stdout[-500:]}{done.stderr[-1500:]}"
            raise LabError(msg)
        return done.stdout, seconds

    def times(
        self,
        hosts: int,
        backend: Backend,
        sizes: tuple[int, ...],
        mpi_args: str = "",
        variables: Mapping[str, str] | None = None,
    ) -> Times:
        """Median of Allreduce in us, by size."""
        iterations = ITERATIONS[hosts] if sizes is SIZES else LONG_ITERATIONS
        words = [str(self.program), "-n", str(iterations), *map(str, sizes)]
        out, _ = self.run(hosts, backend, words, mpi_args, variables)
        rows = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
        return {row["bytes"]: row["median_us"] for row in rows}

    def allreduce(self, hosts: int, at_least: float) -> list[Comparison]:
        """Small sizes against the default of Open MPI and its best forced algorithm."""
        forced = self._best_algorithm(hosts)
        say(f"{hosts} hosts: the best forced algorithm is {forced}")
        legs: dict[str, Callable[[], Times]] = {
            "default": lambda: self.times(hosts, Backend.OFF, SIZES),
            "forced": lambda: self.times(hosts, Backend.OFF, SIZES, force(forced)),
            "offload": lambda: self.times(hosts, self.backend, SIZES),
        }

        def judge(rounds: list[dict[str, Times]]) -> list[Comparison]:
            return [
                compare(
                    f"{hosts} hosts, {size} B, against {words}",
                    at_least,
                    [r[plain][size] / r["offload"][size] for r in rounds],
                )
                for plain, words in (("default", "default"), ("forced", f"algorithm {forced}"))
                for size in SIZES
            ]

        return self._alternate(f"{hosts} hosts", legs, judge)

    def elsewhere(self, hosts: int) -> list[Comparison]:
        """A size at which offload is not to help: the library may cost little.

        Both run over the same switches. Against the kernel's bridge one would measure how fast a
        software switch forwards, which no network card asks.
        """
        legs: dict[str, Callable[[], Times]] = {
            "plain": lambda: self.times(hosts, self.backend, (LONG,), variables=DISABLED),
            "offload": lambda: self.times(hosts, self.backend, (LONG,)),
        }
        return self._alternate(
            f"{hosts} hosts, {LONG} B",
            legs,
            ratio_of(f"{hosts} hosts, {LONG} B, not to be slower", LEAST_ELSEWHERE, LONG),
        )

    def foam(self, hosts: int, case: Path, at_least: float) -> tuple[list[Comparison], bool]:
        """OpenFOAM's icoFoam: wall time, and whether all residual logs are identical."""
        logs: set[str] = set()
        words = ["icoFoam", "-parallel", "-case", str(case)]

        def leg(backend: Backend) -> Callable[[], Times]:
            def run() -> Times:
                log, seconds = self.run(hosts, backend, words)
                figures = ("Time =", "Solving for", "Courant", "continuity errors")
                kept = [line for line in log.splitlines() if any(f in line for f in figures)]
                logs.add("\n".join(kept))
                return {0: seconds}

            return run

        found = self._alternate(
            f"icoFoam, {hosts} hosts",
            {"plain": leg(Backend.OFF), "offload": leg(self.backend)},
            ratio_of(f"icoFoam cavity, {hosts} hosts", at_least, 0),
        )
        return found, len(logs) == 1

    def _best_algorithm(self, hosts: int) -> int:
        totals = {
            number: sum(self.times(hosts, Backend.OFF, SIZES, force(number)).values())
            for number in ALGORITHMS
        }
        return min(totals, key=lambda number: totals[number])

    def _alternate(
        self, what: str, legs: dict[str, Callable[[], Times]], judge: Judge
    ) -> list[Comparison]:
        """Run all legs in turns, every second round the other way, until it is clear."""
        rounds: list[dict[str, Times]] = []
        while True:
            for _ in range(self.pairs):
                names = list(legs)[:: 1 if len(rounds) % 2 == 0 else -1]
                rounds.append({name: legs[name]() for name in names})
                told = ", ".join(f"{name} {median(rounds[-1][name].values()):.4g}" for name in legs)
                say(f"{what}: {len(rounds)}: {told}")
            found = judge(rounds)
            unclear = any(c.verdict is Verdict.NOT_MEASURED for c in found)
            if not unclear or len(rounds) >= MOST_TIMES * self.pairs:
                return found


def ratio_of(what: str, at_least: float, key: int) -> Judge:
    """Judge one ratio: legs `plain` and `offload`, what they say under `key`."""

    def judge(rounds: list[dict[str, Times]]) -> list[Comparison]:
        return [compare(what, at_least, [r["plain"][key] / r["offload"][key] for r in rounds])]

    return judge


def force(algorithm: int) -> str:
    """Words for mpirun that force an Allreduce algorithm."""
    return f"--mca coll_tuned_use_dynamic_rules 1 --mca coll_tuned_allreduce_algorithm {algorithm}"


def say(text: str) -> None:
    """Talk on stderr; figures go to stdout."""
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--hosts", default="4,9,16", help="comma-separated; limits are for 4, 9, 16"
    )
    parser.add_argument("--pairs", type=int, default=FEWEST_PAIRS)
    parser.add_argument("--offload", choices=("sockets", "xdp"), default="xdp")
    parser.add_argument(
        "--parts", default=",".join(PARTS), help=f"comma-separated, of {', '.join(PARTS)}"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "bench-mpi.json")
    options = parser.parse_args()
    numbers = [int(text) for text in options.hosts.split(",")]
    unknown = [n for n in numbers if n not in LEAST]
    if unknown:
        parser.error(f"no limits for {unknown} hosts: choose of {sorted(LEAST)}")
    parts = options.parts.split(",")
    if not set(parts) <= set(PARTS):
        parser.error(f"--parts {options.parts}: choose of {', '.join(PARTS)}")
    switch_program(), mpi_library()
    program = ROOT / "out" / "allreduce"
    program.parent.mkdir(exist_ok=True)
    subprocess.run(["mpicc.openmpi", "-O2", "-o", program, SOURCE], check=True)
    begun = time.monotonic()
    comparisons: list[Comparison] = []
    notes: list[str] = []
    lab = Lab.up(LabSpec(name=NAME, hosts=max(numbers)), replace=True)
    try:
        backend = Backend(options.offload)
        bench = Bench(lab, backend, program, options.pairs)
        for hosts in numbers:
            if "small" in parts:
                comparisons += bench.allreduce(hosts, LEAST[hosts])
            if "long" in parts:
                comparisons += bench.elsewhere(hosts)
        if "foam" in parts:
            comparisons += foam(bench, numbers, notes)
    finally:
        Lab.down(NAME)
    print(f"{'plain / offload':<44}{'least':>7}  {'median [95 % interval]':<24}")
    for comparison in comparisons:
        print(comparison.line())
    for note in notes:
        print(note)
    good = all(c.verdict is Verdict.HOLDS for c in comparisons) and not notes
    document: dict[str, Any] = {
        "schema": 1,
        "holds": good,
        "offload": options.offload,
        "machine": {"kernel": platform.release(), "cores": os.cpu_count()},
        "command": " ".join(sys.argv),
        "seconds": round(time.monotonic() - begun),
        "comparisons": [c.as_json() for c in comparisons],
        "notes": notes,
    }
    write_json(options.out, document)
    say(f"wrote {options.out}")
    return 0 if good else 1


def foam(bench: Bench, numbers: list[int], notes: list[str]) -> list[Comparison]:
    """Solve the cavity of 100 x 100 cells with icoFoam; what stands in the way goes to `notes`."""
    tutorial = Path(
        "/usr/share/doc/openfoam-examples/examples/incompressible/icoFoam/cavity/cavity"
    )
    if shutil.which("icoFoam") is None or not tutorial.is_dir():
        notes.append("icoFoam: not measured (install openfoam and openfoam-examples)")
        return [compare(f"icoFoam cavity, {n} hosts", LEAST_FOAM[n], []) for n in numbers]
    found = []
    for hosts in numbers:
        case = ROOT / "out" / f"cavity-{hosts}"
        prepare(tutorial, case, hosts)
        comparisons, equal = bench.foam(hosts, case, LEAST_FOAM[hosts])
        found += comparisons
        if not equal:
            notes.append(f"icoFoam, {hosts} hosts: residual logs differ")
    return found


def prepare(tutorial: Path, case: Path, parts: int) -> None:
    """Mesh the cavity with 100 x 100 cells, 50 steps, cut into squares (Debian's has no scotch)."""
    side = math.isqrt(parts)
    shutil.rmtree(case, ignore_errors=True)
    shutil.copytree(tutorial, case)
    mesh = case / "system" / "blockMeshDict"
    mesh.write_text(mesh.read_text().replace("(20 20 1)", "(100 100 1)"))
    control = case / "system" / "controlDict"
    text = control.read_text()
    for old, new in (("0.005;", "0.001;"), ("0.5;", f"{FOAM_STEPS * 0.001:g};")):
        text = text.replace(old, new)
    control.write_text(text)
    (case / "system" / "decomposeParDict").write_text(
        "FoamFile { version 2.0; format ascii; class dictionary; object decomposeParDict; }\n"
        f"numberOfSubdomains {parts};\nmethod simple;\n"
        f"simpleCoeffs {{ n ({side} {side} 1); delta 0.001; }}\n"
    )
    environment = {**os.environ, **FOAM_ENVIRONMENT}
    for tool in ("blockMesh", "decomposePar"):
        subprocess.run(
            [tool, "-case", str(case)], check=True, env=environment, stdout=subprocess.DEVNULL
        )


if __name__ == "__main__":
    sys.exit(main())
