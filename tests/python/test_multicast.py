"""C-MR4LMS beside the paper: what shared links force, and times of rounds."""

import importlib
import json
import tomllib
from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow.compute as pc
import pytest
import tomli_w

import raddle
from raddle.core import route as core
from raddle.core.rounds import round_times
from raddle.results import load
from raddle.services.route import points_of


@pytest.fixture(scope="module")
def roots() -> ModuleType:
    return importlib.import_module("experiments.multicast.roots")


@pytest.mark.parametrize("dims", [(64, 32, 16), (32, 32, 32), (25, 50, 26)])
def test_the_engine_has_the_tfi_that_shared_links_force(
    roots: ModuleType, dims: tuple[int, int, int], tmp_path: Path
) -> None:
    """Fixed roots: components of groups that share links. Dynamic ones: what no choice avoids."""
    engines = 'multicast.engines=["c-mr4lms-fixed","c-mr4lms-dynamic"]'
    file = roots.HERE / f"grid-{'x'.join(map(str, dims))}.toml"
    ((_, path, text),) = points_of(file, [engines])
    core.run(text, path, tmp_path, core.new_progress())
    found = json.loads((tmp_path / "summary.json").read_text())["engines"]
    groups = roots.lines(roots.PAPER, dims)
    assert found["c-mr4lms-fixed"]["max_tfi"] == roots.fixed(roots.PAPER, groups)
    assert found["c-mr4lms-dynamic"]["max_tfi"] == roots.forced(roots.PAPER, groups)


def test_no_choice_of_roots_beats_the_count_on_a_small_fabric(roots: ModuleType) -> None:
    for dims in roots.SMALL_GRIDS:
        groups = roots.lines(roots.SMALL, dims)
        least, tried = roots.exhaust(roots.SMALL, groups, any_tn=False)
        assert least == roots.forced(roots.SMALL, groups) == 2
        assert tried > len(groups)


def experiment(roots: ModuleType, **traffic: object) -> str:
    made = tomllib.loads((roots.HERE / "collectives.toml").read_text())
    made["fabric"] |= {"m": 4, "q": 2, "p": 2, "k": 2, "w": 4, "terminals_per_l0": 2, "cns": 4}
    made["traffic"] |= {"dims": [6, 4], "processes_per_terminal": 2, "rounds": 8} | traffic
    return tomli_w.dumps(made)


def test_times_of_rounds_are_those_of_the_table(roots: ModuleType, tmp_path: Path) -> None:
    """Process 0 is the root of the first row: its messages in the table are its rounds."""
    text = experiment(roots)
    found = round_times(text)
    assert found.finished
    raddle.run(tomllib.loads(text), tmp_path)
    own = load(tmp_path).flows.filter(pc.field("dst") == 1 << 31)
    assert np.sort(own["start_ps"].to_numpy()).tolist() == list(found.starts_ps)


def test_software_and_noise_make_rounds_longer(roots: ModuleType) -> None:
    """A round has two collectives: it is longer by the software of both, noise by its share."""

    def last(**traffic: object) -> int:
        settings = {"operation": "barrier", "combining": "on-tree"} | traffic
        return round_times(experiment(roots, **settings)).starts_ps[-1]

    assert last(overhead="5us") - last() == 7 * 2 * 5_000_000
    assert last(noise="1us") > last()
    assert last(noise="1us") == last(noise="1us")
    assert last(foreign_packet_time="1us", engine="broadcast") > last(engine="broadcast")
    assert last(foreign_packet_time="1us") == last()
