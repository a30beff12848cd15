"""Sections 2.5 and 5.2 of Chen et al. in OpenSM: what one cut link costs pairs and single trees.

The figures are of the measurement `opensm-pairs` (experiments/measurements.toml): packets walk
through the tables that the switches of a simulated subnet have.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from raddle.results.reproduction import Row, finding
from raddle.services.reproduce import Context, Table

__all__ = ["pair_rows", "pairs_table"]

MEASUREMENT = "opensm-pairs"
CUT = "5.2, OpenSM"
"""The item of rows about cut links: 5.2 has the simulator's too."""
NAMES = {
    "pairs": "pairs, two trees a group",
    "single": "C-MR4LMS without pairs, a tree a group",
    "stock": "stock OpenSM, a tree a group",
    "broadcast": "a global broadcast tree of stock OpenSM",
}
TWO_COPIES = "a packet goes over both trees; a terminal that gets two copies drops one"
LOSES_NOTHING = "with a link cut by hand C-MR4LMS with fault tolerance loses no message"
LOSES = "with a link cut by hand the global broadcast tree loses messages"
MISSING = "not measured: raddle reproduce multicast --measure"


def pair_rows(context: Context) -> list[Row]:
    """A row for each sentence that the measurement can judge."""
    result = _result(context)
    if result is None:
        return [
            finding(item=item, setting=setting, statement=statement, holds=None, note=MISSING)
            for item, setting, statement in (
                ("2.5", "pairs in OpenSM", TWO_COPIES),
                (CUT, "pairs, a cut link", LOSES_NOTHING),
                (CUT, "pairs, a second cut after the reroute", LOSES_NOTHING),
                (CUT, "a broadcast tree, a cut link", LOSES),
            )
        ]
    whole, again, broadcast = result["pairs"], result["after_real_cuts"], result["broadcast"]
    two = [set(walk["copies"]) == {"2"} for walk in (whole, *again)]
    return [
        finding(
            item="2.5",
            setting="pairs in OpenSM",
            statement=TWO_COPIES,
            holds=all(two) and not whole["looping"],
            kind="exact",
            published=2,
            ours=_mean(_counts([whole], "copies")),
            unit="copies",
            note=f"{_all(_counts([whole], 'copies')):,} deliveries, and again after each of "
            f"{len(again)} real cuts: two copies in {sum(two)} of {len(two)} walks",
        ),
        _lossless("pairs, a cut link", [whole]),
        _lossless("pairs, a second cut after the reroute", again),
        finding(
            item=CUT,
            setting="a broadcast tree, a cut link",
            statement=LOSES,
            holds=broadcast["cuts_that_lose_a_delivery"] > 0,
            ours=broadcast["cuts_that_lose_a_delivery"],
            unit="cuts that lose a delivery",
            note=f"of {broadcast['cuts']} cuts, one by one",
        ),
    ]


def pairs_table(context: Context) -> Table:
    """What one cut costs each way to route, over all cuts."""
    columns = (
        "routing",
        "copies without a cut",
        "cuts tried",
        "cuts that cost a copy",
        "cuts that lose a delivery",
        "deliveries lost, %",
    )
    result = _result(context)
    if result is None:
        return Table(columns, [])
    walks = [(name, [result[key]]) for key, name in NAMES.items()]
    reroutes = result["after_real_cuts"]
    walks.insert(1, (f"pairs after each of {len(reroutes)} real cuts", reroutes))
    return Table(columns, [_table_row(name, found) for name, found in walks])


def _table_row(name: str, walks: list[Mapping[str, Any]]) -> list[object]:
    over_all = _counts(walks, "copies_over_all_cuts")
    return [
        name,
        " or ".join(map(str, sorted(_counts(walks, "copies")))),
        _sum(walks, "cuts"),
        _sum(walks, "cuts_that_cost_a_copy"),
        _sum(walks, "cuts_that_lose_a_delivery"),
        f"{100 * over_all[0] / _all(over_all):.2f}",
    ]


def _lossless(setting: str, walks: list[Mapping[str, Any]]) -> Row:
    losing, looping = _sum(walks, "cuts_that_lose_a_delivery"), _sum(walks, "looping")
    copies = _counts(walks, "copies_over_all_cuts")
    return finding(
        item=CUT,
        setting=setting,
        statement=LOSES_NOTHING,
        holds=losing == 0 and looping == 0 and max(copies) <= 2,
        kind="exact",
        published=0,
        ours=losing,
        unit="cuts that lose a delivery",
        note=f"of {_sum(walks, 'cuts'):,} cuts, one by one; {copies[1]:,} of {_all(copies):,} "
        f"deliveries by one copy, {copies[2]:,} by both; {looping} loops",
    )


def _result(context: Context) -> Mapping[str, Any] | None:
    kept = context.measured.get(MEASUREMENT)
    return None if kept is None else kept["result"]


def _counts(walks: Iterable[Mapping[str, Any]], key: str) -> Counter[int]:
    """Deliveries by the number of their copies."""
    total: Counter[int] = Counter()
    for walk in walks:
        total.update({int(copies): count for copies, count in walk[key].items()})
    return total


def _sum(walks: Iterable[Mapping[str, Any]], key: str) -> int:
    return sum(int(walk[key]) for walk in walks)


def _all(counts: Counter[int]) -> int:
    return sum(counts.values())


def _mean(counts: Counter[int]) -> float:
    return sum(copies * count for copies, count in counts.items()) / _all(counts)
