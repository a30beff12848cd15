"""`raddle capacity`, and `raddle route --check-loops`, through the real program."""

import json
from pathlib import Path

import pytest

from real import raddle, raddle_json

FABRIC = 'kind = "cn-tn"\nm = 2\nq = 3\np = 2\nk = 2\nw = 2\ncns = 4\nterminals_per_l0 = 4\n'
ROUTES = f"""\
schema = 1
[fabric]
{FABRIC}
[groups]
pattern = "random"
count = 40
processes_per_terminal = 4
members_per_group = 4
[multicast]
engines = ["c-mr4lms-fixed", "mr4lms"]
colours = 4
"""


def test_corollary_2_for_40_port_switches(tmp_path: Path) -> None:
    words = ("capacity", "--m", "20", "--colours", "256")
    assert "5,120 groups" in raddle(*words, folder=tmp_path).stdout
    full = raddle_json(*words, "--count", "5120", folder=tmp_path)
    assert (full["schema"], full["groups_carried"], full["colours_needed"]) == (1, 5120, 256)
    assert full["fits"]
    over = raddle_json(*words, "--count", "5121", folder=tmp_path, status=1)
    assert (over["fits"], over["colours_needed"]) == (False, 257)
    pairs = raddle_json(*words, "--fault-tolerant", folder=tmp_path)
    assert pairs["groups_carried"] == 2560


def test_a_grid_needs_colours_for_each_layer(tmp_path: Path) -> None:
    words = ("capacity", "--m", "16", "--grid", "64x32x16")
    done = raddle(*words, folder=tmp_path, status=1)
    lines = 32 * 16, 64 * 16, 64 * 32
    needed = sum(-(-count // 16) for count in lines)
    assert f"{sum(lines):,} groups need {needed:,} colours" in done.stdout
    assert "groups on a tree" in done.stdout
    raddle(*words, "--colours", str(needed), folder=tmp_path)


def test_groups_of_a_file_are_counted_with_their_members(tmp_path: Path) -> None:
    (tmp_path / "map.toml").write_text("schema = 1\n" + FABRIC)
    (tmp_path / "groups.csv").write_text("group,member\na,h0\na,h1\nb,h0\nb,h9\nc,h0\nc,3\n")
    words = ("--fabric", "map.toml", "--groups", "groups.csv", "--colours", "2")
    found = raddle_json("capacity", *words, folder=tmp_path, status=1)
    assert (found["groups"], found["fewest_colours"], found["fits"]) == (3, 3, False)
    assert "3 layers" in found["refused"]
    (tmp_path / "routes.toml").write_text(ROUTES)
    found = raddle_json("capacity", "routes.toml", folder=tmp_path, status=1)
    assert found["groups"] == 40
    assert found["fewest_colours"] <= found["colours_needed"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ((), "--m"),
        (("--m", "0"), "--m"),
        (("--m", "4", "--colours", "0"), "colours"),
        (("--m", "4", "--colours", "-1"), "colours"),
        (("--m", "4", "--colours", "65536"), "65535"),
        (("--m", "1", "--fault-tolerant"), "m = 1"),
        (("--m", "4", "--grid", "4y4"), "64x32x16"),
        (("--m", "4", "--grid", "999999999x999999999"), "too many"),
        (("--m", "4", "--grid", "4x4", "--count", "3"), "--count"),
        (("--m", "4", "--fabric", "absent.toml"), "--fabric"),
        (("absent.toml",), "absent.toml"),
    ],
)
def test_bad_words_end_with_status_2(tmp_path: Path, words: tuple[str, ...], expected: str) -> None:
    done = raddle("capacity", *words, folder=tmp_path, status=2)
    assert expected in done.stderr
    assert done.stdout == ""


def test_loops_are_looked_for_when_asked(tmp_path: Path) -> None:
    (tmp_path / "routes.toml").write_text(ROUTES)
    words = ("route", "routes.toml", "--no-report")
    rows = raddle_json(*words, "--out", "plain", folder=tmp_path)["engines"]
    assert all(row["credit_check_s"] is None for row in rows.values())
    done = raddle(*words, "--out", "checked", "--check-loops", folder=tmp_path)
    rows = json.loads((tmp_path / "checked" / "summary.json").read_text())["engines"]
    assert all(row["credit_check_s"] > 0 for row in rows.values())
    assert rows["c-mr4lms-fixed"]["credit_loop"] is None
    assert "c-mr4lms-fixed: no credit loop" in done.stdout
    if rows["mr4lms"]["credit_loop"]:
        assert rows["mr4lms"]["credit_loop"] in done.stdout
