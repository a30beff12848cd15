"""Measure messages over rails in labs: limit and measured value of each ratio.

All runs of a comparison take turns, forwards and backwards, so that what disturbs the machine hits
all of them. A comparison holds when the median of at least 20 ratios is inside the limit and its
bootstrap 95 % interval is narrower than 10 %; while it is wider, runs are added, one round at a
time. Beside our messages, without a limit: plain TCP over one rail, raw UDP, the kernel's MPTCP
with a subflow per rail, and Open MPI that stripes. Programs of MPI run with and without
RADDLE_RAILS. Both ends are on this machine: where its processors are busy all the time, they limit,
not the rails; how busy they were is printed. Needs root, Open MPI and what `make build` builds.
Leaves out/bench-rails.json; exit status 1 if a limit was not seen to hold.

    python3 -m bench.rails                             all of it, half an hour on a quiet machine
    python3 -m bench.rails --part latency,uneven       two parts
    python3 -m bench.rails --part cut --bytes 1GB      one, shorter
"""

import argparse
import os
import platform
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from bench import OUT, rails_faults, rails_mpi, rails_opposite, rails_sharing
from bench.comparison import FEWEST_PAIRS, Comparison, compare
from bench.rails_faults import Check
from bench.rails_lab import (
    BUSY,
    GOODPUT,
    LATENCY,
    SUBFLOWS,
    RailsLab,
    build_mpi,
    label,
    names,
    rails_lab,
    watched,
)
from bench.turns import MOST_TIMES, Judge, Times, alternate, say
from raddle.files import write_json

RATES = {"400M": 400_000_000, "1G": 1_000_000_000}
RAILS = 4
UNEVEN = (400_000_000, 100_000_000)
SIZES = {"1MiB": 1 << 20, "4MiB": 4 << 20}
BESIDE = "1MiB"
"""Size of the comparison that all others take part in."""

LEAST = {2: 1.9, 4: 3.6}
"""Goodput of so many equal rails over that of one."""

LEAST_MPI = {2: 1.8, 4: 3.6}
"""The same over Open MPI on one: its TCP carries 4 % more than the heads of our packets leave, so
that 1.92 and 3.84 are the most."""

LEAST_OF_SUM = 0.9
LEAST_LATENCY = 1 / 1.05

Sides = Mapping[str, Callable[[], Times]]


@dataclass
class Found:
    """All that was measured."""

    comparisons: list[Comparison] = field(default_factory=list)
    checks: list[Check] = field(default_factory=list)
    medians: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)
    """By comparison and side."""

    @property
    def holds(self) -> bool:
        """Whether all limits were seen to hold."""
        kept = all(check.holds for check in self.checks)
        return kept and not any(comparison.fails for comparison in self.comparisons)

    def by_turns(self, what: str, pairs: int, sides: Sides, judge: Judge) -> None:
        """Let all runs of a comparison take turns."""

        def note(rounds: list[dict[str, Times]]) -> list[Comparison]:
            self.medians[what] = {
                side: {label(key): median(r[side][key] for r in rounds) for key in rounds[0][side]}
                for side in sides
            }
            return judge(rounds)

        seen = {side: watched(run) for side, run in sides.items()}
        self.comparisons += alternate(
            what, pairs, lambda: nullcontext(seen), 1, note, shown=main_figure
        )

    def busy(self) -> list[str]:
        """How busy the processors were, a line for each comparison."""
        shares = {
            what: ", ".join(
                f"{side} {100 * told[label(BUSY)]:.0f} %" for side, told in sides.items()
            )
            for what, sides in self.medians.items()
        }
        return [f"processors busy, {what}: {told}" for what, told in shares.items()]


def main_figure(found: Times) -> float:
    """What a side is about: goodput or latency stands first."""
    return next(iter(found.values()))


@dataclass(frozen=True)
class Options:
    """How much is measured."""

    pairs: int
    seconds: float
    total: str


def even(found: Found, options: Options, name: str) -> None:
    """Two and four equal rails against one, and what others get from the same links."""
    with rails_lab((RATES[name],) * RAILS, options.seconds) as bench:
        for size in SIZES:
            sides: dict[str, Callable[[], Times]] = {
                f"{rails}": partial(bench.goodput, names(rails), size) for rails in (1, *LEAST)
            }
            if size == BESIDE:
                sides |= others(bench, SIZES[size])
            what = f"{name}, {size}"
            found.by_turns(what, options.pairs, sides, partial(judge_even, what, sides))


