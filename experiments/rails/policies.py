"""Section 2.3.1 of MNC: what it says of static, unidirectional and dynamic dispatch.

No sentence there has a number, and the paper shows no experiment. Each order that it states is a
row. Where a policy wins is looked for over all combinations of what a card keeps both ways, sizes,
processes and messages under way; the table has the point where each policy's lead is largest.
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from experiments.rails.machine import (
    LONG,
    TWO,
    Cell,
    Figures,
    Found,
    Machine,
    card_turn_ns,
    simulate,
    size_of,
)
from raddle.results.reproduction import Row, Table, finding
from raddle.statistics.samples import jain

POLICIES = ("static", "unidirectional", "dynamic")
PROCESSES = range(1, 9)

KEPT_PCT = (100, 90, 80, 70, 60, 50, 40, 30)
"""What a card keeps of each way's rate while the other is busy as well; the paper's is 80."""

SIZES = (4 << 10, 8 << 10, 64 << 10, 256 << 10, LONG)
STREAMS = ((1, 0), (2, 0), (1, 1), (2, 1), (2, 2))
"""Processes that send forward and back."""

WINDOWS = (1, 4)
LEAD = 0.02
"""By how much more than the best other policy one has to carry to win."""

Part = tuple[list[Row], dict[str, Table]]


def reproduce(myrinet: dict[str, Any]) -> Part:
    """What the section says, and where each policy wins."""
    machine = myrinet["machine"]
    rows, tables = processes(machine)
    more, made = winners(myrinet)
    return [*rows, *choice(machine), *more], {**tables, **made}


def processes(machine: Machine) -> Part:
    """One to eight processes per host on two links."""

    def of(policy: str, count: int, *, both: bool) -> Cell:
        return replace(TWO, policy=policy, forward=count, backward=count if both else 0)

    found = simulate(
        machine, [of(p, n, both=b) for p in POLICIES for n in PROCESSES for b in (False, True)]
    )

    def word(figures: Figures) -> str:
        return f"{figures.megabytes:.0f} ({jain(figures.streams_bps) or 0.0:.2f})"

    lines = [
        (
            str(n),
            *(word(found[of(p, n, both=b)]) for p in POLICIES for b in (False, True)),
        )
        for n in PROCESSES
    ]
    columns = [f"{p}{way}" for p in POLICIES for way in (", one way", ", both ways")]
    table = Table(("processes", *columns), lines)

    def one_way(policy: str, count: int) -> Figures:
        return found[of(policy, count, both=False)]

    least = min(one_way("static", 3).streams_bps) / max(one_way("static", 3).streams_bps)
    alone = one_way("static", 1)
    idle = alone.rail_bytes[1] / sum(alone.rail_bytes)
    apart = found[of("unidirectional", 1, both=True)]
    met = apart.rail_bytes[1] / sum(apart.rail_bytes)
    fixed = one_way("unidirectional", 2).total_bps / one_way("static", 2).total_bps
    best = [
        one_way("dynamic", n).total_bps / max(one_way(p, n).total_bps for p in POLICIES)
        for n in PROCESSES
    ]
    rows = [
        sentence(
            "static: many processes",
            "with more processes than links several share one, and have less",
            holds=least < 0.75,
            ours=least,
            unit="least / most of three processes on two links",
        ),
        sentence(
            "static: unequal processes",
            "where processes send little their links stay idle",
            holds=idle < 0.01,
            ours=100 * idle,
            unit="% of one process's bytes on the second link",
        ),
        sentence(
            "unidirectional: no opposite streams",
            "no link carries streams in opposite directions",
            holds=met < 0.05,
            ours=100 * met,
            unit="% of the first host's bytes on the other's link",
            note="what is left are acknowledgements",
        ),
        sentence(
            "unidirectional: fixed directions",
            "where traffic goes one way some links are shared while others are idle",
            holds=fixed < 0.9,
            ours=fixed,
            unit="of static's rate, two processes one way",
        ),
        sentence(
            "dynamic: full use",
            "every process uses the links that are free, and all links are used",
            holds=min(best) > 1 - LEAD,
            ours=min(best),
            unit="of the best policy's rate, one to eight processes one way, at least",
        ),
    ]
    return rows, {"processes": table}


def choice(machine: Machine) -> list[Row]:
    """What choosing costs: the latency of the smallest message that is cut."""
    size = 2 * size_of(machine["protocol"]["short"])
    cells = {p: replace(TWO, policy=p, bytes=size, forward=0) for p in POLICIES}
    found = simulate(machine, cells.values())
    us = {p: found[c].microseconds for p, c in cells.items()}
    protocol = machine["protocol"] | {"wait": False}
    hardware = simulate(machine | {"choose": "0ns", "protocol": protocol}, [cells["dynamic"]])[
        cells["dynamic"]
    ].microseconds
    note = f"latency of {size:,} B"
    return [
        sentence(
            "static: no choice",
            "static dispatch avoids the cost of choosing a link",
            holds=us["static"] < us["unidirectional"],
            ours=us["unidirectional"] - us["static"],
            unit="us less than unidirectional, which cuts as little",
            note=note,
        ),
        sentence(
            "unidirectional: choice",
            "unidirectional dispatch has to choose, which costs some time",
            holds=us["unidirectional"] > us["static"],
            ours=us["unidirectional"] - us["static"],
            unit="us more than static",
            note=note,
        ),
        sentence(
            "dynamic: choice",
            "dynamic dispatch costs some time for choosing",
            holds=us["dynamic"] > hardware,
            ours=us["dynamic"] - hardware,
            unit="us more than if it knew and chose at once",
            note=note,
        ),
        finding(
            item="Section 3 (2)",
            setting="choosing in hardware",
            statement="choosing in the network's hardware is a way to lower its cost",
            holds=hardware < us["dynamic"],
            ours=100 * (1 - hardware / us["dynamic"]),
            unit="% of the latency saved",
            note=f"{note}; no SReq and SAck, and no time to choose",
        ),
    ]


def sentence(
    setting: str, statement: str, *, holds: bool, ours: float, unit: str, note: str = ""
) -> Row:
    """A row for what section 2.3.1 says."""
    return finding(
        item="Section 2.3.1",
        setting=setting,
        statement=statement,
        holds=holds,
        ours=ours,
        unit=unit,
        note=note,
    )


# Where each policy wins.


@dataclass(frozen=True, slots=True)
class Setting:
    """Where policies are compared."""

    kept_pct: int
    bytes: int
    forward: int
    backward: int
    window: int

    def cell(self, policy: str) -> Cell:
        """What is asked of the simulator."""
        return replace(
            TWO,
            bytes=self.bytes,
            policy=policy,
            forward=self.forward,
            backward=self.backward,
            window=self.window,
            time="100ms",
        )


Rates = dict[Setting, dict[str, float]]
"""MB/s of all streams together, by policy."""


def settings() -> list[Setting]:
    """All combinations."""
    return [
        Setting(kept, size, forward, backward, window)
        for kept, size, (forward, backward), window in itertools.product(
            KEPT_PCT, SIZES, STREAMS, WINDOWS
        )
    ]


def measure(myrinet: dict[str, Any], wanted: Sequence[Setting]) -> Rates:
    """Rates of all policies, on hosts whose bus is not in the way of their cards."""
    free = {key: value for key, value in myrinet["machine"].items() if key != "bus"}
    rates: Rates = {}
    for kept, same in itertools.groupby(wanted, key=lambda setting: setting.kept_pct):
        here = list(same)
        turn = f"{card_turn_ns(myrinet, kept):.0f}ns"
        cells = [setting.cell(p) for setting in here for p in POLICIES]
        found: Found = simulate(free | {"card": {"turn": turn}}, cells)
        for setting in here:
            rates[setting] = {p: found[setting.cell(p)].megabytes for p in POLICIES}
    return rates


def lead(rates: dict[str, float], policy: str) -> float:
    """How much more a policy carries than the best other one, as a share of that."""
    return rates[policy] / max(rate for other, rate in rates.items() if other != policy) - 1


ADVANTAGES = {
    "static": "avoids the cost of choosing",
    "unidirectional": "avoids that streams meet on a link in opposite directions",
    "dynamic": "lets processes use links that are free",
}


def winners(myrinet: dict[str, Any]) -> Part:
    """Where each policy leads most, and how both ways compare as cards keep less and less."""
    rates = measure(myrinet, settings())
    papers = round(myrinet["published"]["opposite_directions_pct"])
    at_papers = {s: r for s, r in rates.items() if s.kept_pct == papers}
    rows, lines = [], []
    for policy in POLICIES:
        for where, among in (("any card", rates), (f"cards that keep {papers} %", at_papers)):
            best = max(among, key=lambda setting: lead(among[setting], policy))
            ahead = lead(among[best], policy)
            leads = f"{sum(lead(r, policy) > LEAD for r in among.values())} of {len(among)}"
            rows.append(
                sentence(
                    f"{policy}: wins somewhere, {where}",
                    f"{policy} dispatch {ADVANTAGES[policy]}",
                    holds=ahead > LEAD,
                    ours=100 * ahead,
                    unit="% more than the best other policy, at most",
                    note=f"it leads in {leads} settings",
                )
            )
            lines.append(
                (
                    policy,
                    where,
                    str(best.kept_pct),
                    f"{best.bytes:,}",
                    f"{best.forward} + {best.backward}",
                    str(best.window),
                    *(f"{among[best][p]:.1f}" for p in POLICIES),
                    f"{100 * ahead:.1f}",
                    leads,
                )
            )
    long = {s.kept_pct: r for s, r in rates.items() if is_long_both_ways(s)}
    rows += [apart_or_shared(long, papers), one_each_way(at_papers)]
    columns = ("card keeps, %", *(f"{p}, MB/s" for p in POLICIES))
    sweep = [(str(kept), *(f"{long[kept][p]:.1f}" for p in POLICIES)) for kept in KEPT_PCT]
    head = (
        "best for",
        "among",
        "card keeps, %",
        "bytes",
        "processes, forward + back",
        "under way of each",
        *(f"{p}, MB/s" for p in POLICIES),
        "lead, %",
        "settings where it leads",
    )
    return rows, {"cards": Table(columns, sweep), "wins": Table(head, lines)}


def apart_or_shared(long: dict[int, dict[str, float]], papers: int) -> Row:
    """Whether it pays to keep long streams apart on the paper's cards, and on which it does."""
    pays = [kept for kept, rates in long.items() if lead(rates, "unidirectional") > LEAD]
    return sentence(
        "unidirectional: long messages both ways",
        "it avoids that streams meet on a link, where each of two has about 80 %",
        holds=papers in pays,
        ours=float(max(pays)) if pays else 0.0,
        unit="% kept of each way, at most, where it pays",
        note="at 80 % it costs more than it gains: two links used both ways carry 4 k together if "
        "cards keep the share k, and 2 if each is used one way, so that it pays below one half",
    )


def one_each_way(rates: Rates) -> Row:
    """One process on each host, one message at a time: unidirectional against dynamic."""
    gains = {
        setting: found["unidirectional"] / found["dynamic"] - 1
        for setting, found in rates.items()
        if (setting.forward, setting.backward, setting.window) == (1, 1, 1)
    }
    best = max(gains, key=lambda setting: gains[setting])
    return sentence(
        "unidirectional: one message at a time each way",
        "it avoids that streams meet on a link, where each of two has about 80 %",
        holds=gains[best] > LEAD,
        ours=100 * gains[best],
        unit="% more than dynamic, at most",
        note=f"at {best.bytes:,} B on cards that keep 80 %: links are not full, and neither stream "
        "waits for the other",
    )


def is_long_both_ways(setting: Setting) -> bool:
    """Whether long messages keep all links busy both ways."""
    streams = (setting.forward, setting.backward)
    return setting.bytes == LONG and streams == (2, 2) and setting.window == max(WINDOWS)
