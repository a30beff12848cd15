"""Flows of Sun et al. by themselves (Figure 7), and GPCNeT's load test, their model."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from experiments.congestion.judging import high, low
from experiments.congestion.runs import HERE
from experiments.congestion.scores import means
from raddle.results import Results
from raddle.results.columns import codes, floats, integers, select, take
from raddle.results.reproduction import Row, Table, cell, finding
from raddle.services.traffic import panels
from raddle.statistics.samples import mean_interval

LOADS = (30, 60, 90)
HOSTS = 200
Panels = list[tuple[str, pa.Table]]


def figure_7(seed: int) -> Panels:
    """Title and flows at each load."""
    files = [HERE / f"figure7-{load}.toml" for load in LOADS]
    found = panels(files, (), format="auto", seed=seed)
    return [(f"load {load} %", flows) for load, (_, flows) in zip(LOADS, found, strict=True)]


def traffic_rows(seeds: tuple[int, ...]) -> list[Row]:
    """What Figure 7 and section 3 say of the flows."""
    drawn = {seed: figure_7(seed) for seed in seeds}
    shares = [100 * len(tested_hosts(each[0][1])) / HOSTS for each in drawn.values()]
    grows, even, broad = [], [], []
    for each in drawn.values():
        counts = [background(flows).num_rows for _, flows in each]
        grows.append(min(counts[1] - counts[0], counts[2] - counts[1]))
        even.append(min(evenness(flows) for _, flows in each))
        broad.append(min(broadcast_lead(flows) for _, flows in each))
    return [
        cell(
            item="Section 3",
            setting="hosts that make tested flows",
            published=20,
            ours=float(np.mean(shares)),
            kind="chosen",
            unit="%",
        ),
        said("more background with more load", "flows more, at least", grows, 0.0),
        said(
            "tested flows are spread evenly over the network",
            "chance of a spread this uneven (chi-square of hosts by ten)",
            even,
            0.05,
        ),
        said(
            "the background that is concentrated is broadcast",
            "flows of the busiest source, broadcast over any other class",
            broad,
            1.0,
        ),
    ]


def said(statement: str, unit: str, values: Sequence[float], least: float) -> Row:
    """A sentence that holds where the interval of a figure lies above `least`."""
    interval = mean_interval(values)
    holds = True if low(interval) > least else False if high(interval) <= least else None
    return finding(
        item="Figure 7",
        setting=unit,
        statement=statement,
        holds=holds,
        kind="chosen",
        ours=interval.mean,
        ci=(low(interval), high(interval)) if interval.n > 1 else None,
        unit=f"above {least:g}",
        note=f"least of three loads; {interval.n} seeds",
    )


def of_class(flows: pa.Table, prefix: str) -> NDArray[np.int64]:
    """The rows of the classes that start so."""
    which, names = codes(flows, "class")
    wanted = [code for code, name in enumerate(names) if name.startswith(prefix)]
    return np.flatnonzero(np.isin(which, wanted))


def tested_hosts(flows: pa.Table) -> set[int]:
    """Sources and destinations of tested flows."""
    rows = of_class(flows, "tested")
    return {int(n) for end in ("src", "dst") for n in integers(flows, end)[rows]}


def background(flows: pa.Table) -> pa.Table:
    """The flows that are not tested."""
    return take(flows, of_class(flows, "background"))


def evenness(flows: pa.Table) -> float:
    """The chance of tested hosts lying this unevenly in ten equal parts, if drawn at random.

    The distribution of chi-square is drawn, not looked up: 2,000 random choices of as many hosts.
    """
    tested = sorted(tested_hosts(flows))
    random = np.random.default_rng(1)
    own = unevenness(np.array(tested))
    others = [unevenness(random.choice(HOSTS, len(tested), replace=False)) for _ in range(2000)]
    return float(np.mean(np.array(others) >= own))


def unevenness(hosts: NDArray[np.int64]) -> float:
    """Chi-square of hosts in ten equal parts of the network."""
    counts = np.bincount(hosts * 10 // HOSTS, minlength=10)
    return float((np.square(counts - counts.mean()) / counts.mean()).sum())


def broadcast_lead(flows: pa.Table) -> float:
    """Most flows of one source: by broadcast, over the most of another background class."""
    src = integers(flows, "src")
    most = {
        name: max(Counter(src[of_class(flows, f"background-{name}")].tolist()).values(), default=0)
        for name in ("broadcast", "incast", "alltoall")
    }
    return most["broadcast"] / max(most["incast"], most["alltoall"], 1)


def impacts(results: Results) -> Table:
    """GPCNeT's table: what victims have alone and under congestors, and the congestion impact.

    An operation of a rank lasts until its next one starts, as in a closed loop; the last one lasts
    until its messages have arrived.
    """
    twin = results.isolated
    lines = []
    for scheme in results.schemes if twin is not None else ():
        found: dict[str, list[list[float]]] = {}
        for seed in results.seeds:
            alone = operations(select(twin.flows, scheme=scheme, seed=seed))  # type: ignore[union-attr]
            under = operations(select(results.flows, scheme=scheme, seed=seed))
            for name, idle in alone.items():
                sides = (idle, under[name])
                mean = [float(side.mean()) for side in sides]
                late = [float(np.percentile(side, 99)) for side in sides]
                row = [*mean, mean[1] / mean[0], *late, late[1] / late[0]]
                found.setdefault(name, []).append(row)
        for name, seeds in found.items():
            cells = [means(np.array(column)) for column in zip(*seeds, strict=True)]
            lines.append((scheme, name, *cells))
    heads = ("alone, us", "congested, us", "impact", "p99 alone", "p99 congested", "impact of p99")
    return Table(("scheme", "victims", *heads), lines)


def operations(flows: pa.Table) -> dict[str, NDArray[np.float64]]:
    """How long the victims' operations took, us, by class."""
    which, names = codes(flows, "class")
    start, end = floats(flows, "start_ps"), floats(flows, "fct_ps")
    end = start + end
    src = integers(flows, "src")
    found = {}
    for code, name in enumerate(names):
        if name.startswith("tested"):
            rows = which == code
            found[name] = np.concatenate([*lasting(src[rows], start[rows], end[rows])]) / 1e6
    return dict(sorted(found.items()))


def lasting(src: Any, start: Any, end: Any) -> Iterator[Any]:  # noqa: ANN401 - arrays
    """Of each source: from each start to the next, and from the last one to the last arrival."""
    for source in np.unique(src):
        own = src == source
        times = np.unique(start[own])
        yield np.diff(np.append(times, np.nanmax(end[own])))
