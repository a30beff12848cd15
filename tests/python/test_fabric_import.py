"""Maps from InfiniBand tools, through the command line and the compiled core."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from raddle.cli.app import app

SPEC = """schema = 1
kind = "cn-tn"
m = 2
q = 2
p = 2
k = 2
w = 2
"""


def invoke(*words: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def net(tmp_path: Path) -> Path:
    """A net file of 4 CNs: 16 hosts, 16 L0 and L1, 4 TNs of 4 switches."""
    spec, net = tmp_path / "spec.toml", tmp_path / "map.net"
    spec.write_text(SPEC)
    result = invoke("fabric", "export", spec, "--format", "ibsim", "--out", net)
    assert result.exit_code == 0, result.stderr
    return net


def test_a_map_goes_out_to_ibsim_and_comes_back(net: Path, tmp_path: Path) -> None:
    out = tmp_path / "map.toml"
    result = invoke("fabric", "import", net, "--out", out)
    assert result.exit_code == 0, result.stderr
    assert "16 hosts, 32 switches, 64 links" in result.stdout
    shape = "fat tree of four levels: m = 2, q = 2, p = 2, k = 2, w = 2; 4 CNs, 2 hosts per L0"
    assert shape in result.stdout
    assert "complete" in result.stdout
    again = invoke("fabric", "show", out, "--json")
    assert again.exit_code == 0, again.stderr
    document = json.loads(again.stdout)
    assert [row["nodes"] for row in document["levels"]] == [16, 8, 8, 8, 8]
    assert document["link_kinds"] == [{"rate": "100Gbps", "delay": "1us", "links": 64}]
    # The file itself can be shown, too, and the same net comes out of the imported map.
    shown = json.loads(invoke("fabric", "show", net, "--json").stdout)
    assert shown["levels"] == document["levels"]
    assert invoke("fabric", "export", out).stdout == net.read_text()


def test_what_is_missing_and_odd_is_said(net: Path) -> None:
    lines = net.read_text().splitlines()
    # Host 15 is gone, L0 s16 lost its link to L1 s24, and host 0's link came up at EDR's quarter.
    records = "\n".join(lines).split("\n\n")
    kept = [record for record in records if '"h15"\t' not in record]
    text = "\n\n".join(
        "\n".join(
            line.replace("4xEDR", "1xEDR") if '"h0"' in line or record.count('Ca\t1 "h0"') else line
            for line in record.splitlines()
            if '"h15"' not in line
            and not ('Switch\t4 "s16"' in record and '\t"s24"' in line)
            and not ('Switch\t4 "s24"' in record and '\t"s16"' in line)
        )
        for record in kept
    )
    net.write_text(text + "\n")
    result = invoke("fabric", "import", net, "--json")
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["schema"] == 1
    tree = document["tree"]
    assert [tree[name] for name in ("m", "q", "p", "k", "w", "cns")] == [2, 2, 2, 2, 2, 4]
    # Host 15 was the last; the switches' names stay.
    assert tree["missing_links"] == ["s16 - s24"]
    assert tree["missing"]["links"] == 1
    assert tree["missing"]["short_of_hosts"] == 1
    assert document["notes"]["slow"]["first"] == ["s16 - h0: 25Gbps instead of 100Gbps"]
    said = invoke("fabric", "import", net).stdout
    assert "missing: 1 links between switches:\n  s16 - s24" in said
    assert "1 L0 with fewer hosts than others" in said


def test_what_is_no_fat_tree_is_imported_and_said(tmp_path: Path) -> None:
    net = tmp_path / "ring.net"
    net.write_text(
        'Switch 4 "a"\n[1] "h"[1]\n[2] "b"[1]\n\nSwitch 4 "b"\n[1] "a"[2]\n[2] "g"[1]\n\n'
        'Hca 1 "h"\n[1] "a"[1]\n\nHca 1 "g"\n[1] "b"[2]\n'
    )
    result = invoke("fabric", "import", net, "--rate", "200Gbps")
    assert result.exit_code == 0, result.stderr
    assert "no CN/TN fat tree: b: expected links between neighbouring levels only" in result.stdout
    assert "200Gbps" in result.stdout
    assert "3 links without a rate" in result.stdout


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        (
            'Switch 4 "a"\n[9] "h"[1]\n',
            (),
            "map.net:2: port 9 is above what the node's line gives: 4 ports",
        ),
        ("nothing\n", (), "map.net:1: there is no `Switch`"),
        ('Switch 4 "a"\n', ("--rate", "fast"), "Invalid value for '--rate': `fast`"),
        ('Switch 4 "a"\n', ("--delay", "1"), "Invalid value for '--delay': `1`"),
        ('Switch 4 "a"\n', ("--format", "toml"), "toml"),
    ],
)
def test_what_is_wrong_ends_with_a_message(
    tmp_path: Path, text: str, words: tuple[str, ...], expected: str
) -> None:
    net = tmp_path / "map.net"
    net.write_text(text)
    result = invoke("fabric", "import", net, "--out", tmp_path / "map.toml", *words)
    assert result.exit_code == 2
    assert expected in result.stderr
    assert not (tmp_path / "map.toml").exists()


def test_a_file_that_is_not_there_is_bad_usage(tmp_path: Path) -> None:
    for command in ("import", "export"):
        result = invoke("fabric", command, tmp_path / "no")
        assert result.exit_code == 2
        assert "no such file" in result.stderr
