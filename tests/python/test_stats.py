"""Percentiles, intervals, fairness and pauses against closed forms."""

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from raddle.results import TABLES
from raddle.statistics.flows import FlowFigures, size_bins
from raddle.statistics.pauses import (
    merge_spans,
    overlap_ps,
    pause_edges,
    pause_time_by_port_us,
    pause_tree,
)
from raddle.statistics.samples import (
    jain,
    mean_interval,
    spread,
    student_t_quantile,
)
from test_score import flows

spans = st.lists(
    st.tuples(st.integers(0, 1000), st.integers(0, 100)).map(lambda p: (p[0], p[0] + p[1])),
    min_size=1,
    max_size=20,
)


@pytest.mark.parametrize("degrees", [1, 2, 3, 4, 9, 30, 101])
@pytest.mark.parametrize("probability", [0.9, 0.975, 0.995])
def test_the_t_quantile_agrees_with_scipy(degrees: int, probability: float) -> None:
    assert student_t_quantile(probability, degrees) == pytest.approx(
        scipy_stats.t.ppf(probability, degrees), rel=1e-9
    )


def test_the_interval_of_three_seeds_is_the_textbook_one() -> None:
    found = mean_interval([10.0, 12.0, 14.0])
    assert found.mean == 12
    assert found.half_width == pytest.approx(4.302653 * 2 / math.sqrt(3), rel=1e-6)
    assert (found.low, found.high) == (12 - found.half_width, 12 + found.half_width)  # type: ignore[operator]


def test_one_seed_has_no_interval() -> None:
    found = mean_interval([10.0])
    assert (found.half_width, found.low, found.high) == (None, None, None)


@given(st.lists(st.floats(0.1, 1e6), min_size=1, max_size=40))
def test_jain_lies_between_one_over_n_and_one(values: list[float]) -> None:
    found = jain(values)
    assert found is not None
    assert 1 / len(values) - 1e-9 <= found <= 1 + 1e-9


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=60))
def test_percentiles_rise_and_stay_within_the_sample(values: list[float]) -> None:
    found = spread(values)
    points = [found.p50, found.p95, found.p99, found.p99_9]
    assert all(p is not None for p in points)
    assert points == sorted(points)  # type: ignore[type-var]
    assert min(values) <= points[0] <= max(values)  # type: ignore[operator]


def test_unfinished_flows_are_counted_and_do_not_move_percentiles() -> None:
    found = spread([1.0, 2.0, 3.0, math.nan])
    assert (found.n, found.unfinished, found.p50) == (4, 1, 2.0)
    assert spread([math.nan]).p50 is None


def figures(table: pa.Table) -> FlowFigures:
    found = FlowFigures()
    found.add(table)
    return found


def test_slowdown_bins_hold_each_flow_once_with_the_upper_edge_outside() -> None:
    table = flows(
        [
            ("flow", 0, 1, 1, 999, 0, 2),
            ("flow", 0, 1, 2, 1000, 0, 4),
            ("flow", 0, 1, 3, 2999, 0, 6),
            ("flow", 0, 1, 4, 10**13, 0, 8),
        ]
    )
    bins = size_bins([figures(table)])
    assert [(b.low_bytes, b.slowdown.n, b.slowdown.p50) for b in bins] == [
        (300, 1, 2.0),
        (1000, 2, 5.0),
        (3 * 10**11, 1, 8.0),
    ]


def test_goodput_is_payload_over_the_busy_time() -> None:
    table = flows(
        [
            ("flow", 0, 1, 1, 1000, 100, 700),
            ("flow", 0, 1, 2, 1000, 500, 500),
            ("flow", 0, 1, 3, 1000, 0, None),
        ]
    )
    assert figures(table).goodput_gbps == pytest.approx(2000 * 8e3 / 900)


@given(spans, spans)
def test_merged_spans_and_overlaps_measure_what_counting_measures(
    left: list[tuple[int, int]], right: list[tuple[int, int]]
) -> None:
    a, b = (np.asarray(s, dtype=np.float64) for s in (left, right))
    inside = [
        np.asarray([any(s <= t < e for s, e in group) for t in range(1200)])
        for group in (left, right)
    ]
    merged = merge_spans(a)
    assert (merged[:, 1] - merged[:, 0]).sum() == inside[0].sum()
    assert overlap_ps(merged, merge_spans(b)) == (inside[0] & inside[1]).sum()


def pauses(rows: list[tuple[int, int, int, int | None]]) -> pa.Table:
    columns = {
        "scheme": ["none"] * len(rows),
        "seed": [1] * len(rows),
        **{n: [r[i] for r in rows] for i, n in enumerate(("node", "port", "start_ps", "end_ps"))},
    }
    return pa.table(columns, schema=TABLES["pauses"])  # type: ignore[arg-type]


def line() -> pa.Table:
    """Host 0 - switch 1 - switch 2 - host 3; port 1 leads left, port 2 right."""
    rows = [(0, 0, 1, 1, 1), (1, 1, 2, 2, 1), (2, 2, 2, 3, 1)]
    columns = {
        n: [r[i] for r in rows]
        for i, n in enumerate(("link", "node_a", "port_a", "node_b", "port_b"))
    }
    return pa.table({**columns, "rate_bps": [1] * 3, "delay_ps": [1] * 3}, schema=TABLES["links"])


def test_pause_time_is_summed_per_port_and_an_open_pause_ends_with_the_run() -> None:
    table = pauses([(0, 1, 0, 2_000_000), (0, 1, 5_000_000, None), (1, 2, 0, 1_000_000)])
    assert pause_time_by_port_us(table, 9_000_000) == {(0, 1): 6.0, (1, 2): 1.0}


def test_the_peer_of_a_paused_port_is_the_one_that_paused_it() -> None:
    edges = pause_edges(pauses([(1, 2, 0, 3_000_000), (0, 1, 0, 1_000_000)]), line())
    assert [(e.pauser, e.paused, e.paused_us) for e in edges] == [(2, 1, 3.0), (1, 0, 1.0)]


def test_a_pause_that_is_passed_on_hangs_below_its_cause() -> None:
    # Switch 2 silences switch 1, which therefore silences host 0 a little later.
    rows = pauses([(1, 2, 0, 10_000_000), (0, 1, 2_000_000, 8_000_000)])
    (root,) = pause_tree(pause_edges(rows, line()))
    assert root.node == 2
    (switch,) = root.children
    assert (switch.node, switch.paused_us) == (1, 10.0)
    (host,) = switch.children
    assert (host.node, host.paused_us) == (0, 6.0)


def test_a_pause_at_another_time_has_its_own_root() -> None:
    rows = pauses([(1, 2, 0, 1_000_000), (0, 1, 5_000_000, 8_000_000)])
    trees = pause_tree(pause_edges(rows, line()))
    assert [(t.node, [c.node for c in t.children]) for t in trees] == [(1, [0]), (2, [1])]
    assert trees[1].children[0].children == ()


def test_a_cycle_of_pauses_is_shown_and_ends() -> None:
    # Both switches silence each other all the time: a deadlock.
    rows = pauses([(1, 2, 0, 5_000_000), (2, 1, 0, 5_000_000)])
    (root,) = pause_tree(pause_edges(rows, line()))
    assert root.children[0].children[0].repeats
