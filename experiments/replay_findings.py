"""LAMMPS recorded in a lab, and replayed on the lab's fabric: time in MPI, measured and simulated.

python experiments/replay_findings.py                  print the tables of docs/replay-results.md
python experiments/replay_findings.py --runs 1 --out FOLDER    a quick look

For each shape of the lab: what messages cost is measured by host_costs.c, ping-pongs and bursts of
all pairs at once, before and after the recorded runs; nothing is taken from LAMMPS. Costs of a
replay follow in closed form, and each recorded run is replayed with them. Needs root, LAMMPS, Open
MPI and what `make build` builds. What is in the folder already is not measured again.
"""

import argparse
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np
from record_programs import pinned, raddle, record

from raddle import _core
from raddle.files import write_json
from raddle.lab.topology import LabSpec
from raddle.replay import Settings, replay
from raddle.trace import SUFFIX
from raddle.waits import PARTS, split_time

SOURCE = Path(__file__).resolve().parent / "host_costs.c"
LAB = "replay"
BYTES = (8, 512, 2048, 8192, 16384, 32768)
"""Up to Open MPI's eager limit for TCP, 64 KiB: longer messages are not copied in a replay."""
BLOCKS = 20
LIMIT_PCT = 15
SIZE, STEPS = 10, 250
"""4,000 atoms, whose messages are 1 to 30 KB."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Hosts of the lab, and ranks of each."""

    hosts: int
    ppn: int

    def __str__(self) -> str:
        """Hosts x ranks of each."""
        return f"{self.hosts} x {self.ppn}"

    @property
    def ranks(self) -> int:
        """All ranks."""
        return self.hosts * self.ppn


SHAPES = (Shape(2, 1), Shape(4, 1), Shape(4, 2))
Row = dict[str, float]


# ---- what messages cost --------------------------------------------------------------------


