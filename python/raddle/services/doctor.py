"""What `raddle doctor` looks at."""

import importlib.metadata
import os
import platform
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raddle.errors import LabError
from raddle.machine import cores
from raddle.services.lab.tools import (
    NEEDED,
    check_machine,
    mpi_library,
    program_path,
    switch_program,
)
from raddle.services.template import EXPERIMENT
from raddle.text import memory

__all__ = ["Check", "examine"]


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that works or not; `cure` says what to do about it."""

    what: str
    needed: bool
    works: bool
    found: str
    cure: str = ""

    def as_json(self) -> Mapping[str, Any]:
        """The check as JSON."""
        return {
            "what": self.what,
            "needed": self.needed,
            "works": self.works,
            "found": self.found,
            "cure": None if self.works else self.cure,
        }


def examine() -> list[Check]:
    """All checks, the necessary ones first."""
    checks = [
        Check("Python", True, sys.version_info >= (3, 11), platform.python_version()),
        _core(),
    ]
    checks += [
        _package(name, "", needed=True)
        for name in (
            "numpy",
            "pyarrow",
            "pydantic",
            "rich",
            "typer",
            "jinja2",
            "plotly",
            "matplotlib",
        )
    ]
    checks += [
        _package("pandas", "pip install 'raddle[pandas]' for results.flows.to_pandas()"),
        _package("polars", "pip install 'raddle[polars]' for polars.from_arrow(results.flows)"),
        _package("distributed", "pip install 'raddle[dask]' for --engine dask"),
        _browser(),
        _lab(),
        _mpi(),
        _opensm(),
        _cores(),
        _memory(),
        _disk(),
    ]
    return checks


def _guard(what: str, needed: bool, look: Callable[[], str], cure: str) -> Check:
    try:
        return Check(what, needed, True, look())
    except Exception as error:
        return Check(what, needed, False, f"{type(error).__name__}: {error}", cure)


def _core() -> Check:
    def look() -> str:
        from raddle import _core  # here: whether that works is the question

        _core.validate(EXPERIMENT, "experiment.toml")  # it does not only load, it works
        return _core.version()

    cure = "`make build` in a checkout, or `pip install --force-reinstall raddle`"
    return _guard("compiled core (raddle._core)", True, look, cure)


def _package(name: str, cure: str, *, needed: bool = False) -> Check:
    cure = cure or f"pip install --force-reinstall {name}"
    try:
        return Check(name, needed, True, importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        return Check(name, needed, False, "not installed", cure)


def _browser() -> Check:
    path = next((p for n in ("chromium", "google-chrome", "firefox") if (p := shutil.which(n))), "")
    cure = "report.html opens in any browser, also on another machine"
    return Check("web browser", False, bool(path), path or "none on PATH", cure)


def _lab() -> Check:
    try:
        check_machine(*NEEDED)
    except LabError as error:
        what, _, cure = str(error).partition("\n  hint: ")
        return Check("virtual cluster (raddle lab)", False, False, what, cure)
    missing = []
    for part, name in ((switch_program, "raddle-switch"), (mpi_library, "libraddle_mpi.so")):
        try:
            part()
        except LabError:
            missing.append(name)
    found = f"plain MPI only: no {', '.join(missing)}" if missing else "with raddle-switch"
    return Check("virtual cluster (raddle lab)", False, True, found)


def _mpi() -> Check:
    starters = [name for name in ("mpirun.openmpi", "mpiexec.mpich") if _program(name)]
    found = [", ".join(starters) or "no mpirun"]
    try:
        mpi_library()
    except LabError:
        found.append("no libraddle_mpi.so")
    works = bool(starters) and len(found) == 1
    cure = (
        "install openmpi-bin and libraddle-mpi-openmpi (or mpich and libraddle-mpi-mpich), "
        "or the MPI library's headers and `make build`"
    )
    return Check("MPI programs (raddle record, offload)", False, works, ", ".join(found), cure)


def _opensm() -> Check:
    path = _program("opensm")
    cure = "install opensm, and libraddle-opensm or `make build` (docs/reference/opensm.md)"
    return Check("OpenSM for the plugin", False, path is not None, path or "no opensm", cure)


def _program(name: str) -> str | None:
    return shutil.which(name, path=program_path())


def _cores() -> Check:
    return Check("cores", False, True, str(cores()))


def _memory() -> Check:
    def look() -> str:
        return memory(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))

    return _guard("memory", False, look, "the system does not say how much memory there is")


def _disk() -> Check:
    return _guard(
        "free disk space here",
        False,
        lambda: memory(shutil.disk_usage(Path.cwd()).free),
        "the system does not say how much space is left",
    )