def others(bench: RailsLab, size: int) -> dict[str, Callable[[], Times]]:
    """What does not send our messages."""
    numbers = (1, *LEAST)
    return {
        "TCP 1": bench.tcp,
        **{f"UDP {rails}": partial(bench.udp, rails) for rails in numbers},
        **{f"MPTCP {rails}": partial(bench.mptcp, rails) for rails in LEAST},
        **{f"Open MPI {rails}": partial(bench.mpi, rails, size) for rails in numbers},
    }


def judge_even(what: str, sides: Sides, rounds: list[dict[str, Times]]) -> list[Comparison]:
    """Our rails against one of them, with limits; all else without."""

    def ratio(name: str, least: float | None, over: str, under: str) -> Comparison:
        ratios = [r[over][GOODPUT] / r[under][GOODPUT] for r in rounds]
        return compare(f"{what}: {name}", least, ratios)

    found = [ratio(f"{n} rails / one", least, f"{n}", "1") for n, least in LEAST.items()]
    if "TCP 1" not in sides:
        return found
    for rails in LEAST:
        subflows = min(r[f"MPTCP {rails}"][SUBFLOWS] for r in rounds)
        mptcp = f"MPTCP {rails} ({subflows:.0f} subflows) / TCP"
        found += [
            ratio(f"{rails} rails / raw UDP", None, f"{rails}", f"UDP {rails}"),
            ratio(f"raw UDP {rails} / one", None, f"UDP {rails}", "UDP 1"),
            ratio(mptcp, None, f"MPTCP {rails}", "TCP 1"),
            ratio(f"Open MPI {rails} / one", None, f"Open MPI {rails}", "Open MPI 1"),
        ]
    return [*found, ratio("one rail / TCP", None, "1", "TCP 1")]


def uneven(found: Found, options: Options) -> None:
    """Rails of 4:1 against the sum of what each carries alone."""

    def judge(what: str, rounds: list[dict[str, Times]]) -> list[Comparison]:
        ratios = [r["e0,e1"][GOODPUT] / (r["e0"][GOODPUT] + r["e1"][GOODPUT]) for r in rounds]
        return [compare(f"{what}, against their sum", LEAST_OF_SUM, ratios)]

    with rails_lab(UNEVEN, options.seconds) as bench:
        for size in SIZES:
            sides = {rails: partial(bench.goodput, rails, size) for rails in ("e0", "e1", "e0,e1")}
            what = f"rails of 4:1, {size}"
            found.by_turns(what, options.pairs, sides, partial(judge, what))


def latency(found: Found, options: Options) -> None:
    """Small messages on two and four rails against those on one."""
    numbers = (1, *LEAST)

    def judge(rounds: list[dict[str, Times]]) -> list[Comparison]:
        return [
            compare(
                f"8 B: latency of one rail / {rails}",
                LEAST_LATENCY,
                [r["1"][LATENCY] / r[f"{rails}"][LATENCY] for r in rounds],
            )
            for rails in LEAST
        ]

    with rails_lab((RATES["400M"],) * RAILS, options.seconds) as bench:
        sides = {f"{rails}": partial(bench.one_way, names(rails), "8B") for rails in numbers}
        found.by_turns("latency, 8 B", options.pairs, sides, judge)


def share(found: Found, options: Options, policies: Sequence[str]) -> None:
    """One to eight processes on two and four rails."""
    with rails_lab((RATES["400M"],) * RAILS, options.seconds) as bench:
        for policy in policies:
            for rails in LEAST:
                sides = {policy: partial(rails_sharing.staircase, bench, rails, policy)}
                judge = partial(rails_sharing.judge, rails, policy)
                found.by_turns(f"{rails} rails shared, {policy}", options.pairs, sides, judge)


def opposite(found: Found, options: Options) -> None:
    """Two streams in opposite directions, on free cards and on limited ones."""
    for free in (True, False):
        with (
            rails_lab((rails_opposite.RATE,) * rails_opposite.RAILS, options.seconds) as bench,
            rails_opposite.both_hosts_serve(bench),
        ):
            if not free:
                rails_opposite.limit_cards(bench)
            for window in rails_opposite.WINDOWS:
                what = f"opposite, {'free' if free else 'limited'} cards, {window} under way"
                sides = rails_opposite.sides(bench, window)
                judge = partial(rails_opposite.judge, what)
                found.by_turns(what, options.pairs, sides, judge)


