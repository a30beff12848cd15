"""Record LAMMPS, OpenFOAM and GROMACS between hosts of a lab.

python3 -m experiments.replay.record_programs                         all three, 4 hosts of one rank
python3 -m experiments.replay.record_programs lammps --hosts 4 --ppn 2 --size 12 --steps 500
python3 -m experiments.replay.record_programs openfoam gromacs --steps 5 --out small

Each leaves NAME.trace.parquet and NAME.json, what was measured beside it: wall time, what the
program says of itself, and where the time of each rank went (`raddle trace times`). Needs root for
the lab, and as root installs what is missing (Debian packages); else it says what to install.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from experiments import command_line
from raddle.files import write_json
from raddle.results.trace import SUFFIX
from raddle.statistics.waits import split_time

HERE = Path(__file__).resolve().parent
MELT = HERE / "lammps-melt.in"
CAVITY = Path("/usr/share/doc/openfoam-examples/examples/incompressible/icoFoam/cavity/cavity")
TIME_STEP_S = 0.005
"""Of the cavity, in simulated seconds."""

ENVIRONMENT = {"WM_PROJECT_DIR": "/usr/share/openfoam"}
LAB = "record"

WATER = """#include "oplsaa.ff/forcefield.itp"
#include "oplsaa.ff/spce.itp"
[ system ]
water
[ molecules ]
"""
MINIMISE = """integrator = steep
nsteps = 100
coulombtype = PME
rcoulomb = 0.9
rvdw = 0.9
"""
MOVE = """integrator = md
dt = 0.001
nsteps = {steps}
coulombtype = PME
rcoulomb = 0.9
rvdw = 0.9
tcoupl = v-rescale
tc-grps = System
tau-t = 0.5
ref-t = 300
gen-vel = yes
"""


@dataclass(frozen=True, slots=True)
class Program:
    """A program: what has to be installed, how it is made ready, and what it says of its time.

    `prepare` gets a folder, the number of ranks, the size and the number of steps, and gives the
    words of the program. `figures` has a pattern with one group for each number that it prints.
    """

    packages: tuple[str, ...]
    tool: str
    size: int
    steps: int
    prepare: Callable[[Path, int, int, int], Sequence[str]]
    figures: dict[str, str]


def lammps(folder: Path, _ranks: int, size: int, steps: int) -> Sequence[str]:
    """4 size^3 atoms of a Lennard-Jones fluid."""
    shutil.copy(MELT, folder)
    settings = ("-var", "n", str(size), "-var", "steps", str(steps))
    return ("lmp", "-in", MELT.name, *settings, "-log", "none")


def openfoam(folder: Path, ranks: int, size: int, steps: int) -> Sequence[str]:
    """The lid-driven cavity with size x size cells, cut into slices."""
    case = folder / "cavity"
    shutil.copytree(CAVITY, case)
    system = case / "system"
    mesh, control = system / "blockMeshDict", system / "controlDict"
    mesh.write_text(mesh.read_text().replace("(20 20 1)", f"({size} {size} 1)"))
    end = f"endTime {steps * TIME_STEP_S:g};"
    control.write_text(re.sub(r"endTime\s+\S+;", end, control.read_text()))
    (system / "decomposeParDict").write_text(
        "FoamFile { version 2.0; format ascii; class dictionary; object decomposeParDict; }\n"
        f"numberOfSubdomains {ranks};\nmethod simple;\n"
        f"simpleCoeffs {{ n ({ranks} 1 1); delta 0.001; }}\n"
    )
    for tool in ("blockMesh", "decomposePar"):
        quietly(tool, "-case", case)
    return ("icoFoam", "-parallel", "-case", case.name)


def gromacs(folder: Path, _ranks: int, size: int, steps: int) -> Sequence[str]:
    """A cube of water, size nm wide, relaxed; the real run is some steps at 300 K."""
    (folder / "water.top").write_text(WATER)
    (folder / "minimise.mdp").write_text(MINIMISE)
    (folder / "move.mdp").write_text(MOVE.format(steps=steps))
    box = (str(size),) * 3
    solvate = ("solvate", "-cs", "spc216.gro", "-box", *box, "-p", "water.top", "-o", "water.gro")
    quietly("gmx", *solvate, folder=folder)
    for name, start in (("minimise", "water.gro"), ("move", "minimise.gro")):
        made = ("-f", f"{name}.mdp", "-c", start, "-p", "water.top", "-o", f"{name}.tpr")
        quietly("gmx", "grompp", *made, "-po", f"{name}.out.mdp", folder=folder)
        if name == "minimise":
            quietly("gmx", "mdrun", "-deffnm", "minimise", "-nt", "1", folder=folder)
    fixed = ("-ntomp", "1", "-npme", "0", "-pin", "off", "-dlb", "no", "-noconfout")
    return ("gmx_mpi", "mdrun", "-deffnm", "move", *fixed)


PROGRAMS = {
    "lammps": Program(
        ("lammps",), "lmp", 10, 250, lammps,
        {
            "loop_s": r"Loop time of\s+(\S+)",
            "pair_s": r"Pair\s*\|[^|]*\|\s*(\S+)",
            "comm_s": r"Comm\s*\|[^|]*\|\s*(\S+)",
        },
    ),
    "openfoam": Program(
        ("openfoam", "openfoam-examples"), "icoFoam", 20, 20, openfoam,
        {"execution_s": r"ExecutionTime = (\S+) s"},
    ),
    "gromacs": Program(
        ("gromacs", "gromacs-data"), "gmx_mpi", 4, 50, gromacs,
        {"wall_s": r"Time:\s+\S+\s+(\S+)"},
    ),
}  # fmt: skip


def quietly(*words: str | Path, folder: Path | None = None) -> None:
    """Run a tool; what it says is shown if it fails."""
    done = subprocess.run(
        list(map(str, words)), cwd=folder, env={**os.environ, **ENVIRONMENT},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, words))} failed:\n{(done.stdout + done.stderr)[-2000:]}")


def install(program: Program) -> None:
    """Make sure that a program is there."""
    if shutil.which(program.tool):
        return
    words = ("apt-get", "install", "--yes", "--no-install-recommends", *program.packages)
    if os.geteuid() != 0:
        sys.exit(f"{program.tool} is not installed: as root, `{' '.join(words)}`")
    print(f"installing {', '.join(program.packages)}", file=sys.stderr)
    quietly(*words)


def raddle(*words: str | Path, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command of Raddle."""
    return subprocess.run(
        [sys.executable, "-m", "raddle", *map(str, words)],
        cwd=folder, env={**os.environ, **ENVIRONMENT}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def pinned(words: Sequence[str | Path]) -> list[str]:
    """The words that give each rank one of the machine's processors, in turn."""
    pin = f'exec taskset --cpu-list "$((OMPI_COMM_WORLD_RANK % {os.cpu_count()}))" "$@"'
    return ["sh", "-c", pin, "sh", *map(str, words)]


def record(name: str, trace: Path, lab: str, hosts: int, ppn: int, size: int, steps: int) -> None:
    """Record one run in a lab that is up, ranks pinned."""
    program = PROGRAMS[name]
    trace = trace.resolve()
    trace.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix="raddle-record-") as scratch:
        folder = Path(scratch)
        words = program.prepare(folder, hosts * ppn, size, steps)
        begun = time.monotonic()
        place = ("--name", lab, "--hosts", str(hosts), "--ppn", str(ppn), "--offload", "off")
        done = raddle(
            "lab", "mpirun", *place, "--record", trace, "--", *pinned(words), folder=folder
        )
        wall_s = time.monotonic() - begun
    said = done.stdout + done.stderr
    if done.returncode != 0:
        sys.exit(f"{name} failed:\n{said[-3000:]}")
    split = split_time(trace)
    write_json(
        trace.with_name(trace.name.removesuffix(SUFFIX) + ".json"),
        {
            "schema": 1,
            "program": name,
            "version": version(program.packages[0]),
            "command": " ".join(words),
            "hosts": hosts,
            "ppn": ppn,
            "size": size,
            "steps": steps,
            "wall_s": round(wall_s, 3),
            "said": {key: said_last(pattern, said) for key, pattern in program.figures.items()},
            "parts_s": split["parts"],
            "ranks_s": split["ranks"],
        },
    )


