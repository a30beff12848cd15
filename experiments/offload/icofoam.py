"""Count what icoFoam's solvers do for each number of processes, on OpenFOAM's lid-driven cavity.

python3 -m experiments.offload.icofoam    write icofoam.csv; needs icoFoam and mpirun, minutes

The cavity with 100 x 100 cells, cut into a grid of processes, ten time steps. A count depends on
the cut alone, not on the machine: an iteration of a solver does a fixed number of Allreduces.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from experiments import command_line

HERE = Path(__file__).resolve().parent
COUNTS = HERE / "icofoam.csv"
CAVITY = Path("/usr/share/doc/openfoam-examples/examples/incompressible/icoFoam/cavity/cavity")
CUTS = ((1, 2), (2, 2), (2, 4), (3, 3), (4, 4), (3, 6), (4, 8), (6, 6), (8, 8))
"""Processes along x and y."""
CELLS = 100
STEPS = 10
STEP_S = 0.0005
"""Finer cells need shorter steps: a tenth of the example's, for a Courant number below 1."""


def iterations(cut: tuple[int, int], folder: Path) -> int:
    """Give the iterations of all solvers in all steps."""
    case, (x, y) = folder / f"{cut[0]}x{cut[1]}", cut
    shutil.copytree(CAVITY, case)
    system = case / "system"
    mesh, control = system / "blockMeshDict", system / "controlDict"
    mesh.write_text(mesh.read_text().replace("(20 20 1)", f"({CELLS} {CELLS} 1)"))
    text = re.sub(r"endTime\s+\S+;", f"endTime {STEPS * STEP_S:g};", control.read_text())
    control.write_text(re.sub(r"deltaT\s+\S+;", f"deltaT {STEP_S:g};", text))
    (system / "decomposeParDict").write_text(
        "FoamFile { version 2.0; format ascii; class dictionary; object decomposeParDict; }\n"
        f"numberOfSubdomains {x * y};\nmethod simple;\n"
        f"simpleCoeffs {{ n ({x} {y} 1); delta 0.001; }}\n"
    )
    environment = os.environ | {
        "WM_PROJECT_DIR": "/usr/share/openfoam",
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    }

    def call(*words: str) -> str:
        done = subprocess.run(
            words, cwd=folder, env=environment, text=True, capture_output=True, check=False
        )
        if done.returncode:
            message = f"{' '.join(words)} failed:\n{(done.stderr or done.stdout)[-2000:]}"
            raise SystemExit(message)
        return done.stdout

    for tool in ("blockMesh", "decomposePar"):
        call(tool, "-case", str(case))
    launch = ("mpirun", "-n", str(x * y), "--oversubscribe", "--mca", "mpi_yield_when_idle", "1")
    log = call(*launch, "icoFoam", "-parallel", "-case", str(case))
    found = re.findall(r"No Iterations (\d+)", log)
    if not found:
        message = "icoFoam's log has no count of iterations"
        raise SystemExit(message)
    return sum(map(int, found))


def main() -> int:
    """Count, and write."""
    command_line(__file__, __doc__).parse_args()
    lines = [
        f"# Iterations of icoFoam's solvers, cavity of {CELLS} x {CELLS} cells, {STEPS} steps of "
        f"{STEP_S:g} s, by `python3 -m experiments.offload.icofoam`.",
        "ranks,x,y,iterations",
    ]
    with TemporaryDirectory() as folder:
        for x, y in CUTS:
            count = iterations((x, y), Path(folder))
            lines.append(f"{x * y},{x},{y},{count}")
            print(lines[-1], flush=True)
    COUNTS.write_text("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
