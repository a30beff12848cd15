"""Measure plain MPI, our protocol and the published one in a lab, in Node and in Socket mode.

For each number of hosts and of ranks per host five programs run side by side and take turns of
Allreduces, asleep in between: plain MPI over the kernel's bridges, and our protocol and the
published one over raddle-switches (sockets back-end, which serve both at once), each with a leader
per node and per CPU socket, of which hosts claim two. Every second round goes the other way round.
All programs start anew after every 5 rounds. A ratio is the median of the rounds' ratios with its
bootstrap 95 % interval; there is no limit. Processes share the machine's processors, so that ratios
say what messages and wake-ups cost, and nothing of absolute times on a cluster.

Needs root, Open MPI, and what `make build` builds. Leaves out/bench-published.json.
"""

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

from bench import OUT, openfoam
from bench.comparison import FEWEST_PAIRS, Comparison, compare
from bench.mpi import allreduce_program
from bench.turns import ProgramInTurns, Side, Times, alternate, say
from raddle.files import read_text, write_json
from raddle.services.lab import Backend, Lab, LabSpec, Mode

NAME = "bench-published"
HOSTS_PER_TOR = {4: 2, 9: 3, 16: 4}
"""Two tiers, and as many hosts below each TOR."""

SIZES = (4, 8, 64, 256)
TOGETHER = 5
"""Rounds of programs until they start anew."""

ITERATIONS = 400
"""Allreduces of a size in a turn of eight ranks; fewer of more ranks."""

PROTOCOLS = ("native", "published")
PATIENT = {
    "RADDLE_OFFLOAD": "always",
    "RADDLE_ORDER": "arrival",
    "RADDLE_SETUP_MS": "20000",
    "RADDLE_GIVE_UP_MS": "20000",
    "RADDLE_OVERDUE_MS": "20000",
    "RADDLE_MAX_BYTES": "256",
}
"""No round is given up while the machine is busy with other ranks; all of them are offloaded."""


def sides(plain: Lab, offload: Lab, hosts: int, ppn: int) -> dict[str, Side]:
    """The five programs, by name."""
    found = {"plain": Side(plain, hosts, ppn=ppn)}
    for protocol in PROTOCOLS:
        for mode in Mode:
            variables = {**PATIENT, "RADDLE_PROTOCOL": protocol}
            side = Side(offload, hosts, variables=variables, ppn=ppn, mode=mode)
            found[f"{protocol}, {mode}"] = side
    return found