def measure(program: Path, shape: Shape, stride: int) -> list[Row]:
    """Times of messages between ranks that are `stride` apart, by size."""
    place = ("--name", LAB, "--hosts", str(shape.hosts), "--ppn", str(shape.ppn))
    words = (program, str(stride), str(BLOCKS), *map(str, BYTES))
    done = raddle("lab", "mpirun", *place, "--offload", "off", "--", *pinned(words))
    if done.returncode != 0:
        sys.exit(done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def line(rows: list[Row], key: str) -> tuple[float, float]:
    """Offset and slope of a time over bytes, in ns; each size counts by its relative error."""
    sizes = np.array([row["bytes"] for row in rows])
    times = np.array([1e3 * row[key] for row in rows])
    slope, offset = np.polyfit(sizes, times, 1, w=1 / times)
    return max(float(offset), 0.0), max(float(slope), 0.0)


def wire(folder: Path, shape: Shape) -> tuple[float, float]:
    """Offset and slope of a message's time in the lab's simulated network, in ns.

    A ping-pong on hosts that cost nothing, and whose ranks have nothing but the network.
    """
    rows: list[Row] = []
    for octets in BYTES:
        goal = folder / "wire.goal"
        goal.write_text(
            "num_ranks 2\n"
            f"rank 0 {{\nl1: send {octets}b to 1\nl2: recv {octets}b from 1\nl2 requires l1\n}}\n"
            f"rank 1 {{\nl1: recv {octets}b from 0\nl2: send {octets}b to 0\nl2 requires l1\n}}\n"
        )
        trace = folder / f"wire{SUFFIX}"
        fabric = LabSpec(hosts=shape.hosts).fabric()
        _core.trace_import(str(goal), trace, fabric)
        free = dict.fromkeys(("send_overhead", "receive_overhead", "copy_per_byte"), "0ns")
        took = replayed(trace, free)["time_s"]
        rows.append({"bytes": octets, "half_us": 1e6 * took / 2})
    return line(rows, "half_us")


def costs(folder: Path, program: Path, shape: Shape) -> dict[str, Any]:
    """Measure messages, and say what hosts cost.

    A message takes o_s + c b on its sender, wire(b), and o_r + c b on its receiver; half a round
    trip is the sum, a send in a burst the first of them.
    """
    between = measure(program, shape, shape.ranks // 2)
    base, slope = line(between, "half_us")
    send, _ = line(between, "send_us")
    wire_base, wire_slope = wire(folder, shape)
    found = {
        "send_overhead": send,
        "receive_overhead": max(base - send - wire_base, 0.0),
        "copy_per_byte": max(slope - wire_slope, 0.0) / 2,
    }
    inside: list[Row] = []
    if shape.ppn > 1:
        inside = measure(program, shape, 1)
        base, slope = line(inside, "half_us")
        found |= {"local_overhead": base / 2, "local_copy_per_byte": slope / 2}
        found |= {"socket_latency": 0.0}
    named = {name: f"{round(1e3 * value)}ps" for name, value in found.items()}
    return {
        "between": between,
        "inside": inside,
        "wire_ns": [wire_base, wire_slope],
        "costs": named,
    }


def mean_costs(measured: list[dict[str, Any]]) -> dict[str, str]:
    """The mean of what was measured before and after."""
    names = measured[0]["costs"]
    values = {
        name: fmean(float(one["costs"][name].removesuffix("ps")) for one in measured)
        for name in names
    }
    return {name: f"{round(value)}ps" for name, value in values.items()}


# ---- recorded and replayed -----------------------------------------------------------------


def replayed(trace: Path, changed: dict[str, Any], traces: Path | None = None) -> dict[str, Any]:
    """Replay in program order, without noise."""
    settings = Settings(sockets=1, costs=changed, seeds=1, gap_share=0, start_skew="0ns")
    row: dict[str, Any] = replay(trace, ["none"], settings, traces=traces)["schedules"]["none"]
    return row


def measured(folder: Path, shape: Shape, runs: int) -> list[dict[str, Any]]:
    """Costs before, recorded runs, costs after; gives both costs."""
    kept = folder / "costs.json"
    if not kept.is_file():
        folder.mkdir(parents=True, exist_ok=True)
        program = folder.resolve() / "host_costs"
        subprocess.run(["mpicc.openmpi", "-O2", "-o", program, SOURCE], check=True)
        up = raddle("lab", "up", "--name", LAB, "--hosts", str(shape.hosts), "--replace")
        if up.returncode != 0:
            sys.exit(up.stderr)
        try:
            before = costs(folder, program, shape)
            for run in range(runs):
                trace = folder / f"run-{run}{SUFFIX}"
                record("lammps", trace, LAB, shape.hosts, shape.ppn, SIZE, STEPS)
            write_json(kept, {"schema": 1, "measured": [before, costs(folder, program, shape)]})
        finally:
            raddle("lab", "down", "--name", LAB)
    found: list[dict[str, Any]] = json.loads(kept.read_text())["measured"]
    return found


def compare(folder: Path, changed: dict[str, str]) -> list[dict[str, Any]]:
    """Each recorded run beside its replay: parts in s, and the error of the time in MPI in %."""
    rows = []
    for trace in sorted(folder.glob(f"run-*{SUFFIX}")):
        told = folder / trace.name.removesuffix(SUFFIX)
        told.mkdir(exist_ok=True)
        replayed(trace, changed, told)
        parts = [split_time(one)["parts"] for one in (trace, told / f"none{SUFFIX}")]
        in_mpi = [sum(of.values()) - of["compute"] for of in parts]
        error = 100 * (in_mpi[1] / in_mpi[0] - 1)
        rows.append({"recorded": parts[0], "replayed": parts[1], "in_mpi": in_mpi, "error": error})
    return rows


# ---- tables --------------------------------------------------------------------------------


def print_costs(shape: Shape, found: list[dict[str, Any]], changed: dict[str, str]) -> None:
    """What was measured of messages, and the costs that follow."""
    print(f"\n{shape}: " + ", ".join(f"{k} {v}" for k, v in changed.items()) + "\n")
    print("| bytes | MPI_Send, us: before, after | half a round trip, us: before, after |")
    print("|---|---|---|")
    before, after = (one["between"] for one in found)
    for one, two in zip(before, after, strict=True):
        told = [f"{one[key]:.1f}, {two[key]:.1f}" for key in ("send_us", "half_us")]
        print(f"| {one['bytes']} | {told[0]} | {told[1]} |")


def print_parts(shape: Shape, rows: list[dict[str, Any]]) -> None:
    """Where the time goes: medians over the runs."""
    print(f"\n{shape}, ms, mean over ranks, median of {len(rows)} runs:\n")
    print("| | recorded | replayed | difference |")
    print("|---|---|---|---|")
    for part in PARTS:
        one, two = (1e3 * median(row[of][part] for row in rows) for of in ("recorded", "replayed"))
        print(f"| {part} | {one:.2f} | {two:.2f} | {two - one:+.2f} |")
    one, two = (1e3 * median(row["in_mpi"][at] for row in rows) for at in (0, 1))
    print(f"| **in MPI** | {one:.2f} | {two:.2f} | {two - one:+.2f} |")
    print("\nerrors of the runs: " + ", ".join(f"{row['error']:+.1f} %" for row in rows))


def main() -> int:
    """Measure what is missing and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("out/replay"))
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    verdicts = []
    for shape in SHAPES:
        folder = options.out / f"{shape.hosts}x{shape.ppn}"
        found = measured(folder, shape, options.runs)
        changed = mean_costs(found)
        rows = compare(folder, changed)
        print_costs(shape, found, changed)
        print_parts(shape, rows)
        error = median(row["error"] for row in rows)
        verdicts.append(abs(error) <= LIMIT_PCT)
        word = "within" if verdicts[-1] else "outside of"
        print(f"\n{shape}: {error:+.1f} % in the median, {word} {LIMIT_PCT} %", flush=True)
    return 0 if all(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
