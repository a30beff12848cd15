"""Sentences of Sun et al.: inequalities over seeds, and what the figures in them are made of."""

from typing import get_args

import numpy as np
import pytest

from experiments.congestion import small
from experiments.congestion.judging import Sentence, judge, row_of
from experiments.congestion.runs import SCHEMES
from experiments.congestion.search import INPUTS, QUICK, SEARCH, experiment, named
from experiments.congestion.traffic import lasting
from raddle.statistics.score import Reading

NARROW, WIDE = [1.0, 1.1, 0.9], [-5.0, 0.0, 8.0]
"""Mean 1 ± 0.25, and 1 ± 16, both above 0 on average."""


def sentence(*margins: list[float]) -> Sentence:
    """A sentence with these margins."""
    each = {f"m{index}": np.array(seeds) for index, seeds in enumerate(margins)}
    return Sentence("S1", "Figure 2", "words", "figure", {"none": np.ones(3)}, each)


@pytest.mark.parametrize(
    ("margins", "holds"),
    [
        ([NARROW], True),
        ([NARROW, [2.0, 2.0, 2.0]], True),
        ([WIDE], None),
        ([NARROW, WIDE], None),
        ([NARROW, WIDE, [-1.0, -1.1, -0.9]], False),
        ([[0.0, 0.0, 0.0]], False),
        ([[0.5]], True),
    ],
)
def test_every_interval_decides(margins: list[list[float]], holds: bool | None) -> None:
    assert judge(sentence(*margins)) is holds


def test_a_row_has_the_margin_that_holds_least() -> None:
    row = row_of(sentence([3.0, 3.0, 3.0], NARROW), "8 MiB")
    assert (row.setting, row.verdict) == ("S1, 8 MiB", "holds")
    assert row.ours == pytest.approx(1.0)
    # t of two degrees of freedom, 4.3027, times 0.1 / sqrt(3).
    assert row.ci_low == pytest.approx(1 - 4.302653 * 0.1 / 3**0.5, rel=1e-5)
    assert row.note.startswith("m1;")
    assert row_of(sentence([0.5]), "8 MiB").ci_low is None


def burst(before: float, after: float) -> small.Burst:
    """F0 and F1 at so many Gb/s before and after 5 ms, in samples of 10 us; two short flows."""
    ends = np.arange(1, 2001) / 100
    bits = np.where(ends <= small.BURST_MS + 1e-9, before, after) * 1e4
    return small.Burst({0: (ends, bits), 1: (ends, bits)}, np.array([100.0, 300.0]), 7.0)


def test_steady_flows_do_not_swing_and_keep_their_rate() -> None:
    steady = burst(48.0, 48.0)
    assert steady.swing == pytest.approx(0, abs=1e-12)
    assert steady.lowest == pytest.approx(1)
    assert burst(48.0, 12.0).kept(0, 5.0, 7.0) == pytest.approx(0.25)
    assert burst(48.0, 12.0).goodput(1, 0.0, 10.0) == pytest.approx(30.0)


def test_the_search_names_what_it_judges() -> None:
    all_alike = object.__new__(small.Small)
    all_alike.bursts = {scheme: [burst(48.0, 48.0)] * 2 for scheme in SCHEMES}
    found = small.sentences(all_alike)
    asked = [name for name in SEARCH.findings if name.startswith("S")]
    assert [named(one) for one in found] == asked
    assert len(SEARCH.findings) - len(asked) == 3 * len(get_args(Reading))
    # Where all schemes are alike none is better than another.
    verdicts = {one.key: judge(one) for one in found}
    assert not any(verdicts[key] for key in ("S1", "S2", "S5", "S6", "S7", "S8", "S11", "S14"))


def test_points_change_what_they_say() -> None:
    assert all(set(values) <= set(INPUTS[name]) for name, values in QUICK.items())
    made = experiment(SEARCH.points(quick=False)[0])
    assert made["simulation"] == {"buffer": "4MiB"}
    assert made["schemes"]["dctcp"] == {"ecn_threshold": "30kB"}


def test_an_operation_lasts_until_the_next_starts() -> None:
    src = np.array([1, 1, 1, 2])
    start, end = np.array([0.0, 0.0, 10.0, 5.0]), np.array([4.0, 9.0, 17.0, 6.0])
    assert [each.tolist() for each in lasting(src, start, end)] == [[10.0, 7.0], [1.0]]
