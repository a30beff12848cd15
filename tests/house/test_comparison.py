"""What may be said of a comparison of times."""

import math
import random

import pytest

from bench.comparison import FEWEST_PAIRS, Verdict, compare


def ratios(middle: float, spread: float, count: int = FEWEST_PAIRS) -> list[float]:
    draw = random.Random(7)
    return [middle * draw.uniform(1 - spread, 1 + spread) for _ in range(count)]


@pytest.mark.parametrize(
    ("middle", "spread", "count", "verdict"),
    [
        (2.0, 0.02, 20, Verdict.HOLDS),
        (1.7, 0.02, 20, Verdict.MISSED),
        (2.0, 0.02, 19, Verdict.NOT_MEASURED),
        (4.0, 0.6, 20, Verdict.NOT_MEASURED),  # far better than the limit, and still no pass
        (1.0, 0.6, 20, Verdict.NOT_MEASURED),
    ],
)
def test_only_narrow_intervals_of_enough_pairs_are_judged(
    middle: float, spread: float, count: int, verdict: Verdict
) -> None:
    found = compare("x", 1.8, ratios(middle, spread, count))
    assert found.verdict is verdict
    assert found.low <= found.median <= found.high


def test_what_has_no_limit_is_shown_and_never_fails() -> None:
    found = compare("x", None, ratios(1.1, 0.02))
    assert found.verdict is Verdict.SHOWN
    assert not found.fails
    assert not compare("x", None, []).fails
    assert compare("x", 1.8, []).fails
    assert compare("x", 1.8, ratios(1.1, 0.02)).fails


def test_the_interval_of_a_median_is_where_order_statistics_put_it() -> None:
    # Of 1..101 the median is 51; the exact 95 % interval by order statistics (binomial) is 41..61.
    found = compare("x", 1.0, [float(i) for i in range(1, 102)])
    assert found.median == 51
    assert found.low == pytest.approx(41, abs=2)
    assert found.high == pytest.approx(61, abs=2)


def test_nothing_measured_is_said_and_no_number_is_made_up() -> None:
    found = compare("x", 1.8, [])
    assert found.verdict is Verdict.NOT_MEASURED
    assert math.isnan(found.median)
    assert found.as_json()["median"] is None
    assert "not measured" in found.line()
