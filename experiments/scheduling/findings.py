"""What scheduling gains on a Tianhe-2-like fat tree, beside the figures of Peng et al.

python3 -m experiments.scheduling.findings    print the tables of docs/results/scheduling.md
python3 -m experiments.scheduling.findings --out FOLDER --seeds 2 --exchanges 1    a quick look

Generated message sets of six kinds of programs, short and long messages, 4 and 16 nodes of 24
processes; the gain of each schedule over program order with its 95 % interval, and the processor's
time that scheduling took. Everything for each of several network cards (least time between two
packets) and both scopes of joining. What is in the folder already is not simulated again.
"""

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from experiments import command_line
from raddle.files import write_json
from raddle.results.trace import SUFFIX
from raddle.services.replay import SCHEDULES, Settings, replay
from raddle.services.trace import APPLICATIONS, generate

HERE = Path(__file__).resolve().parent
FABRIC = HERE / "tianhe2.toml"
PER_NODE = 24
NODES = (4, 16)
SIZES = ("small", "large")
GAP = "10us"
PUBLISHED = {4: 12.59, 16: 11.27}
"""Mean gain in percent by the paper's algorithm (both); at most 41 %."""
VARIANTS = tuple(name for name in SCHEDULES if name != "none")


@dataclass(frozen=True, slots=True)
class Case:
    """A network card and what may be joined."""

    nic_gap: str
    scope: str


CASES = (
    Case("20ns", "rank-to-node"),
    Case("300ns", "rank-to-node"),
    Case("300ns", "rank-to-rank"),
    Case("20ns", "rank-to-rank"),
    Case("100ns", "rank-to-node"),
)
TOLD = CASES[:2]
"""Cases whose cells are printed one by one."""

Cells = dict[tuple[int, str, str], dict[str, Any]]


def cells() -> Iterator[tuple[int, str, str]]:
    """All (nodes, sizes, application)."""
    for nodes in NODES:
        for sizes in SIZES:
            for application in APPLICATIONS:
                yield nodes, sizes, application


def run(
    options: argparse.Namespace, case: Case, nodes: int, sizes: str, application: str
) -> dict[str, Any]:
    """The replay of one cell."""
    name = f"{application}-{sizes}-{nodes}"
    kept: Path = options.out / f"{name}-{case.nic_gap}-{case.scope}.json"
    if kept.is_file():
        found: dict[str, Any] = json.loads(kept.read_text())
        return found
    trace = options.out / f"{name}{SUFFIX}"
    if not trace.is_file():
        options.out.mkdir(parents=True, exist_ok=True)
        ranks = nodes * PER_NODE
        generate(
            application,
            trace,
            sizes=sizes,
            ranks=ranks,
            per_host=PER_NODE,
            exchanges=options.exchanges,
            gap=GAP,
            fabric=FABRIC,
        )
    settings = Settings(seeds=options.seeds, scope=case.scope, costs={"nic_gap": case.nic_gap})
    summary = replay(trace, SCHEDULES, settings, jobs=options.jobs)
    write_json(kept, summary)
    return summary


def gain(row: dict[str, Any]) -> str:
    """A gain with its interval, as text."""
    ends = row["gain_ci95_pct"]
    if ends is None:
        return f"{row['gain_pct']:.1f}"
    return f"{row['gain_pct']:.1f} ± {(ends[1] - ends[0]) / 2:.1f}"


def print_cells(found: Cells) -> None:
    """A row per cell."""
    print(
        "| nodes | messages of | size | program order, us | reorder, % | aggregate, % | both, % | "
        "messages | parcels of both | scheduling, us |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for (nodes, sizes, application), summary in found.items():
        rows = summary["schedules"]
        both = rows["both"]
        words = [
            f"{1e6 * rows['none']['time_s']:,.0f}",
            *(gain(rows[name]) for name in VARIANTS),
            f"{both['messages']:,}",
            f"{both['parcels']:,}",
            f"{1e6 * both['schedule_s']:,.0f}",
        ]
        print(f"| {nodes} | {application} | {sizes} | {' | '.join(words)} |")


def print_means(found: dict[Case, Cells]) -> None:
    """A row per case, nodes and size."""
    print(
        "| card's gap | joined | nodes | size | reorder, % | aggregate, % | both, % | "
        "both, least | both, most | the paper's mean |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for case, of_case in found.items():
        for nodes in NODES:
            for sizes in (*SIZES, "all"):
                print(_mean_row(case, nodes, sizes, of_case))


def _mean_row(case: Case, nodes: int, sizes: str, found: Cells) -> str:
    def gains(name: str) -> Sequence[float]:
        return [
            summary["schedules"][name]["gain_pct"]
            for (n, s, _), summary in found.items()
            if n == nodes and sizes in (s, "all")
        ]

    means = [f"{fmean(gains(name)):.1f}" for name in VARIANTS]
    both = gains("both")
    published = f"{PUBLISHED[nodes]}" if sizes == "all" else ""
    words = [case.nic_gap, case.scope, str(nodes), sizes, *means]
    return f"| {' | '.join(words)} | {min(both):.1f} | {max(both):.1f} | {published} |"


def main() -> None:
    """Run what is missing and print the tables."""
    parser = command_line(__file__, __doc__)
    parser.add_argument("--out", type=Path, default=Path("out/scheduling"))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--exchanges", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=None)
    options = parser.parse_args()
    found: dict[Case, Cells] = {}
    for case in CASES:
        found[case] = {cell: run(options, case, *cell) for cell in cells()}
        if case in TOLD:
            print(f"\nCard's gap {case.nic_gap}, joined by {case.scope}:\n")
            print_cells(found[case])
    print()
    print_means(found)


if __name__ == "__main__":
    main()
