"""Li et al. (in-network Allreduce) beside the published protocol in the simulator.

Offloaded cells are predicted twice: by constants that plain columns and one cell give, and by
constants that the plain columns and the other two tables give. The null model of an offloaded cell
is 0.8 times the published plain one. Savings are judged against it and against the mean of their
column, which a model that knows nothing could not have.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.stats import bootstrap

from experiments.offload import bounds, lab
from experiments.offload.model import (
    BINDINGS,
    HERE,
    NODES,
    PPN,
    SIZES,
    START_NS,
    STARTS,
    SWITCH,
    Cell,
    Reading,
    Simulate,
    Simulator,
    Times,
    fitted_machine,
    largest,
    median,
    ps,
    read_hosts,
    read_others,
    read_published,
    rms,
    switch_cell,
    times,
    times_by_others,
    within,
)
from raddle.results.reproduction import CLOSE, Outcome, Row, Table, cell, finding
from raddle.services.reproduce.context import Context

OPENFOAM = HERE / "openfoam.csv"
ICOFOAM = HERE / "icofoam.csv"
OPENFOAM_BYTES = 8
"""Nearly all Allreduces of icoFoam are sums of one double."""
BY_PLAIN = "by plain columns"
"""Constants from the plain columns, and the switch's from one cell."""
BY_OTHERS = "by the other tables"
"""Constants from the plain columns, and from offloaded ones of other numbers of nodes."""
TABLES = {4: "Table 4", 9: "Table 5", 16: "Table 6"}
MODES = ("plain", "node", "socket")
NULL_SHARE = 0.8
"""Of the plain time: what the paper's abstract leads one to expect."""


@dataclass(frozen=True, slots=True)
class Claim:
    """What the paper says of a mode at a number of nodes."""

    nodes: int
    mode: str
    words: str
    low: float
    high: float
    ppn: tuple[int, ...] = PPN

    @property
    def place(self) -> str:
        """Which part of the tables it speaks of."""
        return f"{self.nodes} nodes, {self.mode.capitalize()}"

    @property
    def name(self) -> str:
        """For searches."""
        return f"{self.place}: {self.low:g} to {self.high:g} %"


CLAIMS = (
    Claim(4, "node", "with 64 processes per node 3 to 15 % less time than plain", 3, 15, (64,)),
    Claim(9, "node", "10 to 20 % less time than plain", 10, 20),
    Claim(16, "node", "15 to 30 % less time than plain", 15, 30),
    Claim(4, "socket", "2 to 25 % less time than plain", 2, 25),
    Claim(9, "socket", "20 to 30 % less time than plain", 20, 30),
    Claim(16, "socket", "25 to 35 % less time than plain", 25, 35),
)


def savings(cells: Sequence[Cell], us: Sequence[float]) -> dict[Cell, float]:
    """Give how much less time each offloaded cell takes than the plain one, in per cent."""
    pairs = list(zip(cells, us, strict=True))
    plain = {(c.nodes, c.bytes, c.ppn): t for c, t in pairs if c.mode == "plain"}
    return {
        c: (1 - t / plain[c.nodes, c.bytes, c.ppn]) * 100 for c, t in pairs if c.mode != "plain"
    }


def claimed(claim: Claim, saved: dict[Cell, float]) -> float:
    """Give the median saving that a claim speaks of."""
    values = [
        v
        for c, v in saved.items()
        if (c.nodes, c.mode) == (claim.nodes, claim.mode) and c.ppn in claim.ppn
    ]
    return float(np.median(values))


def winners(cells: Sequence[Cell], us: Sequence[float]) -> list[str]:
    """Give the mode that takes least time, for each number of nodes, bytes and processes."""
    by_key = {(c.nodes, c.bytes, c.ppn, c.mode): t for c, t in zip(cells, us, strict=True)}
    keys = sorted({key[:3] for key in by_key})
    return [min(MODES, key=lambda mode: by_key[*key, mode]) for key in keys]


def published_us(cells: Sequence[Cell]) -> list[float]:
    """Give the published times."""
    return [c.published_us for c in cells]


def errors(cells: Sequence[Cell], us: Sequence[float]) -> np.ndarray:
    """Give the logarithm of simulated / published."""
    logs: np.ndarray = np.log(np.asarray(us) / np.asarray(published_us(cells)))
    return logs


