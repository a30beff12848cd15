"""Section 5 of Chen et al., cell by cell and sentence by sentence: collectives on a prototype."""

from dataclasses import asdict
from functools import partial

import numpy as np

from experiments.multicast.collectives import (
    ENGINES,
    FIT_ROUNDS,
    FITTED,
    FIXED,
    GRIDS,
    OPERATIONS,
    RANDOM_GROUPS,
    TORUS,
    Case,
    Found,
    Model,
    Runs,
    Times,
    beside,
    cut_links,
    fit,
    stopped,
    table_1,
    twice,
)
from experiments.multicast.judging import judged
from experiments.multicast.routing import NAMES
from raddle.results.reproduction import CLOSE, Row, cell, finding, lost
from raddle.services.reproduce import Context, Table
from raddle.statistics.samples import Interval, mean_interval

NULL_US = 27.0
"""A model that knows nothing: every median is that of the cell to which the software is fitted."""
HEADLINES = {"MPI_Barrier": -10, "MPI_Allreduce": -24, "MPI_Bcast 8 B": -13, "MPI_Bcast 2 KB": -40}
"""C-MR4LMS fixed against the broadcast tree at 60 x 60, means, in per cent."""
ALIKE = 2.0
"""Spreads differ little up to this ratio."""
SMALL = tuple(OPERATIONS)[:3]
LARGE = "MPI_Bcast 2 KB"
BROADCAST, EARLIER, _, DYNAMIC = ENGINES


def simulate_all(context: Context) -> tuple[Runs, Found]:
    """Fit the constants, then run all cases: 200 rounds, or the paper's 5,000."""
    home = context.out / "collectives"
    runs = Runs(home, 200 if context.quick else 5000)
    context.step("multicast constants", 0, 1)
    runs = Runs(home, runs.rounds, fit(runs))
    context.step("multicast constants", 1, 1)
    cases = [*table_1(), *beside(), *twice()]
    return runs, runs.all_times(
        cases, context.jobs, lambda done, of: context.step("multicast collectives", done, of)
    )


def section_5(runs: Runs, found: Found) -> list[Row]:
    """All rows, in the order of the paper."""
    return [
        *cells(found),
        *lower(found),
        *headlines(found),
        *between_grids(found),
        *like_earlier(found),
        *roots_alike(found),
        *steady(found),
        *others(found),
        *cuts(runs),
        *two_trees(found),
    ]


def model_table(model: Model) -> Table:
    """What was fitted to what, and what was chosen."""
    made = asdict(model)
    software, packet, byte = (
        f"Table 1, {case.operation}, {case.shape}, {NAMES[case.engine]}: {case.published} us"
        for case in FITTED
    )
    how = f"fitted, {FIT_ROUNDS} rounds: "
    return Table(
        ("constant", "value", "from"),
        [
            ("software of a process, per collective", _us(made["overhead_ps"]), how + software),
            ("a foreign packet at a host", _us(made["foreign_ps"]), how + packet),
            ("each of its bytes", f"{made['foreign_byte_ps']} ps", how + byte),
            ("mean of the noise of the software", _us(made["noise_ps"]), "chosen"),
            ("delay of a link", f"{made['delay_ns']} ns", "chosen"),
            ("where contributions meet", made["combining"], "the paper: in hardware"),
        ],
    )


def _us(picoseconds: int) -> str:
    return f"{picoseconds / 1e6:.3f} us"


def count_table(found: Found) -> Table:
    """How many predicted cells of Table 1 are close, beside a model that knows nothing."""
    rows = []
    for operation in (*OPERATIONS, "all"):
        cases = [it for it in table_1() if it not in FITTED and operation in (it.operation, "all")]
        models = [[found[it].median for it in cases], [NULL_US] * len(cases)]
        close = [
            sum(abs(a / it.published - 1) <= CLOSE for a, it in zip(model, cases, strict=True))
            for model in models
        ]
        rows.append((operation, len(cases), *close))
    return Table(("operation", "predicted cells", "within 10 %", f"{NULL_US} us within 10 %"), rows)


def violin_table(found: Found) -> Table:
    """What Figures 11 and 12 draw: quartiles and tails at 60 x 60."""
    rows: list[tuple[str, ...]] = []
    for operation in OPERATIONS:
        cases = [Case(operation, GRIDS[0], engine) for engine in ENGINES]
        cases.append(Case(operation, GRIDS[0], FIXED, twice=True))
        for case in cases:
            shown = np.percentile(found[case].rounds, (1, 25, 50, 75, 99))
            name = NAMES[case.engine] + (", two trees" if case.twice else "")
            rows.append((operation, name, *(f"{value:.2f}" for value in shown)))
    return Table(("operation", "trees", "1 %", "Q1", "median", "Q3", "99 %"), rows)


