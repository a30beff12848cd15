"""Streams in opposite directions on two rails: simulated, and measured (`bench.rails_opposite`).

The paper describes this and shows no figure of it. The lab's ratios stand where other rows have the
published figure; the simulator knows nothing of them but the rates of rails and cards.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from bench.rails_opposite import (
    ALONE,
    APART,
    DYNAMIC,
    KEPT,
    MET,
    RAILS,
    RATE,
    UNIDIRECTIONAL,
    WINDOWS,
)
from experiments.rails.machine import LAB, LONG, Cell, Machine, read, simulate
from raddle.results.reproduction import Kind, Row, Table, cell, finding

Part = tuple[list[Row], dict[str, Table]]

MEASURED = "rails-opposite"
"""The measurement of experiments/measurements.toml."""

WIDEST = 0.10
"""The widest interval of a ratio that counts, as its rule says."""

IDEAL = {MET: 2.0, UNIDIRECTIONAL: 2.0, DYNAMIC: 2.0 * RAILS}
"""What streams carry together, in multiples of one alone, if links are as fast both ways."""

CARDS = ("free", "limited")


@dataclass(frozen=True, slots=True)
class Ratio:
    """The median of a lab's ratios and its 95 % interval."""

    median: float
    low: float
    high: float

    @property
    def counts(self) -> bool:
        """Whether it was measured by its rule."""
        return self.high - self.low < WIDEST * self.median

    def __str__(self) -> str:
        """The interval, for a note."""
        return f"[{self.low:.2f}, {self.high:.2f}]"


Ratios = dict[str, Ratio]


def reproduce(measured: Mapping[str, Any]) -> Part:
    """Each policy on free cards and on limited ones."""
    known = ratios(measured.get(MEASURED))
    busy = busy_pct(measured.get(MEASURED))
    foretold = predicted()
    rows: list[Row] = []
    lines = []
    for cards in CARDS:
        for window in WINDOWS:
            what = f"{cards} cards, {window} under way"
            for side, ideal in IDEAL.items():
                ours = foretold[cards, window, side]
                lab = known.get(f"opposite, {what}: {side} / {ALONE}")
                kind: Kind = "chosen" if (cards, side) == ("limited", MET) else "predicted"
                rows.append(beside(f"{what}: {side}", ours, lab, ideal, kind, busy))
                shown = ("", "") if lab is None else (f"{lab.median:.2f}", str(lab))
                lines.append((what, side, f"{ours:.2f}", *shown, f"{ideal:.0f}"))
            rows += orders(what, known)
    columns = ("cards", "policy", "simulated", "lab, median", "95 % interval", "ideal links")
    return rows, {"opposite": Table(columns, lines)}


def predicted() -> dict[tuple[str, int, str], float]:
    """What the simulator says that streams carry together, in multiples of one alone."""
    machine: Machine = read(LAB)["machine"]
    rate = f"{RATE // 1_000_000}Mbps"
    base = Cell((rate,) * RAILS, LONG, cut="weighted", forward=1, warm_up="500ms", time="2s")
    found = {}
    for window in WINDOWS:
        one = replace(base, rails=(rate,), policy="static", window=window)
        alone = simulate(machine, [one])[one].total_bps
        # The lab's limit is KEPT of what each way of a rail carries, for both ways together.
        limit = f"{2 * KEPT * alone / 1e6:.3f}Mbps"
        machines = {"free": machine, "limited": machine | {"card": {"both_ways": limit}}}
        both = {
            MET: replace(one, backward=1),
            UNIDIRECTIONAL: replace(base, policy="unidirectional", backward=1, window=window),
            DYNAMIC: replace(base, policy="dynamic", backward=1, window=window),
        }
        for cards in CARDS:
            figures = simulate(machines[cards], both.values())
            for side, asked in both.items():
                found[cards, window, side] = figures[asked].total_bps / alone
    return found


def beside(
    setting: str, ours: float, lab: Ratio | None, ideal: float, kind: Kind, busy: float
) -> Row:
    """A row for what streams carry together."""
    item, unit = "Lab, opposite streams", "times one stream alone"
    if lab is None or not lab.counts:
        why = (
            "not measured yet"
            if lab is None
            else f"the lab's interval {lab} is too wide; processors {busy:.0f} % busy, with other "
            "programs"
        )
        return finding(
            item=item, setting=setting, statement="", holds=None, kind=kind, ours=ours,
            published=None if lab is None else lab.median, unit=unit, note=why,
        )  # fmt: skip
    note = f"measured in a lab, {lab}; simulated"
    return cell(
        item=item, setting=setting, published=lab.median, ours=ours, kind=kind, unit=unit,
        null=ideal, note=note,
    )  # fmt: skip


def orders(what: str, known: Ratios) -> list[Row]:
    """Which policy carries more in the lab, where section 2.3.1 says so."""
    compared = (
        (UNIDIRECTIONAL, MET, "unidirectional dispatch avoids that streams meet on a link"),
        (UNIDIRECTIONAL, DYNAMIC, "unidirectional dispatch avoids that streams meet on a link"),
        (DYNAMIC, APART, "dynamic dispatch lets processes use links that are free"),
    )
    rows = []
    for more, less, statement in compared:
        lab = known.get(f"opposite, {what}: {more} / {less}")
        # An order needs an interval on one side of 1, and not a narrow one.
        shown = lab is not None and (lab.low > 1 or lab.high < 1)
        rows.append(
            finding(
                item="Lab, Section 2.3.1",
                setting=f"{what}: {more} / {less}",
                statement=statement,
                holds=lab.low > 1 if lab is not None and shown else None,
                ours=None if lab is None else lab.median,
                ci=None if lab is None else (lab.low, lab.high),
                unit="ratio of both streams together",
                note="" if shown else "not measured yet" if lab is None else "the interval has 1",
            )
        )
    return rows


def ratios(document: Mapping[str, Any] | None) -> Ratios:
    """The lab's ratios by what was compared; none without a measurement."""
    if document is None:
        return {}
    return {
        one["what"]: Ratio(one["median"], one["low"], one["high"])
        for one in document["result"]["comparisons"]
        if one["pairs"] >= document["samples"] and one["median"] is not None
    }


def busy_pct(document: Mapping[str, Any] | None) -> float:
    """How busy the machine's processors were, the mean of all sides; they ran both hosts."""
    if document is None:
        return 0.0
    shares = [
        side["busy"] for sides in document["result"]["medians"].values() for side in sides.values()
    ]
    return 100 * sum(shares) / len(shares) if shares else 0.0
