"""`raddle advise`: planted programs whose best plan is known, and mistakes told."""

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from raddle.cli.app import app
from raddle.errors import ExperimentError, RaddleError, TraceError
from raddle.services.advice import read_advice
from raddle.services.advise import advice_toml, advise, read_budget
from raddle.services.combinations import Combination, Settings
from raddle.services.trace import generate_training, import_goal
from raddle.statistics.plans import in_order, judge

MAP = """schema = 1
kind = "leaf-spine"
leaves = 4
hosts_per_leaf = 4
spines = 2
"""
SUMS = """layers = 16
hidden = 4
sequence = 1
tensor_parallel = 8
forward = "1us"
"""
"""Allreduces of 4 values of 2 B."""
RAILS = ("100Gbps", "100Gbps")


@pytest.fixture(scope="module")
def fabric(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixteen hosts below four leaves."""
    file = tmp_path_factory.mktemp("map") / "map.toml"
    file.write_text(MAP)
    return file


@pytest.fixture(scope="module")
def sums(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Many Allreduces of 8 B on eight hosts."""
    settings = tmp_path_factory.mktemp("sums") / "sums.toml"
    settings.write_text(SUMS)
    out = settings.with_suffix(".trace.parquet")
    generate_training(settings, out)
    return out


def schedule(folder: Path, name: str, ranks: int, body: Callable[[int], list[str]]) -> Path:
    """A program as GOAL has it, as a trace."""
    lines = [f"num_ranks {ranks}"]
    for rank in range(ranks):
        lines += [f"rank {rank} {{", *body(rank), "}"]
    text, out = folder / f"{name}.goal", folder / f"{name}.trace.parquet"
    text.write_text("\n".join(lines) + "\n")
    import_goal(text, out)
    return out


def computing(folder: Path, ranks: int = 4) -> Path:
    """Every rank computes for a millisecond, and no message is sent."""
    return schedule(folder, "computing", ranks, lambda _: ["c: calc 1000000"])


def long_messages(folder: Path) -> Path:
    """Each of four ranks sends 8 MiB to the next one."""
    size = 8 << 20

    def body(rank: int) -> list[str]:
        return [
            f"r: recv {size}b from {(rank - 1) % 4} tag 0",
            f"s: send {size}b to {(rank + 1) % 4} tag 0",
        ]

    return schedule(folder, "long", 4, body)


def run(traces: list[Path], fabric: Path, out: Path, **more: Any) -> dict[str, Any]:
    """The summary, on three seeds if nothing else is said."""
    return advise(traces, Settings(fabric, **{"seeds": 3, **more}), out)


def test_small_allreduces_belong_into_switches(sums: Path, fabric: Path, tmp_path: Path) -> None:
    """Three round trips of doubling among eight hosts, or one way up and down."""
    out = tmp_path / "out"
    summary = run([sums], fabric, out)
    assert summary["advice"] == {"collectives": "offload"}
    best = summary["plans"][0]
    assert list(best) == [
        "settings", "predicted_s", "ci95_s", "gain_frac", "gain_ci95", "is_noise", "cost", "why",
    ]  # fmt: skip
    low, high = best["gain_ci95"]
    assert 0.3 < low <= best["gain_frac"] <= high
    assert not best["is_noise"]
    # Every switch has at most 64 slots of each group.
    assert best["cost"]["reduction_slots"] % (64 * 6) == 0
    assert best["cost"]["reduction_slots"] > 0
    assert best["cost"]["extra_links"] == best["cost"]["multicast_entries"] == 0
    gain = 1 - best["predicted_s"] / summary["plain"]["predicted_s"]
    assert best["gain_frac"] == pytest.approx(gain, rel=0.01)
    assert summary["runs"]["done"] + summary["runs"]["saved"] == summary["runs"]["full_product"]
    advice = tomllib.loads((out / "advice.toml").read_text())
    assert advice == {
        "schema": 1,
        "program": {
            "name": "sums",
            "ranks": 8,
            "hosts": ",".join(f"h{host}:1" for host in range(8)),
        },
        "settings": {"collectives": "offload"},
        "predicted": {
            "time_s": best["predicted_s"],
            "plain_s": summary["plain"]["predicted_s"],
        },
    }
    assert json.loads((out / "summary.json").read_text()) == summary


def test_the_same_command_gives_the_same_bytes(sums: Path, fabric: Path, tmp_path: Path) -> None:
    """In another folder, and in its own, whose runs are taken up."""
    files = ("summary.json", "advice.toml")
    found = []
    for name in ("a", "b", "a"):
        run([sums], fabric, tmp_path / name, systems=["collectives"], seeds=2)
        found.append([(tmp_path / name / file).read_bytes() for file in files])
    assert found[0] == found[1] == found[2]


def test_what_only_computes_is_left_plain(fabric: Path, tmp_path: Path) -> None:
    """No network makes a processor faster: every gain is noise."""
    summary = run([computing(tmp_path)], fabric, tmp_path / "out", rails=RAILS)
    assert summary["advice"] == {}
    assert all(plan["is_noise"] for plan in summary["plans"])
    assert summary["headline"].startswith("Leave it plain")
    assert tomllib.loads((tmp_path / "out" / "advice.toml").read_text())["settings"] == {}


def test_long_messages_want_two_rails(fabric: Path, tmp_path: Path) -> None:
    """Two links carry at most twice as much: they save up to one half."""
    summary = run([long_messages(tmp_path)], fabric, tmp_path / "out", rails=RAILS)
    assert summary["advice"]["rails"] == 2
    best = summary["plans"][0]
    assert 0.3 < best["gain_frac"] <= 0.5
    assert best["cost"]["extra_links"] == 4


def test_jobs_that_share_the_fabric_are_told_apart(
    sums: Path, fabric: Path, tmp_path: Path
) -> None:
    """One gains by the plan, to the other it makes no difference."""
    out = tmp_path / "out"
    both = [sums, computing(tmp_path)]
    summary = run(both, fabric, out, systems=["collectives", "schemes"], seeds=2)
    assert summary["advice"] == {"collectives": "offload"}
    first, second = summary["programs"]
    assert (first["job"], second["job"]) == ("sums", "computing")
    assert not first["is_noise"]
    assert second["is_noise"]
    # Alone and plain both have a slowdown of 1: the plan's gain is half that of the first.
    assert summary["plans"][0]["gain_frac"] == pytest.approx(first["gain_frac"] / 2, rel=0.02)
    assert {file.name for file in out.glob("*.toml")} == {
        "advice-sums.toml", "advice-computing.toml",
    }  # fmt: skip
    hosts = [
        {name for name, _ in read_advice(out / f"advice-{job}.toml").hosts}
        for job in ("sums", "computing")
    ]
    assert len(hosts[0]) == first["ranks"]
    assert not hosts[0] & hosts[1], "each has hosts of its own"


def test_a_plan_that_sets_less_comes_first_where_it_is_no_worse() -> None:
    """A gain of half a percent is not worth another setting."""
    plans = {
        "both": judge([1.0, 1.0], [0.500, 0.500], 2),
        "one": judge([1.0, 1.0], [0.495, 0.495], 1),
        "other": judge([1.0, 1.0], [0.400, 0.400], 1),
    }
    assert in_order(plans) == ["one", "both", "other"]


def test_telemetry_does_not_travel_over_rails() -> None:
    """And Swift is what rails have anyway."""
    assert not Combination(scheme="hpcc", rails=2).possible
    assert not Combination(scheme="swift", rails=2).possible
    assert Combination(scheme="dctcp", rails=2).possible
    assert Combination(scheme="hpcc").possible


def test_a_budget_of_runs_is_kept(sums: Path, fabric: Path, tmp_path: Path) -> None:
    """Fewer finalists; a budget that is too small says what is needed."""
    asked: dict[str, Any] = {"systems": ["collectives", "scheduling"], "seeds": 2}
    summary = run([sums], fabric, tmp_path / "out", most_runs=9, **asked)
    assert summary["runs"]["done"] <= 9
    assert summary["advice"] == {"collectives": "offload"}
    with pytest.raises(ExperimentError, match=r"(?s)--budget: 8 runs.*take 9"):
        run([sums], fabric, tmp_path / "small", most_runs=8, **asked)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"systems": ["scheme"]}, "--systems: `scheme` is unknown: did you mean `schemes`"),
        ({"systems": ["rails"]}, "--systems rails: hosts have one link"),
        ({"placements": ["block"]}, "--placement: `block` is unknown: did you mean `blocks`"),
        ({"rails": ["100Gbps"]}, "--rails: one rail"),
        ({"rails": ["fast", "100Gbps"]}, "--rails: "),
        ({"systems": ["placement"], "placements": ["spread"]}, "nothing to search"),
    ],
)
def test_wrong_settings_are_told(
    sums: Path, fabric: Path, tmp_path: Path, changed: dict[str, Any], said: str
) -> None:
    """With what is possible."""
    with pytest.raises(RaddleError, match=said):
        run([sums], fabric, tmp_path / "out", **changed)


