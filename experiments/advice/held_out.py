"""Advice on programs that nobody tuned for, beside what they take in labs.

python3 -m experiments.advice.held_out --out out/held-out       all cases; prints the tables

Each program is recorded once, plain, in a lab of 4 and one of 9 hosts, one rank each. Every
combination that a lab with one rail can apply (collectives by hosts or in switches; messages as
the program sends them or scheduled) is predicted from that trace with costs that
`raddle lab calibrate` has measured just before, on the processors that all hosts share. Then all of
them are run, --runs times each (5), in turns whose order rotates, and rank 0's time between
MPI_Init and MPI_Finalize counts.

The rules were set before the first run. A combination is *as fast as the best* if the 95 % interval
of its difference to the fastest one in the median, turn by turn, includes 0. A case is right if one
that is as fast as the best is among the two predicted best. An advice is bad if it measures slower
than plain by more than 3 %. Needs root; installs the programs (Debian packages). What is in the
folder already is not done again.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from experiments import command_line
from experiments.replay.record_programs import (
    ENVIRONMENT,
    PROGRAMS,
    Program,
    install,
    pinned,
    raddle,
)
from raddle.files import write_json
from raddle.results.folder import Results
from raddle.statistics.samples import mean_interval

HERE = Path(__file__).resolve().parent
LAB = "held-out"
HOSTS = (4, 9)
WORSE_FRAC = 0.03
COMBINATIONS = {
    "plain": ("host", "none"),
    "offload": ("offload", "none"),
    "scheduling": ("host", "library"),
    "offload, scheduling": ("offload", "library"),
}
"""Collectives and scheduling of each, as replays name them."""
PYTHON = "/usr/bin/python3"
HPCC_INPUT = Path("/usr/share/doc/hpcc/examples/_hpccinf.txt")


def stencil(_folder: Path, _ranks: int, size: int, steps: int) -> Sequence[str]:
    """The stencil of this folder, under Debian's Python, whose mpi4py is built for its Open MPI."""
    return (PYTHON, str(HERE / "stencil.py"), str(size), str(steps))


def hpcc(folder: Path, ranks: int, size: int, _steps: int) -> Sequence[str]:
    """The whole suite, PTRANS and FFT among it; matrices of `size`."""
    side = int(ranks**0.5)
    text = HPCC_INPUT.read_text()
    text = re.sub(r"(?m)^1000(\s+Ns)", rf"{size}\1", text)
    text = re.sub(r"(?m)^2(\s+Ps)", rf"{side}\1", text)
    text = re.sub(r"(?m)^2(\s+Qs)", rf"{ranks // side}\1", text)
    (folder / "hpccinf.txt").write_text(text)
    return ("hpcc",)


def _of(name: str, size: int, steps: int) -> Program:
    known = PROGRAMS[name]
    return Program(known.packages, known.tool, size, steps, known.prepare, {})


CASES: Mapping[str, Program] = {
    "icoFoam": _of("openfoam", 60, 40),
    "GROMACS": _of("gromacs", 4, 400),
    "stencil": Program(("python3-mpi4py", "python3-numpy"), "", 512, 1500, stencil, {}),
    "HPCC": Program(("hpcc",), "hpcc", 1000, 1, hpcc, {}),
}


@dataclass(frozen=True, slots=True)
class Case:
    """A program in a lab."""

    name: str
    hosts: int
    folder: Path

    @property
    def trace(self) -> Path:
        """What was recorded of it."""
        return self.folder / f"{self.name}-{self.hosts}.trace.parquet"

    def scratch(self) -> tuple[Path, list[str]]:
        """A new folder to run in, and the pinned words of the program."""
        program = CASES[self.name]
        work = self.folder / f"{self.name}-{self.hosts}-work"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        words = program.prepare(work, self.hosts, program.size, program.steps)
        return work, pinned(words)


