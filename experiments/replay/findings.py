"""LAMMPS recorded in labs, and replayed on the lab's fabric: time in MPI, measured and simulated.

python3 -m experiments.replay.findings                  print the tables of docs/results/replay.md
python3 -m experiments.replay.findings --runs 1 --out FOLDER    a quick look

What messages cost is measured by host_costs.c, ping-pongs and bursts of pairs of ranks between two
hosts, inside one, and between hosts on one processor; nothing is taken from LAMMPS. Costs of a
replay follow in closed form. Each recorded run is replayed with them twice: on hosts with
processors of their own, and on the processors of this machine, which all hosts of a lab share.
Needs root, LAMMPS, Open MPI and what `make build` builds; measures only where nothing else runs.
What is in the folder already is not measured again.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from experiments import command_line
from experiments.replay.record_programs import pinned, raddle, record
from raddle import core
from raddle.files import write_json
from raddle.results.trace import SUFFIX
from raddle.services.lab.topology import LabSpec
from raddle.services.replay import Settings, replay
from raddle.statistics.waits import PARTS, split_time

SOURCE = Path(__file__).resolve().parent / "host_costs.c"
LAB = "replay"
BYTES = (8, 512, 2048, 8192, 16384, 32768)
"""Up to Open MPI's eager limit for TCP, 64 KiB: longer messages are not copied in a replay."""
LOCAL_EAGER_LIMIT = "4KiB"
"""Open MPI's for shared memory (`ompi_info --param btl vader --level 9`)."""
BLOCKS = 20
LIMIT_PCT = 15
IN_MPI = "in MPI"
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


SHAPES = (Shape(2, 1), Shape(4, 1), Shape(4, 2))
PROCESSORS = os.cpu_count() or 1
LOOKING = 2
"""Ranks beside the two of a processor that wait meanwhile."""
PLACES = {
    "between": (Shape(2, 1), 1, 2),
    "inside": (Shape(1, 2), 1, 2),
    "one processor": (Shape(2 * PROCESSORS, 1), PROCESSORS, 2 * PROCESSORS),
    "beside others": (Shape((2 + LOOKING) * PROCESSORS, 1), PROCESSORS, 2 * PROCESSORS),
}
"""Where messages are measured: between ranks of two hosts, of one, of one processor, and of one on
which others wait; how far apart the ranks of a pair are, and how many work."""
Row = dict[str, float]


@contextmanager
def lab(hosts: int) -> Iterator[None]:
    """Have a lab of so many hosts."""
    up = raddle("lab", "up", "--name", LAB, "--hosts", str(hosts), "--replace")
    if up.returncode != 0:
        sys.exit(up.stderr)
    try:
        yield
    finally:
        raddle("lab", "down", "--name", LAB)


# ---- what messages cost --------------------------------------------------------------------


def measure(program: Path, shape: Shape, stride: int, ranks: int) -> list[Row]:
    """Times of messages between ranks that are `stride` apart, by size."""
    place = ("--name", LAB, "--hosts", str(shape.hosts), "--ppn", str(shape.ppn))
    words = (str(program), str(stride), str(ranks), str(BLOCKS), *map(str, BYTES))
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