def predicted(cells: Sequence[Cell]) -> np.ndarray:
    """Give which cells no constant was fitted to."""
    known = switch_cell(cells)
    return np.array([c.mode != "plain" and c != known for c in cells])


@dataclass(frozen=True, slots=True)
class SavingErrors:
    """Mean distance from the published savings, in points, over cells that were not fitted."""

    ours: float
    share: float
    """Of `NULL_SHARE` of the plain time."""
    column: float
    """Of the mean of the published savings of its nodes, processes and mode."""


def saving_errors(cells: Sequence[Cell], us: Sequence[float]) -> SavingErrors:
    """Compare savings with the published ones."""
    own, theirs = savings(cells, us), savings(cells, published_us(cells))
    known = switch_cell(cells)
    chosen = [c for c in theirs if c != known]

    def mean(values: Sequence[float]) -> float:
        return float(np.mean(np.abs(values)))

    columns = column_means(cells)
    return SavingErrors(
        mean([own[c] - theirs[c] for c in chosen]),
        mean([(1 - NULL_SHARE) * 100 - theirs[c] for c in chosen]),
        mean([columns[c] - theirs[c] for c in chosen]),
    )


def reproduce(context: Context) -> Outcome:
    """Tables 4 to 7, and what the paper says of them."""
    cells = read_published()
    reading = Reading()
    simulate = Simulator()
    context.step("Tables 4 to 6", 0, 3)
    found = times(reading, cells, simulate)
    context.step("Table 7", 1, 3)
    solver_rows = table_7(cells, reading, found, simulate)
    fitted = {**fitted_machine(reading), "compute": ps(found.switch_ns)}
    lab_rows, lab_tables = lab.reproduce(context.measured, fitted, simulate)
    context.step("bindings", 2, 3)
    fits = fit_table(cells, simulate)
    others = times_by_others(cells, simulate)
    simulate.close()
    context.step("bindings", 3, 3)
    which = predicted(cells)
    close, close_by_others = (within(errors(cells, us)[which]) for us in (found.us, others))
    rows = [
        *cell_rows(cells, found.us),
        *cell_rows_by_others(cells, others),
        *own_claim_rows(cells),
        *claim_rows(cells, found.us),
        *claim_rows(cells, others, BY_OTHERS),
        *solver_rows,
        *lab_rows,
    ]
    return Outcome(
        rows,
        {
            "fits": fits,
            "constants": constant_table(reading, found),
            "constants-by-others": constant_table_by_others(),
            "cells": error_table(cells, found.us, parts(cells)),
            "cells-by-others": error_table(cells, others, parts_by_others(cells)),
            **{f"errors-{mode}": grid(cells, found.us, mode) for mode in MODES},
            **{f"errors-{mode}-by-others": grid(cells, others, mode) for mode in MODES[1:]},
            "savings": saving_table(cells, {BY_PLAIN: found.us, BY_OTHERS: others}),
            "winners": winner_table(cells, {BY_PLAIN: found.us, BY_OTHERS: others}),
            "bounds": bounds.table(cells, list(which)),
            "icofoam": count_table(),
            **lab_tables,
        },
        {
            "allreduce_cells": int(which.sum()),
            "allreduce_cells_within_10_percent": close,
            "allreduce_cells_by_other_tables_within_10_percent": close_by_others,
        },
    )


def cell_rows(cells: Sequence[Cell], us: Sequence[float]) -> list[Row]:
    """Every cell of the three tables."""
    known = switch_cell(cells)
    return [
        table_row(cells, c, own, "fitted" if c.mode == "plain" or c == known else "predicted")
        for c, own in zip(cells, us, strict=True)
    ]


def cell_rows_by_others(cells: Sequence[Cell], us: Sequence[float]) -> list[Row]:
    """Every offloaded cell, by constants that know the other two tables' offloaded ones."""
    return [
        table_row(cells, c, own, "predicted", BY_OTHERS)
        for c, own in zip(cells, us, strict=True)
        if c.mode != "plain"
    ]


def table_row(
    cells: Sequence[Cell],
    c: Cell,
    us: float,
    kind: Literal["fitted", "predicted"],
    variant: str = "",
) -> Row:
    """A cell beside ours."""
    plain = {(c.nodes, c.bytes, c.ppn): c.published_us for c in cells if c.mode == "plain"}
    return cell(
        item=TABLES[c.nodes],
        setting=f"{c.bytes} B, {c.ppn} processes per node, {c.mode.capitalize()}",
        unit="us",
        published=c.published_us,
        ours=float(us),
        kind=kind,
        null=None if c.mode == "plain" else NULL_SHARE * plain[c.nodes, c.bytes, c.ppn],
        variant=variant,
    )