def command(*words: str | Path, folder: Path | None = None) -> str:
    """What a command of Raddle says; one that fails ends the program."""
    done = raddle(*words, folder=folder)
    if done.returncode:
        sys.exit(
            f"raddle {' '.join(map(str, words))} failed:\n{(done.stdout + done.stderr)[-3000:]}"
        )
    return done.stdout + done.stderr


# ---- predicted -----------------------------------------------------------------------------


def recorded(case: Case) -> None:
    """Record the program, plain."""
    if not case.trace.is_file():
        work, words = case.scratch()
        place = ("--name", LAB, "--offload", "off")
        command("lab", "mpirun", *place, "--record", case.trace, "--", *words, folder=work)


def predicted(case: Case, costs: Path) -> dict[str, float]:
    """Seconds of each combination."""
    out = case.folder / f"{case.name}-{case.hosts}-replay"
    choices = [
        *("--collectives", "host", "--collectives", "offload"),
        *("--schedule", "none", "--schedule", "library"),
    ]
    given = ("--costs", costs, "--processors", str(os.cpu_count()), "--sockets", "1")
    command("replay", case.trace, *choices, *given, "--out", out, "--no-report", "-q")
    table = Results(out).jobs
    rows = [] if table is None else table.to_pylist()
    found: dict[str, list[float]] = {}
    for row in rows:
        found.setdefault(row["scheme"], []).append(row["time_ps"] / 1e12)
    names = dict(zip(found, ("plain", "scheduling", "offload", "offload, scheduling"), strict=True))
    return {names[setup]: sum(times) / len(times) for setup, times in found.items()}


def advised(case: Case, costs: Path) -> str:
    """The combination that `raddle advise` names."""
    out = case.folder / f"{case.name}-{case.hosts}-advice"
    given = ("--costs", costs, "--processors", str(os.cpu_count()))
    asked = ("--systems", "collectives,scheduling", "--out", out, "--json")
    told = raddle("advise", case.trace, *given, *asked)
    if told.returncode:
        sys.exit(told.stderr[-3000:])
    settings = json.loads(told.stdout)["advice"]
    # A lab has no multicast; the library reorders and joins at once.
    parts = ["offload"] if settings.get("collectives") == "offload" else []
    parts += ["scheduling"] if settings.get("scheduling", "none") != "none" else []
    return ", ".join(parts) or "plain"


# ---- measured ------------------------------------------------------------------------------


def measured(case: Case, runs: int, span: Path) -> dict[str, list[float]]:
    """Seconds of each combination, turn by turn."""
    times: dict[str, list[float]] = {name: [] for name in COMBINATIONS}
    order = list(COMBINATIONS)
    for turn in range(runs):
        for name in order[turn % len(order) :] + order[: turn % len(order)]:
            times[name].append(_seconds(case, name, span))
            print(f"{case.name}, {case.hosts} hosts, {name}: {times[name][-1]:.3f} s", flush=True)
    return times


def _seconds(case: Case, name: str, span: Path) -> float:
    collectives, scheduling = COMBINATIONS[name]
    work, words = case.scratch()
    advice = case.folder / "advice.toml"
    advice.write_text(
        f'schema = 1\n[settings]\ncollectives = "{collectives}"\nscheduling = "{scheduling}"\n'
    )
    profile = () if name == "plain" else ("--profile", advice)
    offload = "xdp" if collectives == "offload" else "off"
    # Before the library that mpirun preloads, so that starting it counts as well.
    preload = f'LD_PRELOAD="{span}${{LD_PRELOAD:+:$LD_PRELOAD}}" exec "$@"'
    asked = ("--name", LAB, "--offload", offload, *profile)
    said = command("lab", "mpirun", *asked, "--", "sh", "-c", preload, "sh", *words, folder=work)
    return float(re.findall(r"span_s=(\S+)", said)[-1])


# ---- judged --------------------------------------------------------------------------------


