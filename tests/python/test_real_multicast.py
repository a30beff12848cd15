"""Messages to groups through the real program: what a cut link costs, and who says so."""

import json
from pathlib import Path
from typing import Any

import pytest

import raddle as package
from real import raddle

GRID = """\
schema = 1
name = "grid"
[fabric]
kind = "cn-tn"
m = 2
q = 2
p = 1
k = 2
w = 2
[traffic]
generator = "multicast"
dims = [4, 4]
rounds = 3
[simulation]
schemes = ["none", "hpcc"]
retransmission_timeout = "100us"
max_timeouts = 2
"""
CUT = """
[[simulation.faults]]
link = [{host}, {switch}]
down = "0ms"
"""
COUNTS = {
    "members_reached", "members_missed", "second_copies", "foreign_copies", "late_copies",
    "dead_ends",
}  # fmt: skip


def message(row: dict[str, Any]) -> tuple[int, ...]:
    """What names the message of a row in flows and in members."""
    return (row["seed"], row["src"], row["dst"], row["sport"])


def test_members_missed_are_counted_and_named(tmp_path: Path) -> None:
    (tmp_path / "grid.toml").write_text(GRID)
    whole = raddle("run", "grid.toml", "--no-report", folder=tmp_path)
    assert "missed" not in whole.stdout
    results = package.load(tmp_path / "out" / "grid")
    # Four rows and four columns, three rounds, three receivers each, two schemes.
    members = results.members
    assert members is not None
    assert members.num_rows == 2 * 8 * 3 * 3
    assert members.column_names == [
        "scheme", "seed", "group", "src", "dst", "sport", "message", "member", "delivered_ps",
    ]  # fmt: skip
    assert members["delivered_ps"].null_count == 0
    key = ["scheme", "seed", "src", "dst", "sport"]
    joined = members.select([*key, "delivered_ps"]).join(results.flows, key)
    assert joined["start_ps"].null_count == 0
    for row in results.summary["schemes"].values():
        counts = row["multicast"]
        assert set(counts) == COUNTS | {
            "missed_hosts", "messages", "messages_everywhere", "last_member_us",
        }  # fmt: skip
        assert (counts["messages"], counts["messages_everywhere"]) == (24, 24)
        assert counts["last_member_us"]["n"] == 24
        assert (counts["members_reached"], counts["members_missed"]) == (72, 0)
        assert counts["missed_hosts"] == []

    host = 5
    ends = [
        (row["node_a"], row["node_b"])
        for row in results.links.to_pylist()
        if host in (row["node_a"], row["node_b"])
    ]
    assert len(ends) == 1
    switch = sum(ends[0]) - host
    (tmp_path / "cut.toml").write_text(GRID + CUT.format(host=host, switch=switch))
    cut = raddle("run", "cut.toml", "--no-report", folder=tmp_path)
    results = package.load(tmp_path / "out" / "cut")
    assert results.members is not None
    rows = results.members.to_pylist()
    for row in rows:
        assert (row["delivered_ps"] is None) == (host in (row["member"], row["src"]))
    for scheme, row in results.summary["schemes"].items():
        of_scheme = [r for r in rows if r["scheme"] == scheme]
        lost = [r for r in of_scheme if r["delivered_ps"] is None]
        counts = row["multicast"]
        sent, broken = {message(r) for r in of_scheme}, {message(r) for r in lost}
        assert counts["messages"] == len(sent) > len(broken) > 0
        assert counts["messages_everywhere"] == len(sent) - len(broken)
        flows = [r for r in results.flows.to_pylist() if r["scheme"] == scheme]
        starts = {message(r): r["start_ps"] for r in flows}
        arrived = {
            m: max(r["delivered_ps"] for r in of_scheme if message(r) == m) for m in sent - broken
        }
        took = [end - starts[m] for m, end in arrived.items()]
        assert counts["last_member_us"]["n"] == len(took)
        assert counts["last_member_us"]["mean"] == pytest.approx(sum(took) / len(took) / 1e6)
        assert counts["members_missed"] == len(lost) > 0
        assert counts["members_reached"] == len(of_scheme) - len(lost) > 0
        assert counts["missed_hosts"] == sorted({r["member"] for r in lost})
        assert f"{scheme}: {len(lost)} of {len(of_scheme)} deliveries" in cut.stdout
        named = ", ".join(map(str, counts["missed_hosts"][:5]))
        assert f"missed, at host{'s' * (len(counts['missed_hosts']) > 1)} {named}" in cut.stdout


def test_the_page_has_a_table_of_messages_to_groups(tmp_path: Path) -> None:
    (tmp_path / "grid.toml").write_text(GRID + CUT.format(host=5, switch=18))
    raddle("run", "grid.toml", folder=tmp_path)
    results = package.load(tmp_path / "out" / "grid")
    page = (tmp_path / "out" / "grid" / "report.html").read_text()
    table = page.partition('id="groups"')[2].partition("</table>")[0]
    for row in results.summary["schemes"].values():
        counts = row["multicast"]
        total = counts["members_reached"] + counts["members_missed"]
        for cell in (
            f"{counts['messages_everywhere']:,} / {counts['messages']:,}",
            f"{counts['members_reached']:,} / {total:,}",
            f"<b>{counts['members_missed']:,}</b>",
        ):
            assert f"<td>{cell}</td>" in table


def test_experiments_without_groups_say_nothing_of_them(tmp_path: Path) -> None:
    text = GRID.replace('generator = "multicast"', 'generator = "permutation"')
    text = text.replace("dims = [4, 4]\nrounds = 3", 'size = "8KiB"')
    (tmp_path / "plain.toml").write_text(text)
    raddle("run", "plain.toml", folder=tmp_path)
    out = tmp_path / "out" / "plain"
    assert "Messages to groups" not in (out / "report.html").read_text()
    assert not (out / "members.parquet").exists()
    assert package.load(out).members is None
    assert "multicast" not in json.loads((out / "summary.json").read_text())["schemes"]["hpcc"]
