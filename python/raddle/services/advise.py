"""`raddle advise`: which of the five systems a program should use on a fabric.

Three stages find out. First every switch alone, on one seed: what makes no program faster
by a hundredth is dropped. Then what is left is combined. Then the best few and the plain run are
simulated on all seeds, the same ones, so that a gain is a mean over pairs of runs with a 95 %
interval. All runs are those of an experiment with a [[job]] for each program and a [[setup]] for
each combination; they lie below `runs` of the results folder, and the same command takes up what
is done.
"""

import math
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from pathlib import Path
from typing import Any

import tomli_w

from raddle import core
from raddle.errors import ExperimentError, TraceError
from raddle.files import read_text, source_name, write_json, write_text
from raddle.results.claim import claim_folder
from raddle.results.folder import Results
from raddle.results.planned import Planned
from raddle.results.trace import SUFFIX
from raddle.services.engines.choice import LOCAL, Engine
from raddle.services.fabric import Source
from raddle.services.replay import ALL_SCHEDULES, read_costs
from raddle.services.run import execute_all, plan_text
from raddle.services.runner import Watch
from raddle.statistics.plans import WORTH, Judged, in_order, judge
from raddle.text import join_words, many, percent, suggest

__all__ = [
    "PLACEMENTS",
    "SYSTEMS",
    "Settings",
    "advice_names",
    "advice_toml",
    "advise",
    "read_budget",
    "usual_name",
    "words",
]

SYSTEMS = ("schemes", "collectives", "scheduling", "rails", "placement")
"""What may be searched."""
AXES = ("scheme", "collectives", "scheduling", "rails", "placement")
"""The setting of each system, in their order."""
PLACEMENTS = ("blocks", "spread", "random")
NO_RAILS = frozenset({"hpcc", "pint"})
"""Schemes whose telemetry connections over rails do not carry."""
RAILS_USE = "swift"
"""The scheme of rails where none is named."""
LATENESS = "5us"
"""How late a host with network cards is; the default of [rails] suits a kernel's sockets."""
FINALISTS = 5
PS = 1e12
GROUPS, SLOTS = 64, 64
"""Groups that switches have room for, and slots of a group, where an experiment says nothing."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What is searched, and where.

    Attributes
    ----------
    fabric
        A map (any format that `raddle fabric check` reads), or an experiment with one.
    seeds
        Seeds of the last stage, from 1.
    costs
        A file with costs of hosts, as `raddle replay --costs` takes it; None: the usual ones.
    rails
        Rate of each rail, such as "100Gbps"; empty: hosts have one link.
    placements
        Rules that give programs their hosts; the first is the plain one.
    systems
        Those of `SYSTEMS` that are searched; None: all, rails where there are any.
    ranks_per_host
        Ranks of each host, in order; None: as recorded.
    most_runs, most_s
        The budget: simulations, or seconds; None: as many as it takes.
    """

    fabric: Path
    seeds: int = 5
    costs: Path | None = None
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
class _Program:
    trace: Path
    job: str
    program: str
    ranks: int
    hosts: int
    communicators: int

    @classmethod
    def of(cls, trace: Path, per_host: int | None, taken: Iterable[str]) -> "_Program":
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
class _Search:
    """What was asked for, and what is known so far."""

    programs: Sequence[_Program]
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
        }
        if settings.rails:
            document["rails"] = {"rates": list(settings.rails), "lateness": LATENESS}
        if settings.costs is not None:
            document["hosts"] = {"costs": str(settings.costs.absolute())}
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
        return _saved(self.slowdown(one, seed), self.slowdown(self.plain, seed))

    def helps(self, one: Combination, seed: int) -> bool:
        """Whether it makes a program so much faster that it is worth a closer look."""
        for program in self.programs:
            own, plain = (self.times[it, program.job, seed] for it in (one, self.plain))
            if _saved(own, plain) >= WORTH:
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


