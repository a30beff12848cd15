"""What is going to run: the JSON plan of `_core.validate`, read into frozen dataclasses.

The plan (``schema`` 1)::

    {"schema": 1, "name": "congestion-large", "experiment": "<resolved TOML>",
     "compat": null,
     "fabric": {"name": "", "hosts": 320, "switches": 56, "links": 640, "memory_bytes": 120000},
     "traffic": {"flows": 19181, "bytes": 2437939200, "classes": ["T_long", ...]},
     "runs": [{"name": "hpcc-seed1-loaded", "scheme": "hpcc", "seed": 1,
               "variant": "loaded", "stamp": "<hash of the resolved run and the version>",
               "flows": 19181,
               "estimate": {"packet_hops": 33100000, "seconds": 6.4, "memory_bytes": 40000000,
                            "samples": 1000}}],
     "parameters": {"hpcc": [{"key": "eta", "value": "0.95", "source": "[HPCC 5.1]",
                              "warning": null}]},
     "settings": [{"key": "buffer", "value": "32 MiB", "source": "the experiment"}],
     "score": {"reading": "per-flow", "variance": "pvar"}, "warnings": [],
     "jobs": [], "job_hosts": {}, "setups": [], "one_thread": null}

``variant`` is ``loaded``, ``isolated`` (the twin with the tested flows only) or ``alone-JOB`` (a
job without all others). An estimate that
cannot be made is null; its seconds are those of the machine in docs/results/performance.md, and
`_core.measure` gives this one's. The network's memory is shared by the runs and not in theirs.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from raddle.errors import RaddleError

__all__ = [
    "Estimate",
    "Parameter",
    "Plan",
    "PlannedFabric",
    "PlannedRun",
    "PlannedTraffic",
    "RunStats",
]

PLAN_SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Estimate:
    """What one run is expected to cost; None where it cannot be told beforehand.

    Memory is that of the run alone, without the network and the process.
    """

    packet_hops: int | None
    seconds: float | None
    memory_bytes: int | None
    samples: int = 0
    """Samples that it takes."""

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> "Estimate":
        """Read one estimate of a plan."""
        return cls(
            raw.get("packet_hops"),
            raw.get("seconds"),
            raw.get("memory_bytes"),
            raw.get("samples", 0),
        )


@dataclass(frozen=True, slots=True)
class Parameter:
    """One effective parameter, where it came from, and a warning if it is out of range."""

    key: str
    value: str
    source: str
    warning: str | None = None


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One simulation: a scheme, a seed, and everything, the tested flows alone or a job alone."""

    index: int
    name: str
    scheme: str
    seed: int
    variant: str
    """`loaded`, `isolated`, or `alone-JOB`."""
    stamp: str
    estimate: Estimate
    flows: int | None = None
    """Flows that it will have, where that is known."""


@dataclass(frozen=True, slots=True)
class PlannedFabric:
    """The fabric of an experiment; the fields stand in the order of `manifest.json`."""

    name: str
    hosts: int
    switches: int
    links: int
    memory_bytes: int
    """Of the network, which runs share."""


@dataclass(frozen=True, slots=True)
class PlannedTraffic:
    """The traffic of an experiment; None where it is not known beforehand."""

    flows: int | None
    bytes: int | None
    classes: Sequence[str]


@dataclass(frozen=True, slots=True)
class Plan:
    """A resolved experiment. `text` is the JSON that goes back to the core unchanged."""

    text: str
    name: str
    experiment: str
    compat: str | None
    fabric: PlannedFabric
    traffic: PlannedTraffic
    runs: tuple[PlannedRun, ...]
    parameters: Mapping[str, tuple[Parameter, ...]]
    settings: tuple[Parameter, ...]
    score: Mapping[str, Any]
    warnings: tuple[str, ...]
    jobs: tuple[str, ...] = ()
    """Programs that share the fabric, in the order of the experiment."""
    job_hosts: Mapping[str, Sequence[tuple[str, int]]] = field(default_factory=dict)
    """By job: its ranks' hosts in order, and how many ranks each has; the same in all setups."""
    one_thread: str | None = None
    """Why its runs keep to one thread, if they do."""
    set_up_s: float = 0.0
    """Processor time that checking the experiment and building its network took."""

    @classmethod
    def from_json(cls, text: str) -> "Plan":
        """Read the core's plan; an unknown schema means that core and package do not match."""
        raw = json.loads(text)
        if raw.get("schema") != PLAN_SCHEMA:
            msg = (
                f"the compiled core speaks plan schema {raw.get('schema')}, this package "
                f"{PLAN_SCHEMA}: reinstall raddle so that both come from one build"
            )
            raise RaddleError(msg)
        return cls(
            text=text,
            name=raw["name"],
            experiment=raw["experiment"],
            compat=raw.get("compat"),
            fabric=PlannedFabric(**raw["fabric"]),
            traffic=PlannedTraffic(**raw["traffic"]),
            runs=tuple(_run(i, r) for i, r in enumerate(raw["runs"])),
            parameters={
                scheme: tuple(_parameter(p) for p in rows)
                for scheme, rows in raw.get("parameters", {}).items()
            },
            settings=tuple(_parameter(p) for p in raw.get("settings", [])),
            score=raw.get("score") or {},
            warnings=tuple(raw.get("warnings", [])),
            jobs=tuple(raw.get("jobs", [])),
            job_hosts={
                job: tuple((name, ranks) for name, ranks in hosts)
                for job, hosts in raw.get("job_hosts", {}).items()
            },
            one_thread=raw.get("one_thread"),
        )

    def as_json(self) -> Mapping[str, object]:
        """The core's plan, with the estimates that this one has."""
        raw: dict[str, Any] = json.loads(self.text)
        for run, planned in zip(raw["runs"], self.runs, strict=True):
            run["estimate"] = asdict(planned.estimate)
        return raw

    @property
    def schemes(self) -> tuple[str, ...]:
        """Schemes in the order of the experiment."""
        return tuple(dict.fromkeys(run.scheme for run in self.runs))

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seeds in the order of the experiment."""
        return tuple(dict.fromkeys(run.seed for run in self.runs))


@dataclass(frozen=True, slots=True)
class RunStats:
    """What a finished run says about itself, in `stats.json`: the same on every machine."""

    name: str
    stamp: str
    packet_hops: int
    simulated_ps: int
    flows: int
    finished: int
    multicast: Mapping[str, int] | None = None
    """Counts of messages to groups; None in a run without groups."""

    @classmethod
    def from_json(cls, text: str) -> "RunStats":
        """Read `stats.json`; raises KeyError or ValueError if it is not one."""
        raw = json.loads(text)
        multicast = raw.get("multicast")
        return cls(
            name=str(raw["name"]),
            stamp=str(raw["stamp"]),
            packet_hops=int(raw["packet_hops"]),
            simulated_ps=int(raw["simulated_ps"]),
            flows=int(raw["flows"]),
            finished=int(raw["finished"]),
            multicast=None if multicast is None else {k: int(v) for k, v in multicast.items()},
        )


def _parameter(raw: Mapping[str, Any]) -> Parameter:
    return Parameter(raw["key"], str(raw["value"]), raw["source"], raw.get("warning"))


def _run(index: int, raw: Mapping[str, Any]) -> PlannedRun:
    estimate = raw.get("estimate") or {}
    return PlannedRun(
        index=index,
        name=raw["name"],
        scheme=raw["scheme"],
        seed=int(raw["seed"]),
        variant=raw["variant"],
        stamp=raw["stamp"],
        estimate=Estimate.from_json(estimate),
        flows=raw.get("flows"),
    )
