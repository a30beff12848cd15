"""Verdicts: only what can be compared is, ties are called ties, unfinished flows come first."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats as scipy_stats

from judging import IDEAL_PS, judged, table, write
from raddle.cli.show import show_summary
from raddle.report import write_report
from raddle.results import load
from raddle.services.sweep import sweep_json
from raddle.statistics.rule import TIE_PERCENT, common_flows, difference, leaders
from raddle.statistics.sweep_verdict import sweep_headline

ROLES = ("T_long", "T_short", "T_allreduce")


def times(slowdown: float, count: int = 20) -> list[int | None]:
    return [int(slowdown * IDEAL_PS)] * count


def cut(slowdown: float, unfinished: int, count: int = 20) -> list[int | None]:
    """As `times`, but the last flows did not finish."""
    return [*times(slowdown, count - unfinished), *[None] * unfinished]


def test_the_lead_of_one_seed_is_a_tie_within_three_percent(tmp_path: Path) -> None:
    near = judged(tmp_path / "near", {("hpcc", 1): times(2.0), ("pint", 1): times(2.06)})
    assert near.leaders == ("hpcc", "pint")
    assert near.best is None
    assert near.headline == "HPCC and PINT tie: p99 slowdown of 2.00 and 2.06, a tie within 3 %."
    far = judged(tmp_path / "far", {("hpcc", 1): times(2.0), ("pint", 1): times(2.07)})
    assert far.best == "hpcc"
    assert far.headline.startswith("HPCC serves this traffic best: p99 slowdown of 2.00, 3 % less")
    assert f"one seed: differences of up to {TIE_PERCENT:g} % are ties" in far.compared


def test_the_lead_of_several_seeds_is_a_tie_if_its_interval_includes_zero(tmp_path: Path) -> None:
    chance = judged(
        tmp_path / "chance",
        {
            ("hpcc", 1): times(1.9), ("hpcc", 2): times(2.1),
            ("pint", 1): times(2.2), ("pint", 2): times(2.0),
            ("none", 1): times(9.0), ("none", 2): times(9.1),
        },
    )  # fmt: skip
    assert chance.leaders == ("hpcc", "pint")
    assert "share the lead" in chance.headline
    assert "a tie within 5 % over 2 seeds; PFC only is last with 9.05" in chance.headline
    assert any("includes zero" in line for line in chance.details)
    sure = judged(
        tmp_path / "sure",
        {
            ("hpcc", 1): times(2.0), ("hpcc", 2): times(2.2),
            ("pint", 1): times(2.02), ("pint", 2): times(2.22),
        },
    )  # fmt: skip
    assert sure.best == "hpcc"  # by 1 %, but by as much in every seed
    assert any("The lead holds over 2 seeds" in line for line in sure.details)


def test_all_flows_of_all_schemes_were_compared_and_the_verdict_says_so(tmp_path: Path) -> None:
    found = judged(tmp_path, {("hpcc", 1): times(2.0), ("pint", 1): times(3.0)})
    assert found.compared.startswith("Compared: 20 flows, all of which finished under both schemes")


def test_only_flows_that_finished_under_all_schemes_are_compared(tmp_path: Path) -> None:
    # Alone, PFC only would look best: its slow flows never finished.
    none: list[int | None] = [*times(2.0, 18), None, None]
    hpcc: list[int | None] = [*times(2.5, 18), *times(9.0, 2)]
    found = judged(tmp_path, {("none", 1): none, ("hpcc", 1): hpcc})
    assert found.headline.startswith(
        "Unfinished flows: 2 under PFC only and none under HPCC. Over the 18 flows that finished "
        "under both schemes, PFC only does best (p99 slowdown 2.00), but it left more flows "
        "unfinished than HPCC, so none is named best."
    )
    assert found.leaders == ()
    assert found.compared.startswith("Compared: of 20 flows, 18 finished under both schemes")
    comparison = found.comparison
    assert comparison is not None
    assert comparison["unfinished"] == {"none": 2, "hpcc": 0}
    assert (comparison["flows"], comparison["finished_under_all"]) == (20, 18)
    assert comparison["values"]["hpcc"]["mean"] == pytest.approx(2.5)


def test_flows_that_only_disturb_are_not_judged_where_others_are_tested(tmp_path: Path) -> None:
    """HPCC serves the tested half better, PINT the congestors, by far."""
    hpcc = [fct for _ in range(20) for fct in (2 * IDEAL_PS, 90 * IDEAL_PS)]
    pint = [fct for _ in range(20) for fct in (4 * IDEAL_PS, 3 * IDEAL_PS)]
    runs = {("hpcc", 1): hpcc, ("pint", 1): pint}
    found = judged(tmp_path, runs, classes=("tested-ring", "congestor"))
    assert found.best == "hpcc"
    assert "p99 slowdown of 2.00" in found.headline


def test_a_scheme_that_is_faster_and_leaves_fewer_unfinished_is_the_best(tmp_path: Path) -> None:
    found = judged(tmp_path, {("none", 1): cut(9.0, 4), ("hpcc", 1): cut(2.0, 1)})
    assert found.best == "hpcc"
    assert found.headline.startswith(
        "Unfinished flows: 4 under PFC only and 1 under HPCC. Over the 16 flows that finished "
        "under both schemes, HPCC serves this traffic best"
    )


def test_no_scheme_is_best_where_fewer_than_half_of_the_flows_finished(tmp_path: Path) -> None:
    found = judged(tmp_path, {("none", 1): cut(9.0, 11), ("hpcc", 1): cut(2.0, 11)})
    assert found.leaders == ()
    assert found.headline == (
        "Unfinished flows: 11 under each of the two schemes. Of 20 flows, only 9 finished under "
        "both schemes, so none is named best."
    )


def test_flows_that_had_not_started_when_the_runs_ended_count(tmp_path: Path) -> None:
    runs = {("none", 1): times(9.0), ("hpcc", 1): times(2.0)}
    found = judged(tmp_path / "a", runs, planned=100)
    assert found.leaders == ()
    assert found.headline == (
        "80 of 100 flows had not started when the runs ended. Of 100 flows, only 20 finished under "
        "both schemes, so none is named best."
    )
    assert judged(tmp_path / "b", runs, planned=20).best == "hpcc"


def test_runs_in_which_no_flow_finished_are_not_judged(tmp_path: Path) -> None:
    found = judged(tmp_path, {("none", 1): cut(9.0, 20), ("hpcc", 1): cut(2.0, 20)})
    assert found.leaders == ()
    assert "only 0 finished" in found.headline


def test_seeds_that_not_all_schemes_have_are_left_out(tmp_path: Path) -> None:
    runs = {("none", 1): times(2.0), ("hpcc", 1): times(4.0), ("hpcc", 2): times(0.1)}
    found = judged(tmp_path / "a", runs)
    assert found.best == "none"
    apart = judged(tmp_path / "b", {("none", 1): times(2.0), ("hpcc", 2): times(4.0)})
    assert apart.leaders == ()
    assert "have no seed in common" in apart.headline


def test_nothing_done_yet_and_runs_without_flows_are_told_apart(tmp_path: Path) -> None:
    nothing = judged(tmp_path / "nothing", {})
    assert nothing.headline.startswith("No run has finished yet")
    empty = judged(tmp_path / "empty", {("none", 1): [], ("hpcc", 1): []})
    assert empty.headline.startswith("These runs have no flows")
    schemes = load(tmp_path / "empty").summary["schemes"]
    assert [schemes[s]["flows"] for s in ("none", "hpcc")] == [0, 0]
    page = write_report(tmp_path / "empty").read_text(encoding="utf-8")
    assert "These runs have no flows" in page


def scored(folder: Path, loaded: dict[str, list[int | None]], **more: Any) -> Any:
    runs = {(scheme, 1): row for scheme, row in loaded.items()}
    alone = {key: times(1.0, len(row)) for key, row in runs.items()}
    return judged(folder, runs, more.pop("alone", alone), classes=ROLES, **more)


def test_the_score_is_compared_over_tested_flows_that_finished_under_all(tmp_path: Path) -> None:
    found = scored(tmp_path, {"none": [*times(4.0, 27), None, None, None], "hpcc": times(2.0, 30)})
    assert found.scored
    assert found.best == "hpcc"
    assert "Over the 27 tested flows that finished under both schemes" in found.headline
    assert "S = 2.00 at equal weights, 50 % less than PFC only (4.00)" in found.headline
    assert found.leaders_at == dict.fromkeys("123", ("hpcc",))
    page = write_report(tmp_path).read_text(encoding="utf-8")
    assert "Slowdowns are those of flows that finished" in page
    row = load(tmp_path).summary["schemes"]["none"]
    assert row["score"]["lower_bound"]
    assert any("Figures with ≥ in tables (PFC only)" in line for line in found.details)


def test_a_score_of_a_kind_of_flows_that_never_finished_names_nobody(tmp_path: Path) -> None:
    row: list[int | None] = [*times(4.0, 30)]
    row[::3] = [None] * 10
    found = scored(tmp_path, {"none": row, "hpcc": times(2.0, 30)})
    assert found.leaders == ()
    assert "of a kind of tested flows none finished under all of them" in found.headline


def test_flows_that_do_not_end_alone_are_not_compared(tmp_path: Path) -> None:
    alone = {("none", 1): [*times(1.0, 29), None], ("hpcc", 1): times(1.0, 30)}
    found = scored(tmp_path, {"none": times(4.0, 30), "hpcc": times(2.0, 30)}, alone=alone)
    assert found.compared.startswith("Compared: of 30 tested flows, 29 finished under load and al")


def test_ties_are_ties_at_all_weights_and_for_each_part(tmp_path: Path) -> None:
    found = scored(tmp_path, {"dctcp": times(2.0, 30), "hpcc": times(2.01, 30),
                              "none": times(5.0, 30)})  # fmt: skip
    assert found.headline.startswith("DCTCP and HPCC share the lead: S = 2.00 and 2.01 at equal")
    assert found.leaders_at == dict.fromkeys("123", ("dctcp", "hpcc"))
    said = " ".join(found.details)
    assert "long flows get most bandwidth with DCTCP and HPCC" in said
    assert "names the same lead" in said
    page = write_report(tmp_path).read_text(encoding="utf-8")
    assert "Slowdowns are those of flows that finished" not in page
    assert page.count('<tr class="winner">') == 4  # two schemes in two tables
    assert found.headline.split(":")[0] in page
    assert found.compared[:40] in page.replace("\u00a0", " ")


def test_readings_of_the_score_that_disagree_are_named(tmp_path: Path) -> None:
    # Of each kind, HPCC has one flow of 5 times its time alone and nine of 1; DCTCP has all of 2.
    # The flow that is hit takes ten times as long alone as the others: per flow HPCC's ratio is
    # 1.4; of mean times it is (50 + 9) / (10 + 9), of mean rates (0.1 + 9) / (0.02 + 9).
    hit: list[int | None] = [*times(50.0, 3), *times(1.0, 27)]
    alone: list[int | None] = [*times(10.0, 3), *times(1.0, 27)]
    dctcp: list[int | None] = [*times(20.0, 3), *times(2.0, 27)]
    found = scored(
        tmp_path, {"dctcp": dctcp, "hpcc": hit}, alone={("dctcp", 1): alone, ("hpcc", 1): alone}
    )
    assert found.best == "hpcc"
    assert (
        "The eight readings of the score disagree: HPCC leads by 4 readings; DCTCP leads by 4 "
        "readings."
    ) in found.headline
    assert "Of 24 ways to read and weigh S 12 name the same lead." in found.details
    first = found.readings[0]
    assert (first["reading"], first["variance"], first["weights"]) == ("per-flow", "pvar", "1")
    assert first["means"] == pytest.approx({"dctcp": 2.0, "hpcc": 1.4})
    other = next(
        one for one in found.readings
        if (one["reading"], one["variance"]) == ("ratio-of-means", "none")
    )  # fmt: skip
    equal = (9.1 / 9.02 + 2 * 59 / 19) / 3
    assert other["means"] == pytest.approx({"dctcp": 2.0, "hpcc": equal})
    page = write_report(tmp_path).read_text(encoding="utf-8")
    assert "Who leads by each reading of S" in page


def test_a_sweep_says_at_which_points_readings_disagree(tmp_path: Path) -> None:
    def point(name: str, *by_means: str) -> dict[str, object]:
        readings = [
            {"reading": "per-flow", "variance": "pvar", "weights": "1", "leaders": ["hpcc"]},
            {"reading": "ratio-of-means", "variance": "pvar", "weights": "1",
             "leaders": list(by_means)},
        ]  # fmt: skip
        return {
            "set": {"simulation.buffer": name}, "schemes": {"hpcc": {}, "dctcp": {}},
            "verdict": {"comparison": {"figure": "s"}, "readings": readings},
            "leaders": {"s": ["hpcc"]},
        }  # fmt: skip

    assert sweep_headline({"points": [point("4MiB", "hpcc"), point("8MiB", "dctcp")]}) == (
        "HPCC leads at all 2 points. Readings of the score disagree at 8MiB."
    )


def test_the_terminal_says_below_the_table_what_its_columns_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = scored(tmp_path, {"none": [*times(4.0, 29), None], "hpcc": times(2.0, 30)})
    show_summary(load(tmp_path).summary)
    said = capsys.readouterr().out
    legend = [line.split("  ")[0] for line in said.splitlines()]
    assert [w for w in ("S_L", "S_S", "S_A", "W", "S", "≥", "slowdown") if w in legend] == [
        "S_L", "S_S", "S_A", "W", "S", "≥", "slowdown",
    ]  # fmt: skip
    assert "docs/reference/results.md" in said
    assert said.rstrip().endswith(f"{found.headline}\n{found.compared}")


def test_an_older_summary_is_judged_anew_in_the_report(tmp_path: Path) -> None:
    write(tmp_path, {("hpcc", 1): times(2.0), ("none", 1): times(4.0)})
    summary = json.loads((tmp_path / "summary.json").read_text())
    del summary["verdict"]
    (tmp_path / "summary.json").write_text(json.dumps(summary))
    assert "HPCC serves this traffic best" in write_report(tmp_path).read_text(encoding="utf-8")


class Stub:
    """An outcome of a sweep."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__ |= fields