def advise(
    traces: Sequence[Path],
    settings: Settings,
    out: Path,
    *,
    engine: Engine = LOCAL,
    watch: Watch | None = None,
) -> dict[str, Any]:
    """Search, and write `summary.json` and the advice into the folder `out`.

    Returns
    -------
    dict
        What `summary.json` holds: the same for the same arguments, but for a budget in time.

    Raises
    ------
    RaddleError
        A trace, the map or a setting is wrong, or a run failed; the message names it.
    """
    search = _begun(traces, settings, out, engine, watch)
    with claim_folder(out, "advise"):
        (out / "runs").mkdir(exist_ok=True)
        write_text(Path(search.fabric), Source.of(settings.fabric).export("auto", "toml"))
        summary = _searched(search)
        write_json(out / "summary.json", summary)
        names = advice_names([program.job for program in search.programs])
        for old in out.glob("advice*.toml"):
            if old.name not in names:
                old.unlink()
        for name, told in zip(names, summary["programs"], strict=True):
            write_text(
                out / name,
                advice_toml(
                    told["program"],
                    told["ranks"],
                    summary["advice"],
                    time_s=told["predicted_s"],
                    plain_s=told["plain_s"],
                ),
            )
    return summary


def advice_toml(
    program: str, ranks: int, settings: Mapping[str, Any], *, time_s: float, plain_s: float
) -> str:
    """The advice for a program as `advice.toml` (schema 1) has it; times in seconds."""
    return tomli_w.dumps(
        {
            "schema": 1,
            "program": {"name": program, "ranks": ranks},
            "settings": dict(settings),
            "predicted": {"time_s": time_s, "plain_s": plain_s},
        }
    )


def advice_names(jobs: Sequence[str]) -> list[str]:
    """The file of each program's advice."""
    return ["advice.toml"] if len(jobs) == 1 else [f"advice-{job}.toml" for job in jobs]


def usual_name(traces: Sequence[Path]) -> str:
    """The folder of results if nothing is said."""
    return f"{traces[0].name.removesuffix(SUFFIX)}-advice"


def read_budget(text: str | None) -> tuple[int | None, float | None]:
    """Read a number of runs, or a time: as runs and seconds.

    Examples
    --------
    >>> read_budget("200"), read_budget("90s"), read_budget(None)
    ((200, None), (None, 90.0), (None, None))

    Raises
    ------
    ExperimentError
        It is neither.
    """
    if text is None:
        return None, None
    if text.isdecimal():
        return int(text), None
    try:
        return None, core.build.parse_quantity("time", text) / PS
    except ValueError as error:
        msg = f"--budget: {error}\n  hint: a number of runs, as 200, or a time, as 600s"
        raise ExperimentError(msg) from None


def _begun(
    traces: Sequence[Path],
    settings: Settings,
    out: Path,
    engine: Engine,
    watch: Watch | None,
) -> _Search:
    """Say what is wrong before anything is written."""
    systems = _systems(settings)
    _each_known("--placement", settings.placements, PLACEMENTS)
    for rate in settings.rails:
        try:
            core.build.parse_quantity("rate", rate)
        except ValueError as error:
            msg = f"--rails: {error}"
            raise ExperimentError(msg) from None
    if len(settings.rails) == 1:
        msg = (
            "--rails: one rail is what hosts have anyway\n"
            "  hint: name the rate of each, as in --rails 100Gbps,100Gbps"
        )
        raise ExperimentError(msg)
    if settings.costs is not None:
        read_costs(read_text(settings.costs), source_name(settings.costs))
    programs: list[_Program] = []
    for trace in traces:
        taken = [program.job for program in programs]
        programs.append(_Program.of(trace, settings.ranks_per_host, taken))
    found = Source.of(settings.fabric).check("auto")
    needed = sum(program.hosts for program in programs)
    if needed > found.hosts:
        who = join_words(f"{it.job} ({many(it.ranks, 'rank')})" for it in programs)
        msg = (
            f"{settings.fabric}: {who} need{'s' if len(programs) == 1 else ''} "
            f"{many(needed, 'host')}, and the fabric has {found.hosts:,}\n"
            "  hint: --ranks-per-host N puts more ranks on a host, or name a larger fabric"
        )
        raise TraceError(msg)
    plain = Combination(placement=settings.placements[0])
    options: dict[str, Sequence[Any]] = {
        "scheme": [name for name, _ in core.build.schemes() if name != "none"],
        "collectives": ["multicast", "offload"],
        "scheduling": [name for name in ALL_SCHEDULES if name != "none"],
        "rails": [len(settings.rails)] if settings.rails else [],
        "placement": list(settings.placements[1:]),
    }
    asked = {
        axis: options[axis] for axis, name in zip(AXES, SYSTEMS, strict=True) if name in systems
    }
    return _Search(
        programs,
        settings,
        str((out / "runs" / "map.toml").absolute()),
        found.switches,
        out,
        engine,
        watch,
        plain,
        asked,
    )