def cells(found: Found) -> list[Row]:
    """Table 1."""
    return [
        cell(
            item="Table 1",
            setting=f"{case.operation}, {case.shape}, {NAMES[case.engine]}",
            published=case.published,
            ours=found[case].median,
            unit="us",
            kind="fitted" if case in FITTED else "predicted",
            null=NULL_US,
            ci=found[case].median_ci(),
        )
        for case in table_1()
    ]


def difference(one: Times, other: Times) -> Interval:
    """By how much the median of one run is higher than another's, over parts."""
    return mean_interval([a - b for a, b in zip(one.medians, other.medians, strict=True)])


def _span(interval: Interval) -> tuple[float, float] | None:
    if interval.low is None or interval.high is None:
        return None
    return interval.low, interval.high


def above(bound: float, value: float) -> bool:
    """Whether a value is higher."""
    return value > bound


def under(bound: float, value: float) -> bool:
    """Whether a value is lower."""
    return value < bound


def lower(found: Found) -> list[Row]:
    """5.1 (1): all are clearly below the broadcast tree."""
    rows = []
    for operation in OPERATIONS:
        for grid in GRIDS:
            tree = found[Case(operation, grid, BROADCAST)]
            others = [difference(tree, found[Case(operation, grid, e)]) for e in ENGINES[1:]]
            least = min(others, key=lambda it: it.mean)
            rows.append(
                finding(
                    item="5.1 (1)",
                    setting=f"{operation}, {grid[0]}x{grid[1]}",
                    statement="MR4LMS and both C-MR4LMS are clearly below the broadcast tree",
                    holds=judged(least, lambda value: value > 0),
                    ours=least.mean,
                    ci=_span(least),
                    unit="us below",
                    note="the nearest of the three",
                )
            )
    return rows


def headlines(found: Found) -> list[Row]:
    """5.1 (1): means at 60 x 60."""
    rows = []
    for operation, published in HEADLINES.items():
        fixed, tree = (found[Case(operation, GRIDS[0], e)] for e in (FIXED, BROADCAST))
        pairs = zip(fixed.means, tree.means, strict=True)
        change = mean_interval([100 * (a / b - 1) for a, b in pairs])
        rows.append(
            cell(
                item="5.1 (1)",
                setting=f"{operation}, 60x60, C-MR4LMS fixed against the broadcast tree, mean",
                published=published,
                ours=change.mean,
                unit="%",
                kind="predicted",
                null=0,
                ci=_span(change),
                decide_by_ci=True,
            )
        )
    return rows


def between_grids(found: Found) -> list[Row]:
    """5.1 (1): the broadcast tree depends on the number of groups, the others hardly do."""
    rows = []
    for operation in OPERATIONS:
        ours, paper = {}, {}
        for engine in ENGINES:
            cases = [Case(operation, grid, engine) for grid in GRIDS]
            medians = [found[case].median for case in cases]
            ours[engine] = max(medians) / min(medians)
            published = [case.published for case in cases]
            paper[engine] = max(published) / min(published)
        least = max(ours[engine] for engine in ENGINES[1:])
        rows.append(
            finding(
                item="5.1 (1)",
                setting=f"{operation}, slowest over fastest grid",
                statement="the broadcast tree differs between grids more than the others do",
                holds=ours[BROADCAST] > least,
                published=paper[BROADCAST],
                ours=ours[BROADCAST],
                null=1,
                note=f"the others at most {least:.2f}, published "
                f"{max(paper[engine] for engine in ENGINES[1:]):.2f}",
            )
        )
    return rows


def like_earlier(found: Found) -> list[Row]:
    """5.1 (2): as fast as MR4LMS; faster at 2 KB."""
    rows = []
    for operation in SMALL:
        ratios = [
            found[Case(operation, grid, engine)].median
            / found[Case(operation, grid, EARLIER)].median
            for grid in GRIDS
            for engine in (FIXED, DYNAMIC)
        ]
        most = max(ratios, key=lambda it: abs(it - 1))
        rows.append(
            finding(
                item="5.1 (2)",
                setting=operation,
                statement="both C-MR4LMS are as fast as MR4LMS",
                holds=abs(most - 1) <= CLOSE,
                ours=most,
                unit="times",
                note="the farthest of three grids and two C-MR4LMS",
            )
        )
    for grid in GRIDS:
        earlier = found[Case(LARGE, grid, EARLIER)]
        gaps = [difference(earlier, found[Case(LARGE, grid, e)]) for e in (FIXED, DYNAMIC)]
        least = min(gaps, key=lambda it: it.mean)
        rows.append(
            finding(
                item="5.1 (2)",
                setting=f"{LARGE}, {grid[0]}x{grid[1]}",
                statement="both C-MR4LMS are clearly below MR4LMS, whose links have a higher EFI",
                holds=judged(least, partial(above, CLOSE * earlier.median)),
                published=Case(LARGE, grid, EARLIER).published
                - max(Case(LARGE, grid, e).published for e in (FIXED, DYNAMIC)),
                ours=least.mean,
                ci=_span(least),
                unit="us below",
                note="clearly: more than 10 %",
            )
        )
    return rows


