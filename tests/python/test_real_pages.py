"""Reports and sweeps of real runs in Chromium."""

from pathlib import Path
from typing import Any

import pytest

from browsing import needs_browser, show_in_browser
from real import QUICK, raddle


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report over three seeds with pauses, and a sweep."""
    folder = tmp_path_factory.mktemp("pages")
    seeds = 'schemes = ["none", "dcqcn", "pint"]\nseeds = [1, 2, 3]\nbuffer = "2MiB"'
    rules = "\n[score]\nweights = { long = 0.6, short = 0.2, allreduce = 0.2 }\n"
    (folder / "seeds.toml").write_text(QUICK.replace('schemes = ["none", "hpcc"]', seeds) + rules)
    (folder / "quick.toml").write_text(QUICK)
    raddle("run", "seeds.toml", "--out", "seeds", folder=folder)
    raddle("sweep", "quick.toml", "--set", "simulation.buffer=2MiB,4MiB,32MiB",
           "--set", "traffic.load_factor=0.3,0.9", "--out", "sweep", folder=folder)  # fmt: skip
    return folder


@needs_browser
@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_real_report_works_in_chromium(browser: Any, pages: Path, width: int, theme: str) -> None:
    show_in_browser(browser, pages / "seeds" / "report.html", width, theme)


@needs_browser
@pytest.mark.browser
@pytest.mark.parametrize("width", [1280, 390])
def test_a_sweep_works_in_chromium(browser: Any, pages: Path, width: int) -> None:
    show_in_browser(browser, pages / "sweep" / "sweep.html", width, "light")


def test_a_real_report_shows_pauses_intervals_and_own_weights(pages: Path) -> None:
    page = (pages / "seeds" / "report.html").read_text()
    assert "Who silenced whom" in page
    assert "(paired, 95 %)" in page.replace("\u00a0", " ")
    assert "<small>yours</small>" in page
    assert "× alone" in page
