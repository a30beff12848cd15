"""Replays of traces: what a schedule gains, and how it is told."""

import html
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from experiments.scheduling.cells import Case, Effort, run_trace
from experiments.scheduling.order import SWITCH, bound_us, goal
from raddle import _core
from raddle.cli.app import app
from raddle.core.trace import describe
from raddle.errors import ResultsError, TraceError
from raddle.report.replay import headline, render_replay
from raddle.services.replay import Settings, preview, replay, replay_schemes
from raddle.services.trace import import_goal
from raddle.statistics.waits import split_time
from raddle.text import span_us

DATA = Path(__file__).parent.parent / "data" / "traces"
FABRIC = """kind = "leaf-spine"
leaves = 2
spines = 2
hosts_per_leaf = 2
host_rate = "64Gbps"
fabric_rate = "64Gbps"
delay = "150ns"
"""


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Many short messages of 48 ranks on four hosts, with a map of its own."""
    out = tmp_path_factory.mktemp("replay") / "em.trace.parquet"
    made = ("electromagnetics", "small", 48, 12, 3, "10us", 1)
    _core.trace_generate(*made, f"[fabric]\n{FABRIC}", out)
    return out


@pytest.fixture(scope="module")
def map_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same map as a file."""
    file = tmp_path_factory.mktemp("map") / "map.toml"
    file.write_text(f"schema = 1\n{FABRIC}")
    return file


def test_a_summary_has_every_schedule_with_its_gain(trace: Path) -> None:
    """Gains are those of the runs: paired by seed, program order gains nothing."""
    watched: list[tuple[int, int]] = []
    summary = replay(
        trace,
        ["both"],
        Settings(seeds=3),
        watch=lambda jobs: watched.append((sum(job.done for job in jobs), len(jobs))),
    )
    assert list(summary["schedules"]) == ["none", "both"]
    assert watched == sorted(watched)
    assert watched[-1] == (6, 6)
    none, both = summary["schedules"]["none"], summary["schedules"]["both"]
    assert (none["gain_pct"], none["gain_ci95_pct"], none["joined"]) == (0, [0, 0], 0)
    gains = [
        100 * (1 - run["time_s"] / plain["time_s"])
        for run, plain in zip(both["runs"], none["runs"], strict=True)
    ]
    assert both["gain_pct"] == pytest.approx(sum(gains) / 3)
    assert both["gain_ci95_pct"][0] < both["gain_pct"] < both["gain_ci95_pct"][1]
    assert both["messages"] == none["messages"] == none["parcels"]
    assert 0 < both["joined"] < both["parcels"] < both["messages"]
    assert both["network_messages"] < none["network_messages"]
    assert both["schedule_s"] > 0


def test_the_same_replay_gives_the_same(trace: Path) -> None:
    """Whatever the number of threads."""
    one = replay(trace, ["aggregate"], Settings(seeds=2), jobs=1)
    two = replay(trace, ["aggregate"], Settings(seeds=2), jobs=4)
    for summary in (one, two):
        for row in summary["schedules"].values():
            row.pop("schedule_s")
    assert one == two


def test_a_recorded_program_is_replayed_on_another_map(map_file: Path) -> None:
    """LAMMPS on 8 ranks: its compute gaps are kept, its collectives become messages."""
    settings = Settings(seeds=1, fabric=map_file, placement="blocks:2", gap_share=0.0)
    summary = replay(DATA / "melt.trace.parquet", ["both"], settings)
    row = summary["schedules"]["none"]
    found = describe(DATA / "melt.trace.parquet")
    computing = (1 - found.mpi_share) * found.duration_s
    assert computing < row["time_s"] < found.duration_s
    assert row["messages"] < found.messages < row["network_messages"]


@pytest.mark.parametrize("name", ["openfoam", "gromacs"])
def test_a_recorded_program_is_replayed_where_it_was_recorded(name: str, tmp_path: Path) -> None:
    """Every call and every compute gap is there again; what MPI takes is simulated."""
    trace = DATA / f"{name}.trace.parquet"
    settings = Settings(seeds=1, gap_share=0, start_skew="0ns")
    summary = replay(trace, ["none"], settings, traces=tmp_path)
    found, told = describe(trace), describe(tmp_path / "none.trace.parquet")
    same = ("ranks", "hosts", "calls", "messages", "bytes", "collectives", "sizes")
    assert [getattr(told, key) for key in same] == [getattr(found, key) for key in same]
    recorded, simulated = (
        split_time(one)["ranks"] for one in (trace, tmp_path / "none.trace.parquet")
    )
    for one, two in zip(recorded, simulated, strict=True):
        assert two["compute"] == pytest.approx(one["compute"], abs=1e-5)
    row = summary["schedules"]["none"]
    assert summary["recorded"]["time_s"] == found.duration_s
    assert 0 < row["mpi_s"] < summary["recorded"]["mpi_s"]
    assert row["network_messages"] > found.messages_between_hosts, "collectives are messages"


