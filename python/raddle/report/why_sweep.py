"""Why a setting matters: the two points that differ most in it, and what differs with them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from raddle.report.why import Part, Why
from raddle.statistics.rule import TIE_PERCENT
from raddle.statistics.verdict import label_of
from raddle.text import fixed, join_words, many, percent, size, span_us

__all__ = ["why_of_sweep"]

Json = Mapping[str, Any]
FIGURE = "slowdown_p99"
TIE = TIE_PERCENT / 100
SMALL = 0.01


@dataclass(frozen=True, slots=True)
class _Step:
    """A scheme at two points that differ in one key; it is slower at the first."""

    key: str
    scheme: str
    slow: Json
    fast: Json

    @property
    def own(self) -> tuple[Json, Json]:
        """The scheme's figures at both points."""
        return self.slow["schemes"][self.scheme], self.fast["schemes"][self.scheme]

    @property
    def ratio(self) -> float:
        slow, fast = self.own
        return float(slow[FIGURE] / fast[FIGURE])

    @property
    def clear(self) -> bool:
        """Whether the difference is more than the seeds' intervals together, or a tie's of one."""
        slow, fast = self.own
        halves = [row["ci95"].get(FIGURE) for row in (slow, fast)]
        if None in halves:
            return self.ratio > 1 + TIE
        return bool(slow[FIGURE] - fast[FIGURE] > sum(halves))

    def lost(self) -> tuple[int, int]:
        """Flows that did not finish at both points."""
        slow, fast = self.own
        return slow["flows"] - slow["finished"], fast["flows"] - fast["finished"]

    def at(self) -> tuple[str, str]:
        """The values of the key at both points."""
        return self.slow["set"][self.key], self.fast["set"][self.key]


def why_of_sweep(table: Json) -> Why:
    """Explain the widest difference between two points of a scheme that differ in one key."""
    steps = [step for step in _steps(table) if step.own[1][FIGURE] > 0]
    whole = [step for step in steps if not any(step.lost())]
    steps = whole or steps
    source = "From the figures of this page (sweep.json): p99 slowdown, longest queue, pauses, "
    source += "completion times. Each point's own report says more."
    if not steps:
        lead = "There are no two points that differ in one setting and have flows that finished."
        return Why("Why the settings matter", lead, (), "", source)
    widest = max(steps, key=lambda step: step.ratio)
    clear = [step for step in steps if step.clear]
    step = max(clear, key=lambda step: step.ratio) if clear else widest
    title = f"Why {step.key} matters" if clear else "Why the settings hardly matter"
    parts = (
        Part("Queue.", _queue(step)),
        Part("Pauses.", _pauses(step)),
        Part("Flows.", _flows(step)),
    )
    return Why(title, _lead(step, bool(clear)), parts, _verdict(step) if clear else "", source)


def _steps(table: Json) -> Iterator[_Step]:
    """All pairs of points that differ in one key, for each scheme at both."""
    points = table["points"]
    for place, a in enumerate(points):
        for b in points[place + 1 :]:
            differ = [key for key in a["set"] if a["set"][key] != b["set"][key]]
            if len(differ) != 1:
                continue
            for scheme in a["schemes"]:
                rows = [p["schemes"].get(scheme, {}).get(FIGURE) for p in (a, b)]
                if None in rows:
                    continue
                slow, fast = (a, b) if rows[0] >= rows[1] else (b, a)
                yield _Step(differ[0], scheme, slow, fast)


def _lead(step: _Step, clear: bool) -> str:
    slow, fast = step.own
    at_slow, at_fast = step.at()
    rest = [f"{key} {value}" for key, value in step.slow["set"].items() if key != step.key]
    where = f" ({join_words(rest)})" if rest else ""
    text = (
        f"Under {label_of(step.scheme)} the p99 slowdown is {fixed(slow[FIGURE])} at {step.key} "
        f"{at_slow} and {fixed(fast[FIGURE])} at {at_fast}{where}"
    )
    if not clear:
        return f"No setting changes the p99 slowdown clearly. At most: {text[0].lower()}{text[1:]}."
    lost = step.lost()
    if any(lost):
        text += f"; {many(lost[0], 'flow')} and {lost[1]:,} did not finish and do not count"
    return f"{text}: the widest difference between two points of one scheme."


def _queue(step: _Step) -> str:
    own, other = (row.get("max_port_queue_bytes") for row in step.own)
    at_slow, at_fast = step.at()
    if own is None or other is None:
        return "The longest queues are not known."
    return (
        f"The longest queue of a port was {size(own)} at {at_slow} and {size(other)} at {at_fast}"
        f"{_change(own, other)}."
    )


def _pauses(step: _Step) -> str:
    own, other = (row.get("pause_us") or 0.0 for row in step.own)
    at_slow, at_fast = step.at()
    if own == other == 0:
        return "No port was paused at either."
    if not own:
        return f"Ports were paused for {span_us(other)} at {at_fast}, not at {at_slow}."
    rest = f"{span_us(other)} at {at_fast}" if other else f"not at {at_fast}"
    return f"Ports were paused for {span_us(own)} at {at_slow}, {rest}{_change(own, other)}."


def _flows(step: _Step) -> str:
    """The classes whose p99 completion time differs most and least."""
    slow, fast = (row.get("fct_p99_us") or {} for row in step.own)
    ratios = {n: slow[n] / fast[n] for n in slow if slow[n] and fast.get(n)}
    if not ratios:
        return "Completion times of classes are not known at both."
    most = max(ratios, key=lambda name: ratios[name])
    least = min(ratios, key=lambda name: ratios[name])
    text = (
        f"The class that differs most is {most}: p99 {span_us(slow[most])} against "
        f"{span_us(fast[most])} ({ratios[most]:.2f} times)"
    )
    if ratios[most] < 1 + SMALL:
        text = f"No class takes longer at p99 (the most, {most}: {ratios[most]:.2f} times)"
    elif least != most:
        text += f", the least {least} ({ratios[least]:.2f} times)"
    return text + "."


def _change(own: float, other: float) -> str:
    if own == other or not other or not own:
        return ""
    change = own / other - 1
    return f" ({percent(abs(change))} {'more' if change > 0 else 'less'})"


def _verdict(step: _Step) -> str:
    """What of queues and pauses differs the same way."""
    slow, fast = step.own
    longer = [
        words
        for key, words in (("max_port_queue_bytes", "longer queues"), ("pause_us", "longer pauses"))
        if (slow.get(key) or 0) > (1 + TIE) * (fast.get(key) or 0)
    ]
    if longer:
        return f"Slower flows come with {join_words(longer)} here."
    return (
        "Neither queues nor pauses are longer where flows are slower, so these figures do not "
        "explain the difference."
    )
