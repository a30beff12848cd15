"""The simulator's cost of a packet-hop, counted: a count is the same on a busy machine.

Counted in the profile that the tests have built anyway, with its checks: `make accept` counts in
the one that users run.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from bench.promises.simulation import count_instructions

ROOT = Path(__file__).resolve().parents[2]
MOST = 1000
"""Instructions with checks for overflow and assertions; 860 when this was written."""


@pytest.mark.skipif(not shutil.which("valgrind"), reason="needs the package valgrind")
def test_a_packet_hop_takes_few_instructions(tmp_path: Path) -> None:
    profile = os.environ.get("TEST_PROFILE", "dev")
    # The packages that the tests in Rust are built of: of fewer, all would be built again.
    packages = ("--workspace", "--exclude", "raddle-python")
    words = (*packages, "--locked", "--quiet", "--example", "hop_benchmark")
    subprocess.run(["cargo", "build", "--profile", profile, *words], cwd=ROOT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    folder = "debug" if profile == "dev" else profile
    per_hop, hops = count_instructions(tmp_path, target / folder / "examples" / "hop_benchmark")
    assert per_hop < MOST, f"{per_hop:.0f} over {hops:,} hops"
