"""`raddle advise`: which of the five systems a program should use on a fabric.

Three stages find out. First every switch alone, on one seed: what makes no program faster
by a hundredth is dropped. Then what is left is combined. Then the best few and the plain run are
simulated on all seeds, the same ones, so that a gain is a mean over pairs of runs with a 95 %
interval. All runs are those of an experiment with a [[job]] for each program and a [[setup]] for
each combination; they lie below `runs` of the results folder, and the same command takes up what
is done.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import tomli_w

from raddle import core
from raddle.errors import ExperimentError, TraceError
from raddle.files import source_name, write_json, write_text
from raddle.results.claim import claim_folder
from raddle.results.trace import SUFFIX
from raddle.services.combinations import (
    AXES,
    NO_RAILS,
    PLACEMENTS,
    PS,
    RAILS_USE,
    Combination,
    Program,
    Search,
    Settings,
    saved,
    words,
)
from raddle.services.costs import Costs, read_file
from raddle.services.engines.choice import LOCAL, Engine
from raddle.services.fabric import Source
from raddle.services.replay import APPLICABLE_SCHEDULES
from raddle.services.runner import Watch
from raddle.statistics.plans import Judged, in_order, judge
from raddle.text import join_words, many, percent, suggest

__all__ = [
    "SYSTEMS",
    "advice_names",
    "advice_toml",
    "advise",
    "read_budget",
    "usual_name",
]

SYSTEMS = ("schemes", "collectives", "scheduling", "rails", "placement")
"""What may be searched; each stands for a setting, in the order of `AXES`."""
FINALISTS = 5
"""Plans that are compared on all seeds."""


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
        write_text(Path(search.fabric), _source(traces, settings).export("auto", "toml"))
        summary = _searched(search)
        write_json(out / "summary.json", summary)
        names = advice_names([program.job for program in search.programs])
        for old in out.glob("advice*.toml"):
            if old.name not in names:
                old.unlink()
        placement = summary["advice"].get("placement", search.plain.placement)
        for name, told in zip(names, summary["programs"], strict=True):
            hosts = search.hosts.get((placement, told["job"]), ())
            write_text(out / name, advice_toml(told, summary["advice"], hosts))
    return summary


def advice_toml(
    program: Mapping[str, Any],
    settings: Mapping[str, Any],
    hosts: Sequence[tuple[str, int]] = (),
) -> str:
    """The advice for a program as `advice.toml` (schema 1) has it.

    `program` is its row in `summary.json`. `hosts` are those of its ranks in order, and how many
    each has; where a host comes twice, no list of hosts says which ranks it has, and none is given.
    """
    table: dict[str, Any] = {"name": program["program"], "ranks": program["ranks"]}
    if hosts and len({name for name, _ in hosts}) == len(hosts):
        table["hosts"] = ",".join(f"{name}:{ranks}" for name, ranks in hosts)
    return tomli_w.dumps(
        {
            "schema": 1,
            "program": table,
            "settings": dict(settings),
            "predicted": {"time_s": program["predicted_s"], "plain_s": program["plain_s"]},
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
) -> Search:
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
    _costs_of(settings)
    programs: list[Program] = []
    for trace in traces:
        taken = [program.job for program in programs]
        programs.append(Program.of(trace, settings.ranks_per_host, taken))
    source = _source(traces, settings)
    found = source.check("auto")
    needed = sum(program.hosts for program in programs)
    if needed > found.hosts:
        who = join_words(f"{it.job} ({many(it.ranks, 'rank')})" for it in programs)
        msg = (
            f"{source.name}: {who} need{'s' if len(programs) == 1 else ''} "
            f"{many(needed, 'host')}, and the fabric has {found.hosts:,}\n"
            "  hint: --ranks-per-host N puts more ranks on a host, or name a larger fabric"
        )
        raise TraceError(msg)
    plain = Combination(placement=settings.placements[0])
    options: dict[str, Sequence[Any]] = {
        "scheme": [name for name, _ in core.build.schemes() if name != "none"],
        "collectives": ["multicast", "offload"],
        "scheduling": list(APPLICABLE_SCHEDULES),
        "rails": [len(settings.rails)] if settings.rails else [],
        "placement": list(settings.placements[1:]),
    }
    asked = {
        axis: options[axis] for axis, name in zip(AXES, SYSTEMS, strict=True) if name in systems
    }
    return Search(
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


def _source(traces: Sequence[Path], settings: Settings) -> Source:
    """The map that is named, or that the first trace brings along."""
    return Source.of_trace(traces[0]) if settings.fabric is None else Source.of(settings.fabric)


def _fabric_name(settings: Settings) -> str:
    return "the trace's own" if settings.fabric is None else source_name(settings.fabric).name


def _costs_of(settings: Settings) -> dict[str, Any]:
    """Where the costs of hosts come from."""
    costs = Costs({}) if settings.costs is None else read_file(settings.costs)
    return costs.as_json()


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


def _searched(search: Search) -> dict[str, Any]:
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


def _combined(search: Search, kept: Sequence[Combination]) -> list[Combination]:
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
    search: Search,
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
        "fabric": _fabric_name(search.settings),
        "host_costs": _costs_of(search.settings),
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
    search: Search, program: Program, chosen: Combination, seeds: Sequence[int]
) -> dict[str, Any]:
    """What the advice does to one of the programs."""
    own = [search.times[chosen, program.job, seed] for seed in seeds]
    plain = [search.times[search.plain, program.job, seed] for seed in seeds]
    gains = [saved(a, b) for a, b in zip(own, plain, strict=True)]
    told = judge(own, gains, 0).told()
    return {
        "job": program.job,
        "program": program.program,
        "ranks": program.ranks,
        "hosts": program.hosts,
        "plain_s": sum(plain) / len(plain),
        **told,
    }


def _mean_time(search: Search, one: Combination, seed: int) -> float:
    times = [search.times[one, program.job, seed] for program in search.programs]
    return sum(times) / len(times)


def _why(
    search: Search, one: Combination, singles: Mapping[Combination, float], judged: Judged
) -> str:
    """Which system gives how much alone, and all of them together."""
    if judged.noise:
        return "noise: at most 3 % from plain, or no difference that the seeds could show"
    told = search.told(one)
    if len(told) == 1:
        return f"{words(told)} alone {_signed(judged.gain)}"
    parts = [
        f"{words({axis: value})} alone {_signed(singles[single])}"
        for axis, value in told.items()
        if (single := replace(search.plain, **{axis: value})) in singles
    ]
    return f"{', '.join(parts)}; together {_signed(judged.gain)}"


def _headline(search: Search, chosen: Combination, judged: Mapping[Combination, Judged]) -> str:
    if chosen == search.plain:
        return "Leave it plain: no plan is faster beyond noise."
    one = judged[chosen]
    what = "less time" if len(search.programs) == 1 else "less slowdown of the programs"
    return f"Set {words(search.told(chosen))}: {percent(one.gain)} {what} than plain."


def _signed(gain: float) -> str:
    return f"−{percent(-gain)}" if gain < 0 else percent(gain)
