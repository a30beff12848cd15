"""Rails in the simulator beside the paper: what was fitted, and what a lab's file must hold."""

import copy
import importlib
import json
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def findings() -> ModuleType:
    return importlib.import_module("experiments.rails.findings")


def test_published_numbers_are_the_papers(findings: ModuleType) -> None:
    published = findings.read(findings.MYRINET)["published"]
    assert published == {
        "one_link_MBps": 202.0,
        "two_links_MBps": 268.0,
        "gain_pct": 34.0,
        "same_direction_pct": 50.0,
        "opposite_directions_pct": 80.0,
    }


def test_the_file_has_the_fitted_constants(findings: ModuleType) -> None:
    """And they are what they say: with them, two equations on paper give the two cells."""
    myrinet = findings.read(findings.MYRINET)
    machine = myrinet["machine"]
    fitted = findings.fit(myrinet)
    assert machine["nic_gap"] == f"{fitted['nic_gap']:.0f}ns"
    assert machine["bus"]["cut"] == f"{fitted['cut']:.0f}ns"
    # 4096 B and an 80 B head at 250 B/us; the bus at 315 and 372 B/us.
    assert 4096 / (fitted["nic_gap"] / 1e3 + 4176 / 250) == pytest.approx(202)
    assert 4096 / (fitted["cut"] / 1e3 + 4096 / 315 + 4096 / 372) == pytest.approx(0.8 * 202)


def test_no_other_published_number_moves_a_constant(findings: ModuleType) -> None:
    myrinet = findings.read(findings.MYRINET)
    spoiled = copy.deepcopy(myrinet)
    for key in ("two_links_MBps", "gain_pct", "same_direction_pct"):
        spoiled["published"][key] *= 3
    assert findings.fit(spoiled) == findings.fit(myrinet)
    for key in ("one_link_MBps", "opposite_directions_pct"):
        moved = copy.deepcopy(myrinet)
        moved["published"][key] *= 0.9
        assert findings.fit(moved) != findings.fit(myrinet)


def test_a_miss_is_called_a_miss(findings: ModuleType) -> None:
    assert findings.verdict(findings.error_pct(109.9, 100.0)) == "holds"
    assert findings.verdict(findings.error_pct(89.9, 100.0)) == "MISSED"
    assert findings.verdict(findings.error_pct(110.1, 100.0)) == "MISSED"


def test_measured_goodput_is_read_by_rates(findings: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "measured.json"
    rows = [
        {"rails_bps": [400_000_000], "goodput_bps": 365e6},
        {"rails_bps": [400_000_000, 100_000_000], "goodput_bps": 450e6},
    ]
    file.write_text(json.dumps({"goodput": rows}))
    known = findings.read_measured(file)
    assert known == {(400_000_000,): 365e6, (400_000_000, 100_000_000): 450e6}
    for broken in ("", "{}", '{"goodput": [{}]}', '{"goodput": 3}'):
        file.write_text(broken)
        with pytest.raises(SystemExit, match="rails_bps"):
            findings.read_measured(file)


def test_rates_and_sizes_of_the_files_are_read(findings: ModuleType) -> None:
    assert findings.rate_bps("400Mbps") == 400e6
    assert findings.rate_bps("2.52Gbps") == 2.52e9
    with pytest.raises(ValueError, match="is no rate"):
        findings.rate_bps("2 furlongs")
    for path in (findings.LAB, findings.MODERN, findings.MYRINET):
        assert "fabric" in findings.read(path)["machine"]
    assert findings.mebibytes("4MiB") == 4 << 20