def test_a_sweep_names_leaders_by_the_same_rule(tmp_path: Path) -> None:
    rows = {
        "a": {("hpcc", 1): times(2.0), ("none", 1): times(4.0)},
        "b": {("hpcc", 1): times(2.0), ("none", 1): times(2.01)},
        "c": {("hpcc", 1): cut(2.0, 15), ("none", 1): cut(4.0, 15)},
    }
    sets, outcomes = [], []
    plan = Stub(name="swept", seeds=(1,))
    for name, runs in rows.items():
        write(tmp_path / name, runs)
        sets.append({"key": name})
        summary = load(tmp_path / name).summary
        outcomes.append(Stub(summary=summary, complete=True, plan=plan, out=tmp_path / name))
    table_ = sweep_json(sets, outcomes, tmp_path)  # type: ignore[arg-type]
    assert [p["best"] for p in table_["points"]] == ["hpcc", None, None]
    found = [p["leaders"]["slowdown_p99"] for p in table_["points"]]
    assert found == [["hpcc"], ["hpcc", "none"], []]
    assert sweep_headline(table_) == (
        "HPCC leads at a; both schemes tie at b, a tie within 0.5 %; no scheme is named best at c "
        "(unfinished flows)."
    )


def test_common_flows_of_closed_loops_are_found_by_their_place() -> None:
    first = table({("hpcc", 1): times(1.0, 4)})
    later = table({("none", 1): [*times(1.0, 3), None, *times(1.0, 2)]})
    (a, b), flows = common_flows([first, later])
    assert flows == 6
    assert a.tolist() == [True, True, True, False]
    assert b.tolist() == [True, True, True, False, False, False]


