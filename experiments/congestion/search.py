"""Which choices of the inputs that Sun et al.'s text has lost make their findings hold together.

The small experiment and the dumbbell, which take seconds; a seed of the large one takes minutes.
"""

import tempfile
from pathlib import Path
from typing import Any, get_args

import raddle
from experiments.congestion import scores, small
from experiments.congestion.judging import Sentence, judge
from experiments.congestion.runs import DRAWING, HERE, SCHEMES
from raddle.services.reproduce.search import Search
from raddle.statistics.score import Reading

COMPAT, CORRECTED = "HPCC's simulator", "corrected"
ECN_KB = {"dctcp": {"ecn_threshold": 300}, "dcqcn": {"ecn_kmin": 400, "ecn_kmax": 1600}}
"""The HPCC simulator's thresholds at 100 Gbit/s."""

INPUTS: dict[str, list[Any]] = {
    "buffer, MiB": [4, 8, 12, 16, 32],
    "model": [CORRECTED, COMPAT],
    "ECN thresholds, times HPCC's": [0.1, 1],
}
QUICK: dict[str, list[Any]] = {
    **INPUTS,
    "buffer, MiB": [8, 12],
}
SEEDS, QUICK_SEEDS = (1, 2, 3), (1, 2)


def evaluate(point: dict[str, Any], quick: bool, _out: Path) -> dict[str, bool | None]:
    """Which findings hold at a point."""
    burst, dumbbell = simulate(point, QUICK_SEEDS if quick else SEEDS)
    found = {named(one): judge(one) for one in small.sentences(burst)}
    for reading in get_args(Reading):
        read = scores.dumbbell(dumbbell.read(reading, "pvar"))
        found |= {f"{named(one)}, {reading}": judge(one) for one in read}
    return found


def named(sentence: Sentence) -> str:
    """The finding of a sentence."""
    return f"{sentence.key} {sentence.paper}"


def simulate(point: dict[str, Any], seeds: tuple[int, ...]) -> tuple[small.Small, scores.Scores]:
    """Both experiments; readings of the score need no runs of their own."""
    changed = experiment(point)
    with tempfile.TemporaryDirectory(prefix="raddle-") as folder:
        out = Path(folder)

        def run(name: str, schemes: tuple[str, ...], of: tuple[int, ...]) -> raddle.Results:
            own = {"name": name, "include": [str(HERE / f"{name}.toml")]}
            simulation = {**changed["simulation"], "schemes": list(schemes), "seeds": list(of)}
            # Search runs in a process for each core.
            whole, folder = {**changed, **own, "simulation": simulation}, f"{name}-{schemes[0]}"
            return raddle.run(whole, out / folder, jobs=1, threads=1)

        steady = tuple(scheme for scheme in SCHEMES if scheme not in DRAWING)
        drawn, fixed = run("small", DRAWING, seeds), run("small", steady, (1,))
        found = {s: (drawn, seeds) if s in DRAWING else (fixed, (1,) * len(seeds)) for s in SCHEMES}
        dumbbell = run("dumbbell", ("dcqcn", "timely", "hpcc"), seeds)
        return small.Small(found), scores.Scores.of(dumbbell)


def experiment(point: dict[str, Any]) -> dict[str, Any]:
    """What a point changes in either experiment."""
    times = point["ECN thresholds, times HPCC's"]
    thresholds = {
        scheme: {key: f"{kb * times:g}kB" for key, kb in keys.items()}
        for scheme, keys in ECN_KB.items()
    }
    simulation = {"buffer": f"{point['buffer, MiB']}MiB"}
    if point["model"] == COMPAT:
        simulation["compat"] = "hpcc-ns3"
    return {
        "schema": 1,
        "schemes": thresholds,
        "simulation": simulation,
    }


SEARCH = Search(
    inputs=INPUTS,
    findings=[
        "S1 DCTCP and TIMELY oscillate",
        "S2 DCQCN's F0 drops with the burst",
        "S3 HPCC and PINT keep F0",
        "S4 PINT's F1 recovers slowly",
        "S5 HPCC and PINT have the better F0",
        "S6 short flows: PINT best",
        "S7 short flows: TIMELY better than none",
        "S8 short flows: DCQCN better than none",
        "S9 short flows: HPCC like none",
        "S10 short flows: HPCC more even than none",
        "S11 short flows: DCTCP has a long tail",
        "S12 HPCC's and PINT's short flows are shorter",
        "S13 without control the burst triggers PFC",
        "S14 PFC time of HPCC and PINT an order of magnitude below the rest",
        "S15 PFC time of DCQCN and TIMELY is long",
        *(
            f"{finding}, {reading}"
            for finding in (
                "D1 short-flow scores close",
                "D2 HPCC best for long flows",
                "D3 Allreduce hardly changed",
            )
            for reading in get_args(Reading)
        ),
    ],
    evaluate=evaluate,
    quick_inputs=QUICK,
)
