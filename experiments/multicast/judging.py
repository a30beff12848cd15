"""How sentences of section 4 are judged: orders over patterns, intervals over seeds."""

from collections.abc import Callable, Iterable, Sequence

from experiments.multicast.routing import (
    DYNAMIC,
    EARLIER,
    FIXED,
    FOUR,
    NAMES,
    ONE,
    OURS,
    RANDOM,
    RANDOM_4P,
    Routed,
)
from raddle.results.reproduction import Row, cell, finding
from raddle.statistics.samples import Interval

SIZES_LOST = "the numbers of random groups are lost: 1,000, 3,000 and 5,000 are ours"
GRIDS_LOST = "the 2-D grids with 4 processes are lost: ours"


def listed(values: Iterable[float]) -> str:
    """Figures in the order of the patterns."""
    return ", ".join(f"{value:.2f}" if value % 1 else f"{value:.0f}" for value in values)


def side_by_side(routed: Routed, patterns: Sequence[str], key: str) -> str:
    """What all three engines have, for a note."""
    names = {FIXED: "fixed", DYNAMIC: "dynamic", EARLIER: "MR4LMS"}
    return "; ".join(
        f"{names[engine]} {listed(routed.of(patterns, engine, key))}" for engine in names
    )


def judged(interval: Interval, holds: Callable[[float], bool]) -> bool | None:
    """True if a sentence holds at both ends of an interval, None if only at one."""
    if interval.low is None or interval.high is None:
        return None
    ends = {holds(interval.low), holds(interval.high)}
    return ends.pop() if len(ends) == 1 else None


def ends(interval: Interval) -> tuple[float, float] | None:
    """An interval as the rows have it."""
    if interval.low is None or interval.high is None:
        return None
    return interval.low, interval.high


def below(routed: Routed, patterns: Sequence[str], key: str, engine: str) -> int:
    """In how many patterns C-MR4LMS has a lower figure than MR4LMS."""
    ours, earlier = (routed.of(patterns, e, key) for e in (engine, EARLIER))
    return sum(a < b for a, b in zip(ours, earlier, strict=True))


def not_worse(routed: Routed, item: str, setting: str, what: str, keys: Sequence[str]) -> Row:
    """Dynamic roots against fixed ones over all patterns."""
    pairs = [
        (routed.get(p, DYNAMIC, key), routed.get(p, FIXED, key)) for p in ONE + FOUR for key in keys
    ]
    worse, lower = sum(a > b for a, b in pairs), sum(a < b for a, b in pairs)
    return finding(
        item=item,
        setting=setting,
        statement=f"C-MR4LMS dynamic is slightly better than fixed in {what}",
        holds=worse == 0 and lower > 0,
        note=f"lower in {lower}, higher in {worse} of {len(pairs)} figures",
    )


def gap_rows(routed: Routed, key: str, item: str, above: int, low: int) -> list[Row]:
    """How far C-MR4LMS is above and below MR4LMS at most: the summary of 4.2.3 and of 4.3.3."""
    name = {"max_tfi": "max TFI", "max_efi": "max EFI"}[key]
    gaps = {
        (pattern, engine): routed.get(pattern, engine, key) - routed.get(pattern, EARLIER, key)
        for pattern in ONE + FOUR
        for engine in OURS
    }
    most, least = max(gaps, key=gaps.__getitem__), min(gaps, key=gaps.__getitem__)
    rows = []
    for at, published, sign, word in ((most, above, 1, "above"), (least, low, -1, "below")):
        pattern, engine = at
        drawn = pattern in RANDOM + RANDOM_4P
        interval = routed.gap(pattern, engine, key) if drawn else None
        mean = interval.mean if interval is not None else gaps[at]
        span = sorted(sign * end for end in ends(interval) or ()) if interval is not None else []
        rows.append(
            cell(
                item=item,
                setting=f"{name} of C-MR4LMS {word} that of MR4LMS, at most",
                published=published,
                ours=sign * mean,
                kind="chosen" if key == "max_tfi" and sign > 0 else "predicted",
                ci=(span[0], span[1]) if span else None,
                decide_by_ci=bool(span),
                note=f"{pattern}, {NAMES[engine]}"
                + (f", mean over {interval.n} seeds" if interval is not None else ""),
            )
        )
    return rows
