"""What is said of a sweep: which scheme leads at which points, and where that is not clear."""

from collections.abc import Mapping, Sequence
from typing import Any

from raddle.statistics.readings import apart, tie_within
from raddle.statistics.verdict import label_of
from raddle.text import every, join_words, many, verb

__all__ = ["sweep_headline"]

Json = Mapping[str, Any]


def sweep_headline(table: Json) -> str:
    """Which scheme leads at which points of a `sweep.json`."""
    points = [p for p in table["points"] if p["schemes"]]
    if not points:
        return "No point has finished yet, so there is nothing to judge."
    names = list(dict.fromkeys(s for p in points for s in p["schemes"]))
    if len(names) == 1:
        return f"All points have one scheme, {label_of(names[0])}: there is nothing to compare."
    phrases = []
    for words, where in _by_leaders(points).items():
        phrases.append(words.format(_places(where, len(points))) + _tie(where))
    left = len(table["points"]) - len(points)
    tail = f" {many(left, 'point')} {verb(left, 'has', 'have')} not finished yet." if left else ""
    joined = "; ".join(phrases)
    return f"{joined[0].upper()}{joined[1:]}.{_disagreement(points)}{tail}"


def _by_leaders(points: Sequence[Json]) -> dict[str, list[Json]]:
    """What to say of points, with a place for their names; and the points."""
    said: dict[str, list[Json]] = {}
    for point in points:
        comparison = point["verdict"]["comparison"] or {}
        first = _leaders(point)
        listed = join_words(label_of(s) for s in first)
        if not first:
            lost = any((comparison.get("unfinished") or {}).values())
            why = " (unfinished flows)" if lost or comparison.get("not_started") else ""
            words = f"no scheme is named best at {{}}{why}"
        elif len(first) == 1:
            words = f"{listed} leads at {{}}"
        elif len(first) == len(point["schemes"]):
            words = f"{every(len(first), 'scheme')} tie at {{}}"
        else:
            words = f"{listed} share the lead at {{}}"
        said.setdefault(words, []).append(point)
    return said


def _leaders(point: Json) -> Sequence[str]:
    comparison = point["verdict"]["comparison"] or {}
    found: Sequence[str] = point["leaders"].get(comparison.get("figure"), [])
    return found


def _places(where: Sequence[Json], of: int) -> str:
    """The names of points, or how many they are."""
    if len(where) == of:
        return "the only point" if of == 1 else f"all {many(of, 'point')}"
    if len(where) > 4:
        return f"{len(where):,} of {many(of, 'point')}"
    return join_words(", ".join(point["set"].values()) for point in where)


def _tie(where: Sequence[Json]) -> str:
    """Within what the leaders of these points tie; the widest of them."""
    found = []
    for point in where:
        values = (point["verdict"]["comparison"] or {}).get("values") or {}
        means = {name: own["mean"] for name, own in values.items()}
        leaders = _leaders(point)
        if len(leaders) > 1 and set(leaders) <= set(means):
            found.append(apart(means, leaders) or 0.0)
    return f", {tie_within(max(found))}" if found else ""


def _disagreement(points: Sequence[Json]) -> str:
    """At which points another reading of the score names others."""
    apart_at = []
    for point in points:
        readings: Sequence[Json] = point["verdict"].get("readings") or ()
        # The first weighting is the one that decides.
        own = [one for one in readings if one["weights"] == readings[0]["weights"]]
        if any(set(one["leaders"]) != set(_leaders(point)) for one in own):
            apart_at.append(point)
    if not apart_at:
        return ""
    return f" Readings of the score disagree at {_places(apart_at, len(points))}."
