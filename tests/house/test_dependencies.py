"""What is loaded into programs of other people brings nothing that they did not ask for."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: Async runtimes, HTTP servers, command lines, loaders of packet programs, tables, logs.
UNWANTED = {
    "arrow-array", "arrow-schema", "aya", "aya-obj", "clap", "hyper", "hyper-util", "parquet",
    "prometheus-client", "rayon", "tokio", "tracing", "tracing-subscriber",
}  # fmt: skip


def dependencies(package: str) -> set[str]:
    """The crates that end up in a package's product."""
    words = ["cargo", "tree", "--locked", "--package", package, "--edges", "normal"]
    done = subprocess.run(
        [*words, "--prefix", "none", "--format", "{p}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return {line.split()[0] for line in done.stdout.splitlines() if line}


@pytest.mark.parametrize("package", ["raddle-mpi", "raddle-rails-c", "raddle-opensm"])
def test_a_library_for_other_programs_brings_no_servers_and_tables(package: str) -> None:
    found = dependencies(package)
    assert "raddle-units" in found
    assert found & UNWANTED == set()


def test_the_check_sees_what_it_is_for() -> None:
    assert {"clap", "hyper", "tokio"} <= dependencies("raddle-switch")
