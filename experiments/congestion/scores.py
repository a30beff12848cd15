"""The score of Sun et al. on the dumbbell and the large fabric: Figures 8 to 10, Tables 2, 3."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, get_args

import numpy as np

from experiments.congestion.judging import CLOSE, WORDS, Sentence, Values, judge, over
from experiments.congestion.runs import FIVE
from raddle.results import Results
from raddle.results.columns import floats, integers, select
from raddle.results.reproduction import Row, Table, cell, finding, lost
from raddle.statistics.samples import mean_interval
from raddle.statistics.score import CONFIGURATIONS, Reading, Role, Rules, Score, VarianceMode
from raddle.statistics.summary import figures_of, score_runs

INT = ("hpcc", "pint")
REST = tuple(scheme for scheme in FIVE if scheme not in INT)
LONG_BYTES = 1_000_000
"""Flows above this are long: tested long ones and background all-to-all."""
CONFIGURED = {"1": "equal weights", "2": "long first", "3": "Allreduce first"}
PARTS = {Role.LONG: "S_L", Role.SHORT: "S_S", Role.ALLREDUCE: "S_A"}
DELAYS = {Role.LONG: "long, Gb/s", Role.SHORT: "short, us", Role.ALLREDUCE: "Allreduce, us"}


@dataclass(frozen=True, slots=True)
class Scores:
    """The score of every scheme and seed of an experiment with an isolated twin."""

    results: Results
    scores: Mapping[str, tuple[Score, ...]]
    queues: Values
    """The longest queue of any switch port, MB."""
    reading: Reading = "per-flow"
    variance: VarianceMode = "pvar"

    @classmethod
    def of(cls, results: Results) -> "Scores":
        """Score all runs of an experiment."""
        flows = figures_of(results)
        scored = {s: score_runs(of_scheme(results, s), s, Rules(), flows) for s in results.schemes}
        each = {s: tuple(one[n] for n in sorted(one)) for s, one in scored.items()}
        return cls(results, each, queues(results))

    def read(self, reading: Reading, variance: VarianceMode) -> "Scores":
        """The same runs by another reading."""
        return replace(self, reading=reading, variance=variance)

    def part(self, role: Role) -> Values:
        """S_L, S_S or S_A."""
        return self._each(lambda one: one.parts[role].ratios[self.reading])

    def figure(self, role: Role, field: str) -> Values:
        """Bandwidth or delay of tested flows, `alone` or `loaded`."""
        return self._each(lambda one: getattr(one.parts[role], field))

    def total(self, configuration: str) -> Values:
        """S of one of the paper's three configurations."""
        weights = CONFIGURATIONS[configuration]
        return self._each(lambda one: one.total(weights, reading=self.reading, mode=self.variance))

    def _each(self, figure: Any) -> Values:  # noqa: ANN401 - a function of a score
        return {s: np.array([figure(one) for one in seeds]) for s, seeds in self.scores.items()}


def of_scheme(results: Results, scheme: str) -> Results:
    """The rows of one scheme: its seeds are then not looked for among those of all schemes."""
    found = Results(results.path)
    for name in ("flows", "queues", "throughput"):
        vars(found)[name] = select(getattr(results, name), scheme=scheme)
    if results.isolated is not None:
        twin = Results(results.isolated.path)
        vars(twin)["flows"] = select(results.isolated.flows, scheme=scheme)
        vars(found)["isolated"] = twin
    return found


def close(values: Values, schemes: tuple[str, ...]) -> dict[str, Any]:
    """Each pair of schemes within 10 % of each other."""
    return {
        f"{a} within 10 % above {b}": CLOSE * values[b] - values[a]
        for a, b in product(schemes, repeat=2)
        if a != b
    }


def dumbbell(scores: Scores) -> list[Sentence]:
    """Figure 8."""
    long, short, reduce = (scores.part(role) for role in Role)
    three = tuple(scores.scores)
    return [
        Sentence("D1", "Figure 8", "short-flow scores close", "S_S", short, close(short, three)),
        Sentence(
            "D2",
            "Figure 8",
            "HPCC best for long flows",
            "S_L",
            long,
            over(long, ["hpcc"], [s for s in three if s != "hpcc"]),
        ),
        Sentence(
            "D3",
            "Figure 8",
            "Allreduce hardly changed",
            "S_A",
            reduce,
            {f"{s} at most 1.1": CLOSE - reduce[s] for s in three},
        ),
    ]


