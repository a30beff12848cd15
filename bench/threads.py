#!/usr/bin/env python3
"""Compares one thread with several: runs of `hop_benchmark` in turns, nothing else at work.

    cargo build --release --package raddle-engine --example hop_benchmark
    python3 -m bench.threads target/release/examples/hop_benchmark --threads 2 --rounds 9

A ratio is that of the packet-hops/s of two runs one after the other; every other round begins with
the other one. It prints medians, and the interval of the median of the ratios.
"""

import argparse
import math
from statistics import median

from bench.builds import RUNS, USUAL, chosen, program, speed, start
from bench.comparison import compare


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("program", type=program, metavar="PROGRAM")
    parser.add_argument("--threads", type=int, default=2, help="so many against one (2)")
    parser.add_argument("--rounds", type=int, default=9, help="rounds of two runs (9)")
    parser.add_argument("--runs", default=USUAL, help=f"some of {', '.join(RUNS)} ({USUAL})")
    options = parser.parse_args()
    if options.threads < 2:
        parser.error("--threads: at least 2, which are compared with one")
    for name in chosen(parser, options.runs):
        speeds: dict[int, list[float]] = {1: [], options.threads: []}
        for turn in range(options.rounds):
            for threads in list(speeds)[:: -1 if turn % 2 else 1]:
                words = f"{RUNS[name]} --threads {threads}"
                speeds[threads].append(speed(start(options.program, words)))
        one, several = speeds[1], speeds[options.threads]
        ratios = [after / before for before, after in zip(one, several, strict=True)]
        found = compare(name, None, ratios)
        # A few rounds have no interval.
        interval = "" if math.isnan(found.low) else f"[{found.low:.2f}, {found.high:.2f}] "
        print(
            f"{name:<20}{median(one):6.2f} to {median(several):5.2f} M/s  {median(ratios):.2f} "
            f"{interval}in {len(ratios)} rounds, {min(ratios):.2f} to {max(ratios):.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
