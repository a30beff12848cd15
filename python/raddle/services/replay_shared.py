"""Replays in which the network carries more than messages, or several programs run side by side.

`raddle replay` with several traces, `--collectives` or `--rails` is an experiment: a [[job]] for
each trace, and a [[setup]] for each combination of scheme, collectives and schedule. The first
setup is the plain one, with which the others are compared.
"""

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import tomli_w

from raddle.core import build
from raddle.errors import TraceError
from raddle.results.trace import SUFFIX
from raddle.services.fabric import Source
from raddle.services.replay import ALL_SCHEDULES, Settings
from raddle.text import suggest

__all__ = ["COLLECTIVES", "Shared", "experiment", "refuse_what_is_not_shared"]

COLLECTIVES = ("host", "multicast", "offload")
LATENESS = "5us"
"""How late a host with network cards is; the default of [rails] suits a kernel's sockets."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What is replayed together, and what is switched on.

    Attributes
    ----------
    traces
        The programs, which take hosts in this order.
    schemes, collectives, schedules
        What is combined; of `schedules` those of `ALL_SCHEDULES`.
    rails
        Links of each host that are used as one.
    costs
        A file with costs of hosts.
    """

    traces: Sequence[Path]
    schemes: Sequence[str]
    collectives: Sequence[str]
    schedules: Sequence[str]
    rails: int
    costs: Path | None


def refuse_what_is_not_shared(settings: Settings, *, traces: bool) -> None:
    """Refuse options that only a replay of one program by hosts has.

    Raises
    ------
    TraceError
        Such an option was given.
    """
    usual = Settings()
    given = [
        option
        for option, is_given in (
            ("--scope", settings.scope != usual.scope),
            ("--leaders", settings.leaders != usual.leaders),
            ("--traces", traces),
        )
        if is_given
    ]
    if given:
        msg = (
            f"{given[0]} is for one trace whose collectives are messages over one rail\n"
            "  hint: leave it out, or --collectives, --rails and all traces but one"
        )
        raise TraceError(msg)


def experiment(shared: Shared, settings: Settings) -> str:
    """The experiment as TOML.

    Raises
    ------
    TraceError
        A word is not known, or there is no map.
    """
    for option, words, known in (
        ("--collectives", shared.collectives, COLLECTIVES),
        ("--schedule", shared.schedules, ALL_SCHEDULES),
    ):
        for word in words:
            if word not in known:
                msg = f"{option}: `{word}` is not one: {suggest(word, known)}"
                raise TraceError(msg)
    source = (
        Source.of_trace(shared.traces[0]) if settings.fabric is None else Source.of(settings.fabric)
    )
    document: dict[str, Any] = {
        "schema": 1,
        "fabric": _fabric(source, settings.fabric),
        "simulation": {"seeds": list(range(1, settings.seeds + 1))},
        "hosts": {
            "sockets": settings.sockets,
            "gap_share": settings.gap_share,
            "start_skew": settings.start_skew,
        },
        "job": list(_jobs(shared, settings)),
        "setup": list(_setups(shared)),
    }
    if settings.processors is not None:
        document["hosts"]["processors"] = settings.processors
    if shared.costs is not None:
        document["hosts"]["costs"] = str(shared.costs.absolute())
    if shared.rails > 1:
        document["rails"] = {"rates": [_rate(source)] * shared.rails, "lateness": LATENESS}
    return tomli_w.dumps(document)


def _jobs(shared: Shared, settings: Settings) -> Iterator[dict[str, Any]]:
    own: dict[str, Any] = {}
    if settings.placement != "recorded":
        rule, _, per_host = settings.placement.partition(":")
        if rule != "blocks" or not per_host.isdecimal():
            msg = (
                f"--placement: `{settings.placement}` is for one trace whose collectives are "
                "messages over one rail\n  hint: take recorded or blocks:N, as blocks:4"
            )
            raise TraceError(msg)
        own["ranks_per_host"] = int(per_host)
    if settings.algorithms:
        pairs = (choice.partition("=") for choice in settings.algorithms)
        own["algorithms"] = {collective: name for collective, _, name in pairs}
    taken: list[str] = []
    for trace in shared.traces:
        plain = re.sub(r"[^A-Za-z0-9_-]+", "-", trace.name.removesuffix(SUFFIX))[:32] or "program"
        name = f"{plain}-{taken.count(plain) + 1}" if plain in taken else plain
        taken.append(plain)
        yield {"name": name, "program": str(trace.absolute()), **own}


def _setups(shared: Shared) -> Iterator[dict[str, Any]]:
    first = shared.schemes[0]
    yield _setup("plain", first, "host", "none", rails=False if shared.rails > 1 else None)
    for scheme, collectives, schedule in product(
        shared.schemes, shared.collectives, shared.schedules
    ):
        parts = [scheme] if len(shared.schemes) > 1 or scheme != "none" else []
        parts += [collectives] if collectives != "host" else []
        parts += [schedule] if schedule != "none" else []
        parts += [f"{shared.rails}-rails"] if shared.rails > 1 else []
        rails = True if shared.rails > 1 else None
        if (scheme, collectives, schedule, rails) != (first, "host", "none", None):
            yield _setup("-".join(parts) or "hosts", scheme, collectives, schedule, rails=rails)


def _setup(
    name: str, scheme: str, collectives: str, schedule: str, *, rails: bool | None
) -> dict[str, Any]:
    setup: dict[str, Any] = {"name": name, "collectives": collectives, "scheduling": schedule}
    # Rails have a scheme of their own where none is asked for.
    if scheme != "none":
        setup["scheme"] = scheme
    return setup if rails is None else {**setup, "rails": rails}


def _fabric(source: Source, file: Path | None) -> dict[str, Any]:
    """The [fabric] table of an experiment on a map, that of `file` if it has one."""
    if source.check("auto") and file is not None and "[fabric]" not in source.text:
        return {"file": str(file.absolute())}
    table: dict[str, Any] = tomllib.loads(source.export("auto", "toml"))
    del table["schema"]
    return table


def _rate(source: Source) -> str:
    """The rate of most of a map's links."""
    kinds = source.check("auto").link_kinds
    return max(kinds, key=lambda kind: (kind.links, build.parse_quantity("rate", kind.rate))).rate
