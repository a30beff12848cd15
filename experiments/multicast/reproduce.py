"""Chen et al., C-MR4LMS (JCRD, 10.7544/issn1000-1239.20210582): every figure beside ours."""

from dataclasses import asdict

from experiments.multicast.efi import section_4_1_and_2
from experiments.multicast.latency import (
    count_table,
    model_table,
    section_5,
    simulate_all,
    violin_table,
)
from experiments.multicast.pairs import pair_rows, pairs_table
from experiments.multicast.roots import exhaustive_table, root_rows
from experiments.multicast.routing import (
    ENGINES,
    FIXED,
    FOUR,
    NAMES,
    ONE,
    SWEPT,
    Measures,
    Routed,
    route_all,
    swept,
)
from experiments.multicast.tfi import section_4_3_and_4
from raddle.services.reproduce import Context, Outcome, Table

__all__ = ["reproduce"]


def reproduce(context: Context) -> Outcome:
    """Route the paper's patterns and run its collectives."""
    routed = route_all(context)
    runs, found = simulate_all(context)
    return Outcome(
        [
            *section_4_1_and_2(routed),
            *section_4_3_and_4(routed),
            *root_rows(),
            *section_5(runs, found),
            *pair_rows(context),
        ],
        {
            "pairs": pairs_table(context),
            "patterns": pattern_table(routed),
            "colours": colours_table(routed),
            "exhaustive": exhaustive_table(),
            "model": model_table(runs.model),
            "table-1-count": count_table(found),
            "violins": violin_table(found),
        },
        {"rounds": runs.rounds, "model": asdict(runs.model)},
    )


def pattern_table(routed: Routed) -> Table:
    """EFI, TFI, trees left and time of every pattern and engine."""
    rows = []
    for pattern in ONE + FOUR:
        engines = routed.patterns[pattern]
        for index, engine in enumerate(NAMES):
            head = (pattern, engines[FIXED]["groups"]) if index == 0 else ("", "")
            rows.append((*head, NAMES[engine], *_cells(engines[engine], timed=True)))
    columns = ("pattern", "groups", "engine", "EFI max / mean", "TFI max / mean", "trees", "s")
    return Table(columns, rows)


def colours_table(routed: Routed) -> Table:
    """The same for other numbers of colours."""
    rows = []
    for pattern in SWEPT:
        for colours in swept(pattern):
            engines = routed.colours[pattern, colours]
            for index, engine in enumerate(ENGINES):
                head = (pattern, colours) if index == 0 else ("", "")
                rows.append((*head, NAMES[engine], *_cells(engines[engine], timed=False)))
    return Table(
        ("pattern", "colours", "engine", "EFI max / mean", "TFI max / mean", "trees"), rows
    )


def _cells(measures: Measures, *, timed: bool) -> list[str]:
    """The figures of one engine."""
    if measures.get("error"):
        return ["no room"] + [""] * (3 if timed else 2)
    shown = [
        f"{measures['max_efi']} / {measures['mean_efi']:.1f}",
        f"{measures['max_tfi']} / {measures['mean_tfi']:.2f}",
        str(measures["trees_left"]),
    ]
    return [*shown, f"{measures['route_s']:.2f}"] if timed else shown