@given(st.lists(st.sampled_from([None, 1000]), min_size=1, max_size=30), st.randoms())
def test_common_flows_do_not_depend_on_the_order_of_rows(
    done: list[int | None], random: Any
) -> None:
    one = table({("hpcc", 1): done})
    order = list(range(one.num_rows))
    random.shuffle(order)
    (a, b), flows = common_flows([one, one.take(order)])
    assert flows == len(done)
    assert b.tolist() == a[order].tolist()
    assert a.tolist() == [fct is not None for fct in done]


@given(
    st.lists(st.floats(0.1, 100), min_size=2, max_size=8),
    st.lists(st.floats(0.1, 100), min_size=2, max_size=8),
)
def test_unpaired_differences_follow_welch(a: list[float], b: list[float]) -> None:
    found = difference({f"a{i}": v for i, v in enumerate(a)}, {f"b{i}": v for i, v in enumerate(b)})
    assert found.how == "unpaired"
    if min(np.std(a), np.std(b)) > 1e-3 and found.half_width is not None:
        own = scipy_stats.ttest_ind(b, a, equal_var=False).confidence_interval(0.95)
        # Whole degrees of freedom, rounded down: never narrower.
        assert found.half_width >= (own.high - own.low) / 2 - 1e-9


@given(st.floats(0.01, 1e6), st.floats(0.01, 1e6))
def test_a_tie_is_one_from_both_sides(a: float, b: float) -> None:
    there, back = difference({"1": a}, {"1": b}), difference({"1": b}, {"1": a})
    assert there.tie == back.tie
    assert there.percent == pytest.approx(back.percent)


def test_more_is_better_where_it_is() -> None:
    figures = {"a": {"1": 5.0}, "b": {"1": 2.0}, "c": {"1": 5.1}}
    assert leaders(figures, lower_is_better=False) == ("c", "a")


def test_zero_against_something_is_no_tie() -> None:
    assert difference({"1": 0.0}, {"1": 0.0}).tie
    assert not difference({"1": 0.0}, {"1": 1e-9}).tie
