#!/usr/bin/env python3
"""Measure what joining the messages of a superstep gives where the program does it itself.

Every rank sends 32 messages to every other: each by itself (direct), or packed into one by the
program (packed). Both run side by side over the kernel's bridges and take turns. The ratios are the
bar for the library's scheduling, which does not send messages in MPI programs yet; so there is no
limit. Needs root, Open MPI, and what `make build` builds.
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

SOURCE = Path(__file__).resolve().parent.parent / "benches" / "mpi" / "superstep.c"
SIZES = (64, 256, 1024, 4096, 16_384)
SUPERSTEPS = 50
TURNS = 5
NAME = "bench-schedule"


def judge(rounds: list[dict[str, Times]]) -> list[Comparison]:
    """Ratios direct / packed, by size."""
    found = []
    for size in SIZES:
        ratios = [r["direct"][size] / r["packed"][size] for r in rounds]
        found.append(compare(f"32 x {size} B to each peer", None, ratios))
    return found


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--pairs", type=int, default=FEWEST_PAIRS)
    parser.add_argument("--out", type=Path, default=OUT / f"{NAME}.json")
    options = parser.parse_args()
    OUT.mkdir(exist_ok=True)
    program = OUT / "superstep"
    subprocess.run(["mpicc.openmpi", "-O2", "-o", program, SOURCE], check=True)
    try:
        lab = Lab.up(LabSpec(name=NAME, hosts=options.hosts), replace=True)
        leg = Leg(lab, options.hosts)

        @contextmanager
        def start() -> Iterator[dict[str, Callable[[], Times]]]:
            with ExitStack() as stack:
                turns = {}
                for name, words in (("direct", ()), ("packed", ("-p",))):
                    sleeper = Sleeper(leg, program, SUPERSTEPS, SIZES, *words)
                    turns[name] = stack.enter_context(sleeper).turn
                yield turns

        comparisons = alternate(f"{options.hosts} hosts", options.pairs, start, TURNS, judge)
    finally:
        Lab.down(NAME)
    print(f"{'direct / packed':<44}{'least':>7}  {'median [95 % interval]':<24}")
    for comparison in comparisons:
        print(comparison.line())
    write_json(options.out, {"schema": 1, "comparisons": [one.as_json() for one in comparisons]})
    say(f"wrote {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