def wire(folder: Path) -> tuple[float, float]:
    """Offset and slope of a message's time in the lab's simulated network, in ns.

    A ping-pong on hosts that cost nothing.
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
        core.trace.import_goal(goal, trace, LabSpec(hosts=2).fabric())
        free = dict.fromkeys(("send_overhead", "receive_overhead", "copy_per_byte"), "0ns")
        took = replayed(trace, free, None)["time_s"]
        rows.append({"bytes": octets, "half_us": 1e6 * took / 2})
    return line(rows, "half_us")


def costs(folder: Path, measured: dict[str, list[Row]]) -> dict[str, str]:
    """Say what hosts cost.

    A message takes o_s + c b on its sender, wire(b), and o_r + c b on its receiver; half a round
    trip is the sum, a send in a burst the first of them. Inside a host both ends cost the same.
    Between two ranks of one processor it also switches from one to the other, and half of the
    ranks that wait there look for their messages first: the sender, and others if there are any.
    """
    base, slope = line(measured["between"], "half_us")
    send, _ = line(measured["between"], "send_us")
    wire_base, wire_slope = wire(folder)
    inside_base, inside_slope = line(measured["inside"], "half_us")
    shared_base, _ = line(measured["one processor"], "half_us")
    beside_base, _ = line(measured["beside others"], "half_us")
    look = max(2 * (beside_base - shared_base) / LOOKING, 0.0)
    found = {
        "send_overhead": send,
        "receive_overhead": max(base - send - wire_base, 0.0),
        "copy_per_byte": max(slope - wire_slope, 0.0) / 2,
        "local_overhead": inside_base / 2,
        "local_copy_per_byte": inside_slope / 2,
        "socket_latency": 0.0,
        "switch_overhead": max(shared_base - base - look / 2, 0.0),
        "look_overhead": look,
    }
    times = {name: f"{round(1e3 * value)}ps" for name, value in found.items()}
    return {**times, "local_eager_limit": LOCAL_EAGER_LIMIT}


def calibrated(folder: Path) -> dict[str, list[Row]]:
    """Measured times of messages between hosts and inside one: of each size, the middle of three.

    Three programs, since a program's pages and threads lie better in one than in another.
    """
    kept = folder / "messages.json"
    if not kept.is_file():
        program = folder.resolve() / "host_costs"
        subprocess.run(["mpicc.openmpi", "-O2", "-o", program, SOURCE], check=True)
        runs = {}
        with lab(max(shape.hosts for shape, *_ in PLACES.values())):
            for name, (shape, stride, ranks) in PLACES.items():
                runs[name] = [measure(program, shape, stride, ranks) for _ in range(3)]
        middle = {
            name: [
                {key: median(one[key] for one in same) for key in same[0]}
                for same in zip(*of, strict=True)
            ]
            for name, of in runs.items()
        }
        write_json(kept, {"schema": 1, **middle})
    found: dict[str, list[Row]] = json.loads(kept.read_text())
    return {name: found[name] for name in PLACES}


# ---- recorded and replayed -----------------------------------------------------------------


def replayed(
    trace: Path, changed: dict[str, str], processors: int | None, traces: Path | None = None
) -> dict[str, Any]:
    """Replay in program order, without noise."""
    settings = Settings(
        sockets=1, costs=changed, seeds=1, gap_share=0, start_skew="0ns", processors=processors
    )
    row: dict[str, Any] = replay(trace, ["none"], settings, traces=traces)["schedules"]["none"]
    return row


def recorded(folder: Path, shape: Shape, runs: int) -> list[Path]:
    """Traces of LAMMPS, recorded if they are not there."""
    traces = [folder / f"{shape.hosts}x{shape.ppn}-{run}{SUFFIX}" for run in range(runs)]
    missing = [trace for trace in traces if not trace.is_file()]
    if missing:
        with lab(shape.hosts):
            for trace in missing:
                record("lammps", trace, LAB, shape.hosts, shape.ppn, SIZE, STEPS)
    return traces


def compare(trace: Path, changed: dict[str, str]) -> dict[str, dict[str, float]]:
    """The parts of a recorded run and of its two replays in s, and the time in MPI."""
    found = {"recorded": split_time(trace)["parts"]}
    for name, count in (("own processors", None), ("shared processors", PROCESSORS)):
        told = trace.with_name(trace.name.removesuffix(SUFFIX)) / name.split()[0]
        told.mkdir(parents=True, exist_ok=True)
        replayed(trace, changed, count, told)
        found[name] = split_time(told / f"none{SUFFIX}")["parts"]
    return {
        name: {**parts, IN_MPI: sum(parts.values()) - parts["compute"]}
        for name, parts in found.items()
    }


# ---- tables --------------------------------------------------------------------------------


def print_costs(measured: dict[str, list[Row]], changed: dict[str, str]) -> None:
    """What was measured of messages, and the costs that follow."""
    print("| | bytes | MPI_Send, us | half a round trip, us |")
    print("|---|---|---|---|")
    for place, rows in measured.items():
        for row in rows:
            print(f"| {place} | {row['bytes']:,} | {row['send_us']:.1f} | {row['half_us']:.1f} |")
    print("\n" + ", ".join(f"{name} = {value}" for name, value in changed.items()))


def print_parts(shape: Shape, rows: list[dict[str, dict[str, float]]]) -> dict[str, float]:
    """Where the time goes, medians over the runs; gives the error of each replay in percent."""
    print(f"\n{shape}, ms, mean over ranks, median of {len(rows)} runs:\n")
    print("| | recorded | own processors | shared processors |")
    print("|---|---|---|---|")
    for part in (*PARTS, IN_MPI):
        values = (1e3 * median(row[of][part] for row in rows) for of in rows[0])
        print(f"| {part} | {' | '.join(f'{value:.2f}' for value in values)} |")
    errors = {}
    for name in list(rows[0])[1:]:
        found = [100 * (row[name][IN_MPI] / row["recorded"][IN_MPI] - 1) for row in rows]
        errors[name] = median(found)
        told = ", ".join(f"{error:+.1f}" for error in found)
        print(f"\n{shape}, {name}: {errors[name]:+.1f} % in the median (runs: {told})")
    return errors


def main() -> int:
    """Measure what is missing and print the tables."""
    parser = command_line(__file__, __doc__)
    parser.add_argument("--out", type=Path, default=Path("out/replay"))
    parser.add_argument("--runs", type=int, default=5)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    measured = calibrated(options.out)
    changed = costs(options.out, measured)
    print_costs(measured, changed)
    errors: dict[Shape, float] = {}
    for shape in SHAPES:
        traces = recorded(options.out, shape, options.runs)
        found = print_parts(shape, [compare(trace, changed) for trace in traces])
        errors[shape] = found["shared processors"]
    told = ", ".join(f"{shape}: {error:+.1f} %" for shape, error in errors.items())
    print(f"\nhosts x ranks on shared processors: {told} ({LIMIT_PCT} % are allowed)")
    return 0 if all(abs(error) <= LIMIT_PCT for error in errors.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
