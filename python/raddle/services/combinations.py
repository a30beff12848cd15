"""Combinations of the five systems, and what is known of them: what `raddle advise` searches.

All runs are those of an experiment with a [[job]] for each program and a [[setup]] for each
combination, one experiment for each stage of the search and rule of placement.
"""

import math
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

import tomli_w

from raddle import core
from raddle.errors import ExperimentError
from raddle.results.folder import Results
from raddle.results.planned import Planned
from raddle.results.trace import SUFFIX
from raddle.services.engines.choice import Engine
from raddle.services.run import execute_all, plan_text
from raddle.services.runner import Watch
from raddle.statistics.plans import WORTH
from raddle.text import many

__all__ = [
    "AXES",
    "NO_RAILS",
    "PLACEMENTS",
    "PS",
    "RAILS_USE",
    "Combination",
    "Program",
    "Search",
    "Settings",
    "saved",
    "words",
]

AXES = ("scheme", "collectives", "scheduling", "rails", "placement")
"""The setting of each system, in their order."""
PLACEMENTS = ("blocks", "spread", "random")
NO_RAILS = frozenset({"hpcc", "pint"})
"""Schemes whose telemetry connections over rails do not carry."""
RAILS_USE = "swift"
"""The scheme of rails where none is named."""
LATENESS = "5us"
"""How late a host with network cards is; the default of [rails] suits a kernel's sockets."""
PS = 1e12
"""Picoseconds of a second."""
GROUPS, SLOTS = 64, 64
"""Groups that switches have room for, and slots of a group, where an experiment says nothing."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What is searched, and where.

    Attributes
    ----------
    fabric
        A map (any format that `raddle fabric check` reads), or an experiment with one; None: that
        of the first trace.
    seeds
        Seeds of the last stage, from 1.
    costs
        A file with costs of hosts, as `raddle replay --costs` takes it; None: the usual ones.
    processors
        Processors that all hosts share, as those of a lab do; None: each rank has its own.
    rails
        Rate of each rail, such as "100Gbps"; empty: hosts have one link.
    placements
        Rules that give programs their hosts; the first is the plain one.
    systems
        Those of `advise.SYSTEMS` that are searched; None: all, rails where there are any.
    ranks_per_host
        Ranks of each host, in order; None: as recorded.
    most_runs, most_s
        The budget: simulations, or seconds; None: as many as it takes.
    """

    fabric: Path | None = None
    seeds: int = 5
    costs: Path | None = None
    processors: int | None = None
    rails: Sequence[str] = ()
    placements: Sequence[str] = PLACEMENTS
    systems: Sequence[str] | None = None
    ranks_per_host: int | None = None
    most_runs: int | None = None
    most_s: float | None = None


@dataclass(frozen=True, slots=True)
class Combination:
    """One setting of all systems; the defaults are the plain run."""

    scheme: str = "none"
    collectives: str = "host"
    scheduling: str = "none"
    rails: int = 1
    placement: str = "blocks"

    @property
    def name(self) -> str:
        """Its name among setups."""
        parts = [self.scheme] if self.scheme != "none" else []
        parts += [self.collectives] if self.collectives != "host" else []
        parts += [self.scheduling] if self.scheduling != "none" else []
        parts += ["rails"] if self.rails > 1 else []
        return "-".join(parts) or "plain"

    @property
    def possible(self) -> bool:
        """Whether its parts go together, and no other combination is the same."""
        return self.rails == 1 or self.scheme not in {*NO_RAILS, RAILS_USE}


@dataclass(frozen=True, slots=True)
class Program:
    """A recorded program that is advised."""

    trace: Path
    job: str
    """Its name among jobs."""
    program: str
    """Its name in advice: the command that was recorded, else the trace's name."""
    ranks: int
    hosts: int
    """Hosts that it needs."""
    communicators: int

    @classmethod
    def of(cls, trace: Path, per_host: int | None, taken: Iterable[str]) -> "Program":
        """Look into a trace; jobs of the names `taken` there are already.

        Raises
        ------
        TraceError
            The file is no trace, or is damaged.
        """
        found = core.trace.describe(trace)
        job = re.sub(r"[^A-Za-z0-9_-]+", "-", trace.name.removesuffix(SUFFIX))[:32] or "program"
        same = sum(name == job or name.startswith(f"{job}--") for name in taken)
        words = found.program.split()
        called = Path(words[0]).name if words and not words[0].endswith(":") else job
        hosts = len(found.hosts) if per_host is None else math.ceil(found.ranks / per_host)
        return cls(
            trace.absolute(),
            f"{job}--{same + 1}" if same else job,
            called,
            found.ranks,
            hosts,
            found.communicators,
        )


