"""OpenFOAM's cavity, as it is shipped: where it is, how it is cut into parts, what its log says."""

import math
import os
import re
import shutil
import subprocess
from pathlib import Path

CAVITY = Path("/usr/share/doc/openfoam-examples/examples/incompressible/icoFoam/cavity/cavity")
ENVIRONMENT = {"WM_PROJECT_DIR": "/usr/share/openfoam"}
RESIDUALS = re.compile(r"Time =|.*(Solving for|Courant|continuity errors)")
"""Lines of an icoFoam log that the solution decides, and not the clock."""


def installed() -> bool:
    """Whether icoFoam and its case are on this machine."""
    return shutil.which("icoFoam") is not None and CAVITY.is_dir()


def prepare(case: Path, parts: int) -> None:
    """Copy the cavity, mesh it and cut it into squares (Debian's OpenFOAM has no scotch)."""
    side = math.isqrt(parts)
    shutil.rmtree(case, ignore_errors=True)
    shutil.copytree(CAVITY, case)
    (case / "system" / "decomposeParDict").write_text(
        "FoamFile { version 2.0; format ascii; class dictionary; object decomposeParDict; }\n"
        f"numberOfSubdomains {parts};\nmethod simple;\n"
        f"simpleCoeffs {{ n ({side} {side} 1); delta 0.001; }}\n"
    )
    environment = {**os.environ, **ENVIRONMENT}
    for tool in ("blockMesh", "decomposePar"):
        subprocess.run(
            [tool, "-case", str(case)], check=True, env=environment, stdout=subprocess.DEVNULL
        )
