"""Our figures beside each finding of Sun et al., from the results folders of the experiments here.

python3 -m experiments.congestion.findings          print the tables of docs/results/congestion.md
python3 -m experiments.congestion.findings --run    run what is missing in out/ first
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow.compute as pc

import raddle
from experiments import call_raddle, command_line
from raddle.results import Results
from raddle.statistics.score import Reading, Rules, VarianceMode
from raddle.statistics.summary import score_runs

HERE = Path(__file__).resolve().parent
SCHEMES = ("none", "dctcp", "dcqcn", "timely", "hpcc", "pint")
"""The paper's order; its "five" are all but `none`."""
FIVE = SCHEMES[1:]
BUFFERS = ("4mib", "8mib", "12mib", "16mib", "32mib")
BURST_MS = 5.0
CLOSE = 1.1
"""Figures within 10 % of each other count as close."""

Values = dict[str, float]


@dataclass(frozen=True, slots=True)
class Finding:
    """What the paper found, what we measured of it per scheme, and whether they say the same."""

    key: str
    paper: str
    measure: str
    values: Values
    agrees: bool
    digits: int = 2


class Small:
    """The small experiment with one buffer: long flows F0 and F1, and the burst at 5 ms."""

    def __init__(self, results: Results) -> None:
        self.results = results
        series = results.flow_throughput
        flows = results.flows
        short = flows.filter(pc.field("class") == "short")
        self._rates: dict[tuple[str, int], tuple[np.ndarray, np.ndarray]] = {}
        self.short_us: dict[str, np.ndarray] = {}
        for scheme in SCHEMES:
            own = series.filter(pc.field("scheme") == scheme)
            # The first seed stands for the series; the rest only moves DCQCN and PINT a little.
            own = own.filter(pc.equal(own["seed"], pc.min(own["seed"])))
            for flow in (0, 1):
                rows = own.filter(pc.field("src") == flow)
                self._rates[scheme, flow] = (
                    rows["time_ps"].to_numpy() / 1e9,
                    rows["delivered_bytes"].to_numpy() * 8.0,
                )
            taken = short.filter(pc.field("scheme") == scheme)
            self.short_us[scheme] = taken["fct_ps"].to_numpy() / 1e6

    def goodput(self, scheme: str, flow: int, start_ms: float, end_ms: float) -> float:
        """Gb/s delivered within a window."""
        time, bits = self._rates[scheme, flow]
        inside = (time > start_ms) & (time <= end_ms)
        return float(bits[inside].sum()) / (end_ms - start_ms) / 1e6

    def bins(self, scheme: str, flow: int, start_ms: float, end_ms: float) -> np.ndarray:
        """Gb/s in windows of 100 us."""
        edges = np.arange(start_ms, end_ms - 1e-9, 0.1)
        return np.array([self.goodput(scheme, flow, edge, edge + 0.1) for edge in edges])

    def swing(self, scheme: str) -> float:
        """Standard deviation over mean of the long flows' rates before the burst, by 100 us."""
        both = [self.bins(scheme, flow, 1.0, BURST_MS) for flow in (0, 1)]
        return float(np.mean([rates.std() / rates.mean() for rates in both]))

    def kept(self, scheme: str, flow: int, start_ms: float, end_ms: float) -> float:
        """Rate within a window over the rate before the burst."""
        return self.goodput(scheme, flow, start_ms, end_ms) / self.goodput(
            scheme, flow, 1.0, BURST_MS
        )

    def lowest(self, scheme: str) -> float:
        """F0's lowest rate over 100 us from 5 to 8 ms over its rate before the burst."""
        low = float(self.bins(scheme, 0, BURST_MS, 8.0).min())
        return low / self.goodput(scheme, 0, 1.0, BURST_MS)

    def pause_us(self, scheme: str) -> float:
        """Pause time of all ports, mean over the seeds."""
        return float(self.results.summary["schemes"][scheme]["pause_us"])