def _systems(settings: Settings) -> Sequence[str]:
    """The systems to search, in their order."""
    if settings.systems is None:
        return [name for name in SYSTEMS if name != "rails" or settings.rails]
    _each_known("--systems", settings.systems, SYSTEMS)
    if "rails" in settings.systems and not settings.rails:
        msg = "--systems rails: hosts have one link\n  hint: --rails 100Gbps,100Gbps gives them two"
        raise ExperimentError(msg)
    return settings.systems


def _each_known(option: str, words: Sequence[str], known: Sequence[str]) -> None:
    for word in words:
        if word not in known:
            msg = f"{option}: `{word}` is unknown: {suggest(word, known)}"
            raise ExperimentError(msg)
    if not words or len(set(words)) < len(words):
        msg = f"{option}: each once, and at least one of {', '.join(known)}"
        raise ExperimentError(msg)


def _searched(search: _Search) -> dict[str, Any]:
    """Go through the stages; what `summary.json` holds."""
    seeds = list(range(1, search.settings.seeds + 1))
    first = seeds[0]
    singles = search.singles()
    if not singles:
        msg = (
            "there is nothing to search\n  hint: name more --systems, or more than one --placement"
        )
        raise ExperimentError(msg)
    base = 1 if len(search.programs) == 1 else 1 + len(search.programs)  # plain, and each alone
    least = base + len(singles) + (base + 1) * len(seeds)
    if search.left() < least:
        msg = (
            f"--budget: {many(search.settings.most_runs or 0, 'run')}, and every switch alone, "
            f"then one plan and the plain run on {many(len(seeds), 'seed')}, take {least:,}\n"
            "  hint: fewer --systems, --placement or --seeds take fewer"
        )
        raise ExperimentError(msg)
    search.measure("1-alone", [search.plain, *singles], [first])
    alone = [one for one in search.known(first) if one in singles]
    kept = [one for one in alone if search.helps(one, first)]
    room = search.left() - (base + 1) * len(seeds)
    together = [
        one
        for one in _combined(search, kept)
        if (one, search.programs[0].job, first) not in search.times
    ]
    together = together[: int(min(max(room, 0), len(together)))]
    if together:
        search.measure("2-together", together, [first])
    most = int(min(FINALISTS, max(1.0, search.left() / len(seeds) - base)))
    found = search.known(first)
    faster = [one for one in found if search.gain(one, first) > 0]
    finalists = (faster or found[:1])[:most]
    search.measure("3-seeds", [search.plain, *finalists], seeds)
    return _summary(search, finalists, alone, kept, seeds)


def _combined(search: _Search, kept: Sequence[Combination]) -> list[Combination]:
    """What goes on from switches that help alone, the best first.

    The best of each system together; the same with one of them left out, or with the second best
    of one; and pairs of the best.
    """
    by_axis: dict[str, list[Any]] = {}
    for one in kept:
        for axis in search.told(one):
            by_axis.setdefault(axis, []).append(getattr(one, axis))
    starts = [{axis: values[0] for axis, values in by_axis.items()}]
    others = [name for name in by_axis.get("scheme", ()) if name not in {*NO_RAILS, RAILS_USE}]
    if "rails" in by_axis and "scheme" in by_axis:  # a scheme of rails, or none named; or no rails
        without = {axis: value for axis, value in starts[0].items() if axis != "rails"}
        named = {axis: value for axis, value in starts[0].items() if axis != "scheme"}
        starts = [named, without, *({**starts[0], "scheme": name} for name in others[:1])]
    found: list[dict[str, Any]] = list(starts)
    for best in starts:
        found += [{a: v for a, v in best.items() if a != axis} for axis in best]
        found += [{**best, axis: by_axis[axis][1]} for axis in best if len(by_axis[axis]) > 1]
    for best in starts:
        found += [dict(pair) for pair in combinations(best.items(), 2)]
    made = [replace(search.plain, **settings) for settings in found]
    return list(dict.fromkeys(one for one in made if one.possible and one != search.plain))


