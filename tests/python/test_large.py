"""Large fabrics: every flow of a permutation ends; memory and page stay within limits."""

from pathlib import Path

import pytest

from bench.promises import PASS, run, scale

SMALL = {
    "k-ary": 'kind = "k-ary-fat-tree"\nk = 6',
    "cn-tn": 'kind = "cn-tn"\nm = 4\nq = 4\np = 2\nk = 2\nw = 4\ncns = 3',
    "xgft": 'kind = "xgft"\nchildren = [4, 4, 3, 3]\nparents = [1, 2, 2, 2]',
}
LARGE = {
    "265,302 hosts": (scale.K_ARY_265302, 6),
    "262,144 terminals": (scale.CN_TN_262144, 6),
    "1,048,576 hosts": (scale.XGFT_1048576, 18),
}


@pytest.mark.parametrize("fabric", SMALL.values(), ids=SMALL)
def test_a_permutation_ends(fabric: str, tmp_path: Path) -> None:
    outcome = scale.large(tmp_path, fabric, None, 1)
    assert outcome.verdict == PASS, outcome.measured


@pytest.mark.scale
@pytest.mark.parametrize(("fabric", "gib"), LARGE.values(), ids=LARGE)
def test_a_permutation_of_a_large_fabric_ends(fabric: str, gib: float, tmp_path: Path) -> None:
    outcome = scale.large(tmp_path, fabric, None, gib)
    assert outcome.verdict == PASS, outcome.measured


def test_a_large_caller_does_not_count() -> None:
    held = bytearray(256 << 20)
    held[::4096] = b"x" * len(held[::4096])
    assert run("true").peak_bytes < 128 << 20
    assert run("sh", "-c", "echo a; echo b >&2; exit 3").status == 3
    del held
