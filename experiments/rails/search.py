"""Which choices of the inputs that MNC's text has lost make all of its findings hold together.

Every point is fitted anew to the same two figures (202 MB/s and 80 %), and to nothing else.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from experiments.rails.machine import (
    LONG,
    MYRINET,
    ONE,
    TWO,
    Machine,
    card_rate,
    card_turn_ns,
    fit,
    read,
    simulate,
    size_of,
)
from raddle.results.reproduction import CLOSE
from raddle.services.reproduce.search import Search

MEDIUM = (16 << 10, 64 << 10, LONG)
"""Messages that the paper may call medium and long."""

FROM_BUS, FROM_CARD, FROM_TURNS = "bus: cut", "card: rate both ways", "card: turns"
"""What makes opposite streams slower beside the bus's two rates: the paper names all three."""

INPUTS: dict[str, list[Any]] = {
    "80 % from": [FROM_BUS, FROM_CARD, FROM_TURNS],
    "segment, B": [2048, 4096, 8192],
    "messages under way": [1, 2, 4],
    "segments per card": [1, 2, 4],
    "choosing": ["0us", "1us", "4us"],
    "short": ["4KiB", "8KiB"],
    "delay of a link": ["1500ns", "3us"],
}
QUICK: dict[str, list[Any]] = {**INPUTS, "choosing": ["1us"]}


def machine_at(myrinet: dict[str, Any], point: dict[str, Any]) -> Machine:
    """The machine of a point, fitted."""
    base = myrinet["machine"]
    protocol = base["protocol"] | {"segment": point["segment, B"], "short": point["short"]}
    link = [one | {"delay": point["delay of a link"]} for one in base["fabric"]["link"]]
    changed = {
        **base,
        "protocol": protocol,
        "room": point["segments per card"],
        "choose": point["choosing"],
        "fabric": base["fabric"] | {"link": link},
    }
    constants = fit({**myrinet, "machine": changed})
    opposite = myrinet["published"]["opposite_directions_pct"]
    card, cut = {}, 0.0
    if point["80 % from"] == FROM_BUS:
        cut = constants["cut"]
    elif point["80 % from"] == FROM_CARD:
        card = {"both_ways": card_rate(myrinet, opposite)}
    else:
        card = {"turn": f"{card_turn_ns({**myrinet, 'machine': changed}, opposite):.0f}ns"}
    return {
        **changed,
        "nic_gap": f"{constants['nic_gap']:.0f}ns",
        "bus": base["bus"] | {"cut": f"{cut:.0f}ns"},
        "card": card,
    }


def evaluate(point: dict[str, Any], _quick: bool, _out: Path) -> dict[str, bool | None]:
    """Which findings hold at a point."""
    myrinet = read(MYRINET)
    published = myrinet["published"]
    window = point["messages under way"]
    one, two = (replace(c, window=window, time="200ms") for c in (ONE, TWO))
    same, opposite = replace(one, forward=2), replace(one, backward=1)
    smallest = 2 * size_of(point["short"])
    short = size_of(point["short"])
    pings = {
        (links, size): replace(c, bytes=size, forward=0)
        for links, c in ((1, one), (2, two))
        for size in (short, smallest, *MEDIUM)
    }
    found = simulate(machine_at(myrinet, point), (one, two, same, opposite, *pings.values()))
    mbps = {name: found[c].megabytes for name, c in (("one", one), ("two", two))}
    us = {key: found[c].microseconds for key, c in pings.items()}
    saved = {size: 1 - us[2, size] / us[1, size] for _, size in pings}
    alone = found[one].total_bps

    def near(ours: float, key: str) -> bool:
        return bool(abs(ours / published[key] - 1) <= CLOSE)

    def shares(key: str, streams: tuple[float, ...]) -> bool:
        return all(near(100 * bps / alone, key) for bps in streams)

    return {
        "one link carries 202 MB/s": near(mbps["one"], "one_link_MBps"),
        "two links carry 268 MB/s": near(mbps["two"], "two_links_MBps"),
        "two links carry 34 % more": near(100 * (mbps["two"] / mbps["one"] - 1), "gain_pct"),
        "two links carry more than 250 MB/s": mbps["two"] > 250,
        "two streams one way have 50 % each": shares("same_direction_pct", found[same].streams_bps),
        "two opposite streams have 80 % each": shares(
            "opposite_directions_pct", found[opposite].streams_bps
        ),
        "two links shorten medium and long messages": min(saved[s] for s in MEDIUM) > 0,
        "but by less than half": max(saved.values()) < 0.5,
        "short messages take no longer on two": saved[short] > -0.01,
        "choosing costs small messages most": saved[smallest] < saved[LONG],
    }


SEARCH = Search(
    inputs=INPUTS,
    findings=[
        "one link carries 202 MB/s",
        "two links carry 268 MB/s",
        "two links carry 34 % more",
        "two links carry more than 250 MB/s",
        "two streams one way have 50 % each",
        "two opposite streams have 80 % each",
        "two links shorten medium and long messages",
        "but by less than half",
        "short messages take no longer on two",
        "choosing costs small messages most",
    ],
    evaluate=evaluate,
    quick_inputs=QUICK,
)
