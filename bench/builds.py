#!/usr/bin/env python3
"""Compares two builds of `hop_benchmark`: both at once, each on a core, then with cores exchanged.

    cargo build --release --package raddle-engine --example hop_benchmark
    python3 -m bench.builds BEFORE AFTER --rounds 5 --runs permutation-8192,permutation-65536

BEFORE and AFTER are programs. What disturbs the machine disturbs both alike, so that a few rounds
tell a few per cent; but both share the memory and the last cache, and each is slower than alone. A
ratio is the geometric mean of a round's two pairs.
"""

import argparse
import json
import math
import os
import subprocess
from pathlib import Path
from statistics import median

RUNS = {
    "mix-320": "--flows 6000",
    "whole-mix-320": "--hosts 320",
    "permutation-8192": "--hosts 8192 --traffic permutation --size 200KB",
    "mix-8192": "--hosts 8192 --traffic hpc-mix --flows 8000",
    "permutation-65536": "--hosts 65536 --traffic permutation --size 64KiB",
    "permutation-265302": "--hosts 265302 --traffic permutation --size 64KiB",
}
USUAL = ",".join(name for name in RUNS if "265302" not in name)
"""Runs that take seconds."""


def start(program: Path, words: str, core: int | None = None) -> subprocess.Popen[str]:
    """Start a program, on one core if any is named."""
    pinned = [] if core is None else ["taskset", "-c", f"{core}"]
    command = [*pinned, str(program.resolve()), *words.split()]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def speed(process: subprocess.Popen[str]) -> float:
    """Packet-hops per second, in millions, when it has ended."""
    told, _ = process.communicate()
    if process.returncode != 0:
        msg = f"a program ended with status {process.returncode}"
        raise SystemExit(msg)
    return float(json.loads(told.splitlines()[0])["packet_hops_per_s"]) / 1e6


def program(text: str) -> Path:
    """Find a program that exists, for argparse."""
    path = Path(text)
    if not os.access(path, os.X_OK) or path.is_dir():
        msg = f"{text} is not a program: build hop_benchmark as above, and name its path"
        raise argparse.ArgumentTypeError(msg)
    return path


def chosen(parser: argparse.ArgumentParser, names: str) -> list[str]:
    """Names of runs, which must exist."""
    for name in names.split(","):
        if name not in RUNS:
            parser.error(f"no run `{name}`: {', '.join(RUNS)}")
    return names.split(",")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", type=program, metavar="BEFORE")
    parser.add_argument("after", type=program, metavar="AFTER")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of two pairs (5)")
    parser.add_argument("--runs", default=USUAL, help=f"some of {', '.join(RUNS)} ({USUAL})")
    options = parser.parse_args()
    if len(cores := sorted(os.sched_getaffinity(0))) < 2:
        parser.error("this takes two cores")
    for name in chosen(parser, options.runs):
        speeds, ratios = list[tuple[float, float]](), list[float]()
        for _ in range(options.rounds):
            logs = 0.0
            for here, there in (cores[:2], cores[1::-1]):
                both = (
                    start(options.before, RUNS[name], here),
                    start(options.after, RUNS[name], there),
                )
                before, after = map(speed, both)
                speeds.append((before, after))
                logs += math.log(after / before) / 2
            ratios.append(math.exp(logs))
        before, after = (sum(each) / len(speeds) for each in zip(*speeds, strict=True))
        print(
            f"{name:<20}{before:6.2f} to {after:5.2f} M/s  {median(ratios):.2f} "
            f"[{min(ratios):.2f}, {max(ratios):.2f}] in {len(ratios)} rounds",
            flush=True,
        )


if __name__ == "__main__":
    main()
