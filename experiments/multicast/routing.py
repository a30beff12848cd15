"""The route files of this folder and what comes of them: EFI, TFI, trees and times by engine."""

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raddle.core import route as core
from raddle.services.reproduce import Context
from raddle.services.route import points_of
from raddle.statistics.samples import Interval, mean_interval

HERE = Path(__file__).resolve().parent
FIXED, DYNAMIC, EARLIER = "c-mr4lms-fixed", "c-mr4lms-dynamic", "mr4lms"
OURS = (FIXED, DYNAMIC)
ENGINES = (*OURS, EARLIER)
NAMES = {
    FIXED: "C-MR4LMS fixed",
    DYNAMIC: "C-MR4LMS dynamic",
    EARLIER: "MR4LMS",
    "broadcast": "broadcast tree",
    "opensm": "OpenSM's way",
}
GRIDS_2D = ("grid-512x64", "grid-181x181", "grid-100x327")
GRIDS_3D = ("grid-64x32x16", "grid-32x32x32", "grid-25x50x26")
RANDOM = ("random-1000", "random-3000", "random-5000")
GRIDS_3D_4P = ("grid-256x32x16-4p", "grid-128x32x32-4p", "grid-100x50x26-4p")
GRIDS_2D_4P = ("grid-512x256-4p", "grid-362x362-4p", "grid-200x655-4p")
RANDOM_4P = ("random-1000-4p", "random-3000-4p", "random-5000-4p")
ONE = GRIDS_2D + GRIDS_3D + RANDOM
FOUR = GRIDS_2D_4P + GRIDS_3D_4P + RANDOM_4P
SWEPT = (
    "grid-64x32x16",
    "grid-32x32x32",
    "random-5000",
    "grid-256x32x16-4p",
    "grid-100x50x26-4p",
    "random-1000-4p",
)
COLOURS = (8, 16, 64, 256)
LAYERS_4P = 10
"""Layers of a 3-D grid with 4 processes per terminal: fewer colours are refused."""
TREES = 512
"""Spanning trees of 32 colours: C * m."""
TIMED = "grid-100x50x26-4p"
"""The pattern whose times the paper prints."""

Measures = Mapping[str, Any]


def swept(pattern: str) -> list[int]:
    """The numbers of colours that a pattern is routed with, beside 32."""
    least = LAYERS_4P if pattern in GRIDS_3D_4P else 1
    return [colours for colours in COLOURS if colours >= least]


@dataclass(frozen=True, slots=True)
class Routed:
    """Measures of all patterns."""

    patterns: Mapping[str, Mapping[str, Measures]]
    """By pattern and engine, 32 colours, the seed of the file."""
    colours: Mapping[tuple[str, int], Mapping[str, Measures]]
    """By pattern and colours."""
    seeds: Mapping[str, Sequence[Mapping[str, Measures]]]
    """By pattern of random groups: an entry for each seed."""
    times: Sequence[Mapping[str, Measures]]
    """Repetitions of `TIMED`."""

    def get(self, pattern: str, engine: str, key: str) -> float:
        """One figure with 32 colours."""
        value: float = self.patterns[pattern][engine][key]
        return value

    def of(self, patterns: Iterable[str], engine: str, key: str) -> list[float]:
        """One figure of several patterns."""
        return [self.get(pattern, engine, key) for pattern in patterns]

    def over_seeds(self, pattern: str, engine: str, key: str) -> list[float]:
        """One figure of random groups, by seed."""
        return [float(engines[engine][key]) for engines in self.seeds[pattern]]

    def gap(self, pattern: str, engine: str, key: str) -> Interval:
        """How much higher a figure of random groups is than MR4LMS's, over seeds, in pairs."""
        ours, earlier = (self.over_seeds(pattern, e, key) for e in (engine, EARLIER))
        return mean_interval([a - b for a, b in zip(ours, earlier, strict=True)])


def route_all(context: Context) -> Routed:
    """Route what the folder does not have yet."""
    seeds = ",".join(str(seed) for seed in range(1, (10 if context.quick else 40) + 1))
    home = context.out / ("routes-quick" if context.quick else "routes")
    engines = ",".join(f'"{engine}"' for engine in ENGINES)
    jobs: dict[tuple[str, str], list[str]] = {}
    for pattern in ONE + FOUR:
        jobs["patterns", pattern] = []
    for pattern in SWEPT:
        values = ",".join(str(colours) for colours in swept(pattern))
        jobs["colours", pattern] = [f"multicast.colours={values}"]
    for pattern in RANDOM + RANDOM_4P:
        jobs["seeds", pattern] = [f"multicast.engines=[{engines}]", f"groups.seed={seeds}"]
    repeats = 5 if context.quick else 20
    for repeat in range(repeats):
        jobs[f"times-{repeat}", TIMED] = [f"multicast.engines=[{engines}]"]
    done = 0

    def call(item: tuple[tuple[str, str], list[str]]) -> None:
        nonlocal done
        (kind, pattern), settings = item
        _route(home / kind / pattern, pattern, settings)
        done += 1
        context.step("multicast routes", done, len(jobs))

    timed = [item for item in jobs.items() if item[0][0].startswith("times")]
    with ThreadPoolExecutor(context.jobs) as pool:
        list(pool.map(call, (item for item in jobs.items() if item not in timed)))
    # One after the other: they are timed.
    for item in timed:
        call(item)
    return Routed(
        patterns={p: _engines(home / "patterns" / p) for p in ONE + FOUR},
        colours={
            (pattern, colours): _engines(
                home / "colours" / pattern / f"multicast.colours={colours}"
            )
            for pattern in SWEPT
            for colours in swept(pattern)
        },
        seeds={
            pattern: [_engines(folder) for folder in sorted((home / "seeds" / pattern).glob("*/"))]
            for pattern in RANDOM + RANDOM_4P
        },
        times=[
            _engines(next((home / f"times-{repeat}" / TIMED).glob("*/")))
            for repeat in range(repeats)
        ],
    )


def _route(folder: Path, pattern: str, settings: Sequence[str]) -> None:
    """Route one file, or each of its points; what was cut short is made again."""
    done = folder / "done"
    if done.is_file():
        return
    if folder.exists():
        shutil.rmtree(folder)
    for chosen, path, text in points_of(HERE / f"{pattern}.toml", settings):
        out = folder / ",".join(f"{key}={value}" for key, value in chosen.items())
        core.run(text, path, out, core.new_progress())
    done.touch()


def _engines(folder: Path) -> Mapping[str, Measures]:
    found: Mapping[str, Measures] = json.loads((folder / "summary.json").read_text())["engines"]
    return found
