"""The small experiment of Sun et al.: their Figures 2 to 4 and Table 1."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from experiments.congestion.judging import Sentence, Values, over
from experiments.congestion.runs import SCHEMES
from raddle.results import Results
from raddle.results.columns import codes, floats, integers, select
from raddle.results.reproduction import Row, lost

__all__ = ["BURST_MS", "Burst", "Small", "sentences", "table_1"]

BURST_MS = 5.0
ROUNDING_MS = 1e-6
"""Ends of samples and of windows meet; a sum of floats must not put a sample beyond its window."""
Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Burst:
    """One run: long flows F0 and F1, and the burst at 5 ms."""

    rates: Mapping[int, tuple[Array, Array]]
    """Of each long flow: ends of the samples in ms, and bits delivered in them."""
    short_us: Array
    pause_us: float

    @classmethod
    def of(cls, results: Results, scheme: str, seed: int) -> "Burst":
        """Read a run."""
        series = select(results.flow_throughput, scheme=scheme, seed=seed)
        source = integers(series, "src")
        times, bits = floats(series, "time_ps") / 1e9, floats(series, "delivered_bytes") * 8
        flows = select(results.flows, scheme=scheme, seed=seed)
        which, names = codes(flows, "class")
        short = which == list(names).index("short")
        ports = select(results.ports, scheme=scheme, seed=seed)
        return cls(
            {flow: (times[source == flow], bits[source == flow]) for flow in (0, 1)},
            floats(flows, "fct_ps")[short] / 1e6,
            float(floats(ports, "pause_ps").sum()) / 1e6,
        )

    def goodput(self, flow: int, start_ms: float, end_ms: float) -> float:
        """Gb/s delivered within a window."""
        time, bits = self.rates[flow]
        inside = (time > start_ms + ROUNDING_MS) & (time <= end_ms + ROUNDING_MS)
        return float(bits[inside].sum()) / (end_ms - start_ms) / 1e6

    def bins(self, flow: int, start_ms: float, end_ms: float) -> Array:
        """Gb/s in windows of 100 us."""
        edges = np.arange(start_ms, end_ms - 1e-9, 0.1)
        return np.array([self.goodput(flow, edge, edge + 0.1) for edge in edges])

    @property
    def swing(self) -> float:
        """Standard deviation over mean of the long flows' rates before the burst, by 100 us."""
        both = [self.bins(flow, 1.0, BURST_MS) for flow in (0, 1)]
        return float(np.mean([rates.std() / rates.mean() for rates in both]))

    def kept(self, flow: int, start_ms: float, end_ms: float) -> float:
        """Rate within a window over the rate before the burst."""
        return self.goodput(flow, start_ms, end_ms) / self.goodput(flow, 1.0, BURST_MS)

    @property
    def lowest(self) -> float:
        """F0's lowest rate over 100 us from 5 to 8 ms over its rate before the burst."""
        return float(self.bins(0, BURST_MS, 8.0).min()) / self.goodput(0, 1.0, BURST_MS)

    def percentile(self, of: float) -> float:
        """Of the short flows' completion times, us."""
        return float(np.percentile(self.short_us, of))


class Small:
    """The small experiment with one buffer, all schemes and seeds."""

    def __init__(self, found: Mapping[str, tuple[Results, tuple[int, ...]]]) -> None:
        self.bursts: dict[str, list[Burst]] = {}
        for scheme, (results, seeds) in found.items():
            each = {seed: Burst.of(results, scheme, seed) for seed in set(seeds)}
            self.bursts[scheme] = [each[seed] for seed in seeds]

    def of(self, measure: Callable[[Burst], float]) -> Values:
        """A figure of every scheme and seed; runs that stand for several seeds are read once."""
        found = {}
        for scheme in SCHEMES:
            once = {id(burst): measure(burst) for burst in self.bursts[scheme]}
            found[scheme] = np.array([once[id(burst)] for burst in self.bursts[scheme]])
        return found


def sentences(small: Small) -> list[Sentence]:
    """What section 2 says."""
    return [*long_flows(small), *short_flows(small), *pauses(small)]


