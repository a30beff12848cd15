"""Sun et al., congestion control for lossless HPC networks: each sentence and figure."""

from experiments.congestion import figures, scores, small, traffic
from experiments.congestion.judging import counts_table, row_of, values_table
from experiments.congestion.runs import BUFFERS, MODELS, QUICK, SCHEMES, Runs
from raddle.report.plots import draw_traffic, save
from raddle.results.reproduction import Outcome, Row, Table, cell, lost
from raddle.services.reproduce.context import Context
from raddle.services.reproduce.markdown import FIGURES

__all__ = ["reproduce"]

DRAWN = "8 MiB, compat"
"""The run of the small experiment that Figures 2 and 3 and Table 1 are of."""
LARGE = {"100G": ("large", "large-seeds")}
FEW = QUICK
"""Seeds of experiments of which a seed takes minutes."""


def reproduce(context: Context) -> Outcome:
    """Run what is missing, judge every sentence, draw the figures."""
    runs = Runs(context)
    steps = len(BUFFERS) * len(MODELS) + len(LARGE) + 2
    done = 0

    def step(label: str) -> None:
        nonlocal done
        context.step(label, done, steps)
        done += 1

    bursts = {}
    for model in MODELS:
        for buffer in BUFFERS:
            step("small experiment")
            name = f"{buffer.removesuffix('mib')} MiB{model.replace('-', ', ')}"
            bursts[name] = small.Small(runs.small(buffer, model))
    step("dumbbell")
    dumbbell = scores.Scores.of(runs.run("dumbbell", "dumbbell", seeds=list(runs.seeds)))
    large = {}
    for name, (kept, file) in LARGE.items():
        step("large experiment")
        large[name] = scores.Scores.of(runs.run(kept, file, seeds=list(runs.seeds)))
    step("GPCNeT")
    gpcnet = runs.run("gpcnet", "gpcnet", seeds=list(FEW))
    context.step("done", steps, steps)

    found = {name: small.sentences(one) for name, one in bursts.items()}
    eight = scores.dumbbell(dumbbell)
    ten = {name: scores.large(one) for name, one in large.items()}
    main = large["100G"]
    rows: list[Row] = [
        *inputs(),
        *(row_of(one, name) for name, each in found.items() for one in each),
        *small.table_1(bursts[DRAWN], DRAWN),
        *(row_of(one, "32 MiB") for one in eight),
        lost("Figure 8", "bars", "no numbers"),
        *scores.fabric(main.results),
        *scores.table_2(main.results),
        *traffic.traffic_rows(runs.seeds),
        *(row_of(one, name) for name, each in ten.items() for one in each),
        *scores.formulas(main),
        *scores.lost_cells(main),
    ]
    tables = {
        "small": values_table(found, SCHEMES),
        "small-verdicts": counts_table(found),
        "dumbbell": values_table({"32 MiB": eight}, tuple(dumbbell.scores)),
        "large": values_table(ten, SCHEMES),
        "large-verdicts": counts_table(ten),
        "readings": scores.readings(main),
        "gpcnet": traffic.impacts(gpcnet),
        "seeds": seeds_table(runs, large),
        **{
            f"table-3-{name.replace(', ', '-').lower()}": scores.table_3(s)
            for name, s in large.items()
        },
    }
    folder = context.out / FIGURES
    folder.mkdir(parents=True, exist_ok=True)
    save(figures.long_throughput(bursts[DRAWN]), folder / "congestion-2.svg")
    save(figures.short_times(bursts[DRAWN]), folder / "congestion-3.svg")
    save(
        figures.pause_times([(n, b) for n, b in bursts.items() if n.endswith("compat")]),
        folder / "congestion-4.svg",
    )
    # Thousands of marks: a picture of points, and a small one.
    points = draw_traffic(traffic.figure_7(1), seed=1)
    points.savefig(folder / "congestion-7.png", dpi=80, bbox_inches="tight")
    save(figures.parts(dumbbell), folder / "congestion-8.svg")
    save(figures.totals(main), folder / "congestion-10.svg")
    return Outcome(rows, tables)


def inputs() -> list[Row]:
    """What the paper says of its networks, which ours are given."""
    return [
        cell(
            item=item,
            setting=setting,
            published=value,
            ours=value,
            kind="fitted",
            unit=unit,
            note="an input",
        )
        for item, setting, value, unit in (
            ("Section 2", "rate of every link", 100.0, "Gbit/s"),
            ("Section 2", "delay of every link", 1.0, "us"),
            ("Section 2", "short flows", 224.0, ""),
            ("Section 2", "size of a long flow", 100.0, "MB"),
            ("Section 2", "size of a short flow", 64.0, "KiB"),
            ("Section 2", "start of the short flows", 5.0, "ms"),
            ("Section 4", "servers of each switch of the dumbbell", 5.0, ""),
        )
    ] + [lost("Section 2", "buffer of a switch", "not in the text: 4 to 32 MiB")]


def seeds_table(runs: Runs, large: dict[str, scores.Scores]) -> Table:
    """How many seeds each experiment has."""
    return Table(
        ("experiment", "seeds"),
        [
            ("small, each buffer and model", len(runs.seeds)),
            ("dumbbell", len(runs.seeds)),
            *((f"large, {name}", len(one.results.seeds)) for name, one in large.items()),
            ("GPCNeT", len(FEW)),
        ],
    )
