"""`raddle lab calibrate`: a short one in a lab of its own leaves a file that replays read."""

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mpi_lab import needs
from raddle import core
from raddle.cli.app import app
from raddle.services.costs import read_file
from raddle.services.lab import Lab

pytestmark = [
    needs("openmpi"),
    pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="calibration needs two processors"),
]


def test_costs_are_measured_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("raddle.services.lab.bench.BLOCKS", 2)
    monkeypatch.setattr("raddle.services.lab.bench.PROGRAMS", 1)
    out, name = tmp_path / "costs.toml", f"cost-{os.getpid()}"
    done = CliRunner().invoke(
        app, ["lab", "calibrate", "--out", str(out), "--name", name, "--no-check"]
    )
    assert done.exit_code == 0, done.output
    assert "sums, 8 B, by offload" in done.output
    found = read_file(out)
    assert found.measured is not None
    for cost in ("send_overhead", "look_overhead", "copy_per_byte", "offload_send_overhead"):
        assert cost in found.changed
    whole = core.replay.costs(out.read_text(), str(out))
    assert whole.host.send_overhead != "0ps"
    assert name not in Lab.known()