def _summary(
    search: _Search,
    finalists: Sequence[Combination],
    alone: Sequence[Combination],
    kept: Sequence[Combination],
    seeds: Sequence[int],
) -> dict[str, Any]:
    first = seeds[0]
    plans: dict[Combination, dict[str, Any]] = {}
    judged: dict[Combination, Judged] = {}
    for one in finalists:
        if not all(math.isfinite(search.slowdown(one, seed)) for seed in seeds):
            continue
        judged[one] = judge(
            [_mean_time(search, one, seed) for seed in seeds],
            [search.gain(one, seed) for seed in seeds],
            len(search.told(one)),
        )
    singles = {one: search.gain(one, first) for one in alone}
    for one in in_order(judged):
        plans[one] = {
            "settings": search.told(one),
            **judged[one].told(),
            "cost": search.cost(one),
            "why": _why(search, one, singles, judged[one]),
        }
    best = next(iter(plans), None)
    helps = best is not None and not judged[best].noise and judged[best].gain > 0
    chosen = best if best is not None and helps else search.plain
    whole = search.product() * len(seeds)
    return {
        "schema": 1,
        "kind": "advise",
        "fabric": source_name(search.settings.fabric).name,
        "seeds": list(seeds),
        "headline": _headline(search, chosen, judged),
        "advice": search.told(chosen),
        "programs": [_program(search, it, chosen, seeds) for it in search.programs],
        "plain": {
            "settings": {},
            "placement": search.plain.placement,
            **judge(
                [_mean_time(search, search.plain, s) for s in seeds], [0.0 for _ in seeds], 0
            ).told(),
        },
        "plans": list(plans.values()),
        "alone": [
            {"settings": search.told(one), "gain_frac": gain, "kept": one in kept}
            for one, gain in singles.items()
        ],
        "refused": dict(search.refused),
        "runs": {"done": search.runs, "full_product": whole, "saved": max(0, whole - search.runs)},
    }


def _program(
    search: _Search, program: _Program, chosen: Combination, seeds: Sequence[int]
) -> dict[str, Any]:
    """What the advice does to one of the programs."""
    own = [search.times[chosen, program.job, seed] for seed in seeds]
    plain = [search.times[search.plain, program.job, seed] for seed in seeds]
    gains = [_saved(a, b) for a, b in zip(own, plain, strict=True)]
    told = judge(own, gains, 0).told()
    return {
        "job": program.job,
        "program": program.program,
        "ranks": program.ranks,
        "hosts": program.hosts,
        "plain_s": sum(plain) / len(plain),
        **told,
    }


def _mean_time(search: _Search, one: Combination, seed: int) -> float:
    times = [search.times[one, program.job, seed] for program in search.programs]
    return sum(times) / len(times)


def _saved(own: float, plain: float) -> float:
    return 1 - own / plain if plain > 0 else 0.0


def _why(
    search: _Search, one: Combination, singles: Mapping[Combination, float], judged: Judged
) -> str:
    """Which system gives how much alone, and all of them together."""
    if judged.noise:
        return "noise: no difference from plain that the seeds could show"
    told = search.told(one)
    if len(told) == 1:
        return f"{words(told)} alone {_signed(judged.gain)}"
    parts = [
        f"{words({axis: value})} alone {_signed(singles[single])}"
        for axis, value in told.items()
        if (single := replace(search.plain, **{axis: value})) in singles
    ]
    return f"{', '.join(parts)}; together {_signed(judged.gain)}"


def _headline(search: _Search, chosen: Combination, judged: Mapping[Combination, Judged]) -> str:
    if chosen == search.plain:
        return "Leave it plain: no plan is faster beyond noise."
    one = judged[chosen]
    what = "less time" if len(search.programs) == 1 else "less slowdown of the programs"
    return f"Set {words(search.told(chosen))}: {percent(one.gain)} {what} than plain."


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


def _signed(gain: float) -> str:
    return f"−{percent(-gain)}" if gain < 0 else percent(gain)