def allreduces(
    plain: Lab, offload: Lab, hosts: int, ppn: int, program: Path, rounds: int
) -> tuple[list[Comparison], dict[str, dict[int, float]]]:
    """Ratios to plain MPI and between the others, and medians in microseconds."""
    what = f"{hosts} hosts, {ppn} ranks each"
    iterations = max(50, ITERATIONS * 8 // (hosts * ppn))
    kept: list[dict[str, Times]] = []

    @contextmanager
    def start() -> Iterator[dict[str, Callable[[], Times]]]:
        with ExitStack() as stack:
            turns = {}
            for name, side in sides(plain, offload, hosts, ppn).items():
                waiting = ProgramInTurns(side, program, iterations, SIZES)
                turns[name] = stack.enter_context(waiting).turn
                turns[name]()
            yield turns

    def judge(found: list[dict[str, Times]]) -> list[Comparison]:
        kept[:] = found
        pairs = [("plain", f"{protocol}, {mode}") for protocol in PROTOCOLS for mode in Mode]
        pairs += [(f"published, {mode}", f"native, {mode}") for mode in Mode]
        pairs += [(f"{protocol}, node", f"{protocol}, socket") for protocol in PROTOCOLS]
        return [
            compare(
                f"{what}, {size} B: {one} / {other}",
                None,
                [r[one][size] / r[other][size] for r in found],
            )
            for one, other in pairs
            for size in SIZES
        ]

    comparisons = alternate(what, rounds, start, TOGETHER, judge)
    medians = {
        name: {size: round(median(r[name][size] for r in kept), 2) for size in SIZES}
        for name in kept[0]
    }
    return comparisons, medians


def foam(plain: Lab, offload: Lab, hosts: int) -> dict[str, object]:
    """OpenFOAM's icoFoam, once by each way: seconds, and whether the logs of residuals are equal.

    The order is that of the plain call, so that the solver's log must be the same to the letter;
    where the switches add in another one (9 hosts), its calls stay plain, and `arrival` runs too.
    """
    case = OUT / f"published-cavity-{hosts}"
    openfoam.prepare(case, hosts)
    words = ["icoFoam", "-parallel", "-case", str(case)]
    found: dict[str, object] = {}
    logs = {}
    for name, lab, order in (
        ("plain", plain, "host"),
        ("native", offload, "host"),
        ("published", offload, "host"),
        ("published, any order", offload, "arrival"),
    ):
        protocol = "native" if name in {"plain", "native"} else "published"
        report = OUT / f"published-foam-{hosts}-{protocol}.json"
        report.unlink(missing_ok=True)
        variables = {**PATIENT, **openfoam.ENVIRONMENT, "RADDLE_PROTOCOL": protocol}
        variables |= {"RADDLE_ORDER": order, "RADDLE_REPORT": str(report)}
        log, seconds = Side(lab, hosts, variables=variables).run(words)
        logs[name] = "\n".join(filter(openfoam.RESIDUALS.match, log.splitlines()))
        found[name] = {"seconds": round(seconds, 2), **counted(report)}
        say(f"icoFoam, {hosts} hosts, {name}: {found[name]}")
    found["logs_equal_plain"] = {name: log == logs["plain"] for name, log in logs.items()}
    found["lines"] = {name: log.count("\n") + 1 for name, log in logs.items()}
    return found


def counted(report: Path) -> dict[str, object]:
    """What the library's report says: calls, those offloaded, and returns to plain MPI."""
    if not report.is_file():
        return {}
    document = json.loads(read_text(report))
    rounds = [one["counts"]["rounds"] for one in document["communicators"]]
    return {
        "calls": document["calls"],
        "offloaded": document["offloaded"],
        "fallbacks": sum(one["fallbacks"] for one in rounds),
    }


def main() -> int:
    """Measure, print, keep."""
    parser = argparse.ArgumentParser(
        prog="python3 -m bench.published", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--hosts", default="4,9", help="comma-separated, of 4, 9, 16")
    parser.add_argument("--ppn", default="2,4,8", help="ranks per host, comma-separated")
    parser.add_argument(
        "--rounds", type=int, default=FEWEST_PAIRS, help="rounds of each comparison (%(default)s)"
    )
    parser.add_argument("--foam", action="store_true", help="also run icoFoam, once by each way")
    parser.add_argument("--note", default="", help="what to keep with the figures")
    parser.add_argument("--out", type=Path, default=OUT / "bench-published.json")
    options = parser.parse_args()
    numbers = [int(text) for text in options.hosts.split(",")]
    unknown = [n for n in numbers if n not in HOSTS_PER_TOR]
    if unknown:
        parser.error(f"no labs for {unknown} hosts: choose of {sorted(HOSTS_PER_TOR)}")
    ranks = [int(text) for text in options.ppn.split(",") if text]
    program = allreduce_program()
    begun = time.monotonic()
    comparisons: list[Comparison] = []
    medians: dict[str, dict[str, dict[int, float]]] = {}
    solver: dict[str, object] = {}
    load = os.getloadavg()[0]
    for hosts in numbers:
        names = {Backend.OFF: f"{NAME}-off", Backend.SOCKETS: f"{NAME}-on"}
        try:
            plain, offload = (
                Lab.up(
                    LabSpec(name=name, hosts=hosts, hosts_per_tor=HOSTS_PER_TOR[hosts], sockets=2),
                    backend,
                    replace=True,
                )
                for backend, name in names.items()
            )
            for ppn in ranks:
                found, times = allreduces(plain, offload, hosts, ppn, program, options.rounds)
                comparisons += found
                medians[f"{hosts} hosts, {ppn} ranks each"] = times
            if options.foam and openfoam.installed():
                solver[f"{hosts} hosts"] = foam(plain, offload, hosts)
        finally:
            for name in names.values():
                Lab.down(name)
    for comparison in comparisons:
        print(comparison.line())
    write_json(
        options.out,
        {
            "schema": 1,
            "machine": {"kernel": platform.release(), "cores": os.cpu_count()},
            "load_before": round(load, 1),
            "note": options.note,
            "command": " ".join(sys.orig_argv),
            "seconds": round(time.monotonic() - begun),
            "medians_us": medians,
            "icofoam": solver,
            "comparisons": [c.as_json() for c in comparisons],
        },
    )
    say(f"wrote {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
