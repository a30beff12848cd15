"""Zhang et al. (MNC) beside messages over rails in the simulator, and beside rails of a lab.

The null model is that of ideal links: a link is shared evenly, carries as much both ways as one
way, and two carry twice as much as one.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from experiments.rails import beyond, opposite, policies
from experiments.rails.machine import (
    LONG,
    MYRINET,
    ONE,
    TWO,
    Cell,
    Found,
    Machine,
    microseconds,
    other_cut,
    rate_bps,
    read,
    simulate,
    size_of,
)
from raddle.results.reproduction import Kind, Outcome, Row, Table, cell, finding, lost
from raddle.services.reproduce.context import Context

Part = tuple[list[Row], dict[str, Table]]
Step = Callable[[], Part]

SIZES = tuple(1 << power for power in range(6, 21))
LATENCY_SIZES = tuple(1 << power for power in range(6, 21))
MEDIUM = 16 << 10
"""Bytes from which we call a message medium; the paper names no size."""

OPPOSITE = replace(ONE, backward=1)


def reproduce(context: Context) -> Outcome:
    """All figures and sentences of the paper, what lies beyond it, and the lab."""
    myrinet = read(MYRINET)
    machine, published = myrinet["machine"], myrinet["published"]
    rows: list[Row] = []
    tables: dict[str, Table] = {}
    steps: tuple[tuple[str, Step], ...] = (
        ("machine", lambda: inputs(machine)),
        ("Figure 2", lambda: figure_2(machine, published)),
        ("Figures 7 and 8", lambda: by_size(machine, published)),
        ("parts of the model", lambda: parts(myrinet)),
        ("policies", lambda: policies.reproduce(myrinet)),
        ("rails of today", beyond.modern),
        ("lab", lambda: beyond.lab(context.measured)),
        ("lab, opposite streams", lambda: opposite.reproduce(context.measured)),
    )
    for number, (name, step) in enumerate(steps):
        context.step(name, number, len(steps))
        found, made = step()
        rows += found
        tables |= made
    context.step("done", len(steps), len(steps))
    return Outcome(rows, tables)


def inputs(machine: Machine) -> Part:
    """What the paper says of its hosts, which the model is given; and what follows from it."""
    link = machine["fabric"]["link"]
    wide = {
        key: value for key, value in machine.items() if key not in ("nic_gap", "nic_gap_per_byte")
    }
    fast = replace(ONE, rails=("10Gbps",))
    carried = {}
    for way in ("read", "write"):
        bus = {way: machine["bus"][way]}
        carried[way] = simulate(wide | {"bus": bus}, [fast])[fast].megabytes
    note = "an input: the bus alone, with cards that limit nothing"
    rows = [
        cell(
            item="Section 1",
            setting="rate of a link",
            published=250,
            ours=rate_bps(link[0]["rate"]) / 8e6,
            kind="fitted",
            unit="MB/s",
            note="an input",
        ),
        cell(
            item="Section 1",
            setting="latency of a link",
            published=3,
            ours=sum(microseconds(one["delay"]) for one in link),
            kind="fitted",
            unit="us",
            note="an input: read as the way from host to host",
        ),
        cell(
            item="Section 3 (1)",
            setting="highest rate of a 64-bit, 66 MHz bus",
            published=528,
            ours=8 * 66,
            kind="exact",
            unit="MB/s",
        ),
        cell(
            item="Section 3 (1)",
            setting="bus, memory to card",
            published=315,
            ours=carried["read"],
            kind="fitted",
            unit="MB/s",
            note=note,
        ),
        cell(
            item="Section 3 (1)",
            setting="bus, card to memory",
            published=372,
            ours=carried["write"],
            kind="fitted",
            unit="MB/s",
            note=note,
        ),
    ]
    return rows, {}


def figure_2(machine: Machine, published: dict[str, float]) -> Part:
    """Two streams on one link."""
    same = replace(ONE, forward=2)
    found = simulate(machine, (ONE, same, OPPOSITE))
    alone = found[ONE].total_bps
    rows = []
    compared: tuple[tuple[str, Cell, str, Kind, float], ...] = (
        ("same direction", same, "same_direction_pct", "predicted", 50.0),
        ("opposite directions", OPPOSITE, "opposite_directions_pct", "fitted", 100.0),
    )
    for name, measured, key, kind, ideal in compared:
        shares = [100 * bps / alone for bps in found[measured].streams_bps]
        rows += [
            cell(
                item="Figure 2",
                setting=f"two streams, {name}, stream {number}",
                published=published[key],
                ours=share,
                kind=kind,
                unit="% of one alone",
                null=ideal,
            )
            for number, share in enumerate(shares, 1)
        ]
    first, second = found[same].streams_bps
    each = min(found[OPPOSITE].streams_bps)
    rows += [
        finding(
            item="Section 1",
            setting="same direction",
            statement="two streams have exactly half of the link each",
            holds=abs(first / second - 1) < 0.02,
            published=1,
            ours=first / second,
            unit="ratio of the two",
            note="equal to within 2 %: they share a card packet by packet",
        ),
        finding(
            item="Section 1",
            setting="opposite directions",
            statement="a link does not carry as much both ways at once as each way alone",
            holds=each < 0.95 * alone,
            kind="fitted",
            unit="% of one alone",
            ours=100 * each / alone,
        ),
        *(
            lost("Figure 2", f"{name}, MB/s", "the bars have no numbers", ours=mbps)
            for name, mbps in (
                ("one stream alone", found[ONE].megabytes),
                ("each of two, same direction", first / 8e6),
                ("each of two, opposite directions", each / 8e6),
            )
        ),
    ]
    return rows, {}


def by_size(machine: Machine, published: dict[str, float]) -> Part:
    """Bandwidth and latency by size, on one link and on two."""
    four = replace(TWO, rails=ONE.rails * 4)
    streams = simulate(machine, (replace(c, bytes=size) for c in (ONE, TWO) for size in SIZES))
    pings = simulate(
        machine,
        (replace(c, bytes=size, forward=0) for c in (ONE, TWO, four) for size in LATENCY_SIZES),
    )
    mbps = {(n, s): streams[replace(c, bytes=s)].megabytes for n, c in TWO_KINDS for s in SIZES}
    us = {
        (n, s): pings[replace(c, bytes=s, forward=0)].microseconds
        for n, c in (*TWO_KINDS, (4, four))
        for s in LATENCY_SIZES
    }
    table = Table(
        (
            "bytes",
            "one link, MB/s",
            "two, MB/s",
            "gain, %",
            "one link, us",
            "two, us",
            "saved, %",
        ),
        [
            (
                f"{size:,}",
                f"{mbps[1, size]:.1f}",
                f"{mbps[2, size]:.1f}",
                f"{100 * (mbps[2, size] / mbps[1, size] - 1):+.0f}",
                f"{us[1, size]:.1f}",
                f"{us[2, size]:.1f}",
                f"{100 * (1 - us[2, size] / us[1, size]):+.0f}",
            )
            for size in SIZES
        ],
    )
    rows = highest(mbps, published) + of_sizes(machine, mbps) + latencies(machine, us)
    return rows, {"sizes": table}


TWO_KINDS = ((1, ONE), (2, TWO))
Sizes = dict[tuple[int, int], float]
"""By number of links and bytes."""


def highest(mbps: Sizes, published: dict[str, float]) -> list[Row]:
    """The highest bandwidths."""
    one, two = mbps[1, LONG], mbps[2, LONG]
    return [
        cell(
            item="Figure 7",
            setting="one link",
            published=published["one_link_MBps"],
            ours=one,
            kind="fitted",
            unit="MB/s",
        ),
        cell(
            item="Figure 7",
            setting="two links",
            published=published["two_links_MBps"],
            ours=two,
            kind="predicted",
            unit="MB/s",
            null=2 * published["one_link_MBps"],
        ),
        cell(
            item="Figure 7",
            setting="gain of the second link",
            published=published["gain_pct"],
            ours=100 * (two / one - 1),
            kind="predicted",
            unit="%",
            null=100,
            note="follows from the two above: a difference, which has the errors of both",
        ),
        finding(
            item="Section 3",
            setting="two links",
            statement="two links carry more than the hardware of one: 250 MB/s",
            holds=two > 250,
            published=250,
            ours=two,
            unit="MB/s",
        ),
        finding(
            item="Section 3",
            setting="gain",
            statement="bandwidth does not grow in proportion to the number of links",
            holds=two < 2 * one,
            ours=two / one,
            unit="times one link",
        ),
        lost("Figure 7", "curves by size", "no point has a number", ours=None),
        lost("Figure 8", "curves by size", "no point has a number", ours=None),
    ]


def of_sizes(machine: Machine, mbps: Sizes) -> list[Row]:
    """What the curves of Figure 7 do at small sizes: explained, since theirs are lost."""
    short = size_of(machine["protocol"]["short"])
    whole = [s for s in SIZES if s <= short]
    cut = [s for s in SIZES if s > short]
    gains = {s: mbps[2, s] / mbps[1, s] - 1 for s in SIZES}
    return [
        finding(
            item="Section 2.4",
            setting="bandwidth of short messages",
            statement="short messages go over a single link without choosing it",
            holds=all(abs(gains[s]) < 0.01 for s in whole),
            kind="chosen",
            ours=100 * max(gains[s] for s in whole),
            unit="% gain at most",
            note=f"what is short is lost: assumed up to {short:,} B, one packet",
        ),
        finding(
            item="Section 2.4",
            setting="bandwidth of long messages",
            statement="long messages are cut and use all free links",
            holds=all(gains[s] > 0.1 for s in cut),
            ours=100 * min(gains[s] for s in cut),
            unit="% gain at least",
            note="so the curve has a step where short ends; theirs, if they have it, are lost",
        ),
    ]


def latencies(machine: Machine, us: Sizes) -> list[Row]:
    """Figure 8: what its text says."""
    short = size_of(machine["protocol"]["short"])
    medium = [size for size in LATENCY_SIZES if size >= MEDIUM]
    saved = {size: 1 - us[2, size] / us[1, size] for size in LATENCY_SIZES}
    more = {s: us[2, s] / us[1, s] - 1 for s in LATENCY_SIZES if s <= short}
    cutting = {s: us[2, s] - us[1, s // 2] for s in medium}
    overhead = (2 * short, LONG)
    return [
        finding(
            item="Figure 8",
            setting="medium and long messages",
            statement="two links shorten medium and long messages",
            holds=min(saved[size] for size in medium) > 0,
            ours=100 * min(saved[size] for size in medium),
            unit="% saved at least",
            note=f"from {MEDIUM >> 10} KiB on; the paper names no size",
        ),
        finding(
            item="Section 3",
            setting="latency",
            statement="the improvement of latency is limited",
            holds=max(saved.values()) < 0.5,
            ours=100 * max(saved.values()),
            unit="% saved at most",
        ),
        finding(
            item="Section 2.4",
            setting="latency of short messages",
            statement="short messages keep the latency of a single link",
            holds=max(more.values()) < 0.01,
            ours=100 * max(more.values()),
            unit="% more at most",
        ),
        finding(
            item="Section 2.4",
            setting="latency of cut messages",
            statement="it is that of a piece alone, and what cutting and joining add",
            holds=min(cutting.values()) >= 0,
            ours=min(cutting.values()),
            unit="us added at least",
        ),
        finding(
            item="Section 3 (2)",
            setting="choosing",
            statement="choosing and dispatching costs time, most of all for small messages",
            holds=saved[overhead[0]] < saved[overhead[1]],
            ours=100 * (saved[overhead[1]] - saved[overhead[0]]),
            unit="points less saved",
            note=f"at {overhead[0]:,} B, the smallest that is cut, than at 1 MiB",
        ),
        finding(
            item="Section 3",
            setting="more links",
            statement="with more links latency is expected to fall further",
            holds=us[4, LONG] < us[2, LONG],
            ours=100 * (1 - us[4, LONG] / us[2, LONG]),
            unit="% saved by four after two",
            note="at 1 MiB; the bus leaves little",
        ),
    ]


def parts(myrinet: dict[str, Any]) -> Part:
    """What each part of the model does, and what the other choice of a fitted cell would give."""
    machine, published = myrinet["machine"], myrinet["published"]
    bus = machine["bus"]
    other = f"{other_cut(myrinet):.0f}ns"
    free = {key: value for key, value in machine.items() if key != "bus"}
    variants = (
        (f"the model: cut {bus['cut']}, from 80 %", machine),
        (f"cut {other}, from 268 MB/s instead", machine | {"bus": bus | {"cut": other}}),
        ("no cost of cutting", machine | {"bus": bus | {"cut": "0ns"}}),
        ("no bus", free),
    )
    found = {name: simulate(changed, (ONE, TWO, OPPOSITE)) for name, changed in variants}
    lines = []
    for name, _ in variants:
        two, share = two_and_opposite(found[name])
        errors = (
            two / published["two_links_MBps"] - 1,
            share / published["opposite_directions_pct"] - 1,
        )
        lines.append(
            (
                name,
                f"{two:.1f}",
                f"{100 * errors[0]:+.1f}",
                f"{share:.1f}",
                f"{100 * errors[1]:+.1f}",
            )
        )
    rows = [
        finding(
            item="Section 3 (1)",
            setting="without the bus",
            statement="the bus is the bottleneck: without it more links bring more",
            holds=found["no bus"][TWO].total_bps > 1.1 * found[variants[0][0]][TWO].total_bps,
            ours=found["no bus"][TWO].megabytes,
            unit="MB/s on two links",
        )
    ]
    columns = ("", "two links, MB/s", "error, %", "opposite directions, %", "error, %")
    return rows, {"parts": Table(columns, lines)}


def two_and_opposite(found: Found) -> tuple[float, float]:
    """MB/s of two links, and per cent that each of two opposite streams has of one alone."""
    share = 50 * found[OPPOSITE].total_bps / found[ONE].total_bps
    return found[TWO].megabytes, share
