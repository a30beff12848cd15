"""Which choices of what Chen et al.'s text has lost make its findings hold together.

The constants of the software are fitted anew at every point, to the same three cells of Table 1.
"""

import json
from itertools import product
from pathlib import Path
from typing import Any

from experiments.multicast.collectives import (
    ENGINES,
    FITTED,
    FIXED,
    GRIDS,
    OPERATIONS,
    Case,
    Found,
    Model,
    Runs,
    fit,
    twice,
)
from experiments.multicast.latency import HEADLINES, LARGE, NULL_US, SMALL
from experiments.multicast.routing import HERE
from raddle.core import route as core
from raddle.results.reproduction import CLOSE
from raddle.services.reproduce.search import Search
from raddle.services.route import points_of

BROADCAST, EARLIER, _, _ = ENGINES
COMPARED = (BROADCAST, EARLIER, FIXED)
MAX_EFI = 69
SEEDS = 3
"""Of random groups."""

INPUTS: dict[str, list[Any]] = {
    "noise, us": [0.0, 0.2, 1.0],
    "delay of a link, ns": [100, 200, 500],
    "contributions meet": ["on-tree", "root-host"],
    "random groups": [4000, 5000, 6000],
}
QUICK: dict[str, list[Any]] = {
    "noise, us": [0.0, 1.0],
    "delay of a link, ns": [200],
    "contributions meet": ["on-tree"],
    "random groups": [5000],
}
FINDINGS = [
    "the broadcast tree is slowest",
    *(f"{operation}: {change} % at 60x60" for operation, change in HEADLINES.items()),
    "C-MR4LMS as fast as MR4LMS up to 8 B",
    "C-MR4LMS faster than MR4LMS at 2 KB",
    "two trees: Barrier and Allreduce lower, Bcast higher",
    "two trees: narrower",
    "Table 1: more cells within 10 % than by one constant",
    f"random groups: max EFI {MAX_EFI}",
]


def evaluate(point: dict[str, Any], quick: bool, out: Path) -> dict[str, bool | None]:
    """Which findings hold at a point."""
    model = Model(
        noise_ps=round(point["noise, us"] * 1e6),
        delay_ns=point["delay of a link, ns"],
        combining=point["contributions meet"],
    )
    home = out / "collectives"
    runs = Runs(home, 40 if quick else 200, model)
    runs = Runs(home, runs.rounds, fit(runs))
    cases = [Case(*cell) for cell in product(OPERATIONS, GRIDS, COMPARED)]
    found = runs.all_times([*cases, *twice()], 1, lambda _done, _of: None)
    return {**of_collectives(found), FINDINGS[-1]: random_holds(point["random groups"], out)}


def of_collectives(found: Found) -> dict[str, bool | None]:
    """The findings of section 5, by medians (means where the paper has means)."""

    def at(operation: str, grid: tuple[int, int], engine: str) -> float:
        return found[Case(operation, grid, engine)].median

    places = list(product(OPERATIONS, GRIDS))
    holds: dict[str, bool | None] = {
        FINDINGS[0]: all(
            at(*place, BROADCAST) > max(at(*place, EARLIER), at(*place, FIXED)) for place in places
        )
    }
    for name, (operation, published) in zip(FINDINGS[1:5], HEADLINES.items(), strict=True):
        fixed, tree = (
            float(found[Case(operation, GRIDS[0], e)].rounds.mean()) for e in (FIXED, BROADCAST)
        )
        holds[name] = abs(100 * (fixed / tree - 1) - published) <= CLOSE * abs(published)
    ratios = {place: at(*place, FIXED) / at(*place, EARLIER) for place in places}
    holds[FINDINGS[5]] = all(abs(ratios[it] - 1) <= CLOSE for it in product(SMALL, GRIDS))
    holds[FINDINGS[6]] = all(ratios[LARGE, grid] < 1 - CLOSE for grid in GRIDS)
    pairs = {
        case.operation: (found[Case(case.operation, GRIDS[0], FIXED)], found[case])
        for case in twice()
    }
    holds[FINDINGS[7]] = all(
        two.median > one.median if name.startswith("MPI_Bcast") else two.median < one.median
        for name, (one, two) in pairs.items()
    )
    holds[FINDINGS[8]] = all(two.iqr < one.iqr for one, two in pairs.values())
    cells = [case for case in found if not case.twice and case not in FITTED]
    close = sum(abs(found[case].median / case.published - 1) <= CLOSE for case in cells)
    null = sum(abs(NULL_US / case.published - 1) <= CLOSE for case in cells)
    holds[FINDINGS[9]] = close > null
    return holds


def random_holds(count: int, out: Path) -> bool:
    """Whether the mean max EFI of several draws of so many groups is the published one."""
    drawn = []
    settings = [
        'multicast.engines=["c-mr4lms-fixed"]',
        f"groups.count={count}",
        f"groups.seed={','.join(map(str, range(1, SEEDS + 1)))}",
    ]
    for chosen, path, text in points_of(HERE / "random-5000.toml", settings):
        folder = out / "random" / ",".join(f"{key}={value}" for key, value in chosen.items())
        if not (folder / "summary.json").is_file():
            core.run(text, path, folder, core.new_progress())
        summary = json.loads((folder / "summary.json").read_text())
        drawn.append(summary["engines"][FIXED]["max_efi"])
    mean = float(sum(drawn)) / len(drawn)
    return abs(mean - MAX_EFI) <= CLOSE * MAX_EFI


SEARCH = Search(inputs=INPUTS, findings=FINDINGS, evaluate=evaluate, quick_inputs=QUICK)
