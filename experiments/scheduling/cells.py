"""Message sets, machines and schedules of the scheduling paper, replayed once each and kept."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from raddle.files import write_json
from raddle.results.trace import SUFFIX
from raddle.services.replay import Settings, replay
from raddle.services.trace import generate
from raddle.statistics.samples import Interval, mean_interval

__all__ = [
    "FABRIC",
    "PER_NODE",
    "Case",
    "Effort",
    "Replayed",
    "gains",
    "mean_gain",
    "run",
    "run_trace",
]

HERE = Path(__file__).resolve().parent
FABRIC = HERE / "tianhe2.toml"
PER_NODE = 24
"""Processes of a node: two processors of twelve cores."""
GAP = "10us"
"""Computing before each superstep."""

Replayed = dict[str, Any]
"""What `raddle replay --json` says of one trace under one scheme."""


@dataclass(frozen=True, slots=True)
class Case:
    """What the paper does not say: the card, and how messages are joined."""

    nic_gap: str
    scope: str = "rank-to-node"
    leaders: int = 1
    in_order: bool = False
    """The card sends messages one after the other instead of their packets in turn."""

    @property
    def name(self) -> str:
        """For files."""
        order = "-in-order" if self.in_order else ""
        return f"{self.nic_gap}-{self.scope}-{self.leaders}{order}"

    def settings(self, seeds: int) -> Settings:
        """Of a replay."""
        costs = {"nic_gap": self.nic_gap, "nic_in_order": self.in_order}
        return Settings(seeds=seeds, scope=self.scope, leaders=self.leaders, costs=costs)


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is run, and where it is kept."""

    out: Path
    seeds: int
    exchanges: int
    jobs: int = 1
    threads: int | None = None
    """Of each run; the cores that `jobs` leave over if None."""


def run(
    effort: Effort,
    case: Case,
    schedules: Sequence[str],
    *,
    nodes: int,
    sizes: str,
    application: str,
) -> Replayed:
    """Replay a generated message set."""
    name = f"{application}-{sizes}-{nodes}-x{effort.exchanges}"
    trace = effort.out / f"{name}{SUFFIX}"
    if not trace.is_file():
        effort.out.mkdir(parents=True, exist_ok=True)
        generate(
            application,
            trace,
            sizes=sizes,
            ranks=nodes * PER_NODE,
            per_host=PER_NODE,
            exchanges=effort.exchanges,
            gap=GAP,
            fabric=FABRIC,
        )
    return run_trace(effort, case, schedules, trace, case.settings(effort.seeds))


def run_trace(
    effort: Effort, case: Case, schedules: Sequence[str], trace: Path, settings: Settings
) -> Replayed:
    """Replay a trace; what is kept of an earlier call is not run again."""
    stem = trace.name.removesuffix(SUFFIX)
    names = "-".join(schedules)
    kept = effort.out / f"{stem}-{case.name}-{names}-s{effort.seeds}.json"
    if kept.is_file():
        found: Replayed = json.loads(kept.read_text())
        return found
    assert asdict(settings)["leaders"] == case.leaders
    effort.out.mkdir(parents=True, exist_ok=True)
    summary = replay(trace, schedules, settings, jobs=effort.jobs, threads=effort.threads)
    write_json(kept, summary)
    return summary


def gains(summary: Replayed, schedule: str) -> list[float]:
    """Per cent of program order's time that a schedule saves, by seed."""
    runs = summary["schedules"]
    pairs = zip(runs[schedule]["runs"], runs["none"]["runs"], strict=True)
    return [100 * (1 - one["time_s"] / plain["time_s"]) for one, plain in pairs]


def mean_gain(summaries: Iterable[Replayed], schedule: str) -> Interval:
    """The mean over message sets, with its interval over seeds."""
    by_seed = zip(*(gains(summary, schedule) for summary in summaries), strict=True)
    return mean_interval(fmean(seed) for seed in by_seed)