@pytest.mark.parametrize("name", ["stencil", "sweep"])
def test_a_trace_carries_its_map(name: str) -> None:
    """Nothing but the trace is needed."""
    row = replay(DATA / f"{name}.trace.parquet", ["none"], Settings(seeds=1))
    found = describe(DATA / f"{name}.trace.parquet")
    assert row["schedules"]["none"]["network_messages"] == found.messages_between_hosts


def test_costs_and_placement_matter(trace: Path, map_file: Path) -> None:
    """Dearer messages and ranks far from each other take longer."""
    plain = Settings(seeds=1, fabric=map_file)

    def time(settings: Settings) -> float:
        return float(replay(trace, ["none"], settings)["schedules"]["none"]["time_s"])

    usual = time(plain)
    assert usual == time(Settings(seeds=1)), "the trace's own map is the same"
    assert time(Settings(seeds=1, costs={"send_overhead": "5us"})) > 1.2 * usual
    assert time(Settings(seeds=1, placement="in-turn")) > usual


def test_messages_of_a_pair_are_joined_without_a_leader(trace: Path) -> None:
    """Three components to each neighbour: two of them travel as one after the first."""
    pair = replay(trace, ["aggregate"], Settings(seeds=1, scope="rank-to-rank"))["schedules"][
        "aggregate"
    ]
    between = pair["network_messages"] + pair["joined"]
    assert between == 3 * pair["joined"]


def test_the_published_window_begins_with_one_message_and_leaders_share(tmp_path: Path) -> None:
    """Its first parcels are smaller than ours, so that there are more; leaders change no parcel."""
    many = tmp_path / "md.trace.parquet"
    _core.trace_generate(
        "molecular-dynamics", "small", 48, 12, 1, "10us", 1, f"[fabric]\n{FABRIC}", many
    )
    one = replay(many, ["both", "published"], Settings(seeds=1))
    four = replay(many, ["published"], Settings(seeds=1, leaders=4))
    ours, published = (one["schedules"][name] for name in ("both", "published"))
    assert ours["parcels"] < published["parcels"] < published["messages"]
    shared = four["schedules"]["published"]
    assert shared["parcels"] == published["parcels"]
    assert shared["time_s"] < published["time_s"]
    assert (one["leaders"], four["leaders"]) == (1, 4)


def test_order_gains_only_on_a_card_that_keeps_it(tmp_path: Path) -> None:
    """All begin with node 0: a card that sends in turn is at its link's bound all the same."""
    effort = Effort(tmp_path, seeds=2, exchanges=1)
    text, trace = tmp_path / "exchange.goal", tmp_path / "exchange.trace.parquet"
    text.write_text(goal("ascending", 131072))
    import_goal(text, trace, fabric=SWITCH)
    found = {}
    for in_order in (False, True):
        case = Case("20ns", in_order=in_order)
        summary = run_trace(effort, case, ("none", "reorder"), trace, case.settings(2))
        found[in_order] = summary["schedules"]
    bound = bound_us(131072, "20ns") / 1e6
    assert bound < found[False]["none"]["time_s"] < 1.1 * bound
    assert abs(found[False]["reorder"]["gain_pct"]) < 3
    assert found[True]["reorder"]["gain_pct"] > 10
    assert found[True]["none"]["time_s"] > found[False]["none"]["time_s"]


def test_schemes_are_replayed_beside_each_other(trace: Path) -> None:
    """Each as if it were alone; what ranks do with their time adds up to it."""
    settings = Settings(seeds=2)
    summary = replay_schemes(trace, ["none", "hpcc"], ["both"], settings, jobs=2)
    assert list(summary["schemes"]) == ["none", "hpcc"]
    for name, found in summary["schemes"].items():
        alone = replay(trace, ["both"], replace(settings, scheme=name))["schedules"]
        for schedule, row in found["schedules"].items():
            row.pop("schedule_s")
            alone[schedule].pop("schedule_s")
        assert found["schedules"] == alone
        first = alone["none"]["runs"][0]
        assert sum(found["parts"].values()) == pytest.approx(first["mean_s"], rel=0.02)
    with pytest.raises(TraceError, match="each scheme once"):
        replay_schemes(trace, ["none", "none"], ["both"], settings)