@dataclass(slots=True)
class Search:
    """What was asked for, and what is known so far."""

    programs: Sequence[Program]
    settings: Settings
    fabric: str
    switches: int
    out: Path
    engine: Engine
    watch: Watch | None
    plain: Combination
    options: Mapping[str, Sequence[Any]]
    """By axis: the values that are not the plain one."""
    times: dict[tuple[Combination, str, int], float] = field(default_factory=dict)
    """Seconds, by combination, job and seed; infinite where a job did not end."""
    alone: dict[tuple[str, int], float] = field(default_factory=dict)
    """Seconds of a job that has the fabric for itself, under the plain setup."""
    carried: dict[tuple[Combination, str], tuple[int, int]] = field(default_factory=dict)
    """Collectives that multicast and switches carried."""
    refused: dict[str, str] = field(default_factory=dict)
    hosts: dict[tuple[str, str], Sequence[tuple[str, int]]] = field(default_factory=dict)
    """By rule of placement and job: hosts, and how many ranks each has."""
    runs: int = 0
    began: float = field(default_factory=time.monotonic)

    def measure(self, stage: str, wanted: Sequence[Combination], seeds: Sequence[int]) -> None:
        """Simulate combinations on seeds, those of all placements at once."""
        points: list[Planned] = []
        asked: list[Sequence[Combination]] = []
        for placement in dict.fromkeys(one.placement for one in wanted):
            same = [one for one in wanted if one.placement == placement]
            name = f"{stage}-{placement}"
            path = self.out / "runs" / f"{name}.toml"
            own = self._possible(same, seeds, path)
            if own:
                plan = plan_text(self._experiment(own, seeds), path)
                points.append(Planned(plan, self.out / "runs" / name))
                asked.append(own)
                self.hosts |= {(placement, job): it for job, it in plan.job_hosts.items()}
        outcomes = execute_all(
            points, self.out / "runs", engine=self.engine, watch=self.watch, replace=True
        )
        if any(outcome.interrupted for outcome in outcomes):
            raise KeyboardInterrupt
        for point, own in zip(points, asked, strict=True):
            self.runs += len(point.plan.runs)
            self._take(Results(point.out), {one.name: one for one in own})

    def _possible(
        self, wanted: Sequence[Combination], seeds: Sequence[int], path: Path
    ) -> Sequence[Combination]:
        """Those that the fabric can carry; the plain one must be."""
        try:
            plan_text(self._experiment(wanted, seeds), path)
        except ExperimentError:
            kept = []
            for one in wanted:
                try:
                    plan_text(self._experiment([one], seeds), path)
                except ExperimentError as error:
                    if one == self.plain:
                        raise
                    self.refused[words(self.told(one))] = str(error).splitlines()[0]
                else:
                    kept.append(one)
            return kept
        return wanted

    def _experiment(self, wanted: Sequence[Combination], seeds: Sequence[int]) -> str:
        settings = self.settings
        jobs = [program.job for program in self.programs]
        own: dict[str, Any] = {"placement": wanted[0].placement}
        if settings.ranks_per_host is not None:
            own["ranks_per_host"] = settings.ranks_per_host
        setups = [self._setup(one) for one in wanted]
        if self.plain in wanted and len(jobs) > 1:
            setups += [
                {
                    **self._setup(self.plain),
                    "name": f"alone-{job}",
                    "without": [other for other in jobs if other != job],
                }
                for job in jobs
            ]
        document: dict[str, Any] = {
            "schema": 1,
            "name": "advise",
            "fabric": {"file": self.fabric},
            "simulation": {"seeds": list(seeds), "alone": False},
            # Times count here, not what they were spent on.
            "record": {"blame": False},
        }
        if settings.rails:
            document["rails"] = {"rates": list(settings.rails), "lateness": LATENESS}
        hosts: dict[str, Any] = {}
        if settings.costs is not None:
            hosts["costs"] = str(settings.costs.absolute())
        if settings.processors is not None:
            hosts["processors"] = settings.processors
        if hosts:
            document["hosts"] = hosts
        document["job"] = [
            {"name": program.job, "program": str(program.trace), **own} for program in self.programs
        ]
        document["setup"] = setups
        return tomli_w.dumps(document)

    def _setup(self, one: Combination) -> dict[str, Any]:
        setup: dict[str, Any] = {"name": one.name, "collectives": one.collectives}
        setup["scheduling"] = one.scheduling
        if one.scheme != "none":
            setup["scheme"] = one.scheme
        if self.settings.rails:
            setup["rails"] = one.rails > 1
        return setup

    def _take(self, results: Results, known: Mapping[str, Combination]) -> None:
        table = results.jobs
        for row in [] if table is None else table.to_pylist():
            ps, job, seed = row["time_ps"], row["job"], row["seed"]
            seconds = math.inf if ps is None else ps / PS
            one = known.get(row["scheme"])
            if one is not None:
                self.times[one, job, seed] = seconds
                self.carried[one, job] = row["multicast_calls"], row["offload_calls"]
            elif row["scheme"] == f"alone-{job}":
                self.alone[job, seed] = seconds

    def told(self, one: Combination) -> dict[str, Any]:
        """Its settings as advice has them: what differs from the plain run."""
        return {
            axis: getattr(one, axis)
            for axis in AXES
            if getattr(one, axis) != getattr(self.plain, axis)
        }

    def slowdown(self, one: Combination, seed: int) -> float:
        """Mean over jobs of their time over that alone and plain; of one job, its time."""
        if len(self.programs) == 1:
            return self.times[one, self.programs[0].job, seed]
        shares = [self.times[one, it.job, seed] / self.alone[it.job, seed] for it in self.programs]
        return sum(shares) / len(shares)

    def gain(self, one: Combination, seed: int) -> float:
        """The share of the plain run's slowdown that it saves."""
        return saved(self.slowdown(one, seed), self.slowdown(self.plain, seed))

    def helps(self, one: Combination, seed: int) -> bool:
        """Whether it makes a program so much faster that it is worth a closer look."""
        for program in self.programs:
            own, plain = (self.times[it, program.job, seed] for it in (one, self.plain))
            if saved(own, plain) >= WORTH:
                return True
        return False

    def known(self, seed: int) -> list[Combination]:
        """What ran to its end, the best first; of equals what came first."""
        ran = dict.fromkeys(one for one, _, its in self.times if its == seed and one != self.plain)
        ended = [one for one in ran if math.isfinite(self.slowdown(one, seed))]
        return sorted(ended, key=lambda one: self.slowdown(one, seed))

    def left(self) -> float:
        """Runs that the budget still has."""
        if self.settings.most_runs is not None:
            return self.settings.most_runs - self.runs
        if self.settings.most_s is not None and self.runs:
            spent = time.monotonic() - self.began
            return max(0.0, self.settings.most_s - spent) / (spent / self.runs)
        return math.inf

    def singles(self) -> list[Combination]:
        """Every switch alone."""
        return [
            replace(self.plain, **{axis: value})
            for axis, values in self.options.items()
            for value in values
        ]

    def product(self) -> int:
        """How many combinations there are, the plain one among them."""
        values = [[getattr(self.plain, axis), *self.options.get(axis, ())] for axis in AXES]
        return sum(Combination(*chosen).possible for chosen in product(*values))

    def cost(self, one: Combination) -> dict[str, int]:
        """What a combination takes of the fabric; documented in docs/reference/advise.md."""
        groups = [0, 0]
        for program in self.programs:
            carried = self.carried.get((one, program.job), (0, 0))
            for place, calls in enumerate(carried):
                groups[place] += program.communicators if calls else 0
        multicast, sums = (min(number, GROUPS) for number in groups)
        hosts = sum(program.hosts for program in self.programs)
        return {
            "multicast_entries": multicast * self.switches,
            "reduction_slots": sums * SLOTS * self.switches,
            "extra_links": hosts * (one.rails - 1),
        }


def saved(own: float, plain: float) -> float:
    """The share of the plain time that another time saves; 0 where there is none.

    Examples
    --------
    >>> saved(1.5, 2.0)
    0.25
    """
    return 1 - own / plain if plain > 0 else 0.0


def words(told: Mapping[str, Any]) -> str:
    """Settings in words: "offload, 2 rails"."""
    parts = []
    for axis, value in told.items():
        if axis == "rails":
            parts.append(many(value, "rail"))
        elif axis in ("scheduling", "placement"):
            parts.append(f"{axis} {value}")
        else:
            parts.append(str(value))
    return ", ".join(parts) or "plain"