def large(scores: Scores) -> list[Sentence]:
    """Table 3 and Figure 10; the paper's statements are about the five schemes but `none`."""
    long, short, reduce = (scores.part(role) for role in Role)
    rates, short_us, reduce_us = (scores.figure(role, "loaded") for role in Role)
    one_third, long_first, reduce_first = (scores.total(key) for key in CONFIGURED)
    rise = {s: reduce_first[s] - one_third[s] for s in scores.scores}
    ratio = {s: reduce_us[s] / short_us[s] for s in scores.scores}
    worse = np.maximum(*(long_first[s] for s in INT))
    return [
        Sentence(
            "L1",
            "Table 3",
            "equal weights: HPCC and PINT best",
            "S",
            one_third,
            over(one_third, INT, REST),
        ),
        Sentence(
            "L2",
            "Table 3",
            "HPCC and PINT best for Allreduce",
            "S_A",
            reduce,
            over(reduce, INT, REST),
            3,
        ),
        Sentence("L3", "Table 3", "long scores of the five close", "S_L", long, close(long, FIVE)),
        Sentence(
            "L4", "Table 3", "short scores of the five close", "S_S", short, close(short, FIVE)
        ),
        Sentence(
            "L5",
            "Figure 10",
            "long first: HPCC and PINT have no advantage",
            "S",
            long_first,
            {"another below hpcc or pint": worse - np.min([long_first[s] for s in REST], axis=0)},
        ),
        Sentence(
            "L6",
            "Section 5",
            "HPCC's and PINT's long flows are slower",
            "tested long, Gb/s",
            rates,
            {f"{i} below {s}": rates[s] - rates[i] for s in REST for i in INT},
            1,
        ),
        Sentence(
            "L7",
            "Section 5",
            "HPCC and PINT keep the shortest queues",
            "longest queue of a switch port, MB",
            scores.queues,
            over(scores.queues, INT, REST),
        ),
        Sentence(
            "L8",
            "Figure 10",
            "Allreduce first: all five scores rise",
            "S - S at equal weights",
            rise,
            {s: rise[s] for s in FIVE},
            3,
        ),
        Sentence(
            "L9",
            "Figure 10",
            "Allreduce is what slows all five most",
            "S_A",
            reduce,
            {
                f"{s}: S_A above {name}": reduce[s] - part[s]
                for s in FIVE
                for name, part in (("S_L", long), ("S_S", short))
            },
            3,
        ),
        Sentence(
            "L10",
            "Section 5",
            "short and Allreduce flows of equal length differ in delay",
            "mean FCT Allreduce / short",
            ratio,
            {s: ratio[s] - CLOSE for s in FIVE},
        ),
    ]


def queues(results: Results) -> Values:
    """The longest queue of any switch port, MB, seed by seed."""
    kinds = dict(
        zip(
            integers(results.nodes, "node").tolist(), results.nodes["kind"].to_pylist(), strict=True
        )
    )
    found: dict[str, list[float]] = {scheme: [] for scheme in results.schemes}
    for scheme, seed in results.runs:
        ports = select(results.ports, scheme=scheme, seed=seed)
        switch = np.array([kinds[n] == "switch" for n in integers(ports, "node").tolist()])
        found[scheme].append(float(floats(ports, "max_queue_bytes")[switch].max()) / 1e6)
    return {scheme: np.array(each) for scheme, each in found.items()}


def table_2(results: Results) -> list[Row]:
    """The traffic's statistics: our generator's defaults were chosen so that they come out."""
    one = select(results.flows, scheme="hpcc", seed=min(results.seeds))
    size = integers(one, "size_bytes")
    long = size > LONG_BYTES
    figures = (
        ("flows", 19_181.0, float(len(size)), ""),
        ("long flows of all flows", 1.4, round(100 * float(long.mean()), 1), "%"),
        ("bytes of long flows", 58.76, round(100 * float(size[long].sum() / size.sum()), 2), "%"),
    )
    return [
        cell(
            item="Table 2",
            setting=name,
            published=published,
            ours=ours,
            kind="chosen",
            unit=unit,
            note="sizes and counts of our generator were chosen so",
        )
        for name, published, ours, unit in figures
    ] + [lost("Table 2", "counts and bytes of each class", "the table has no text")]


