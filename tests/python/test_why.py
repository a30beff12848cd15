"""The end of a report: each figure in its sentences is one of the run's own tables."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from made_by_hand import Scheme, write
from raddle.report import write_report
from raddle.report.why_run import why_of
from raddle.report.why_sweep import why_of_sweep
from raddle.results import load
from raddle.statistics.contrast import widest_contrast
from raddle.statistics.ways import Ways

SLOW = Scheme(
    (20, 30, 40),
    queue=250_000,
    held=(250_000, 150_000, 50_000, 30_000),
    pauses=[(0, 5, 8), (1, 10, 16), (2, 100, 200)],
)
FAST = Scheme((16, 18, 20), queue=60_000, held=(60_000, 20_000, 0, 0))


def test_the_sentences_hold_the_figures_of_the_tables(tmp_path: Path) -> None:
    results = load(write(tmp_path, {"none": SLOW, "hpcc": FAST}))
    why = why_of(results, leaders=("hpcc",))
    assert why.title == "Why PFC only is slower than HPCC for flows of class short"
    assert why.lead == (
        "Under PFC only a flow takes 1.67 times as long as under HPCC: 30.0 µs against 18.0 µs in "
        "the mean (3 flows of class short)."
    )
    queue, pauses, flows = (part.sentence for part in why.parts)
    # Flows ran for 40 and 20 us: four samples and two. 250 kB at 100 Gb/s are 20 us.
    assert queue == (
        "The longest queue that they can meet stood at s4 → h3: up to 250 kB, which takes 20.0 µs "
        "to send (HPCC: 60 kB there); while these flows ran, the fullest port held 120 kB in the "
        "mean (HPCC: 40 kB)."
    )
    # Of the 109 us of pauses 3 and 6 fell into flows of their hosts: 3 us of each flow's time.
    assert pauses == (
        "Ports were paused for 109 µs in all (HPCC: no time), most by s4, which silenced h2, h1 "
        "and h0 for 109 µs; while a flow ran, its source was silenced for 3.00 µs in the mean "
        "(HPCC: no time)."
    )
    assert flows == (
        "All 3 flows go to the host behind that port; the longest waits: h2 → h3 (30.0 µs for "
        "100 kB), h1 → h3 (20.0 µs for 100 kB) and h0 → h3 (10.0 µs for 100 kB)."
    )
    assert why.verdict == (
        "The difference of 12.0 µs goes with queues 3.0 times as long in the mean and pauses of "
        "the sources (25 % of it)."
    )


def test_recorded_ways_and_series_of_ports_are_used(tmp_path: Path) -> None:
    """`[record] paths, ports`: who passes the port is known, and its own queue over time."""
    folder = write(tmp_path, {"none": SLOW, "hpcc": FAST})
    run = {"scheme": "none", "seed": 1}
    ways = [
        {**run, "src": src, "dst": 3, "sport": 10000, "rail": 0, "since_ps": 0, "hop": 1,
         "node": 4, "port": 4 if src < 2 else 1, "name": "s4", "peer": 3 if src < 2 else 0}
        for src in range(3)
    ]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(ways), folder / "paths.parquet")
    series = [
        {**run, "time_ps": time * 1_000_000, "node": 4, "port": 4, "name": "s4",
         "queue_bytes": held, "ingress_bytes": 0, "paused": False, "tx_bytes": 0, "ecn_marks": 0}
        for time, held in [(10, 200_000), (20, 200_000), (90, 250_000)]
    ]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(series), folder / "port_queues.parquet")
    queue, _, flows = (part.sentence for part in why_of(load(folder)).parts)
    assert (
        "; while these flows ran, 99 % of the port's samples held at most 200 kB and the fullest "
        "port held 120 kB in the mean (HPCC: 40 kB)." in queue
    )
    assert flows.startswith(
        "2 of 3 flows pass that port and waited 15.0 µs in the mean, the others 30"
    )


def test_what_the_tables_do_not_explain_is_called_so(tmp_path: Path) -> None:
    held_back = Scheme((40, 40, 40), queue=1_000, held=(1_000, 0, 0, 0))
    why = why_of(load(write(tmp_path, {"timely": held_back, "hpcc": FAST})))
    assert why.title == "Why TIMELY is slower than HPCC for flows of class short"
    assert why.verdict.startswith("Queues and pauses do not explain the difference of 22.0 µs.")
    assert why.parts[1].sentence == "No port was paused under either."


def test_a_queue_too_short_to_matter_explains_nothing(tmp_path: Path) -> None:
    """2 kB take 160 ns to send: no reason for 22 µs, though it is the longer queue."""
    slow = Scheme((40, 40, 40), queue=2_000, held=(2_000, 2_000, 2_000, 2_000))
    fast = Scheme((16, 18, 20), queue=100, held=(100, 0, 0, 0))
    why = why_of(load(write(tmp_path, {"timely": slow, "hpcc": fast})))
    assert why.verdict.startswith("Queues and pauses do not explain the difference of 22.0 µs.")


def test_a_difference_within_the_rule_is_no_contrast(tmp_path: Path) -> None:
    close = Scheme((16.1, 18.1, 20.1), queue=60_000)
    why = why_of(load(write(tmp_path, {"dctcp": close, "hpcc": FAST})))
    assert why.title == "Why they are level"
    assert why.lead.startswith("In no class two schemes differ by more than a tie.")


def test_only_flows_that_finished_under_both_are_compared(tmp_path: Path) -> None:
    lost = Scheme((20, 30, None), queue=250_000)
    results = load(write(tmp_path, {"none": lost, "hpcc": FAST}))
    contrast = widest_contrast(results)
    assert contrast is not None
    assert contrast.under_slow.num_rows == contrast.under_fast.num_rows == 2
    assert contrast.ratio == pytest.approx(25 / 17)
    assert "(2 flows of class short, without 1 that did not finish)" in why_of(results).lead


def test_drops_are_named(tmp_path: Path) -> None:
    lossy = Scheme((40, 40, 40), queue=60_000, drops=7)
    why = why_of(load(write(tmp_path, {"dcqcn": lossy, "hpcc": FAST})))
    assert "7 dropped packets against 0" in why.verdict


def test_one_scheme_is_compared_with_an_idle_fabric(tmp_path: Path) -> None:
    why = why_of(load(write(tmp_path, {"none": SLOW})))
    assert why.title == "Why flows wait under PFC only"
    assert "30.0 µs in the mean, 3.00 times as long as when idle" in why.lead
    assert why.verdict.endswith("pauses of their sources are 15 %.")


def test_nothing_finished_is_said_and_not_guessed(tmp_path: Path) -> None:
    why = why_of(load(write(tmp_path, {"none": Scheme((None, None, None))})))
    assert why.lead.startswith("No flow finished")
    assert why.parts == ()


def test_seeds_are_named_and_means_are_over_them(tmp_path: Path) -> None:
    results = load(write(tmp_path, {"none": SLOW, "hpcc": FAST}, seeds=(1, 2)))
    why = why_of(results, leaders=("hpcc",))
    assert "Ports were paused for 109 µs in all" in why.parts[1].sentence
    assert "for 109 µs (seed 1)" in why.parts[1].sentence
    assert why.source.endswith("means over 2 seeds.")


def test_the_page_ends_with_why(tmp_path: Path) -> None:
    page = write_report(write(tmp_path, {"none": SLOW, "hpcc": FAST})).read_text()
    end = page.rpartition("<section")[2]
    assert 'id="why"' in end
    for name in ("Queue.", "Pauses.", "Flows."):
        assert f"<b>{name}</b>" in end


def test_ways_are_shortest_and_never_through_a_host(tmp_path: Path) -> None:
    results = load(write(tmp_path, {"none": SLOW}))
    ways = Ways.of(results.nodes, results.links)
    src, dst = np.asarray([0, 1, 2]), np.asarray([3, 3, 0])
    lengths = ways.lengths(src, dst)
    assert lengths is not None
    assert lengths.tolist() == [2, 2, 2]
    assert ways.through(4, 3, src, dst, lengths).tolist() == [True, True, False]
    assert ways.ports(np.asarray([0, 4, 99])).tolist() == [1, 4, 0]


def point(buffer: str, load: str, p99: float, **row: Any) -> dict[str, Any]:
    """A point of a sweep with one scheme."""
    figures = {
        "slowdown_p99": p99, "max_port_queue_bytes": 100_000, "pause_us": 0, "ci95": {},
        "flows": 9, "finished": 9, "fct_p99_us": {"short": 10 * p99, "long": 500.0}, **row,
    }  # fmt: skip
    return {"set": {"simulation.buffer": buffer, "load": load}, "schemes": {"dcqcn": figures}}


@pytest.mark.parametrize(
    ("slow", "fast", "words"),
    [
        (12.0, 0, "Ports were paused for 12.0 µs at 8, not at 4."),
        (0, 12.0, "Ports were paused for 12.0 µs at 4, not at 8."),
        (12.0, 6.0, "Ports were paused for 12.0 µs at 8, 6.00 µs at 4 (100 % more)."),
        (0, 0, "No port was paused at either."),
    ],
)
def test_pauses_of_a_sweep_are_told_with_their_points(slow: float, fast: float, words: str) -> None:
    points = [point("8", "0.3", 4.0, pause_us=slow), point("4", "0.3", 2.0, pause_us=fast)]
    assert why_of_sweep({"points": points}).parts[1].sentence == words


def test_a_sweep_ends_with_the_setting_that_matters_most() -> None:
    points = [
        point("2MiB", "0.3", 2.0),
        point("2MiB", "0.9", 6.0, max_port_queue_bytes=400_000, pause_us=30),
        point("8MiB", "0.3", 2.0),
        point("8MiB", "0.9", 5.0),
    ]
    why = why_of_sweep({"points": points})
    assert why.title == "Why load matters"
    assert why.lead == (
        "Under DCQCN the p99 slowdown is 6.00 at load 0.9 and 2.00 at 0.3 (simulation.buffer "
        "2MiB): the widest difference between two points of one scheme."
    )
    queue, pauses, flows = (part.sentence for part in why.parts)
    assert queue == (
        "The longest queue of a port was 400 kB at 0.9 and 100 kB at 0.3 (300 % more)."
    )
    assert pauses == "Ports were paused for 30.0 µs at 0.9, not at 0.3."
    assert flows == (
        "The class that differs most is short: p99 60.0 µs against 20.0 µs (3.00 times), the least "
        "long (1.00 times)."
    )
    assert why.verdict == "Slower flows come with longer queues and longer pauses here."


def test_a_sweep_does_not_explain_what_its_figures_do_not() -> None:
    points = [point("2MiB", "0.9", 6.0), point("8MiB", "0.9", 3.0, max_port_queue_bytes=900_000)]
    why = why_of_sweep({"points": points})
    assert why.title == "Why simulation.buffer matters"
    assert why.verdict.startswith("Neither queues nor pauses are longer where flows are slower")


def test_settings_that_change_nothing_are_called_so() -> None:
    level = why_of_sweep({"points": [point("2MiB", "0.9", 2.0), point("8MiB", "0.9", 2.04)]})
    assert level.title == "Why the settings hardly matter"
    assert level.verdict == ""
    apart = {"ci95": {"slowdown_p99": 0.5}}
    points = [point("2MiB", "0.9", 2.0, **apart), point("8MiB", "0.9", 2.9, **apart)]
    assert why_of_sweep({"points": points}).title == "Why the settings hardly matter"
    alone = why_of_sweep({"points": [point("2MiB", "0.9", 2.0)]})
    assert alone.parts == ()


def test_missing_tables_are_not_taken_for_none(tmp_path: Path) -> None:
    folder = write(tmp_path, {"none": SLOW, "hpcc": FAST})
    for name in ("pauses", "queues", "nodes"):
        (folder / f"{name}.parquet").unlink()
    queue, pauses, flows = (part.sentence for part in why_of(load(folder)).parts)
    assert queue.startswith("The longest queue stood at node 4 → node 3: up to 250 kB")
    assert "held" not in queue
    assert pauses == "Ports were paused for 109 µs in all (HPCC: no time)."
    assert flows.startswith("The longest waits: ")
    (folder / "ports.parquet").unlink()
    queue, pauses, _ = (part.sentence for part in why_of(load(folder)).parts)
    assert queue == "These results hold no counters of ports."
    assert pauses == "These results hold no counters of ports, so pauses are not known."