class Scores:
    """The score of every scheme of an experiment with an isolated twin."""

    def __init__(self, results: Results) -> None:
        self.results = results
        self.schemes: Mapping[str, Any] = results.summary["schemes"]

    def part(self, name: str, field: str = "ratio") -> Values:
        """S_L, S_S or S_A, or their figures `alone` and `loaded`."""
        return {
            scheme: row["score"]["parts"][name][field]["mean"]
            for scheme, row in self.schemes.items()
        }

    def total(self, configuration: str) -> Values:
        """S of one of the paper's three configurations."""
        return {
            scheme: row["score"]["s"][configuration]["mean"] for scheme, row in self.schemes.items()
        }


def of(function: Callable[[str], float], schemes: Sequence[str] = SCHEMES) -> Values:
    """A figure of several schemes."""
    return {scheme: function(scheme) for scheme in schemes}


def best(values: Values, count: int = 1) -> set[str]:
    """The schemes with the lowest values."""
    return set(sorted(values, key=lambda name: values[name])[:count])


def close(values: Values) -> bool:
    """Whether all values lie within 10 % of the lowest."""
    return max(values.values()) <= CLOSE * min(values.values())


def small_findings(small: Small) -> list[Finding]:
    """Figures 2 to 4 and Table 1 of the paper."""
    swing = of(small.swing)
    steady = max(swing[name] for name in ("none", "hpcc"))
    f0 = of(lambda name: small.kept(name, 0, 5.0, 7.0))
    lowest = of(small.lowest)
    f1 = of(lambda name: small.kept(name, 1, 7.0, 9.0))
    mean = of(lambda name: float(small.short_us[name].mean()))
    spread = of(lambda name: float(np.ptp(np.percentile(small.short_us[name], [1, 99]))))
    tail = of(lambda name: float(np.percentile(small.short_us[name], 99)))
    pause = of(small.pause_us)
    others = [pause[name] for name in ("none", "dctcp", "dcqcn", "timely")]
    over_none = of(lambda name: mean[name] / mean["none"])
    return [
        Finding(
            "S1",
            "DCTCP and TIMELY oscillate",
            "swing of the long flows' rates before the burst (deviation / mean)",
            swing,
            min(swing["dctcp"], swing["timely"]) > max(0.05, 2 * steady),
        ),
        Finding(
            "S2",
            "DCQCN's F0 drops with the burst",
            "lowest 100 us of F0 / its rate before",
            lowest,
            lowest["dcqcn"] < 0.8,
        ),
        Finding(
            "S3",
            "HPCC and PINT keep F0",
            "F0 at 5 to 7 ms / its rate before",
            f0,
            min(f0["hpcc"], f0["pint"], lowest["hpcc"], lowest["pint"]) >= 0.9,
        ),
        Finding(
            "S4",
            "PINT's F1 recovers slowly",
            "F1 at 7 to 9 ms / its rate before",
            f1,
            f1["pint"] == min(f1.values()) and f1["pint"] < 0.5,
        ),
        Finding("S5", "short flows: PINT best", "mean FCT, us", mean, best(mean) == {"pint"}, 0),
        Finding(
            "S6",
            "short flows: TIMELY and DCQCN better than none",
            "mean FCT / none's",
            over_none,
            max(over_none["timely"], over_none["dcqcn"]) < 0.999,
            3,
        ),
        Finding(
            "S7",
            "short flows: HPCC like none, but more even",
            "p99 - p1 of the FCT, us",
            spread,
            abs(over_none["hpcc"] - 1) <= 0.1 and spread["hpcc"] < spread["none"],
            0,
        ),
        Finding(
            "S8",
            "short flows: DCTCP has a long tail",
            "p99 / mean of the FCT",
            of(lambda name: tail[name] / mean[name]),
            best({name: -tail[name] / mean[name] for name in SCHEMES}) == {"dctcp"},
            3,
        ),
        Finding(
            "S9",
            "PFC time of HPCC and PINT an order of magnitude below the rest",
            "pause time, us",
            pause,
            min(others) > 0 and 10 * max(pause["hpcc"], pause["pint"]) <= min(others),
            0,
        ),
        Finding(
            "S10",
            "PFC time of DCQCN and TIMELY is long",
            "pause time / none's",
            of(lambda name: pause[name] / pause["none"]),
            min(pause["dcqcn"], pause["timely"]) > 0.2 * pause["none"],
        ),
    ]


