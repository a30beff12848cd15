"""What scheduling gains on a Tianhe-2-like fat tree, beside the figures of Peng et al.

python experiments/scheduling_findings.py    print the tables of docs/scheduling-results.md
python experiments/scheduling_findings.py --out FOLDER --seeds 3 --exchanges 2    a quick look

Generated message sets of six kinds of programs, short and long messages, 4 and 16 nodes of 24
processes; the gain of each schedule over program order with its 95 % interval, and the processor's
time that scheduling took.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

from raddle import _core
from raddle.files import write_json
from raddle.replay import SCHEDULES, Settings, replay
from raddle.trace import APPLICATIONS, SUFFIX

HERE = Path(__file__).resolve().parent
FABRIC = HERE / "scheduling-tianhe2.toml"
PER_NODE = 24
NODES = (4, 16)
SIZES = ("small", "large")
GAP = "10us"
PUBLISHED = {4: 12.59, 16: 11.27}
"""Mean gain in percent by the paper's algorithm (both); at most 41 %."""
VARIANTS = tuple(name for name in SCHEDULES if name != "none")


def cells() -> Iterator[tuple[int, str, str]]:
    """All (nodes, sizes, application)."""
    for nodes in NODES:
        for sizes in SIZES:
            for application in APPLICATIONS:
                yield nodes, sizes, application


def run(options: argparse.Namespace, nodes: int, sizes: str, application: str) -> dict[str, Any]:
    """The replay of one cell; a summary that is there already is taken."""
    name = f"{application}-{sizes}-{nodes}"
    kept = options.out / f"{name}.json"
    if kept.is_file():
        found: dict[str, Any] = json.loads(kept.read_text())
        return found
    trace = options.out / f"{name}{SUFFIX}"
    options.out.mkdir(parents=True, exist_ok=True)
    _core.trace_generate(
        application,
        sizes,
        nodes * PER_NODE,
        PER_NODE,
        options.exchanges,
        GAP,
        1,
        FABRIC.read_text(),
        trace,
    )
    summary = replay(trace, SCHEDULES, Settings(seeds=options.seeds), jobs=options.jobs)
    write_json(kept, summary)
    trace.unlink()
    return summary


def gain(row: dict[str, Any]) -> str:
    """A gain with its interval, as text."""
    ends = row["gain_ci95_pct"]
    if ends is None:
        return f"{row['gain_pct']:.1f}"
    return f"{row['gain_pct']:.1f} ± {(ends[1] - ends[0]) / 2:.1f}"


def line(nodes: int, sizes: str, application: str, summary: dict[str, Any]) -> str:
    """A row of the table."""
    schedules = summary["schedules"]
    both = schedules["both"]
    words = [
        str(nodes),
        application,
        sizes,
        f"{1e6 * schedules['none']['time_s']:,.0f}",
        *(gain(schedules[name]) for name in VARIANTS),
        f"{both['messages']:,}",
        f"{both['parcels']:,}",
        f"{1e6 * both['schedule_s']:,.0f}",
    ]
    return f"| {' | '.join(words)} |"


def main() -> None:
    """Run what is missing and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("out/scheduling"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--exchanges", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=None)
    options = parser.parse_args()
    gains: dict[tuple[int, str, str], list[float]] = {}
    print(
        "| nodes | messages of | size | time in program order, us | reorder, % | aggregate, % | "
        "both, % | messages | parcels of both | scheduling, us |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for nodes, sizes, application in cells():
        summary = run(options, nodes, sizes, application)
        print(line(nodes, sizes, application, summary), flush=True)
        for name in VARIANTS:
            gains.setdefault((nodes, sizes, name), []).append(
                summary["schedules"][name]["gain_pct"]
            )
    print()
    print(
        "| nodes | size | reorder, % | aggregate, % | both, % | both, highest | the paper's mean |"
    )
    print("|---|---|---|---|---|---|---|")
    for nodes in NODES:
        for sizes in (*SIZES, "all"):
            of = {
                name: [
                    g
                    for (n, s, v), all_ in gains.items()
                    for g in all_
                    if n == nodes and v == name and sizes in (s, "all")
                ]
                for name in VARIANTS
            }
            words = [f"{fmean(of[name]):.1f}" for name in VARIANTS]
            published = f"{PUBLISHED[nodes]}" if sizes == "all" else ""
            print(
                f"| {nodes} | {sizes} | {' | '.join(words)} | {max(of['both']):.1f} | {published} |"
            )


if __name__ == "__main__":
    main()
