"""The runs behind the page of Sun et al.: which experiments, with how many seeds."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import tomli_w

import raddle
from raddle.results import Results
from raddle.results.columns import floats, select
from raddle.services.reproduce import Context
from raddle.services.run import plan_text

HERE = Path(__file__).resolve().parent
SCHEMES = ("none", "dctcp", "dcqcn", "timely", "hpcc", "pint")
"""The paper's order; its "five" are all but `none`."""
FIVE = SCHEMES[1:]
DRAWING = ("dcqcn", "pint")
"""Schemes that draw: DCQCN's marks, PINT's rounding."""
BUFFERS = ("4mib", "8mib", "12mib", "16mib", "32mib")
MODELS = ("", "-compat")
FULL, QUICK = tuple(range(1, 21)), (1, 2, 3)


def finished(folder: Path) -> dict[str, str]:
    """Runs of a complete results folder, with the stamps that say what they are runs of."""
    manifest = raddle.results.Results(folder).manifest
    runs = manifest.get("runs", ()) if manifest.get("complete") else ()
    return {run["name"]: run["stamp"] for run in runs}


@dataclass(frozen=True)
class Runs:
    """Runs experiments of this folder, or finds them done."""

    context: Context

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seeds of every experiment whose runs are short."""
        return QUICK if self.context.quick else FULL

    @cached_property
    def folder(self) -> Path:
        """Where the results of the runs are."""
        return self.context.out / "quick" if self.context.quick else self.context.out

    def run(self, name: str, file: str, **simulation: list[str] | list[int]) -> Results:
        """One experiment, with other seeds or schemes than its file has."""
        experiment = {
            "schema": 1,
            "name": f"congestion-{name}",
            "include": [str(HERE / f"{file}.toml")],
            "simulation": simulation,
        }
        folder = self.folder / name
        plan = plan_text(tomli_w.dumps(experiment), Path(f"{name}.toml"))
        if {run.name: run.stamp for run in plan.runs} == finished(folder):
            return raddle.results.load(folder)
        return raddle.run(experiment, folder, jobs=self.context.jobs, replace=True)

    def small(self, buffer: str, model: str) -> dict[str, tuple[Results, tuple[int, ...]]]:
        """The small experiment: per scheme its results, and which of them stands for each seed.

        Nothing in it is drawn but by `DRAWING`: the others run twice, and must give the same.
        """
        file = f"small{'' if buffer == '32mib' else f'-{buffer}'}{model}"
        steady = [scheme for scheme in SCHEMES if scheme not in DRAWING]
        drawn = self.run(f"{file}-drawn", file, schemes=list(DRAWING), seeds=list(self.seeds))
        fixed = self.run(f"{file}-fixed", file, schemes=steady, seeds=[1, 2])
        for scheme in steady:
            first, second = (
                floats(select(fixed.flows, scheme=scheme, seed=s), "fct_ps") for s in (1, 2)
            )
            if not np.array_equal(first, second):
                msg = f"{file}: {scheme} gives other times with another seed"
                raise AssertionError(msg)
        ones = (1,) * len(self.seeds)
        return {s: (drawn, self.seeds) if s in DRAWING else (fixed, ones) for s in SCHEMES}