def roots_alike(found: Found) -> list[Row]:
    """5.1 (3)."""
    rows = []
    for operation in OPERATIONS:
        ratios = [
            found[Case(operation, grid, DYNAMIC)].median
            / found[Case(operation, grid, FIXED)].median
            for grid in GRIDS
        ]
        most = max(ratios, key=lambda it: abs(it - 1))
        rows.append(
            finding(
                item="5.1 (3)",
                setting=operation,
                statement="C-MR4LMS fixed and dynamic differ little",
                holds=abs(most - 1) <= CLOSE,
                ours=most,
                unit="times",
                note="dynamic / fixed, the farthest of three grids",
            )
        )
    return rows


def steady(found: Found) -> list[Row]:
    """5.1 (4): Figure 11."""
    rows = [lost("Figure 11", "quartiles and outliers", "drawn; ours stand in the table below")]
    for operation in OPERATIONS:
        spreads = [found[Case(operation, GRIDS[0], engine)].iqr for engine in ENGINES]
        ratio = max(spreads) / min(spreads) if min(spreads) > 0 else None
        rows.append(
            finding(
                item="5.1 (4)",
                setting=f"{operation}, 60x60",
                statement="the four ways differ little in how steady they are",
                holds=None if ratio is None else ratio <= ALIKE,
                ours=ratio,
                unit="times",
                note=f"largest IQR over smallest; little: up to {ALIKE:.0f}; the spread of ours is "
                "chosen noise and queues",
            )
        )
    return rows


def others(found: Found) -> list[Row]:
    """5.1: 3-D grids and random groups are said to be alike."""
    rows = []
    for operation in OPERATIONS:
        for name, dims, groups in (
            ("3-D grid", TORUS, None),
            ("random groups", GRIDS[0], RANDOM_GROUPS),
        ):
            tree, earlier, fixed = (
                found[Case(operation, dims, engine, random_groups=groups)]
                for engine in (BROADCAST, EARLIER, FIXED)
            )
            below = difference(tree, fixed)
            near = fixed.median / earlier.median
            shape = Case(operation, dims, FIXED, random_groups=groups).shape
            first = judged(below, lambda value: value > 0)
            rows.append(
                finding(
                    item="5.1",
                    setting=f"{name}, {operation}",
                    statement="alike: C-MR4LMS clearly below the broadcast tree, near MR4LMS",
                    holds=None if first is None else first and near <= 1 + CLOSE,
                    ours=below.mean,
                    ci=_span(below),
                    unit="us below",
                    note=f"{shape} (lost: ours); {near:.2f} times MR4LMS",
                )
            )
    return rows


def cuts(runs: Runs) -> list[Row]:
    """5.2: a link is cut by hand."""
    links = len(cut_links())
    rows = []
    for engine, two, expected in (
        (BROADCAST, False, True),
        (EARLIER, False, True),
        (FIXED, True, False),
        (DYNAMIC, True, False),
    ):
        count = stopped(runs, engine, twice=two)
        rows.append(
            finding(
                item="5.2",
                setting=f"a link is cut, {NAMES[engine]}" + (", two trees" if two else ""),
                statement="some messages do not arrive" if expected else "all messages arrive",
                holds=(count > 0) is expected,
                ours=count,
                unit="links",
                note=f"of the {links} links above process 0's switch, each cut alone",
            )
        )
    return rows


def two_trees(found: Found) -> list[Row]:
    """5.2: Figure 12."""
    rows = [lost("Figure 12", "quartiles and outliers", "drawn; ours stand in the table below")]
    for operation in OPERATIONS:
        one, two = (found[Case(operation, GRIDS[0], FIXED, twice=it)] for it in (False, True))
        gap = difference(two, one)
        up = operation.startswith("MPI_Bcast")
        rows.append(
            finding(
                item="5.2",
                setting=f"{operation}, 60x60, median with two trees",
                statement=f"slightly {'higher' if up else 'lower'} than with one",
                holds=judged(gap, partial(above, 0) if up else partial(under, 0)),
                ours=gap.mean,
                ci=_span(gap),
                unit="us higher",
            )
        )
        rows.append(
            finding(
                item="5.2",
                setting=f"{operation}, 60x60, effect of two trees",
                statement="no significant effect on the latency",
                holds=abs(gap.mean) <= CLOSE * one.median,
                ours=100 * gap.mean / one.median,
                unit="%",
                note="significant: 10 %",
            )
        )
        narrower = mean_interval([a - b for a, b in zip(two.iqrs, one.iqrs, strict=True)])
        rows.append(
            finding(
                item="5.2",
                setting=f"{operation}, 60x60, IQR with two trees",
                statement="slightly narrower than with one",
                holds=judged(narrower, lambda value: value < 0),
                ours=narrower.mean,
                ci=_span(narrower),
                unit="us wider",
            )
        )
    return rows