def own_claim_rows(cells: Sequence[Cell]) -> list[Row]:
    """What the text says of the tables, beside these tables."""
    theirs = savings(cells, published_us(cells))
    return [
        claim_row(claim, theirs, theirs, f"{claim.place}, the paper's own table, median", "exact")
        for claim in CLAIMS
    ]


def claim_rows(cells: Sequence[Cell], us: Sequence[float], variant: str = "") -> list[Row]:
    """What the text says of the tables, beside what we simulated."""
    theirs, ours = savings(cells, published_us(cells)), savings(cells, us)
    few = Claim(4, "node", "", 0, 0, (8, 32))
    return [
        *(
            claim_row(claim, theirs, ours, f"{claim.place}, median", variant=variant)
            for claim in CLAIMS
        ),
        finding(
            item="Section 4.2",
            setting="4 nodes, Node, 8 and 32 processes",
            statement="Node mode gains at 4 nodes with 64 processes only",
            unit="% saved",
            published=claimed(few, theirs),
            ours=claimed(few, ours),
            holds=claimed(few, ours) <= 0 < claimed(CLAIMS[0], ours),
            variant=variant,
        ),
    ]


def claim_row(
    claim: Claim,
    theirs: dict[Cell, float],
    ours: dict[Cell, float],
    setting: str,
    kind: Literal["exact", "predicted"] = "predicted",
    variant: str = "",
) -> Row:
    """A sentence beside the savings of one table."""
    value = claimed(claim, ours)
    return finding(
        item="Section 4.2",
        setting=setting,
        statement=claim.words,
        unit="% saved",
        published=claimed(claim, theirs),
        ours=value,
        holds=claim.low <= value <= claim.high,
        kind=kind,
        variant=variant,
    )


def read_icofoam() -> list[tuple[int, int]]:
    """Read processes and iterations that were counted."""
    lines = [line for line in ICOFOAM.read_text().splitlines() if not line.startswith("#")]
    return [(int(line.split(",")[0]), int(line.split(",")[3])) for line in lines[1:]]


def growth() -> float:
    """Give the exponent with which iterations grow with processes."""
    counted = np.log(np.array(read_icofoam(), dtype=float))
    return float(np.polyfit(counted[:, 0], counted[:, 1], 1)[0])


def table_7(cells: Sequence[Cell], reading: Reading, found: Times, simulate: Simulate) -> list[Row]:
    """OpenFOAM: one cell of each mode gives the calls; those of others follow the real solver's.

    The paper does not say which mode ran, nor how many steps.
    """
    lines = [line for line in OPENFOAM.read_text().splitlines() if not line.startswith("#")]
    shapes = []
    for line in lines[1:]:
        nodes, ppn, plain_s, offload_s = map(float, line.split(","))
        shapes.append((int(nodes), int(ppn), plain_s, offload_s))
    wanted = [
        Cell(nodes, OPENFOAM_BYTES, ppn, mode, 0.0) for nodes, ppn, _, _ in shapes for mode in MODES
    ]
    fitted = {**fitted_machine(reading), "compute": ps(found.switch_ns)}
    us = np.reshape(simulate(fitted, wanted), (-1, 3))
    known = next(i for i, shape in enumerate(shapes) if shape[:2] == (9, 8))
    exponent = growth()
    rows = []
    for at, mode in enumerate(MODES[1:], 1):
        saved = us[:, 0] - us[:, at]
        calls = (shapes[known][2] - shapes[known][3]) * 1e6 / saved[known]
        for i, (nodes, ppn, plain_s, offload_s) in enumerate(shapes):
            scale = (nodes * ppn / (9 * 8)) ** exponent
            rows.append(
                cell(
                    item="Table 7",
                    setting=f"{nodes} nodes, {ppn} processes per node, {mode.capitalize()}",
                    unit="% saved",
                    published=(1 - offload_s / plain_s) * 100,
                    ours=float(calls * scale * saved[i] / 1e6 / plain_s * 100),
                    kind="fitted" if i == known else "predicted",
                    null=(1 - shapes[known][3] / shapes[known][2]) * 100,
                )
            )
    by_key = {(c.nodes, c.bytes, c.ppn, c.mode): c.published_us for c in cells}
    shape = {s[:2]: s[2] - s[3] for s in shapes}
    for nodes in (9, 16):
        per_call = [
            by_key[nodes, OPENFOAM_BYTES, p, "plain"] - by_key[nodes, OPENFOAM_BYTES, p, "node"]
            for p in (8, 64)
        ]
        seconds = shape[nodes, 64] / shape[nodes, 8]
        rows.append(
            finding(
                item="Table 7",
                setting=f"{nodes} nodes, seconds saved, 64 to 8 processes, Node",
                statement="Tables 5 and 6 and Table 7 speak of the same calls",
                published=seconds,
                ours=per_call[1] / per_call[0] * (64 / 8) ** exponent,
                holds=abs(per_call[1] / per_call[0] * (64 / 8) ** exponent / seconds - 1) <= CLOSE,
                kind="exact",
                note="the paper's own times per call, and the growth of the real solver's calls",
            )
        )
    return rows