def fabric(results: Results) -> list[Row]:
    """Figure 9, which our file follows."""
    kinds = results.nodes["kind"].to_pylist()
    hosts = sum(kind == "host" for kind in kinds)
    figures = (
        ("nodes", 376, len(kinds)),
        ("servers", 320, hosts),
        ("switches", 56, len(kinds) - hosts),
    )
    return [
        cell(item="Figure 9", setting=name, published=p, ours=o, kind="exact")
        for name, p, o in figures
    ]


def table_3(scores: Scores) -> Table:
    """The paper's Table 3: a row per scheme and one per scheme alone, three weightings."""
    lines = []
    for scheme, seeds in scores.scores.items():
        cells = [means(scores.figure(role, "loaded")[scheme]) for role in Role]
        cells += [means(scores.part(role)[scheme]) for role in Role]
        cells.append(means(np.array([one.variance_term for one in seeds])))
        cells += [means(scores.total(key)[scheme]) for key in CONFIGURED]
        lines.append((scheme, *cells))
        lines.append(
            (f"{scheme} iso", *(means(scores.figure(r, "alone")[scheme]) for r in Role), *[""] * 7)
        )
    heads = (*DELAYS.values(), *PARTS.values(), "W", "S 1", "S 2", "S 3")
    return Table(("scheme", *heads), lines)


def means(seeds: Any) -> str:  # noqa: ANN401 - figures of seeds
    """Mean and 95 % interval in words."""
    interval = mean_interval(seeds)
    width = "" if interval.half_width is None else f" ± {interval.half_width:.2f}"
    return f"{interval.mean:.2f}{width}"


def lost_cells(scores: Scores) -> list[Row]:
    """Table 3 and Figure 10 cell by cell: the text has lost all of them."""
    rows = []
    for scheme in FIVE:
        for role, name in DELAYS.items():
            for field, suffix in (("loaded", ""), ("alone", " iso")):
                mean = float(scores.figure(role, field)[scheme].mean())
                rows.append(lost("Table 3", f"{scheme}{suffix}, {name}", "no text", ours=mean))
        for key, name in CONFIGURED.items():
            mean = float(scores.total(key)[scheme].mean())
            rows.append(lost("Figure 10", f"{scheme}, {name}", "no numbers", ours=mean))
    return rows


def readings(scores: Scores) -> Table:
    """S by every reading, who is least, how many tie with it, which sentences hold."""
    lines = []
    schemes = tuple(scores.scores)
    for reading, variance in product(get_args(Reading), get_args(VarianceMode)):
        read = scores.read(reading, variance)
        said = {one.key: WORDS[judge(one)] for one in large(read)}
        for key, name in CONFIGURED.items():
            totals = {s: float(seeds.mean()) for s, seeds in read.total(key).items()}
            least = min(FIVE, key=totals.__getitem__)
            tied = [s for s in FIVE if totals[s] <= CLOSE * totals[least]]
            width = max(totals[s] for s in tied) / totals[least] - 1
            tie = f"{len(tied)} within {100 * width:.0f} %" if len(tied) > 1 else "none"
            sentence = {"1": "L1", "2": "L5", "3": "L8"}[key]
            cells = [f"{totals[s]:.2f}" for s in schemes]
            lines.append(
                (reading, variance, name, *cells, least, tie, f"{sentence} {said[sentence]}")
            )
    return Table(("reading", "W", "weights", *schemes, "least", "tie", "sentence"), lines)


def formulas(scores: Scores) -> list[Row]:
    """What the reading of the score leaves open."""
    rows = [lost("Equation (5)", "W, the term for uneven parts", "the formula has no text")]
    by_reading = {}
    for reading, variance in product(get_args(Reading), get_args(VarianceMode)):
        first = large(scores.read(reading, variance))[0]
        by_reading[f"{reading}, {variance}"] = judge(first)
    agreed = set(by_reading.values())
    rows.append(
        finding(
            item="Equation (6)",
            setting="L1 by all readings",
            statement="equal weights: HPCC and PINT best",
            holds=agreed.pop() if len(agreed) == 1 else None,
            note="; ".join(f"{name}: {WORDS[verdict]}" for name, verdict in by_reading.items()),
        )
    )
    return rows