def judged(row: Mapping[str, Any]) -> dict[str, Any]:
    """What came of a case, by the rules above."""
    times, told = row["measured_s"], row["predicted_s"]
    middle = {name: median(own) for name, own in times.items()}
    best = min(middle, key=lambda name: middle[name])
    level = [name for name in times if name == best or _level(times[name], times[best])]
    first_two = sorted(told, key=lambda name: told[name])[:2]
    errors = {name: told[name] / middle[name] - 1 for name in told}
    return {
        "best": best,
        "level": level,
        "first_two": first_two,
        "right": any(name in first_two for name in level),
        "errors": errors,
        "loss": middle[row["advised"]] / middle["plain"] - 1,
    }


def _level(own: Sequence[float], best: Sequence[float]) -> bool:
    change = mean_interval([a / b - 1 for a, b in zip(own, best, strict=True)])
    return change.low is not None and change.low <= 0


def show(rows: Sequence[Mapping[str, Any]]) -> bool:
    """Print the tables; whether all aims are reached."""
    print("| program, hosts | combination | predicted, s | measured, s | error |")
    print("|---|---|---|---|---|")
    found = [(row, judged(row)) for row in rows]
    for row, said in found:
        for name, told in row["predicted_s"].items():
            marks = " (advised)" if name == row["advised"] else ""
            marks += ", best" if name == said["best"] else ""
            middle = median(row["measured_s"][name])
            error = f"{100 * said['errors'][name]:+.1f} %"
            where = f"{row['program']}, {row['hosts']}"
            print(f"| {where} | {name}{marks} | {told:.3f} | {middle:.3f} | {error} |")
    right = sum(said["right"] for _, said in found)
    errors = [abs(error) for _, said in found for error in said["errors"].values()]
    bad = [row["program"] for row, said in found if said["loss"] > WORSE_FRAC]
    print(f"\nbest among the predicted two: {right} of {len(found)} cases (aim 80 %)")
    print(f"error of predicted times, median: {100 * median(errors):.1f} % (aim 15 %)")
    print(f"advised and slower than plain by more than 3 %: {', '.join(bad) or 'none'}")
    return right >= 0.8 * len(found) and median(errors) <= 0.15 and not bad


def _has_mpi4py() -> bool:
    words = [PYTHON, "-c", "import mpi4py, numpy"]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def _kept(file: Path, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What a file holds; made first if it is not there."""
    if not file.is_file():
        write_json(file, make())
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def main() -> int:
    """Do what is missing, then print the tables."""
    parser = command_line(__file__, __doc__)
    parser.add_argument("--out", type=Path, default=Path("out/held-out"))
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--only", help="programs, with commas")
    parser.add_argument("--measured", type=Path, help="folder of an earlier run: its times count")
    options = parser.parse_args()
    folder: Path = options.out.resolve()
    earlier: Path | None = options.measured
    folder.mkdir(parents=True, exist_ok=True)
    os.environ.update(ENVIRONMENT)
    names = list(CASES) if options.only is None else options.only.split(",")
    for name in names:
        if name != "stencil" or not _has_mpi4py():
            install(CASES[name])
    span = folder / "span.so"
    shared = ("-shared", "-fPIC", "-O2", "-ldl")
    subprocess.run(["mpicc.openmpi", *shared, "-o", span, HERE / "span.c"], check=True)
    costs = folder / "costs.toml"
    if not costs.is_file():
        command("lab", "calibrate", "--out", costs)
    rows = []
    for hosts in HOSTS:
        command("lab", "up", "--name", LAB, "--hosts", str(hosts), "--replace", "--offload", "xdp")
        try:
            for name in names:
                case = Case(name, hosts, folder)

                def run(case: Case = case, file: str = f"{name}-{hosts}.json") -> dict[str, Any]:
                    recorded(case)
                    return {
                        "schema": 1,
                        "program": case.name,
                        "hosts": case.hosts,
                        "predicted_s": predicted(case, costs),
                        "advised": advised(case, costs),
                        "measured_s": measured(case, options.runs, span)
                        if earlier is None
                        else json.loads((earlier / file).read_text())["measured_s"],
                    }

                rows.append(_kept(folder / f"{name}-{hosts}.json", run))
        finally:
            command("lab", "down", "--name", LAB)
    return 0 if show(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