def count_table() -> Table:
    """Iterations of the real solver."""
    return Table(("processes", "iterations"), read_icofoam())


def fit_table(cells: Sequence[Cell], simulate: Simulate) -> Table:
    """How well each binding and start fit the plain cells, and what each predicts."""
    which, rows = predicted(cells), []
    for binding in BINDINGS:
        for start in STARTS:
            reading = Reading(binding, start)
            costs = read_hosts()[reading.hosts]
            close = within(errors(cells, times(reading, cells, simulate).us)[which])
            rows.append(
                (
                    reading.hosts,
                    f"{costs['rms_percent']:.2f}",
                    f"{costs['within_10_percent']:.0f}",
                    close,
                )
            )
    return Table(
        (
            "ranks are bound, calls begin",
            "error of the fit (rms), %",
            "plain within 10 %, of 63",
            "predicted within 10 %, of 125",
        ),
        rows,
    )


def constant_table(reading: Reading, found: Times) -> Table:
    """The fitted constants."""
    costs = read_hosts()[reading.hosts]
    rows = [(name.replace("_", " "), f"{costs[name]:.3g}") for name in START_NS]
    return Table(("constant", "ns"), [*rows, ("switch, per packet", f"{found.switch_ns:.3g}")])


def constant_table_by_others() -> Table:
    """The constants by which each table is predicted."""
    costs = read_others()
    names = {**{name: name.replace("_", " ") for name in START_NS}, SWITCH: "switch, per packet"}
    return Table(
        ("constant, ns", *(f"for {nodes} nodes" for nodes in NODES)),
        [
            (shown, *(f"{costs[nodes][name]:.3g}" for nodes in NODES))
            for name, shown in names.items()
        ],
    )


def parts(cells: Sequence[Cell]) -> dict[str, np.ndarray]:
    """Give the parts of the tables that errors are counted in."""
    plain = np.array([c.mode == "plain" for c in cells])
    return {"plain, fitted": plain, **offloaded_parts(cells, predicted(cells))}


def parts_by_others(cells: Sequence[Cell]) -> dict[str, np.ndarray]:
    """Give the same where the other two tables are known, and each table by itself.

    The cell that the switch's time is fitted to elsewhere is left out, so that numbers compare.
    """
    which = predicted(cells)
    tables = {
        f"of these {nodes} nodes": which & np.array([c.nodes == nodes for c in cells])
        for nodes in NODES
    }
    plain = np.array([c.mode == "plain" for c in cells])
    return {"plain, fitted": plain, **offloaded_parts(cells, which), **tables}


def offloaded_parts(cells: Sequence[Cell], which: np.ndarray) -> dict[str, np.ndarray]:
    """Give offloaded cells, and parts of them."""
    is_mode = {mode: np.array([c.mode == mode for c in cells]) for mode in MODES}
    crowded = np.array([c.ppn == max(PPN) for c in cells])
    return {
        "offload, predicted": which,
        "of these Node": which & is_mode["node"],
        "of these Socket": which & is_mode["socket"],
        "of these 64 processes per node": which & crowded,
    }


def error_table(cells: Sequence[Cell], us: Sequence[float], of: dict[str, np.ndarray]) -> Table:
    """Errors of parts of the tables."""
    logs = errors(cells, us)
    return Table(
        ("cells", "number", "median error, %", "root mean square, %", "largest, %", "within 10 %"),
        [
            (
                name,
                int(which.sum()),
                f"{median(logs[which]):.1f}",
                f"{rms(logs[which]):.1f}",
                f"{largest(logs[which]):.0f}",
                within(logs[which]),
            )
            for name, which in of.items()
        ],
    )


