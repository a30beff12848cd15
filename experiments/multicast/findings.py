"""Our figures beside each claim of Chen et al. (C-MR4LMS), from the results of the route files.

python3 -m experiments.multicast.findings          print the tables of docs/results/multicast.md
python3 -m experiments.multicast.findings --run    route what is missing in out/ first
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments import call_raddle, command_line

HERE = Path(__file__).resolve().parent
FIXED, DYNAMIC, EARLIER = "c-mr4lms-fixed", "c-mr4lms-dynamic", "mr4lms"
ENGINES = (FIXED, DYNAMIC, EARLIER)
GRIDS_2D = ("grid-512x64", "grid-181x181", "grid-100x327")
GRIDS_3D = ("grid-64x32x16", "grid-32x32x32", "grid-25x50x26")
RANDOM = ("random-1000", "random-3000", "random-5000")
GRIDS_3D_4P = ("grid-256x32x16-4p", "grid-128x32x32-4p", "grid-100x50x26-4p")
GRIDS_2D_4P = ("grid-512x256-4p", "grid-362x362-4p", "grid-200x655-4p")
RANDOM_4P = ("random-1000-4p", "random-3000-4p", "random-5000-4p")
ONE = GRIDS_2D + GRIDS_3D + RANDOM
FOUR = GRIDS_3D_4P + GRIDS_2D_4P + RANDOM_4P
SWEPT = (
    "grid-64x32x16",
    "grid-32x32x32",
    "random-5000",
    "grid-256x32x16-4p",
    "grid-100x50x26-4p",
    "random-1000-4p",
)
COLOURS = (8, 16, 64, 256)
SEEDS = range(1, 11)
LAYERS_4P = 10
"""Layers of a 3-D grid with 4 processes per terminal: fewer colours are refused."""
TREES = 512
"""Spanning trees of 32 colours: C * m."""

Measures = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Claim:
    """What the paper says, what came out, and whether they agree."""

    key: str
    paper: str
    ours: str
    agrees: bool


class Results:
    """Measures by pattern and engine."""

    def __init__(self, out: Path) -> None:
        self.out = out

    def engines(self, pattern: str, colours: int | None = None) -> dict[str, Measures]:
        """All engines of a pattern, by name."""
        folder = self.out / f"multicast-{pattern}"
        if colours is not None:
            folder = self.out / f"multicast-{pattern}-colours" / f"multicast.colours={colours}"
        summary = json.loads((folder / "summary.json").read_text())
        return dict(summary["engines"])

    def get(self, pattern: str, engine: str, key: str) -> float:
        """One figure of the 32-colour runs."""
        value: float = self.engines(pattern)[engine][key]
        return value

    def of(self, patterns: Iterable[str], engine: str, key: str) -> list[float]:
        """One figure for several patterns."""
        return [self.get(pattern, engine, key) for pattern in patterns]

    def seeds(self) -> list[int]:
        """Max EFI of the fixed variant for random groups, ascending, by seed."""
        folders = (self.out / "multicast-random-5000-seeds").glob("*/summary.json")
        found = [json.loads(file.read_text())["engines"][FIXED]["max_efi"] for file in folders]
        return sorted(found)


def listed(values: Iterable[object]) -> str:
    """Figures in the order of the patterns."""
    return ", ".join(f"{value:.2f}" if isinstance(value, float) else str(value) for value in values)


def claims(results: Results) -> list[Claim]:
    """Claims (a) to (i) of the paper, judged on the runs with 32 colours."""
    get, of = results.get, results.of
    found = []

    def claim(key: str, paper: str, ours: str, *, agrees: bool) -> None:
        found.append(Claim(key, paper, ours, agrees))

    tfi = of(ONE, EARLIER, "max_tfi")
    claim("a", "1 process: MR4LMS never merges", f"max TFI {max(tfi)}", agrees=max(tfi) == 1)
    few = [p for p in ONE if get(p, FIXED, "groups") < TREES]
    tfi = of(few, FIXED, "max_tfi") + of(few, DYNAMIC, "max_tfi")
    claim(
        "a",
        "C-MR4LMS has TFI 1 while groups < 512",
        f"{', '.join(few)}: {listed(tfi)}",
        agrees=max(tfi) == 1,
    )
    for key, name in (("max_efi", "max"), ("mean_efi", "mean")):
        figures = {engine: of(GRIDS_2D, engine, key) for engine in ENGINES}
        lower = all(
            figures[engine][i] < figures[EARLIER][i]
            for engine in (FIXED, DYNAMIC)
            for i in range(len(GRIDS_2D))
        )
        names = {FIXED: "fixed", DYNAMIC: "dynamic", EARLIER: "MR4LMS"}
        ours = "; ".join(f"{names[engine]} {listed(figures[engine])}" for engine in ENGINES)
        claim("a", f"2-D grids: both C-MR4LMS have the lower {name} EFI", ours, agrees=lower)
    tfi = of(GRIDS_3D[:2], FIXED, "max_tfi")
    claim(
        "b", "64x32x16 and 32x32x32: max TFI of fixed is 7 and 6", listed(tfi), agrees=tfi == [7, 6]
    )
    tfi = of(GRIDS_3D[:2], DYNAMIC, "max_tfi")
    claim("b", "the same: max TFI of dynamic is 1", listed(tfi), agrees=tfi == [1, 1])
    rest = (GRIDS_3D[2], *RANDOM)
    fixed, dynamic = of(rest, FIXED, "max_tfi"), of(rest, DYNAMIC, "max_tfi")
    claim(
        "b",
        "25x50x26 and random: both above 1 and equal",
        f"fixed {listed(fixed)}; dynamic {listed(dynamic)}",
        agrees=fixed == dynamic and min(fixed) > 1,
    )
    many = [p for p in ONE + FOUR if get(p, FIXED, "groups") >= TREES]
    least = min(of(many, FIXED, "trees_left") + of(many, DYNAMIC, "trees_left"))
    claim(
        "c", "C-MR4LMS never leaves fewer than 512 trees", f"least {least}", agrees=least >= TREES
    )
    fixed, earlier = of(RANDOM, FIXED, "max_efi"), of(RANDOM, EARLIER, "max_efi")
    claim(
        "d",
        "random, 1 process: MR4LMS has the lower EFI",
        f"max: MR4LMS {listed(earlier)}; fixed {listed(fixed)}",
        agrees=all(a < b for a, b in zip(earlier, fixed, strict=True)),
    )
    seeds = results.seeds()
    claim(
        "d",
        "max EFI of C-MR4LMS is 69",
        f"fixed, 5,000 groups, {len(seeds)} seeds: {listed(seeds)}",
        agrees=min(seeds) <= 69 <= max(seeds),
    )
    ratio = [get(p, FIXED, "mean_tfi") / get(p, FIXED, "max_tfi") for p in RANDOM]
    claim("d", "mean TFI close to max TFI", f"mean / max {listed(ratio)}", agrees=min(ratio) > 0.9)
    last = "grid-100x50x26-4p"
    top, mean = get(last, EARLIER, "max_tfi"), get(last, EARLIER, "mean_tfi")
    claim("e", "100x50x26, 4 processes: MR4LMS has max TFI 168", str(top), agrees=top == 168)
    claim("e", "mean TFI 1.1", f"{mean:.2f}", agrees=round(mean, 1) == 1.1)
    slow, fast = (
        get(last, EARLIER, "route_s"),
        max(get(last, e, "route_s") for e in (FIXED, DYNAMIC)),
    )
    claim(
        "e",
        "MR4LMS over 575 s, C-MR4LMS under 35 s (-94 %)",
        f"{slow:.2f} s and {fast:.2f} s ({100 * (fast / slow - 1):.0f} %)",
        agrees=fast / slow < 0.06,
    )
    trees = get("random-1000-4p", EARLIER, "trees_left")
    claim("f", "random 1000, 4 processes: MR4LMS leaves 32 trees", str(trees), agrees=trees == 32)
    plain = (*GRIDS_2D_4P, *GRIDS_3D_4P[:2])
    tfi = of(plain, EARLIER, "max_tfi")
    claim(
        "g",
        "4 processes, 2-D and the first two 3-D grids: MR4LMS has TFI 1",
        listed(tfi),
        agrees=max(tfi) == 1,
    )
    for key, above, below in (("max_tfi", 25, 148), ("max_efi", 88, 594)):
        gap = [get(p, e, key) - get(p, EARLIER, key) for p in ONE + FOUR for e in (FIXED, DYNAMIC)]
        name = key.replace("max_", "max ").replace("tfi", "TFI").replace("efi", "EFI")
        claim(
            "h",
            f"{name} of C-MR4LMS at most {above} above MR4LMS's, {below} below",
            f"from {-min(gap)} below to {max(gap)} above",
            agrees=max(gap) <= above and -min(gap) <= below,
        )
    worse = [
        p
        for p in ONE + FOUR
        for key in ("max_tfi", "mean_tfi", "max_efi", "mean_efi")
        if get(p, DYNAMIC, key) > get(p, FIXED, key)
    ]
    claim(
        "i",
        "dynamic has EFI and TFI no worse than fixed",
        f"worse in {len(worse)} of 72 figures",
        agrees=not worse,
    )
    times = [sum(of(ONE + FOUR, engine, "route_s")) for engine in (FIXED, DYNAMIC)]
    claim(
        "i",
        "dynamic is slightly slower",
        f"{times[0]:.2f} s and {times[1]:.2f} s for all 18 patterns",
        agrees=times[0] < times[1] < 2 * times[0],
    )
    return found


def row(cells: Iterable[object]) -> str:
    """A row of a Markdown table."""
    return f"| {' | '.join(str(cell) for cell in cells)} |"


def claims_table(found: Iterable[Claim]) -> str:
    """The claims as Markdown."""
    lines = ["| | the paper | here | agrees |", "|---|---|---|---|"]
    lines += [row((f"({c.key})", c.paper, c.ours, "yes" if c.agrees else "**no**")) for c in found]
    return "\n".join(lines)


def cells(measures: Measures, *, timed: bool = True) -> list[str]:
    """The figures of one engine."""
    if measures.get("error"):
        return ["no room"] + [""] * (3 if timed else 2)
    shown = [
        f"{measures['max_efi']} / {measures['mean_efi']:.1f}",
        f"{measures['max_tfi']} / {measures['mean_tfi']:.2f}",
        str(measures["trees_left"]),
    ]
    return [*shown, f"{measures['route_s']:.2f}"] if timed else shown


def pattern_table(results: Results) -> str:
    """EFI, TFI, trees left and time of every pattern and engine."""
    lines = [
        "| pattern | groups | engine | EFI max / mean | TFI max / mean | trees | s |",
        "|---|--:|---|--:|--:|--:|--:|",
    ]
    for pattern in ONE + FOUR:
        engines = results.engines(pattern)
        for index, engine in enumerate((*ENGINES, "broadcast", "opensm")):
            head = (pattern, engines[FIXED]["groups"]) if index == 0 else ("", "")
            lines.append(row((*head, engine, *cells(engines[engine]))))
    return "\n".join(lines)


def colours_table(results: Results) -> str:
    """The sweep of C."""
    lines = [
        "| pattern | C | engine | EFI max / mean | TFI max / mean | trees |",
        "|---|--:|---|--:|--:|--:|",
    ]
    for pattern in SWEPT:
        for colours in swept(pattern):
            engines = results.engines(pattern, colours)
            for index, engine in enumerate(ENGINES):
                head = (pattern, colours) if index == 0 else ("", "")
                lines.append(row((*head, engine, *cells(engines[engine], timed=False))))
    return "\n".join(lines)


def swept(pattern: str) -> list[int]:
    """The numbers of colours that a pattern is routed with."""
    least = LAYERS_4P if pattern in GRIDS_3D_4P else 1
    return [colours for colours in COLOURS if colours >= least]


def route(pattern: str, folder: Path, *options: str) -> None:
    """Routes one pattern unless its results are there."""
    if folder.exists():
        return
    file = HERE / f"{pattern}.toml"
    call_raddle("route", file, "--out", folder, "--quiet", "--no-report", *options)


def run_missing(out: Path) -> None:
    """All 18 patterns with 32 colours, and six of them with the others."""
    for pattern in ONE + FOUR:
        route(pattern, out / f"multicast-{pattern}")
    for pattern in SWEPT:
        values = ",".join(str(colours) for colours in swept(pattern))
        folder = out / f"multicast-{pattern}-colours"
        route(pattern, folder, "--set", f"multicast.colours={values}")
    seeds = ",".join(str(seed) for seed in SEEDS)
    options = ("--set", f'multicast.engines=["{FIXED}"]', "--set", f"groups.seed={seeds}")
    route("random-5000", out / "multicast-random-5000-seeds", *options)


def main() -> None:
    """Print everything."""
    parser = command_line(__file__, __doc__)
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder of the results")
    parser.add_argument("--run", action="store_true", help="route what is missing first")
    arguments = parser.parse_args()
    if arguments.run:
        run_missing(arguments.out)
    results = Results(arguments.out)
    print("### Claims\n")
    print(claims_table(claims(results)))
    print("\n### All patterns, 32 colours\n")
    print(pattern_table(results))
    print("\n### Other numbers of colours\n")
    print(colours_table(results))


if __name__ == "__main__":
    main()
