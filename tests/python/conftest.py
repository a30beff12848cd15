"""Fixtures: a stand-in for the compiled core, and results folders made with it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from browsing import CHROMIUM, DRIVER
from synthetic import SyntheticCore, installed, write_results

EXPERIMENT = """\
schema = 1
name = "made-up"
[traffic]
generator = "hpc-mix"
[simulation]
schemes = ["none", "hpcc"]
seeds = [1, 2]
"""


@pytest.fixture
def core() -> Iterator[SyntheticCore]:
    """`raddle._core` is the stand-in during the test."""
    with installed(SyntheticCore()) as stand_in:
        yield stand_in


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    """An experiment of two schemes, two seeds, loaded and isolated: eight runs."""
    file = tmp_path / "made-up.toml"
    file.write_text(EXPERIMENT)
    return file


@pytest.fixture(scope="session")
def one_seed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of six schemes, one seed."""
    folder = tmp_path_factory.mktemp("one-seed")
    write_results(folder)
    return folder


@pytest.fixture(scope="session")
def three_seeds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of three schemes, three seeds."""
    folder = tmp_path_factory.mktemp("three-seeds")
    write_results(folder, schemes=("none", "hpcc", "pint"), seeds=(1, 2, 3))
    return folder


@pytest.fixture(scope="session")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of traffic without tested classes."""
    folder = tmp_path_factory.mktemp("plain")
    write_results(folder, schemes=("dcqcn", "hpcc"), tested=False)
    return folder


def chromium(folder: Path, traced: str = "") -> Any:
    """Start a browser with its own profile in `folder`; its log has trace events of `traced`."""
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = str(CHROMIUM)
    for argument in (
        "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
        "--disable-background-networking", "--disable-component-update", "--disable-sync",
        f"--user-data-dir={folder}",
    ):  # fmt: skip
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    if traced:
        options.add_experimental_option("perfLoggingPrefs", {"traceCategories": traced})
    driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
    driver.set_script_timeout(40)
    return driver


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    driver = chromium(tmp_path_factory.mktemp("chromium"))
    yield driver
    driver.quit()


@pytest.fixture
def traced_browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A browser that traces itself: which frames it has displayed, and marks of the page."""
    driver = chromium(tmp_path_factory.mktemp("chromium"), "blink.user_timing,viz")
    yield driver
    driver.quit()