def test_more_ranks_than_hosts_are_told(fabric: Path, tmp_path: Path) -> None:
    """With the number of both, and nothing is left behind."""
    out = tmp_path / "out"
    with pytest.raises(TraceError, match=r"(?s)17 ranks.*17 hosts.*has 16.*--ranks-per-host"):
        run([computing(tmp_path, 17)], fabric, out)
    assert not out.exists()


def test_the_command_says_what_is_missing(fabric: Path, tmp_path: Path) -> None:
    """No such trace; a budget that is none."""
    words = ["advise", str(tmp_path / "no.trace.parquet"), "--fabric", str(fabric)]
    made = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "out")])
    assert made.exit_code == 2
    assert "no.trace.parquet" in made.output
    assert not (tmp_path / "out").exists()
    with pytest.raises(ExperimentError, match=r"(?s)--budget.*a number of runs"):
        read_budget("soon")
    assert read_budget("2s") == (None, 2.0)


def test_the_command_shows_plans_and_what_to_set(sums: Path, fabric: Path, tmp_path: Path) -> None:
    """A table, a reason for each line, and the advice last."""
    words = ["advise", str(sums), "--fabric", str(fabric), "--systems", "collectives"]
    out = ["--out", str(tmp_path / "out"), "--seeds", "2"]
    made = CliRunner().invoke(app, [*words, *out])
    assert made.exit_code == 0, made.output
    assert "offload alone" in made.output
    assert "Set offload" in made.output
    again = CliRunner().invoke(app, [*words, *out, "--json"])
    assert json.loads(again.stdout)["advice"] == {"collectives": "offload"}


def test_the_file_is_toml_that_says_it_all() -> None:
    """As `advice.toml` is documented."""
    settings = {"scheme": "dctcp", "rails": 2, "placement": "spread"}
    program = {"program": "lammps", "ranks": 64, "predicted_s": 1.23, "plain_s": 1.9}
    text = advice_toml(program, settings, [("h1", 32), ("h3", 32)])
    assert tomllib.loads(text) == {
        "schema": 1,
        "program": {"name": "lammps", "ranks": 64, "hosts": "h1:32,h3:32"},
        "settings": settings,
        "predicted": {"time_s": 1.23, "plain_s": 1.9},
    }
    # Ranks of h1 lie apart: no list of hosts says so.
    apart = advice_toml(program, settings, [("h1", 1), ("h3", 1), ("h1", 1)])
    assert "hosts" not in tomllib.loads(apart)["program"]