def grid(cells: Sequence[Cell], us: Sequence[float], mode: str) -> Table:
    """Errors of a mode, a row per message size."""
    by_key = {
        (c.nodes, c.bytes, c.ppn): np.expm1(log) * 100
        for c, log in zip(cells, errors(cells, us), strict=True)
        if c.mode == mode
    }
    columns = [(nodes, ppn) for nodes in NODES for ppn in PPN]
    return Table(
        ("bytes", *(f"{nodes} x {ppn}" for nodes, ppn in columns)),
        [(size, *(f"{by_key[nodes, size, ppn]:+.0f}" for nodes, ppn in columns)) for size in SIZES],
    )


def saving_table(cells: Sequence[Cell], simulated: dict[str, Sequence[float]]) -> Table:
    """Mean distance from the published savings, by model, in points.

    The last column is by how much a model is nearer than the mean of the column, with the 95 %
    interval of a bootstrap over cells.
    """
    theirs = savings(cells, published_us(cells))
    known = switch_cell(cells)
    chosen = [c for c in theirs if c != known]

    def distances(saved: dict[Cell, float]) -> np.ndarray:
        return np.array([abs(saved[c] - theirs[c]) for c in chosen])

    models = {f"simulated, both calls {by}": savings(cells, us) for by, us in simulated.items()} | {
        f"published plain call, offloaded one simulated {by}": savings(cells, with_plain(cells, us))
        for by, us in simulated.items()
    }
    nulls = {
        f"null model: {NULL_SHARE:g} x plain": dict.fromkeys(theirs, (1 - NULL_SHARE) * 100),
        "null model: mean of the column's published savings": column_means(cells),
    }
    curves = [bounds.interpolated(c, cells) for c in cells]
    rest = {"both calls by a parabola through the others of their columns": savings(cells, curves)}
    column = distances(column_means(cells))
    rows = []
    for name, saved in {**models, **nulls, **rest}.items():
        off = distances(saved)
        by_mode = [float(np.mean(off[[c.mode == mode for c in chosen]])) for mode in MODES[1:]]
        nearer = column - off
        interval = ""
        if nearer.any():
            ends = bootstrap((nearer,), np.mean, method="percentile", rng=1).confidence_interval
            interval = f"{np.mean(nearer):+.1f} [{ends.low:+.1f}, {ends.high:+.1f}]"
        rows.append((name, *(f"{v:.1f}" for v in (*by_mode, np.mean(off))), interval))
    return Table(
        ("savings by", "Node", "Socket", "both, points", "nearer than the column's mean"), rows
    )


def with_plain(cells: Sequence[Cell], us: Sequence[float]) -> list[float]:
    """Put the published time of plain calls in the place of ours."""
    pairs = zip(cells, us, strict=True)
    return [c.published_us if c.mode == "plain" else own for c, own in pairs]


def column_means(cells: Sequence[Cell]) -> dict[Cell, float]:
    """Give the mean of the published savings of its nodes, processes and mode, of each cell."""
    theirs = savings(cells, published_us(cells))
    columns: dict[tuple[int, int, str], list[float]] = {}
    for c, value in theirs.items():
        columns.setdefault((c.nodes, c.ppn, c.mode), []).append(value)
    return {c: float(np.mean(columns[c.nodes, c.ppn, c.mode])) for c in theirs}


def winner_table(cells: Sequence[Cell], simulated: dict[str, Sequence[float]]) -> Table:
    """Who takes least time."""
    theirs = winners(cells, published_us(cells))
    ours = {by: winners(cells, us) for by, us in simulated.items()}

    def same(own: list[str], mode: str | None = None) -> int:
        return sum(a == b and mode in (None, a) for a, b in zip(theirs, own, strict=True))

    most = max(theirs.count(mode) for mode in MODES)
    heads = [head for by in ours for head in (f"ours {by}", "in the same cells")]
    return Table(
        ("least time", "published", *heads),
        [
            *(
                (
                    mode.capitalize(),
                    theirs.count(mode),
                    *(n for own in ours.values() for n in (own.count(mode), same(own, mode))),
                )
                for mode in MODES
            ),
            ("all", len(theirs), *(n for own in ours.values() for n in (len(own), same(own)))),
            ("null model: always the most frequent", "", *[""] * (len(heads) - 1), most),
        ],
    )