def dumbbell_findings(scores: Scores) -> list[Finding]:
    """Figure 8 of the paper."""
    long, short, reduce = (scores.part(name) for name in ("long", "short", "allreduce"))
    return [
        Finding("D1", "short-flow scores close", "S_S", short, close(short)),
        Finding("D2", "HPCC best for long flows", "S_L", long, best(long) == {"hpcc"}),
        Finding("D3", "Allreduce hardly changed", "S_A", reduce, max(reduce.values()) <= CLOSE),
    ]


def large_findings(scores: Scores) -> list[Finding]:
    """Table 3 and Figure 10 of the paper; its statements are about the five schemes but `none`."""

    def five(values: Values) -> Values:
        return {name: values[name] for name in FIVE}

    parts = ("long", "short", "allreduce")
    long, short, reduce = (scores.part(name) for name in parts)
    rates, short_us, reduce_us = (scores.part(name, "loaded") for name in parts)
    one_third, long_first, reduce_first = (scores.total(key) for key in "123")
    rise = of(lambda name: reduce_first[name] - one_third[name])
    ratio = of(lambda name: reduce_us[name] / short_us[name])
    int_schemes = {"hpcc", "pint"}
    return [
        Finding(
            "L2",
            "equal weights: HPCC and PINT best",
            "S",
            one_third,
            best(five(one_third), 2) == int_schemes,
        ),
        Finding(
            "L3", "... because of Allreduce", "S_A", reduce, best(five(reduce), 2) == int_schemes
        ),
        Finding(
            "L4", "equal weights: long scores of the five close", "S_L", long, close(five(long))
        ),
        Finding(
            "L5", "equal weights: short scores of the five close", "S_S", short, close(five(short))
        ),
        Finding(
            "L6",
            "long bandwidth first: HPCC and PINT have no advantage",
            "S",
            long_first,
            best(five(long_first), 2) != int_schemes,
        ),
        Finding(
            "L7",
            "... because their long flows are slower (INT bytes, short queues)",
            "tested long flows, Gb/s",
            rates,
            best(five(rates), 2) == int_schemes,
            1,
        ),
        Finding(
            "L8",
            "Allreduce first: all five scores rise",
            "S - S at equal weights",
            rise,
            min(five(rise).values()) > 0,
        ),
        Finding(
            "L9",
            "short and Allreduce flows of equal length differ in delay",
            "mean FCT Allreduce / short",
            ratio,
            min(five(ratio).values()) > CLOSE,
        ),
    ]


def traffic_statistics(results: Results) -> str:
    """The paper's Table 2: 19,181 flows, of which long ones are 1.4 % and 58.76 % of the bytes."""
    flows = results.flows
    one = flows.filter(pc.field("scheme") == "hpcc")
    one = one.filter(pc.equal(one["seed"], pc.min(one["seed"])))
    size = one["size_bytes"].to_numpy()
    long = size > 1e6
    share = f"{100 * size[long].sum() / size.sum():.2f}"
    agrees = "yes" if len(size) == 19_181 and share == "58.76" else "**no**"
    return (
        f"L1: 19,181 flows, long ones 1.4 % of the flows and 58.76 % of the bytes; ours "
        f"{len(size):,}, {100 * long.mean():.1f} %, {share} %: agrees: {agrees}"
    )


