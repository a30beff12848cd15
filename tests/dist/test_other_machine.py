"""The wheel for AArch64 in an emulator: programs start, an experiment gives the same bytes."""

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.dist.system import DIST, ROOT, codename

EMULATOR = "qemu-aarch64-static"
WHEELS = list(DIST.glob("*_aarch64.whl"))
pytestmark = [
    pytest.mark.skipif(platform.machine() == "aarch64", reason="this is an AArch64 machine"),
    pytest.mark.skipif(os.geteuid() != 0, reason="debootstrap needs root"),
    pytest.mark.skipif(not WHEELS, reason="no wheel for AArch64 was made here"),
    pytest.mark.skipif(shutil.which(EMULATOR) is None, reason="needs the package qemu-user-static"),
]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of a Debian for AArch64 with Python; nothing of it is configured."""
    place = tmp_path_factory.mktemp("aarch64") / "root"
    words = ["debootstrap", "--foreign", "--arch=arm64", "--variant=minbase"]
    subprocess.run(
        [*words, "--include=python3", codename(), place], check=True, capture_output=True
    )
    for package in place.glob("var/cache/apt/archives/*.deb"):
        subprocess.run(["dpkg", "-x", package, place], check=True)
    return place


@pytest.fixture(scope="module")
def site(root: Path) -> Path:
    """The wheel, and what it needs."""
    place = root.parent / "site"
    python = (root / "usr/bin/python3").readlink().name.removeprefix("python")
    words: list[str | Path] = [
        ROOT / ".venv/bin/pip",
        "install",
        "--quiet",
        "--no-compile",
        "--target",
        place,
    ]
    words += ["--only-binary=:all:", "--python-version", python]
    for libc in ("manylinux_2_28", "manylinux_2_17", "manylinux2014"):
        words += ["--platform", f"{libc}_aarch64"]
    subprocess.run([*words, *WHEELS], check=True)
    return place


def emulated(root: Path, program: Path, *words: str, folder: Path, site: Path) -> str:
    """What a program for AArch64 prints."""
    done = subprocess.run(
        [EMULATOR, "-L", root, program, *words],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_programs_start(root: Path, site: Path, tmp_path: Path) -> None:
    for name in ("raddle-switch", "raddle-perf"):
        program = site / "bin" / name
        assert emulated(root, program, "--version", folder=tmp_path, site=site).startswith(name)
    assert b"raddle.bpf" in (site / "bin" / "raddle-switch").read_bytes(), "no packet program"


def test_an_experiment_gives_the_same_bytes(root: Path, site: Path, tmp_path: Path) -> None:
    python = root / "usr/bin/python3"
    run = ["run", "my.toml", "--no-report", "--quiet", "--out"]
    emulated(root, python, "-m", "raddle", "init", "my.toml", folder=tmp_path, site=site)
    emulated(root, python, "-m", "raddle", *run, "there", folder=tmp_path, site=site)
    here = [sys.executable, "-m", "raddle", *run, "here"]
    subprocess.run(here, cwd=tmp_path, check=True, capture_output=True)
    tables = sorted(file.name for file in (tmp_path / "here").glob("*.parquet"))
    assert "flows.parquet" in tables
    for name in tables:
        one, other = ((tmp_path / side / name).read_bytes() for side in ("here", "there"))
        assert one == other, name
