"""What `raddle run --dry-run` says of time and memory, beside what the run takes."""

import json
import os
import shutil
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bench.promises.scale import small_messages
from raddle.results import flows
from raddle.services import estimate
from real import ENVIRONMENT, QUICK, raddle, raddle_json

MIX = """\
schema = 1
[fabric]
kind = "fat-tree-320"
[traffic]
generator = "hpc-mix"
[simulation]
schemes = ["hpcc"]
isolated = false
"""
PERMUTATION = """\
schema = 1
[fabric]
kind = "k-ary-fat-tree"
k = {k}
[traffic]
generator = "permutation"
size = "{size}"
[simulation]
schemes = ["hpcc"]
isolated = false
"""
ALL_SCHEMES = MIX.replace('schemes = ["hpcc"]\nisolated = false\n', "")
SLOW = """\
schema = 1
[fabric]
kind = "dumbbell"
hosts_per_side = 2
host_rate = "1bps"
fabric_rate = "1bps"
[traffic]
generator = "permutation"
size = "64KiB"
[simulation]
schemes = ["hpcc"]
{more}
"""
MEASURE = """\
import json, resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([used.ru_utime + used.ru_stime, used.ru_maxrss * 1024]))
"""
"""Processor time and peak memory of a command. A small process starts it: the peak of a child is
that of its parent at least.
"""
LARGE_GIB = 10
"""Free memory that the largest run wants."""


@dataclass(frozen=True, slots=True)
class Pair:
    """What was said, and what was taken: processor time, and the peak of memory."""

    said_s: float
    taken_s: float
    said_bytes: int
    taken_bytes: int

    @property
    def time(self) -> float:
        """How often what was taken is in what was said."""
        return self.said_s / self.taken_s

    @property
    def memory(self) -> float:
        """How often what was taken is in what was said."""
        return self.said_bytes / self.taken_bytes

    def __str__(self) -> str:
        mib = [round(number / 2**20) for number in (self.said_bytes, self.taken_bytes)]
        return (
            f"{self.said_s:.1f} s said, {self.taken_s:.1f} s taken: {self.time:.2f}; "
            f"{mib[0]:,} MiB said, {mib[1]:,} MiB taken: {self.memory:.2f}"
        )


def compare(folder: Path, text: str) -> Pair:
    """Estimate and run; processor time is compared, which other programs disturb least."""
    (folder / "e.toml").write_text(text)
    said = raddle_json("run", "e.toml", "--dry-run", folder=folder)["estimate"]
    shutil.rmtree(folder / "out", ignore_errors=True)
    program = [sys.executable, "-m", "raddle", "run"]
    words = [*program, "e.toml", "--threads", "1", "--out", "out", "--quiet"]
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, *words],
        cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    cpu_s, bytes_ = json.loads(done.stdout)
    return Pair(said["cpu_s"], cpu_s, said["memory_bytes"], bytes_)


def test_the_estimate_of_a_small_run_is_of_its_size(tmp_path: Path) -> None:
    pair = compare(tmp_path, PERMUTATION.format(k=8, size="2MB"))
    assert 0.4 < pair.time < 2.5  # a loaded machine changes its speed between the two
    assert 0.75 < pair.memory < 1.25


def test_flows_that_follow_each_other_are_not_held_together(tmp_path: Path) -> None:
    pair = compare(tmp_path, small_messages(300_000))
    assert 0.4 < pair.time < 2.5  # a loaded machine changes its speed between the two
    assert 0.75 < pair.memory < 1.25
    assert estimate.MOST_ROWS == flows.AT_ONCE


def estimate_of_slow(folder: Path, more: str) -> Any:
    (folder / "slow.toml").write_text(SLOW.format(more=more))
    return json.loads(raddle("run", "slow.toml", "--dry-run", "--json", folder=folder).stdout)


def test_links_of_1_bit_per_second_take_hours_or_their_samples_time(tmp_path: Path) -> None:
    often = estimate_of_slow(tmp_path, "")
    assert often["estimate"]["wall_s"] > 3600
    assert any("retransmission_timeout" in warning for warning in often["warnings"])
    seldom = estimate_of_slow(
        tmp_path, 'retransmission_timeout = "80000s"\n[record]\nsample_interval = "1s"'
    )
    assert 0.5 < seldom["estimate"]["wall_s"] < 60
    assert seldom["warnings"] == []


def test_an_estimate_that_cannot_be_made_is_null(tmp_path: Path) -> None:
    (tmp_path / "e.toml").write_text(QUICK + 'end = "1ms"\n')
    plan = raddle_json("run", "e.toml", "--dry-run", folder=tmp_path)
    assert plan["estimate"]["wall_s"] is None
    assert {run["estimate"]["seconds"] for run in plan["runs"]} == {None}


@pytest.mark.scale
@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        (MIX, 3),
        (ALL_SCHEMES, 1),
        (PERMUTATION.format(k=32, size="64KiB"), 3),
        (PERMUTATION.format(k=32, size="256KiB"), 3),
        (PERMUTATION.format(k=64, size="64KiB"), 3),
        (PERMUTATION.format(k=102, size="64KiB"), 1),
        (small_messages(1_000_000), 3),
        (small_messages(10_000_000), 1),
    ],
    ids=[
        "320",
        "320-all-schemes",
        "8192-short",
        "8192-long",
        "65536",
        "265302",
        "10^6-flows",
        "10^7-flows",
    ],
)
def test_estimates_are_within_a_quarter(tmp_path: Path, text: str, pairs: int) -> None:
    free_gib = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30
    if "102" in text and free_gib < LARGE_GIB:
        pytest.skip(f"needs {LARGE_GIB} GiB of free memory")
    found = [compare(tmp_path, text) for _ in range(pairs)]
    print(*found, sep="\n")
    times = statistics.median(pair.time for pair in found)
    assert 0.75 < times < 1.25, found
    assert all(0.75 < pair.memory < 1.25 for pair in found), found
