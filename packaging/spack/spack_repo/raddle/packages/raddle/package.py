# A repository of one package: `spack repo add dist/recipes/spack/spack_repo/raddle`, then `spack install raddle`.
from pathlib import Path

from spack_repo.builtin.build_systems.python import PythonPackage

from spack.package import *


class Raddle(PythonPackage):
    """Interconnects of high-performance computers, simulated and real.

    Congestion control, multicast routing, Allreduce in switches, message scheduling and several
    rails: each protocol is written once, and runs in a packet-level simulator and on real machines.
    """

    pypi = "raddle/raddle-@VERSION@.tar.gz"

    license("Apache-2.0")

    version("@VERSION@", sha256="@SHA256@")

    variant("switch", default=True, description="Build raddle-switch and raddle-perf")
    variant("mpi", default=True, description="Build libraddle_mpi.so, for MPI programs")
    variant("dask", default=False, description="Share runs with a Dask cluster")

    depends_on("c", type="build")
    depends_on("rust@1.90:", type="build")
    depends_on("mpi", when="+mpi")

    depends_on("python@3.11:", type=("build", "run"))
    depends_on("py-maturin@1.9:1", type="build")

    with default_args(type=("build", "run")):
        depends_on("py-jinja2@3.1:3")
        depends_on("py-matplotlib@3.9:3")
        depends_on("py-numpy@2")
        depends_on("py-plotly@6:7")
        depends_on("py-pyarrow@18:")
        depends_on("py-pydantic@2.12:2")
        depends_on("py-rich@13.9:15")
        depends_on("py-tomli-w@1.1:1")
        depends_on("py-typer@0.15:0")
        depends_on("py-distributed@2025.1:", when="+dask")

    @run_after("install")
    def install_programs(self):
        """Install what is no Python: the switch, raddle-perf and the library for MPI programs."""
        cargo = which("cargo", required=True)
        if self.spec.satisfies("+switch"):
            for name in ("switch", "perf"):
                source = join_path("crates", "real", name)
                cargo("install", "--locked", "--no-track", "--root", self.prefix, "--path", source)
        if self.spec.satisfies("+mpi"):
            cargo("build", "--release", "--locked", "--package=raddle-mpi", "--lib")
            # `raddle` looks there, and the parts for MPI libraries lie beside the library itself.
            folder = join_path(self.prefix.lib, "raddle")
            mkdirp(folder)
            for library in Path("target", "release").glob("libraddle_mpi*.so"):
                install(str(library), folder)