def cut(found: Found, options: Options) -> None:
    """Rails that are cut and restored, one at a time and all of them."""
    with rails_lab((RATES["400M"],) * RAILS, options.seconds) as bench:
        comparisons, checks = rails_faults.cut_and_restore(bench, RAILS, options.total)
        found.comparisons += comparisons
        found.checks += checks
        found.checks.append(rails_faults.all_down(bench, RAILS))
        found.checks.append(rails_faults.still_works(bench, RAILS))


def mpi(found: Found, options: Options) -> None:
    """Programs of MPI with our rails under them, on even and on uneven ones."""
    with rails_lab((RATES["400M"],) * RAILS, options.seconds) as bench:
        for size, length in SIZES.items():
            sides = rails_mpi.sides(bench, tuple(LEAST_MPI), length)
            what = f"MPI, {size}"
            judge = partial(rails_mpi.judge_even, what, LEAST_MPI)
            found.by_turns(what, options.pairs, sides, judge)
    with rails_lab(UNEVEN, options.seconds) as bench:
        for size, length in SIZES.items():
            alone = {rail: partial(bench.goodput, rail, size) for rail in ("e0", "e1")}
            sides = {**rails_mpi.sides(bench, (2,), length), **alone}
            what = f"MPI, rails of 4:1, {size}"
            judge = partial(rails_mpi.judge_uneven, what, LEAST_OF_SUM)
            found.by_turns(what, options.pairs, sides, judge)


PARTS: dict[str, Callable[[Found, Options], None]] = {
    "even-400M": partial(even, name="400M"),
    "even-1G": partial(even, name="1G"),
    "uneven": uneven,
    "latency": latency,
    "opposite": opposite,
    "mpi": mpi,
    "cut": cut,
    "share": partial(share, policies=(rails_sharing.LIMITED,)),
    "policies": partial(share, policies=rails_sharing.OTHERS),
}


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(
        prog="python3 -m bench.rails",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--part", default=",".join(PARTS), help=f"parts, of {', '.join(PARTS)} (all of them)"
    )
    parser.add_argument(
        "--pairs", type=int, default=FEWEST_PAIRS,
        help=f"rounds of each comparison (%(default)s); up to {MOST_TIMES} times as many while an "
        "interval is too wide, fewer than the default are never a pass",
    )  # fmt: skip
    parser.add_argument("--seconds", type=float, default=0.4, help="time of a run (%(default)s)")
    parser.add_argument("--bytes", default="10GB", help="sent while rails are cut (%(default)s)")
    parser.add_argument("--out", type=Path, default=OUT / "bench-rails.json")
    options = parser.parse_args()
    parts = options.part.split(",")
    if unknown := [part for part in parts if part not in PARTS]:
        parser.error(f"--part {', '.join(unknown)}: choose of {', '.join(PARTS)}")
    return measure(parts, Options(options.pairs, options.seconds, options.bytes), options.out)


def measure(parts: Sequence[str], options: Options, out: Path) -> int:
    """Run parts; exit status 1 if a limit was not seen to hold."""
    begun = time.monotonic()
    build_mpi()
    found = Found()
    for part in parts:
        PARTS[part](found, options)
    print(f"{'ratio':<44}{'least':>7}  {'median [95 % interval]':<24}")
    for comparison in found.comparisons:
        print(comparison.line())
    for line in [*(check.line() for check in found.checks), *found.busy()]:
        print(line)
    document: dict[str, Any] = {
        "schema": 1,
        "holds": found.holds,
        "machine": {"kernel": platform.release(), "cores": os.cpu_count()},
        "command": " ".join(sys.orig_argv),
        "seconds": round(time.monotonic() - begun),
        "comparisons": [comparison.as_json() for comparison in found.comparisons],
        "checks": [asdict(check) for check in found.checks],
        "medians": found.medians,
    }
    write_json(out, document)
    say(f"wrote {out}")
    return 0 if found.holds else 1


if __name__ == "__main__":
    sys.exit(main())
