"""LAMMPS recorded in labs, and replayed on the lab's fabric: time in MPI, measured and simulated.

python3 -m experiments.replay.findings                  print the tables of docs/results/replay.md
python3 -m experiments.replay.findings --runs 1 --out FOLDER    a quick look

What messages cost is measured by `raddle lab calibrate`; nothing is taken from LAMMPS. Each
recorded run is replayed with these costs twice: on hosts with processors of their own, and on the
processors of this machine, which all hosts of a lab share.
Needs root, LAMMPS, Open MPI and what `make build` builds; measures only where nothing else runs.
What is in the folder already is not measured again.
"""

import os
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from experiments import command_line
from experiments.replay.record_programs import raddle, record
from raddle.results.trace import SUFFIX
from raddle.services.costs import read_file
from raddle.services.replay import Settings, replay
from raddle.statistics.waits import PARTS, split_time

LAB = "replay"
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


def calibrated(folder: Path) -> dict[str, str]:
    """Costs of hosts of a lab, measured if they are not there; prints what they were made of."""
    kept = folder / "costs.toml"
    if not kept.is_file():
        done = raddle("lab", "calibrate", "--out", kept)
        if done.returncode != 0:
            sys.exit(done.stderr)
    calibration = tomllib.loads(kept.read_text())["calibration"]
    print("| | bytes | hosts | processors | predicted, us | measured, us | error |")
    print("|---|---|---|---|---|---|---|")
    for fitted, rows in ((", fitted", calibration["fitted"]), ("", calibration["checked"])):
        for row in rows:
            what = f"{row['what']} by {row['carrier']}{fitted}"
            counts = " | ".join(f"{row[key]:,}" for key in ("bytes", "hosts", "processors"))
            times = f"{row['predicted_us']:.1f} | {row['measured_us']:.1f}"
            print(f"| {what} | {counts} | {times} | {row['error_pct']:+.1f} % |")
    changed: dict[str, str] = read_file(kept).changed
    print("\n" + ", ".join(f"{name} = {value}" for name, value in changed.items()))
    return changed


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
    changed = calibrated(options.out)
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
