"""The score of the paper and the monotone one beside it."""

import math

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from raddle.results import TABLES
from raddle.statistics.score import (
    CONFIGURATIONS,
    Role,
    Weights,
    class_order,
    combine,
    monotone,
    role_of,
    score,
    variance_term,
)

EQUAL = CONFIGURATIONS["1"]
ratio = st.floats(1, 1e6)
ratios = st.tuples(ratio, ratio, ratio)
shares = st.tuples(*[st.floats(0.001, 1)] * 3)


def weights_of(raw: tuple[float, ...]) -> Weights:
    total = math.fsum(raw)
    return Weights(raw[0] / total, raw[1] / total, raw[2] / total)


Row = tuple[str, int, int, int, int, int, int | None]


def flows(rows: list[Row]) -> pa.Table:
    """Rows of class, src, dst, sport, size in bytes, start in ps, FCT in ps."""
    names = ("class", "src", "dst", "sport", "size_bytes", "start_ps", "fct_ps")
    columns: dict[str, list[object]] = {
        name: [row[i] for row in rows] for i, name in enumerate(names)
    }
    count = len(rows)
    columns |= {"scheme": ["hpcc"] * count, "seed": [1] * count, "ideal_fct_ps": [1] * count}
    return pa.table({n: columns[n] for n in TABLES["flows"].names}, schema=TABLES["flows"])


ALONE: list[Row] = [
    ("T_long", 0, 1, 7, 10_000_000, 0, 1_000_000),
    ("T_short", 0, 1, 8, 65_536, 0, 10_000),
    ("T_short", 0, 1, 9, 65_536, 5, 30_000),
    ("T_allreduce", 2, 3, 7, 65_536, 0, 10_000),
]


def test_the_score_is_not_monotone_as_the_documentation_says() -> None:
    assert f"{combine((1, 1, 4), EQUAL):.2f}" == "4.00"
    assert f"{combine((2, 2, 4), EQUAL):.2f}" == "3.56"


@pytest.mark.parametrize(
    ("mode", "expected"), [("pvar", 2.0), ("var", 3.0), ("std", math.sqrt(2)), ("none", 0.0)]
)
def test_each_variance_mode_has_its_closed_form(mode: str, expected: float) -> None:
    assert variance_term((1, 1, 4), mode) == pytest.approx(expected)  # type: ignore[arg-type]


@given(ratios, shares, st.integers(0, 2), st.floats(0, 1e6), st.floats(1, 20))
def test_the_monotone_score_never_falls_when_a_part_rises(
    parts: tuple[float, float, float],
    raw: tuple[float, ...],
    which: int,
    rise: float,
    p: float,
) -> None:
    worse = list(parts)
    worse[which] += rise
    before = monotone(parts, weights_of(raw), p)
    after = monotone((worse[0], worse[1], worse[2]), weights_of(raw), p)
    assert after >= before * (1 - 1e-12)


@given(ratios, shares, st.floats(1, 20))
def test_the_monotone_score_lies_between_the_mean_and_the_largest_part(
    parts: tuple[float, float, float], raw: tuple[float, ...], p: float
) -> None:
    weights = weights_of(raw)
    value = monotone(parts, weights, p)
    assert value <= max(parts) * (1 + 1e-9)
    assert value >= combine(parts, weights, "none") * (1 - 1e-9)


@given(st.floats(1, 1e6), shares)
def test_equal_parts_give_that_part_whatever_the_weights(
    part: float, raw: tuple[float, ...]
) -> None:
    weights = weights_of(raw)
    assert combine((part, part, part), weights) == pytest.approx(part)
    assert monotone((part, part, part), weights) == pytest.approx(part)


@pytest.mark.parametrize("bad", [(0.5, 0.5, 0.5), (-0.5, 1, 0.5), (math.nan, 0.5, 0.5)])
def test_weights_that_are_negative_or_do_not_sum_to_one_are_refused(
    bad: tuple[float, float, float],
) -> None:
    with pytest.raises(ValueError, match="weights must"):
        Weights(*bad)


def test_both_readings_of_the_ratio_follow_from_the_same_flows() -> None:
    loaded = flows(
        [
            ("T_long", 0, 1, 7, 10_000_000, 0, 2_000_000),
            ("T_short", 0, 1, 8, 65_536, 0, 20_000),
            ("T_short", 0, 1, 9, 65_536, 5, 120_000),
            ("T_allreduce", 2, 3, 7, 65_536, 0, 10_000),
            ("B_incast", 4, 5, 7, 65_536, 0, 999_999),
        ]
    )
    each = score(loaded, flows(ALONE))
    means = score(loaded, flows(ALONE), reading="ratio-of-means")
    assert each is not None
    assert means is not None
    assert each.parts[Role.SHORT].ratio == pytest.approx((20 / 10 + 120 / 30) / 2)
    assert means.parts[Role.SHORT].ratio == pytest.approx((20 + 120) / (10 + 30))
    assert each.parts[Role.LONG].ratio == pytest.approx(2)
    assert each.parts[Role.LONG].alone == pytest.approx(8e4)  # 10 MB in 1 us, Gb/s
    assert each.totals["2"] == pytest.approx(0.5 * 2 + 0.25 * 3 + 0.25 + each.variance_term)
    assert not each.lower_bound


def test_flows_alone_score_exactly_one() -> None:
    found = score(flows(ALONE), flows(ALONE))
    assert found is not None
    assert found.totals == {"1": 1.0, "2": 1.0, "3": 1.0}


def test_an_unfinished_flow_counts_to_the_end_of_the_run_and_marks_the_score() -> None:
    loaded = [*ALONE]
    loaded[1] = ("T_short", 0, 1, 8, 65_536, 0, None)
    found = score(flows(loaded), flows(ALONE), end_ps=100_000)
    assert found is not None
    assert found.lower_bound
    assert found.parts[Role.SHORT].unfinished == 1
    assert found.parts[Role.SHORT].ratio == pytest.approx((100_000 / 10_000 + 1) / 2)


def test_a_twin_that_never_ends_is_left_out_and_counted() -> None:
    alone = [*ALONE]
    alone[2] = ("T_short", 0, 1, 9, 65_536, 5, None)
    found = score(flows(ALONE), flows(alone))
    assert found is not None
    assert found.parts[Role.SHORT].unpaired == 1
    assert found.parts[Role.SHORT].pairs == 1


def test_twins_are_found_even_if_ports_differ() -> None:
    moved = [(c, s, d, p + 100, z, t, f) for c, s, d, p, z, t, f in ALONE]
    found = score(flows(moved), flows(ALONE))
    assert found is not None
    assert found.totals["1"] == 1.0


def test_without_one_of_the_three_kinds_there_is_no_score() -> None:
    assert score(flows(ALONE[:3]), flows(ALONE)) is None


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("T_long", Role.LONG),
        ("tested-short", Role.SHORT),
        ("tested-allreduce", Role.ALLREDUCE),
        ("T_all-reduce", Role.ALLREDUCE),
        ("background-alltoall", None),
        ("B_a2a", None),
        ("long", None),
    ],
)
def test_classes_name_their_role(name: str, role: Role | None) -> None:
    assert role_of(name) is role


def test_classes_are_listed_in_the_order_of_the_score() -> None:
    names = ["B_incast", "T_short", "T_allreduce", "B_a2a", "tested-ring", "T_long"]
    assert sorted(names, key=class_order) == [
        "T_long", "T_short", "T_allreduce", "tested-ring", "B_a2a", "B_incast",
    ]  # fmt: skip
