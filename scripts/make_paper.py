"""Make the paper's picture from the run that it describes.

    python -m scripts.make_paper            runs experiments/together.toml (two minutes), draws
    python -m scripts.make_paper --out DIR  draws from this results folder

Leaves paper/together.svg. `pandoc --citeproc paper/paper.md -o paper.pdf` sets the text.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from scripts.gallery import PALETTE

ROOT = Path(__file__).resolve().parents[1]
EXPERIMENT = ROOT / "experiments" / "together.toml"
PICTURE = ROOT / "paper" / "together.svg"
LABELS = {"hpcc": "congestion control", "all": "all five"}


def saved(folder: Path) -> dict[str, dict[str, list[float]]]:
    """Share of its time under the first setup that each job saves, seed by seed: job, setup."""
    from raddle.results import load
    from raddle.results.columns import floats, integers

    jobs = load(folder).jobs
    if jobs is None:
        sys.exit(f"{folder} has no jobs")
    setups = [str(name) for name in jobs["scheme"].to_pylist()]
    names = [str(name) for name in jobs["job"].to_pylist()]
    seeds, times = integers(jobs, "seed").tolist(), floats(jobs, "time_ps").tolist()
    first = setups[0]
    plain = {
        (name, seed): time
        for setup, name, seed, time in zip(setups, names, seeds, times, strict=True)
        if setup == first
    }
    found: dict[str, dict[str, list[float]]] = {}
    for setup, name, seed, time in zip(setups, names, seeds, times, strict=True):
        if setup != first:
            of_job = found.setdefault(name, {})
            of_job.setdefault(setup, []).append(100 * (1 - time / plain[name, seed]))
    return found


def draw(found: dict[str, dict[str, list[float]]], to: Path) -> None:
    """Bars by job, one for each setup, with intervals."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from raddle.statistics.samples import mean_interval

    mpl.rcParams["svg.hashsalt"] = "raddle"
    figure = Figure(figsize=(7.2, 3.2), layout="constrained")
    axis: Any = figure.subplots()
    setups = list(next(iter(found.values())))
    width = 0.8 / len(setups)
    for place, setup in enumerate(setups):
        means = [mean_interval(found[job][setup]) for job in found]
        places = [at + (place - (len(setups) - 1) / 2) * width for at in range(len(found))]
        axis.bar(
            places, [it.mean for it in means], width, yerr=[it.half_width or 0 for it in means],
            capsize=2, color=PALETTE[place % len(PALETTE)], label=LABELS.get(setup, setup),
        )  # fmt: skip
    axis.axhline(0, color="black", linewidth=0.8)
    axis.set_xticks(range(len(found)), list(found))
    axis.set_ylabel("time saved in %")
    figure.legend(loc="outside upper center", ncols=3, frameon=False, fontsize=8)
    figure.savefig(to, metadata={"Date": None})


def main() -> None:
    """Run, unless a folder is named, and draw."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="a results folder of the experiment")
    folder = parser.parse_args().out
    if folder is None:
        folder = ROOT / "out" / "together"
        run = [sys.executable, "-m", "raddle", "run", str(EXPERIMENT), "--out", str(folder)]
        if subprocess.run(run, cwd=ROOT, check=False).returncode:
            sys.exit("the run failed")
    name = json.loads((folder / "manifest.json").read_text())["name"]
    if name != "together":
        sys.exit(f"{folder} holds another experiment: {name}")
    draw(saved(folder), PICTURE)
    print(PICTURE.relative_to(ROOT))


if __name__ == "__main__":
    main()