def table3(scores: Scores) -> str:
    """The paper's Table 3: a row per scheme and one per scheme alone, three weightings."""
    lines = [
        "| scheme | long Gb/s | short us | Allreduce us | S_L | S_S | S_A | W | S 1 | S 2 | S 3 |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for scheme, row in scores.schemes.items():
        score = row["score"]
        parts = [score["parts"][name] for name in ("long", "short", "allreduce")]
        figures = [f"{part['loaded']['mean']:.2f}" for part in parts]
        figures += [f"{part['ratio']['mean']:.2f}" for part in parts]
        figures.append(f"{score['w']['mean']:.2f}")
        figures += [f"{score['s'][key]['mean']:.2f}" for key in "123"]
        lines.append(f"| {scheme} | {' | '.join(figures)} |")
        alone = " | ".join(f"{part['alone']['mean']:.2f}" for part in parts)
        lines.append(f"| {scheme} iso | {alone} | | | | | | | |")
    return "\n".join(lines)


def readings(results: Results) -> str:
    """The score by every reading of the paper: mean of ratios or ratio of means, and four of W.

    "Tie" counts the schemes whose S is within CLOSE of the least.
    """
    lines = [
        f"| reading | W | weights | {' | '.join(SCHEMES)} | least | tie |",
        f"|---|---|---|{'--:|' * len(SCHEMES)}---|--:|",
    ]
    for reading in get_args(Reading):
        for variance in get_args(VarianceMode):
            rules = Rules(reading=reading, variance=variance)
            scores = {scheme: score_runs(results, scheme, rules) for scheme in SCHEMES}
            for name, weights in rules.weights.items():
                totals = {
                    scheme: float(np.mean([one.totals[name] for one in seeds.values()]))
                    for scheme, seeds in scores.items()
                }
                least = min(totals, key=lambda scheme: totals[scheme])
                tie = sum(total < CLOSE * totals[least] for total in totals.values())
                cells = " | ".join(f"{totals[scheme]:.2f}" for scheme in SCHEMES)
                lines.append(
                    f"| {reading} | {variance} | {weights.label} | {cells} | {least} | {tie} |"
                )
    return "\n".join(lines)


def findings_table(columns: Mapping[str, Sequence[Finding]]) -> str:
    """A row per finding and run: our figures, and whether they say what the paper says."""
    first = next(iter(columns.values()))[0]
    schemes = [name for name in SCHEMES if name in first.values]
    lines = [
        f"| finding | run | {' | '.join(schemes)} | agrees |",
        f"|---|---|{'--:|' * len(schemes)}---|",
    ]
    for rows in zip(*columns.values(), strict=True):
        for index, (name, row) in enumerate(zip(columns, rows, strict=True)):
            head = f"**{row.key}** {row.paper}: {row.measure}" if index == 0 else ""
            cells = " | ".join(f"{row.values[scheme]:.{row.digits}f}" for scheme in schemes)
            lines.append(f"| {head} | {name} | {cells} | {'yes' if row.agrees else '**no**'} |")
    held = [f"{name}: {sum(row.agrees for row in found)}" for name, found in columns.items()]
    total = len(next(iter(columns.values())))
    lines += ["", f"Findings that hold, of {total}: {'; '.join(held)}."]
    return "\n".join(lines)


def run_missing(out: Path) -> None:
    """Every congestion experiment that has no results yet, but not the one with five seeds."""
    files = (file for file in HERE.glob("*.toml") if not file.stem.startswith("figure7"))
    for file in sorted(files):
        folder = out / f"congestion-{file.stem}"
        if (folder / "summary.json").exists() or file.stem.endswith("-seeds"):
            continue
        call_raddle("run", file, "--out", folder, "--quiet")


def main() -> None:
    """Print everything."""
    parser = command_line(__file__, __doc__)
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the results")
    parser.add_argument("--run", action="store_true", help="run what is missing first")
    arguments = parser.parse_args()
    if arguments.run:
        run_missing(arguments.out)

    @cache
    def load(name: str) -> Results:
        return raddle.load(arguments.out / name)

    small = {
        size.replace("mib", " MiB") + mode.replace("-", ", "): small_findings(
            Small(load("congestion-small" + ("" if size == "32mib" else f"-{size}") + mode))
        )
        for mode in ("", "-compat")
        for size in BUFFERS
    }
    print("## Small experiment\n")
    print(findings_table(small))
    print("\n## Dumbbell\n")
    print(findings_table({"32 MiB": dumbbell_findings(Scores(load("congestion-dumbbell")))}))
    large = {
        "100G": "congestion-large",
        "400G": "congestion-large-400g",
        "100G, compat": "congestion-large-compat",
    }
    print("\n## Large experiment\n")
    print(traffic_statistics(load("congestion-large")), end="\n\n")
    print(findings_table({k: large_findings(Scores(load(v))) for k, v in large.items()}))
    for name, folder in large.items():
        print(f"\n### Table 3, {name}\n")
        print(table3(Scores(load(folder))))
    print("\n### All readings of the score, 100G\n")
    print(readings(load(large["100G"])))


if __name__ == "__main__":
    main()
