#!/usr/bin/env python3
"""Measure what joining the messages of a superstep gives, by the library and by hand.

Every rank sends 32 messages to every other: each by itself (direct), packed into one by the
program (packed), or each by itself with RADDLE_SCHEDULE=on under it (ours), after the trial has
decided. All run side by side over the kernel's bridges and take turns. Each size runs in a program
of its own, since the trial decides for a communicator. Needs root, Open MPI, and what `make build`
builds.
"""

import argparse
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from legs import OUT, Leg, Sleeper, Times, alternate, say
from pairs import FEWEST_PAIRS, Comparison, compare

from raddle.files import write_json
from raddle.lab import Lab, LabSpec
from raddle.lab.tools import mpi_library

SOURCE = Path(__file__).resolve().parent.parent / "benches" / "mpi" / "superstep.c"
GAINS = {64: 8.0, 256: 8.0, 1024: 4.0, 4096: 1.5, 16_384: 0.98, 65_536: 0.98}
"""Least ratio direct / ours, by size."""

OF_PACKED = 0.6
"""Least ratio packed / ours where there is something to join."""

JOINED = 4096
SIZES = tuple(GAINS)
SUPERSTEPS = 50
TURNS = 5
TRIAL = 8
"""Turns of 30 collectives each, in which the trial is decided."""

NAME = "bench-schedule"


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
    plain = Leg(lab, hosts)
    ours = Leg(lab, hosts, f"-x LD_PRELOAD={mpi_library()} -x RADDLE_SCHEDULE=on")
    legs = {"direct": (plain, ()), "packed": (plain, ("-p",)), "ours": (ours, ())}

    @contextmanager
    def start() -> Iterator[dict[str, Callable[[], Times]]]:
        with ExitStack() as stack:
            turns = {}
            for name, (leg, words) in legs.items():
                sleeper = Sleeper(leg, program, SUPERSTEPS, (size,), *words)
                turns[name] = stack.enter_context(sleeper).turn
            for _ in range(TRIAL):
                turns["ours"]()
            yield turns

    return alternate(f"{size} B", pairs, start, TURNS, lambda rounds: judge(size, rounds))


def main() -> int:
    """Measure and print; 1 if a limit was not seen to hold."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--pairs", type=int, default=FEWEST_PAIRS)
    parser.add_argument("--sizes", type=int, nargs="+", choices=SIZES, default=SIZES)
    parser.add_argument("--out", type=Path, default=OUT / f"{NAME}.json")
    options = parser.parse_args()
    OUT.mkdir(exist_ok=True)
    program = OUT / "superstep"
    subprocess.run(["mpicc.openmpi", "-O2", "-o", program, SOURCE], check=True)
    try:
        lab = Lab.up(LabSpec(name=NAME, hosts=options.hosts), replace=True)
        comparisons = [
            comparison
            for size in options.sizes
            for comparison in measure(lab, options.hosts, program, size, options.pairs)
        ]
    finally:
        Lab.down(NAME)
    print(f"{'before / after':<44}{'least':>7}  {'median [95 % interval]':<24}")
    for comparison in comparisons:
        print(comparison.line())
    holds = not any(comparison.fails for comparison in comparisons)
    found = [comparison.as_json() for comparison in comparisons]
    write_json(options.out, {"schema": 1, "holds": holds, "comparisons": found})
    say(f"wrote {options.out}")
    return int(not holds)


if __name__ == "__main__":
    sys.exit(main())