def test_a_dry_run_says_what_would_run_and_writes_nothing(
    trace: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["replay", str(trace), "--dry-run", "--scheme", "none", "--scheme", "hpcc", "--json"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    planned = json.loads(result.stdout)
    assert planned["runs"] == 2 * 4 * 5
    assert planned["hosts"] == {"recorded": 4, "used": 4, "of_map": 4, "most_ranks": 12}
    parcels = {name: row["parcels"] for name, row in planned["schedules"].items()}
    assert parcels["aggregate"] < parcels["none"] == planned["schedules"]["none"]["messages"]
    assert list(tmp_path.iterdir()) == []
    result = CliRunner().invoke(app, [*words[:3], "--scheme", "hpc"])
    assert result.exit_code == 2
    assert list(tmp_path.iterdir()) == []


def test_ranks_on_one_host_of_a_larger_map_are_told(tmp_path: Path, map_file: Path) -> None:
    """LAMMPS was recorded on one host: as it was, nothing crosses the map's network."""
    melt = DATA / "melt.trace.parquet"
    planned = preview(melt, ["none"], ["both"], Settings(fabric=map_file))
    (note,) = planned["notes"]
    assert note.startswith("All 8 ranks are on one of the map's 4 hosts, as they were recorded")
    assert "--placement blocks:N" in note
    spread = Settings(fabric=map_file, placement="blocks:2")
    assert preview(melt, ["none"], ["both"], spread)["notes"] == []


def test_a_time_that_differs_much_from_the_recorded_one_is_explained(map_file: Path) -> None:
    """LAMMPS' eight ranks shared two processors, and run on another map here."""
    settings = Settings(seeds=1, fabric=map_file, placement="blocks:2")
    melt = DATA / "melt.trace.parquet"
    (note,) = replay_schemes(melt, ["none"], ["none"], settings)["notes"]
    assert re.search(r"the recording took 5\.\d+ s: 9\d % shorter", note), note
    assert "Most of it is sending" in note
    assert f"another one ({map_file})" in note
    assert "on 4 hosts, they were recorded on 1 host" in note
    assert "--processors N" in note


def test_the_page_of_a_replay_shows_its_figures(trace: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["replay", str(trace), "--scheme", "none", "--scheme", "hpcc", "--seeds", "2"]
    result = CliRunner().invoke(app, [*words, "--out", str(out)])
    assert result.exit_code == 0, result.output
    page = (out / "report.html").read_text()
    summary = json.loads((out / "summary.json").read_text())
    assert headline(summary) in html.unescape(page).replace("\u00a0", " ")
    for key in ("times", "gains", "parts"):
        assert f'id="chart-{key}"' in page
    assert page.count('<th scope="row"><span class="swatch"') == 8
    end = html.unescape(page.rpartition("<section")[2]).replace("\u00a0", " ")
    assert 'id="why"' in end
    for name in ("Messages.", "MPI.", "Waits."):
        assert f"<b>{name}</b>" in end
    rows = [row for found in summary["schemes"].values() for row in found["schedules"].values()]
    for row in (max(rows, key=lambda r: r["time_s"]), min(rows, key=lambda r: r["time_s"])):
        assert span_us(1e6 * row["time_s"]) in end
        assert span_us(1e6 * row["mpi_s"]) in end
    with pytest.raises(ResultsError, match=r"summary\.json is missing"):
        render_replay(tmp_path)


def test_the_command_writes_a_summary_and_a_picture(trace: Path, tmp_path: Path) -> None:
    """And refuses a folder of other things."""
    out = tmp_path / "out"
    costs = tmp_path / "costs.toml"
    costs.write_text('eager_limit = "16KiB"\n')
    words = ["replay", str(trace), "--schedule", "reorder", "--seeds", "2", "--costs", str(costs)]
    result = CliRunner().invoke(app, [*words, "--out", str(out)])
    assert result.exit_code == 0, result.output
    assert "reorder" in result.stdout
    summary = json.loads((out / "summary.json").read_text())
    assert summary["schema"] == 1
    assert summary["costs"]["eager_limit"] in ("16KiB", 16384)
    assert "<svg" in (out / "gains.svg").read_text()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "file").touch()
    result = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "other")])
    assert result.exit_code == 2
    assert "no raddle results" in result.stderr


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (Settings(placement="blocks:1"), "needs 48 hosts, the fabric has 4"),
        (Settings(scope="node"), "`node` is not a scope: use rank-to-rank"),
        (Settings(scope="node-to-node"), "cannot join messages of several ranks"),
        (Settings(placement="here"), "`here` is not a placement"),
        (Settings(scheme="fast"), "`fast` is not a congestion control scheme"),
        (Settings(costs={"send_overhed": "1us"}), "did you mean `send_overhead`"),
        (Settings(costs={"send_overhead": 5}), "costs"),
        (Settings(start_skew="1 parsec"), "parsec"),
    ],
)
def test_errors_name_what_is_wrong(trace: Path, settings: Settings, words: str) -> None:
    """Each with the way out."""
    with pytest.raises(TraceError, match=words):
        replay(trace, ["both"], settings)


def test_a_trace_without_a_map_needs_one(tmp_path: Path) -> None:
    """The error names the option."""
    out = tmp_path / "em.trace.parquet"
    _core.trace_generate("electromagnetics", "small", 8, 2, 1, "1us", 1, "", out)
    with pytest.raises(TraceError, match="--fabric"):
        replay(out, ["none"])
    with pytest.raises(TraceError, match="did you mean `both`"):
        replay(out, ["bth"])
