"""`[switch]` and what `[record]` asks for, with the compiled core."""

from pathlib import Path

import pytest

import raddle as package
from raddle.errors import ResultsError
from raddle.results import Results
from real import QUICK, parquet_of, raddle, raddle_json

WATCHED = QUICK + '[record]\npaths = true\nbusiest = 3\nsample_interval = "2us"\n'

INCAST = """\
schema = 1
[fabric]
kind = "leaf-spine"
leaves = 2
spines = 1
hosts_per_leaf = 6
[traffic]
generator = "incast"
sources = 10
size = "512KiB"
[simulation]
schemes = ["none"]
buffer = "2MiB"
"""


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Results of the quick experiment with ways and series."""
    folder = tmp_path_factory.mktemp("watched")
    (folder / "a.toml").write_text(WATCHED)
    raddle("run", "a.toml", "--out", "one", "--jobs", "1", "--no-report", folder=folder)
    return package.load(folder / "one")


def test_every_flow_has_a_way_from_its_source_to_its_destination(watched: Results) -> None:
    flows, paths = watched.flows.to_pylist(), watched.paths
    assert paths is not None
    key = ("scheme", "seed", "src", "dst", "sport")
    ways: dict[tuple[object, ...], list[dict[str, object]]] = {}
    for row in paths.to_pylist():
        ways.setdefault(tuple(row[name] for name in key), []).append(row)
    assert len(ways) == len(flows)
    names = dict(zip(*(watched.nodes[c].to_pylist() for c in ("node", "name")), strict=True))
    for flow in flows:
        way = ways[tuple(flow[name] for name in key)]
        assert [row["hop"] for row in way] == list(range(len(way)))
        assert (way[0]["node"], way[-1]["peer"]) == (flow["src"], flow["dst"])
        assert all(row["since_ps"] == flow["start_ps"] for row in way)
        assert all(row["name"] == names[row["node"]] for row in way)
        leaves = flow["src"] // 8 != flow["dst"] // 8
        assert len(way) == (4 if leaves else 2)


def test_series_of_the_busiest_ports_are_regular(watched: Results) -> None:
    series = watched.port_queues
    assert series is not None
    for scheme in ("none", "hpcc"):
        rows = [row for row in series.to_pylist() if row["scheme"] == scheme]
        ports = {(row["node"], row["port"]) for row in rows}
        times = [row["time_ps"] for row in watched.queues.to_pylist() if row["scheme"] == scheme]
        assert len(ports) == 3
        assert [row["time_ps"] for row in rows] == [time for time in times for _ in ports]
        counted = {
            (row["node"], row["port"]): row["tx_bytes"]
            for row in watched.ports.to_pylist()
            if row["scheme"] == scheme
        }
        for port in ports:
            sent = sum(row["tx_bytes"] for row in rows if (row["node"], row["port"]) == port)
            assert sent == counted[port]


def test_ways_and_series_do_not_depend_on_threads(watched: Results, tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(WATCHED)
    raddle("run", "a.toml", "--out", "two", "--jobs", "2", "--no-report", folder=tmp_path)
    tables = parquet_of(tmp_path / "two")
    assert tables == parquet_of(watched.path)
    assert {"paths.parquet", "port_queues.parquet", "isolated/paths.parquet"} <= set(tables)


def test_what_was_not_asked_for_is_none(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(INCAST)
    results = package.run(tmp_path / "a.toml", tmp_path / "out")
    assert results.paths is None
    assert results.port_queues is None
    (tmp_path / "a.toml").write_text(INCAST + "[record]\npaths = true\n")
    assert package.run(tmp_path / "a.toml", tmp_path / "out", replace=True).paths is not None
    (tmp_path / "a.toml").write_text(INCAST)
    assert package.run(tmp_path / "a.toml", tmp_path / "out", replace=True).paths is None


def test_a_sweep_over_alpha_pauses_less_and_less(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(INCAST)
    words = ("sweep", "a.toml", "--set", "switch.ingress.alpha=0.015625,0.125,1", "--out", "out")
    raddle(*words, folder=tmp_path)
    paused = []
    for alpha in ("0.015625", "0.125", "1"):
        point = package.load(tmp_path / "out" / f"switch.ingress.alpha={alpha}")
        paused.append(sum(row["end_ps"] - row["start_ps"] for row in point.pauses.to_pylist()))
    assert paused[0] > paused[1] > paused[2] > 0


def test_headroom_that_loses_packets_is_warned_about_and_counted(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(INCAST + '[switch.ingress]\nheadroom = "2KiB"\n')
    done = raddle("run", "a.toml", "--out", "out", "--no-report", folder=tmp_path)
    assert "headroom of 2KiB does not hold what can arrive after a PAUSE" in done.stderr
    ports = package.load(tmp_path / "out").ports.to_pylist()
    assert sum(row["drops"] for row in ports) > 0
    # What the derived headroom is stands in the plan.
    (tmp_path / "b.toml").write_text(INCAST)
    plan = raddle_json("run", "b.toml", "--dry-run", folder=tmp_path)
    settings = {row["key"]: row["value"] for row in plan["settings"]}
    assert settings["ingress.headroom"] == "28.208kB"
    assert settings["ingress.alpha"] == "0.125"


def test_a_table_that_was_recorded_and_is_gone_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(INCAST + "[record]\npaths = true\n")
    package.run(tmp_path / "a.toml", tmp_path / "out")
    (tmp_path / "out" / "paths.parquet").unlink()
    with pytest.raises(ResultsError, match=r"has no paths\.parquet"):
        _ = package.load(tmp_path / "out").paths
