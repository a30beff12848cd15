"""The verdict in words: which scheme serves the fabric best, by how much, and how sure that is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from raddle.score import Role, Weights, role_of
from raddle.stats import Interval, mean_interval
from raddle.text import fixed, join_words, significant

__all__ = ["Verdict", "label_of", "verdict_of"]

Json = Mapping[str, Any]

LABELS = {
    "none": "PFC only",
    "dctcp": "DCTCP",
    "dcqcn": "DCQCN",
    "timely": "TIMELY",
    "hpcc": "HPCC",
    "pint": "PINT",
    "swift": "Swift",
    "powertcp": "PowerTCP",
}
CONFIGURATION_WORDS = {
    "1": "at equal weights",
    "2": "with long-flow bandwidth first",
    "3": "with Allreduce delay first",
    "own": "at your weights",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """`headline` is one sentence; `details` say by how much, at which weights, how sure."""

    best: str | None
    headline: str
    details: tuple[str, ...]
    scored: bool


@dataclass(frozen=True, slots=True)
class _Entry:
    scheme: str
    figure: Interval
    per_seed: Mapping[str, float]
    lower_bound: bool


def label_of(scheme: str) -> str:
    """A scheme as people write it; unknown names stay as they are."""
    return LABELS.get(scheme, scheme)


def verdict_of(summary: Json) -> Verdict:
    """Judge a `summary.json`."""
    schemes: Mapping[str, Json] = summary.get("schemes", {})
    notes = _notes(summary)
    scores = [row["score"] for row in schemes.values() if row.get("score")]
    if scores:
        primary = str(scores[0]["primary"])
        scored = [_scored(name, row, primary) for name, row in schemes.items() if row.get("score")]
        return _by_score(schemes, scored, primary, notes)
    plain = [_plain(name, row) for name, row in schemes.items()]
    known = [entry for entry in plain if entry is not None]
    if not known:
        return Verdict(None, "No run has finished yet, so there is nothing to judge.", notes, False)
    return _by_slowdown(known, (*_impacts(schemes), *notes))


def _by_score(
    schemes: Mapping[str, Json],
    entries: Sequence[_Entry],
    primary: str,
    notes: tuple[str, ...],
) -> Verdict:
    ranked = sorted(entries, key=lambda e: e.figure.mean)
    best = ranked[0]
    weights = Weights(**schemes[best.scheme]["score"]["weights"][primary])
    where = CONFIGURATION_WORDS[primary]
    if primary == "own":
        where += f" ({weights.label})"
    details: list[str] = []
    if len(ranked) == 1:
        headline = (
            f"{label_of(best.scheme)} scores S = {_figure(best)} {where} "
            "(1.00 would mean that congestion does not hurt)."
        )
    else:
        headline = _lead(ranked, where)
        details.append(_certainty(best, ranked[1], "S"))
        details += _other_weights(schemes, best.scheme, primary)
        details += _monotone(schemes, best.scheme, primary)
        details += _in_absolute_terms(schemes)
    if best.lower_bound or any(e.lower_bound for e in ranked):
        names = join_words(label_of(e.scheme) for e in ranked if e.lower_bound)
        details.append(
            f"Figures with ≥ ({names}) are lower bounds: tested flows that never finished count "
            "as if they had ended with the run."
        )
    details.append(
        "S compares tested flows under load with the same flows alone: lower is better, and "
        "1.00 means that congestion does not hurt."
    )
    return Verdict(best.scheme, headline, (*details, *notes), True)


def _lead(ranked: Sequence[_Entry], where: str) -> str:
    best, second, worst = ranked[0], ranked[1], ranked[-1]
    names = label_of(best.scheme), label_of(second.scheme)
    gap = _gap(best, second)
    if gap is None and _level(best, second):
        figures = f"{_figure(best)} and {_figure(second)}"
        headline = f"{names[0]} and {names[1]} are level: S = {figures} {where}"
    elif gap is not None and gap.low is not None and gap.low <= 0:
        headline = (
            f"{names[0]} and {names[1]} share the lead: S = {_figure(best)} and "
            f"{_figure(second)} {where}, a tie over {gap.n} seeds"
        )
    else:
        headline = (
            f"{names[0]} serves this fabric best: S = {_figure(best)} {where}, "
            f"{_less(best, second)} than {names[1]} ({_figure(second)})"
        )
    if worst is not second:
        headline += f"; {label_of(worst.scheme)} is last with {_figure(worst)}"
    return headline + "."


def _by_slowdown(entries: Sequence[_Entry], notes: tuple[str, ...]) -> Verdict:
    ranked = sorted(entries, key=lambda e: e.figure.mean)
    best = ranked[0]
    name = label_of(best.scheme)
    details: list[str] = []
    if len(ranked) == 1:
        headline = (
            f"With {name} the slowest 1 % of the flows take at least {_figure(best)} times as "
            "long as on an idle fabric."
        )
    elif _level(best, ranked[1]):
        level = [e for e in ranked if _level(best, e)]
        headline = (
            f"{join_words(label_of(e.scheme) for e in level)} serve this traffic about equally "
            f"well: p99 slowdown {join_words(_figure(e) for e in level)}."
        )
        details.append(_certainty(best, ranked[1], "p99 slowdown"))
    else:
        second = ranked[1]
        headline = (
            f"{name} serves this traffic best: its p99 slowdown is {_figure(best)}, "
            f"{_less(best, second)} than {label_of(second.scheme)} ({_figure(second)})."
        )
        details.append(_certainty(best, second, "p99 slowdown"))
    details.append(
        "Slowdown is a flow's completion time over what it would be on an idle fabric; "
        "the score S needs tested long, short and Allreduce flows, under load and alone."
    )
    return Verdict(best.scheme, headline, (*details, *notes), False)


def _other_weights(schemes: Mapping[str, Json], best: str, primary: str) -> list[str]:
    same: list[str] = []
    sentences: list[str] = []
    for configuration in schemes[best]["score"]["s"]:
        if configuration == primary:
            continue
        entries = sorted(
            (_scored(n, row, configuration) for n, row in schemes.items() if row.get("score")),
            key=lambda e: e.figure.mean,
        )
        words = CONFIGURATION_WORDS[configuration]
        winner = entries[0]
        if winner.scheme == best:
            same.append(f"{words} (S = {_figure(winner)})")
        else:
            own = next(e for e in entries if e.scheme == best)
            sentences.append(
                f"{words[0].upper()}{words[1:]}, {label_of(winner.scheme)} leads with "
                f"S = {_figure(winner)}; {label_of(best)} has {_figure(own)}."
            )
    if same:
        sentences.insert(0, f"{label_of(best)} also leads {join_words(same)}.")
    return sentences


def _monotone(schemes: Mapping[str, Json], best: str, primary: str) -> list[str]:
    values = {
        name: float(row["score"]["monotone"][primary]["mean"])
        for name, row in schemes.items()
        if row.get("score")
    }
    first = min(values, key=values.__getitem__)
    if first == best:
        return [
            "The monotone score, which never improves when a part gets worse, "
            "names the same scheme."
        ]
    return [
        f"The monotone score prefers {label_of(first)} ({values[first]:.2f} against "
        f"{values[best]:.2f}): S also rewards evenness, so look at the parts."
    ]


def _in_absolute_terms(schemes: Mapping[str, Json]) -> list[str]:
    """Who is fastest under load: S alone would praise a scheme that is slow even when alone."""
    parts = {n: row["score"]["parts"] for n, row in schemes.items() if row.get("score")}
    phrases = []
    for role, words, unit in (
        (Role.LONG, "long flows get most bandwidth with", "Gb/s"),
        (Role.SHORT, "short flows are fastest with", "µs"),
        (Role.ALLREDUCE, "Allreduce flows with", "µs"),
    ):
        loaded = {n: float(p[role.value]["loaded"]["mean"]) for n, p in parts.items()}
        first = (max if role is Role.LONG else min)(loaded, key=loaded.__getitem__)
        phrases.append(f"{words} {label_of(first)} ({significant(loaded[first])} {unit})")
    return [
        f"In absolute figures under load, {join_words(phrases)}; "
        "S compares each scheme with itself alone."
    ]


def _impacts(schemes: Mapping[str, Json]) -> list[str]:
    """Tested flows under load against alone, where some but not all of the three kinds exist."""
    lines = []
    classes = dict.fromkeys(c for row in schemes.values() for c in (row.get("impact") or {}))
    for name in classes:
        if role_of(name) is None:
            continue
        found = {
            s: float(row["impact"][name]["mean"])
            for s, row in schemes.items()
            if (row.get("impact") or {}).get(name)
        }
        ranked = sorted(found, key=found.__getitem__)
        first, *others = (f"{fixed(found[s])} × |with {label_of(s)}" for s in ranked)
        listed = join_words([first.replace("|", "as long as alone "), *others]).replace("|", "")
        lines.append(f"Under load, flows of class {name} take on average {listed}.")
    return lines


def _certainty(best: _Entry, second: _Entry, what: str) -> str:
    gap = _gap(best, second)
    if gap is None:
        return (
            "This is one seed, so there is no interval: small differences may be chance. "
            "More seeds in the experiment give intervals."
        )
    half = gap.half_width or 0.0
    pair = f"{label_of(best.scheme)} and {label_of(second.scheme)}"
    if gap.mean - half > 0:
        return (
            f"The lead holds over {gap.n} seeds: {what} of {pair} differs by "
            f"{gap.mean:.2f} ± {half:.2f} (paired, 95 %)."
        )
    return (
        f"Over {gap.n} seeds {pair} are a tie: the difference in {what}, {gap.mean:.2f} ± "
        f"{half:.2f} (paired, 95 %), includes zero."
    )


def _gap(best: _Entry, second: _Entry) -> Interval | None:
    """How far the second is behind, paired by seed; None below two common seeds."""
    shared = sorted(set(best.per_seed) & set(second.per_seed))
    if len(shared) < 2:
        return None
    return mean_interval(second.per_seed[s] - best.per_seed[s] for s in shared)


def _notes(summary: Json) -> tuple[str, ...]:
    notes: list[str] = []
    if not summary.get("complete", True):
        notes.append("The run was interrupted: these figures cover only the runs that are done.")
    lost = {
        name: int(row["flows"]) - int(row["finished"])
        for name, row in summary.get("schemes", {}).items()
        if row["flows"] > row["finished"]
    }
    if lost:
        listed = join_words(f"{n:,} under {label_of(s)}" for s, n in lost.items())
        notes.append(f"Flows that never finished: {listed}.")
    return tuple(notes)


def _scored(name: str, row: Json, configuration: str) -> _Entry:
    score = row["score"]
    figure = score["s"][configuration]
    per_seed = {seed: float(t[configuration]) for seed, t in score["per_seed"].items()}
    interval = Interval(float(figure["mean"]), figure["ci95"], len(per_seed))
    return _Entry(name, interval, per_seed, bool(score["lower_bound"]))


def _plain(name: str, row: Json) -> _Entry | None:
    slowdown = row.get("slowdown") or {}
    value = slowdown.get("p99")
    if value is None:
        return None
    found = row.get("p99_slowdown_per_seed") or {}
    per_seed = {s: float(v) for s, v in found.items() if v is not None}
    half = (slowdown.get("ci95") or {}).get("p99")
    return _Entry(name, Interval(float(value), half, len(per_seed)), per_seed, False)


def _figure(entry: _Entry) -> str:
    text = fixed(entry.figure.mean)
    if entry.figure.half_width is not None:
        text += f" ± {fixed(entry.figure.half_width)}"
    return f"≥ {text}" if entry.lower_bound else text


def _level(best: _Entry, other: _Entry) -> bool:
    """Whether two figures differ by less than a reader should care about: 1 %."""
    return other.figure.mean < 1.01 * best.figure.mean


def _less(best: _Entry, other: _Entry) -> str:
    share = 1 - best.figure.mean / other.figure.mean if other.figure.mean else 0.0
    return f"{100 * share:.0f} % less" if share >= 0.005 else "hardly less"