def said_last(pattern: str, text: str) -> float | None:
    """The last number that a program printed so."""
    found = re.findall(pattern, text)
    return float(found[-1]) if found else None


def version(package: str) -> str:
    """The version of a Debian package."""
    words = ("dpkg-query", "--show", "--showformat", "${Version}", package)
    return subprocess.run(words, capture_output=True, text=True, check=False).stdout


def main() -> None:
    """Record what was asked for."""
    parser = command_line(__file__, __doc__)
    parser.add_argument("programs", nargs="*", help=f"of {', '.join(PROGRAMS)} (all)")
    parser.add_argument("--hosts", type=int, default=4)
    parser.add_argument("--ppn", type=int, default=1, help="ranks of a host")
    parser.add_argument("--size", type=int, help="lattice cells, mesh cells or nm in a direction")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--out", type=Path, default=Path("out/recorded"))
    options = parser.parse_args()
    unknown = [name for name in options.programs if name not in PROGRAMS]
    if unknown:
        parser.error(f"{', '.join(unknown)}: choose of {', '.join(PROGRAMS)}")
    up = raddle("lab", "up", "--name", LAB, "--hosts", str(options.hosts), "--replace")
    if up.returncode != 0:
        sys.exit(up.stderr)
    try:
        for name in options.programs or PROGRAMS:
            program = PROGRAMS[name]
            install(program)
            trace: Path = options.out / f"{name}{SUFFIX}"
            size, steps = options.size or program.size, options.steps or program.steps
            record(name, trace, LAB, options.hosts, options.ppn, size, steps)
            print(json.dumps(told(trace)))
    finally:
        raddle("lab", "down", "--name", LAB)


def told(trace: Path) -> dict[str, Any]:
    """A line on what was recorded."""
    parts = split_time(trace)["parts"]
    return {"trace": str(trace), **{part: round(value, 6) for part, value in parts.items()}}


if __name__ == "__main__":
    main()