def long_flows(small: Small) -> list[Sentence]:
    """Figure 2."""
    swing = small.of(lambda run: run.swing)
    steady = np.maximum(0.05, 2 * np.maximum(swing["none"], swing["hpcc"]))
    lowest = small.of(lambda run: run.lowest)
    kept = small.of(lambda run: min(run.lowest, run.kept(0, 5.0, 7.0)))
    back = small.of(lambda run: run.kept(1, 7.0, 9.0))
    f0 = small.of(lambda run: run.goodput(0, 5.0, 7.0))
    rest = [scheme for scheme in SCHEMES if scheme not in ("hpcc", "pint")]
    return [
        Sentence(
            "S1",
            "Figure 2",
            "DCTCP and TIMELY oscillate",
            "swing of the long flows' rates before the burst (deviation / mean)",
            swing,
            {
                f"{name} over 0.05 and twice none's": swing[name] - steady
                for name in ("dctcp", "timely")
            },
        ),
        Sentence(
            "S2",
            "Figure 2",
            "DCQCN's F0 drops with the burst",
            "lowest 100 us of F0 / its rate before",
            lowest,
            {"dcqcn below 0.8": 0.8 - lowest["dcqcn"]},
        ),
        Sentence(
            "S3",
            "Figure 2",
            "HPCC and PINT keep F0",
            "F0's lowest 100 us, or its mean over 2 ms, / its rate before",
            kept,
            {f"{name} above 0.9": kept[name] - 0.9 for name in ("hpcc", "pint")},
        ),
        Sentence(
            "S4",
            "Figure 2",
            "PINT's F1 recovers slowly",
            "F1 at 7 to 9 ms / its rate before",
            back,
            {
                "pint below 0.5": 0.5 - back["pint"],
                **over(back, ["pint"], [s for s in SCHEMES if s != "pint"]),
            },
        ),
        Sentence(
            "S5",
            "Table 1",
            "HPCC and PINT have the better F0",
            "F0 at 5 to 7 ms, Gb/s",
            f0,
            {
                f"{name} above {other}": f0[name] - f0[other]
                for other in rest
                for name in ("hpcc", "pint")
            },
            1,
        ),
    ]


def short_flows(small: Small) -> list[Sentence]:
    """Figure 3."""
    mean = small.of(lambda run: float(run.short_us.mean()))
    spread = small.of(lambda run: run.percentile(99) - run.percentile(1))
    tail = small.of(lambda run: run.percentile(99) / float(run.short_us.mean()))
    ratio = {scheme: mean[scheme] / mean["none"] for scheme in SCHEMES}
    rest = [scheme for scheme in SCHEMES if scheme not in ("hpcc", "pint")]
    return [
        Sentence(
            "S6",
            "Figure 3",
            "short flows: PINT best",
            "mean FCT, us",
            mean,
            over(mean, ["pint"], [s for s in SCHEMES if s != "pint"]),
            0,
        ),
        *(
            Sentence(
                key,
                "Figure 3",
                f"short flows: {scheme.upper()} better than none",
                "mean FCT / none's",
                ratio,
                {f"{scheme} below none": 1 - ratio[scheme]},
                3,
            )
            for key, scheme in (("S7", "timely"), ("S8", "dcqcn"))
        ),
        Sentence(
            "S9",
            "Figure 3",
            "short flows: HPCC like none",
            "mean FCT / none's",
            ratio,
            {"hpcc within 10 % of none": 0.1 - np.abs(ratio["hpcc"] - 1)},
            3,
        ),
        Sentence(
            "S10",
            "Figure 3",
            "short flows: HPCC more even than none",
            "p99 - p1 of the FCT, us",
            spread,
            over(spread, ["hpcc"], ["none"]),
            0,
        ),
        Sentence(
            "S11",
            "Figure 3",
            "short flows: DCTCP has a long tail",
            "p99 / mean of the FCT",
            tail,
            {f"dctcp above {s}": tail["dctcp"] - tail[s] for s in SCHEMES if s != "dctcp"},
            3,
        ),
        Sentence(
            "S12",
            "Table 1",
            "HPCC's and PINT's short flows are shorter",
            "mean FCT, us",
            mean,
            over(mean, ["hpcc", "pint"], rest),
            0,
        ),
    ]


def pauses(small: Small) -> list[Sentence]:
    """Figure 4."""
    pause = small.of(lambda run: run.pause_us)
    share = {scheme: pause[scheme] / np.maximum(pause["none"], 1e-9) for scheme in SCHEMES}
    most = np.maximum(pause["hpcc"], pause["pint"])
    return [
        Sentence(
            "S13",
            "Figure 4",
            "without control the burst triggers PFC",
            "pause time of all ports, us",
            pause,
            {"none above 0": pause["none"]},
            0,
        ),
        Sentence(
            "S14",
            "Figure 4",
            "PFC time of HPCC and PINT an order of magnitude below the rest",
            "pause time of all ports, us",
            pause,
            {
                f"10 times both below {s}": pause[s] - 10 * most
                for s in ("none", "dctcp", "dcqcn", "timely")
            },
            0,
        ),
        Sentence(
            "S15",
            "Figure 4",
            "PFC time of DCQCN and TIMELY is long",
            "pause time / none's",
            share,
            {f"{s} above 0.2": share[s] - 0.2 for s in ("dcqcn", "timely")},
        ),
    ]


def table_1(small: Small, setting: str) -> list[Row]:
    """What stands for the figures of Table 1 that the text has lost."""
    columns = (
        ("F0, Gb/s, whole flow", small.of(lambda run: run.goodput(0, 0.0, 20.0))),
        ("F1, Gb/s, whole flow", small.of(lambda run: run.goodput(1, 0.0, 20.0))),
        ("mean FCT of short flows, us", small.of(lambda run: float(run.short_us.mean()))),
    )
    return [
        lost(
            "Table 1",
            f"{scheme}, {name}",
            f"the table has no text; ours: {setting}",
            ours=float(values[scheme].mean()),
        )
        for scheme in SCHEMES
        for name, values in columns
    ]
