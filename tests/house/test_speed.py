"""The simulator's cost of a packet-hop, counted: a count is the same on a busy machine."""

import shutil
from pathlib import Path

import pytest

from bench.promises import PASS
from bench.promises.simulation import instructions


@pytest.mark.skipif(not shutil.which("valgrind"), reason="needs the package valgrind")
def test_a_packet_hop_takes_few_instructions(tmp_path: Path) -> None:
    outcome = instructions(tmp_path)
    print(outcome.measured)
    assert outcome.verdict == PASS, outcome.measured
