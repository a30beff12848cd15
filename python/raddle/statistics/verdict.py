"""The verdict in words: which scheme serves the fabric best, by how much, and how sure that is.

What is compared and what counts as a tie is `raddle.statistics.rule`'s to say; this is the wording.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from raddle.results.folder import Results
from raddle.statistics import score as scoring
from raddle.statistics.comparable import Comparison, Scores, compare_schemes
from raddle.statistics.readings import Read, all_readings, apart, disagreement, tie_within
from raddle.statistics.rule import TIE_PERCENT, PerSeed, difference, leaders, tie_words
from raddle.statistics.samples import mean_interval
from raddle.statistics.score import Role, role_of
from raddle.text import every, fixed, join_words, many, plural, significant, spelled

__all__ = ["Verdict", "judge", "label_of", "verdict_of"]

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
FIGURE_WORDS = {"s": "S", "slowdown_p99": "p99 slowdown"}
NO_RUN = "No run has finished yet, so there is nothing to judge."
NO_FLOWS = (
    "These runs have no flows: the traffic of the experiment is empty, so there is nothing to "
    "judge."
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is said of a results folder.

    Attributes
    ----------
    leaders
        The best scheme; several if they tie; none if no scheme is named best.
    headline
        A sentence or two: unfinished flows first, then who leads.
    compared
        A sentence: which flows were compared, and what counts as a tie. Empty if nothing was.
    details
        By how much, at which other weights, how sure.
    scored
        Whether the score S decided, not the p99 of the slowdown.
    leaders_at
        Who leads at each weighting of the score.
    readings
        Who leads by each reading of the score, as `summary.json` has it; empty without a score.
    comparison
        The figures behind it, as `summary.json` has them.
    """

    leaders: tuple[str, ...]
    headline: str
    compared: str = ""
    details: tuple[str, ...] = ()
    scored: bool = False
    leaders_at: Mapping[str, tuple[str, ...]] | None = None
    readings: Sequence[Json] = ()
    comparison: Json | None = None

    @property
    def best(self) -> str | None:
        """The scheme that leads alone."""
        return self.leaders[0] if len(self.leaders) == 1 else None

    @property
    def leaders_words(self) -> str:
        """Who leads, in a few words."""
        names = join_words(label_of(s) for s in self.leaders)
        values = (self.comparison or {}).get("values") or {}
        means = {name: own["mean"] for name, own in values.items()}
        if len(self.leaders) < 2 or not set(self.leaders) <= set(means):
            return names or "none is named"
        return f"{names} ({tie_within(apart(means, self.leaders))})"

    def as_json(self) -> dict[str, Any]:
        """`verdict` of `summary.json`."""
        return {
            "best": self.best,
            "leaders": list(self.leaders),
            "headline": self.headline,
            "compared": self.compared,
            "details": list(self.details),
            "scored": self.scored,
            "leaders_at": {k: list(v) for k, v in (self.leaders_at or {}).items()},
            "readings": list(self.readings),
            "comparison": self.comparison,
        }


def label_of(scheme: str) -> str:
    """A scheme as people write it; unknown names stay as they are."""
    return LABELS.get(scheme, scheme)


def verdict_of(summary: Json) -> Verdict:
    """The verdict that stands in a `summary.json`."""
    found = summary.get("verdict")
    if found is None:
        return Verdict((), NO_RUN)
    return Verdict(
        leaders=tuple(found["leaders"]),
        headline=found["headline"],
        compared=found["compared"],
        details=tuple(found["details"]),
        scored=found["scored"],
        leaders_at={k: tuple(v) for k, v in found["leaders_at"].items()},
        # Results from before the readings stood side by side do not have them.
        readings=found.get("readings", ()),
        comparison=found["comparison"],
    )


def judge(
    results: Results, scores: Scores, rules: scoring.Rules, *, complete: bool, impacts: Json
) -> Verdict:
    """Judge the runs of a folder.

    Parameters
    ----------
    scores
        The score of each scheme and seed that has one.
    complete
        Whether every run of the experiment is done.
    impacts
        Per scheme the congestion impact of each class, as `summary.json` has it.
    """
    if not results.runs:
        return Verdict((), NO_RUN)
    compared = compare_schemes(results, scores, rules)
    if compared is None or not compared.seeds:
        empty = results.flow_file.rows == 0
        return Verdict((), NO_FLOWS if empty else _no_common_seed(compared))
    return _Judge(compared, scores, rules, complete, impacts).verdict()


def _no_common_seed(compared: Comparison | None) -> str:
    names = () if compared is None else compared.schemes
    listed = join_words(label_of(s) for s in names)
    return f"The finished runs of {listed} have no seed in common, so nothing is compared yet."


@dataclass(frozen=True, slots=True)
class _Judge:
    """The words about one comparison."""

    compared: Comparison
    scores: Scores
    rules: scoring.Rules
    complete: bool
    impacts: Json

    def verdict(self) -> Verdict:
        """All of it."""
        c = self.compared
        best = self._leaders(c.values)
        scored = c.figure == "s"
        readings = all_readings(c.scores, self.rules, self._leaders) if scored else []
        details: list[str] = []
        if len(c.schemes) == 1:
            best, headline = (), self._alone(c.schemes[0])
        elif not best:
            headline = f"{self._unfinished()}{self._none_named()}"
            details += self._figures()
        else:
            headline = f"{self._unfinished()}{self._lead(best)}"
            otherwise = disagreement(readings, self.rules.primary, best, label_of)
            headline += f" {otherwise}" if otherwise else ""
            details += self._certainty(best[0])
            details += self._by_weights(best) if scored else []
            details += self._by_readings(readings, best) if scored else []
        details += self._lower_bounds()
        details += [] if scored else self._impact_lines()
        details.append(_EXPLAINED[c.figure])
        return Verdict(
            leaders=best,
            headline=headline,
            compared=self._what(),
            details=(*details, *self._notes()),
            scored=scored,
            leaders_at=self._leaders_at() if scored else None,
            readings=[one.as_json() for one in readings],
            comparison=self._json(),
        )

    def _leaders(self, values: Mapping[str, PerSeed]) -> tuple[str, ...]:
        """The leaders among figures over the common flows; none where the rule names none."""
        if self.compared.few or len(values) < 2:
            return ()
        return tuple(s for s in leaders(values) if not self.compared.left_more(s))

    def _leaders_at(self) -> dict[str, tuple[str, ...]]:
        return {w: self._leaders(self._at(w)) for w in self.rules.weights}

    def _at(self, weights: str) -> dict[str, PerSeed]:
        """S of each scheme and seed at these weights."""
        scores = self.compared.scores
        return {s: {str(n): one.totals[weights] for n, one in scores[s].items()} for s in scores}

    def _ranked(self) -> list[str]:
        return sorted(self.compared.values, key=self._mean)

    def _mean(self, scheme: str) -> float:
        return mean_interval(self.compared.values[scheme].values()).mean

    def _figure(self, scheme: str) -> str:
        return _with_interval(self.compared.values[scheme])

    def _where(self) -> str:
        if self.compared.figure != "s":
            return ""
        primary = self.rules.primary
        own = f" ({self.rules.weights[primary].label})" if primary == scoring.OWN else ""
        return f" {CONFIGURATION_WORDS[primary]}{own}"

    def _all(self) -> str:
        return every(len(self.compared.schemes), "scheme")

    def _kind(self) -> str:
        return "tested flow" if self.compared.tested else "flow"

    def _what(self) -> str:
        """Which flows were compared, and what counts as a tie."""
        c = self.compared
        if len(c.schemes) == 1:
            return ""
        alone = " under load and alone" if c.figure == "s" else ""
        flows = many(c.judged, self._kind())
        if c.finished == c.judged:
            words = f"Compared: {flows}, all of which finished{alone} under {self._all()}"
        else:
            words = f"Compared: of {flows}, {c.finished:,} finished{alone} under {self._all()}"
        sample = f" (a sample: one flow in {c.sample})" if c.sample > 1 and not c.tested else ""
        return f"{words}{sample}; {tie_words(len(c.seeds))}."

    def _unfinished(self) -> str:
        """How many flows did not finish under which scheme; empty if all did."""
        c = self.compared
        lost = {s: n for s, n in c.unfinished.items() if n}
        phrases = []
        if lost and len(set(c.unfinished.values())) == 1:
            count = next(iter(lost.values()))
            each = f"each of the {spelled(len(lost))} {plural('scheme')}" if len(lost) > 1 else "it"
            phrases.append(f"{count:,} under {each}")
        elif lost:
            phrases += [f"{n:,} under {label_of(s)}" for s, n in lost.items()]
            spared = [label_of(s) for s in c.schemes if s not in lost]
            if spared:
                phrases.append(f"none under {join_words(spared)}")
        words = f"Unfinished flows: {join_words(phrases)}. " if phrases else ""
        if c.waiting:
            seed = "" if len(c.seeds) == 1 else f" of seed {c.seeds[0]}"
            words += (
                f"{c.waiting:,} of {many(c.planned, 'flow')}{seed} had not started when the runs "
                "ended. "
            )
        return words

    def _none_named(self) -> str:
        """Why no scheme is named best."""
        c = self.compared
        if c.few:
            total = c.planned if c.waiting and len(c.seeds) == 1 and c.figure != "s" else c.judged
            return (
                f"Of {many(total, self._kind())}, only {c.finished:,} finished under "
                f"{self._all()}, so none is named best."
            )
        if not c.values:
            missing = (
                "of a kind of tested flows none finished under all of them"
                if c.figure == "s"
                else "nothing is known of how long they would take on an idle fabric"
            )
            return f"There is no {FIGURE_WORDS[c.figure]} to compare the schemes by: {missing}."
        first = leaders(c.values)[0]
        fewer = join_words(label_of(s) for s in c.left_more(first))
        return (
            f"Over the {many(c.finished, self._kind())} that finished under {self._all()}, "
            f"{label_of(first)} does best ({FIGURE_WORDS[c.figure]} {self._figure(first)}), but it "
            f"left more {'tested ' * c.tested}flows unfinished than {fewer}, so none is named best."
        )

    def _lead(self, best: Sequence[str]) -> str:
        """Who leads, by how much, who is last."""
        c = self.compared
        ranked = self._ranked()
        what, rest = FIGURE_WORDS[c.figure], [s for s in ranked if s not in best]
        over = ""
        if c.finished < c.judged:
            flows = many(c.finished, self._kind())
            over = f"Over the {flows} that finished under {self._all()}, "
        names = join_words(label_of(s) for s in best)
        figures = join_words(self._figure(s) for s in best)
        equals = "=" if c.figure == "s" else "of"
        if len(best) == 1:
            second = rest[0]
            served = "fabric" if c.figure == "s" else "traffic"
            words = (
                f"{over}{names} serves this {served} best: {what} {equals} {figures}"
                f"{self._where()}, {_less(self._mean(best[0]), self._mean(second))} than "
                f"{label_of(second)} ({self._figure(second)})"
            )
            rest = rest[1:]
        else:
            doing = "share the lead" if rest else "tie"
            tie = tie_within(apart({s: self._mean(s) for s in best}, best))
            words = f"{over}{names} {doing}: {what} {equals} {figures}{self._where()}, {tie}"
            words += f" over {many(len(c.seeds), 'seed')}" if len(c.seeds) > 1 else ""
        if rest:
            last = [s for s in rest if difference(c.values[s], c.values[ranked[-1]]).tie]
            if len(last) == 1:
                words += f"; {label_of(last[0])} is last with {self._figure(last[0])}"
        return words + "."

    def _alone(self, scheme: str) -> str:
        """One scheme: nothing to compare with."""
        c = self.compared
        name = label_of(scheme)
        if c.figure == "s":
            own = self.scores[scheme]
            figures = {str(n): one.totals[self.rules.primary] for n, one in own.items()}
            mark = "≥ " if any(one.lower_bound for one in own.values()) else ""
            words = (
                f"{name} scores S = {mark}{_with_interval(figures)}{self._where()} "
                "(1.00 would mean that congestion does not hurt)."
            )
        elif c.values:
            lost = " that finished" if c.unfinished[scheme] else ""
            words = (
                f"With {name} the slowest 1 % of the flows{lost} take at least "
                f"{self._figure(scheme)} times as long as on an idle fabric."
            )
        else:
            words = f"No flow finished under {name}, so there is nothing to judge."
        return f"{self._unfinished()}{words}"

    def _figures(self) -> list[str]:
        """What there is to say where no scheme is named best."""
        c = self.compared
        if not c.values:
            return []
        listed = join_words(f"{self._figure(s)} with {label_of(s)}" for s in self._ranked())
        return [
            f"Over the {many(c.finished, self._kind())} that finished under {self._all()}, "
            f"{FIGURE_WORDS[c.figure]} is {listed}."
        ]

    def _certainty(self, best: str) -> list[str]:
        c = self.compared
        second = next(s for s in self._ranked() if s != best)
        gap = difference(c.values[best], c.values[second])
        what = FIGURE_WORDS[c.figure]
        pair = f"{label_of(best)} and {label_of(second)}"
        if gap.half_width is None:
            return [
                f"This is one seed, so there is no interval: differences of up to {TIE_PERCENT:g} "
                "% count as ties. More seeds in the experiment give intervals."
            ]
        over = many(gap.seeds, "seed")
        if gap.tie:
            return [
                f"Over {over} {pair} are a tie: the difference in {what}, {gap.words}, includes "
                "zero."
            ]
        return [f"The lead holds over {over}: {what} of {pair} differs by {gap.words}."]

    def _by_weights(self, best: Sequence[str]) -> list[str]:
        """Who leads at other weights, by the monotone score, and in absolute figures."""
        same: list[str] = []
        sentences: list[str] = []
        for weights, found in self._leaders_at().items():
            if weights == self.rules.primary:
                continue
            figures, words = self._at(weights), CONFIGURATION_WORDS[weights]
            if set(found) == set(best):
                shown = join_words(_with_interval(figures[s]) for s in best)
                same.append(f"{words} (S = {shown})")
            elif found:
                listed = join_words(f"{label_of(s)} ({_with_interval(figures[s])})" for s in found)
                others = [s for s in best if s not in found]
                own = join_words(f"{label_of(s)} has {_with_interval(figures[s])}" for s in others)
                doing = "leads" if len(found) == 1 else "share the lead"
                tail = f"; {own}" if own else ""
                sentences.append(f"{words[0].upper()}{words[1:]}, {listed} {doing}{tail}.")
        if same:
            doing = "also leads" if len(best) == 1 else "also share the lead"
            names = join_words(label_of(s) for s in best)
            sentences.insert(0, f"{names} {doing} {join_words(same)}.")
        return [*sentences, self._monotone(best), self._in_absolute_terms()]

    def _by_readings(self, readings: Sequence[Read], best: Sequence[str]) -> list[str]:
        """By how many readings of the score the lead is the same, over all weights."""
        if not readings:
            return []
        same = sum(set(one.leaders) == set(best) for one in readings)
        lead = "lead" if len(best) == 1 else "shared lead"
        ways = f"{many(len(readings), 'way')} to read and weigh S"
        which = f"All {ways}" if same == len(readings) else f"Of {ways} {same:,}"
        return [f"{which} name the same {lead}."]

    def _monotone(self, best: Sequence[str]) -> str:
        scores, primary = self.compared.scores, self.rules.primary
        values = {
            s: {str(n): one.monotone[primary] for n, one in scores[s].items()} for s in scores
        }
        first = self._leaders(values)
        if set(first) & set(best):
            these = "the same scheme" if len(best) == len(first) == 1 else "the same lead"
            return (
                f"The monotone score, which never improves when a part gets worse, names {these}."
            )
        shown = join_words(f"{label_of(s)} ({_with_interval(values[s])})" for s in first)
        own = _with_interval(values[best[0]])
        return (
            f"The monotone score prefers {shown} to {label_of(best[0])} ({own}): S also rewards "
            "evenness, so look at the parts."
        )

    def _in_absolute_terms(self) -> str:
        """Who is fastest under load: S alone would praise a scheme that is slow even when alone."""
        scores = self.compared.scores
        phrases = []
        for role, words, unit in (
            (Role.LONG, "long flows get most bandwidth with", "Gb/s"),
            (Role.SHORT, "short flows are fastest with", "µs"),
            (Role.ALLREDUCE, "Allreduce flows with", "µs"),
        ):
            loaded = {
                s: {str(n): one.parts[role].loaded for n, one in scores[s].items()} for s in scores
            }
            first = leaders(loaded, lower_is_better=role is not Role.LONG)
            if len(first) == len(loaded):
                names = f"{self._all()} alike"
            else:
                names = join_words(label_of(s) for s in first)
            mean = mean_interval(loaded[first[0]].values()).mean
            phrases.append(f"{words} {names} ({significant(mean)} {unit})")
        return (
            f"In absolute figures under load, {join_words(phrases)}; "
            "S compares each scheme with itself alone."
        )

    def _lower_bounds(self) -> list[str]:
        names = [
            label_of(s)
            for s, own in self.scores.items()
            if any(one.lower_bound for one in own.values())
        ]
        if not names:
            return []
        return [
            f"Figures with ≥ in tables ({join_words(names)}) are over all tested flows: those that "
            "never finished count as if they had ended with the run."
        ]

    def _impact_lines(self) -> list[str]:
        """Tested flows under load against alone, where not all of the three kinds exist."""
        lines = []
        classes = dict.fromkeys(c for found in self.impacts.values() for c in found or {})
        for name in classes:
            found = {s: i[name] for s, i in self.impacts.items() if (i or {}).get(name)}
            if role_of(name) is None or any(i["unfinished"] for i in found.values()):
                continue
            ranked = sorted(found, key=lambda s: found[s]["mean"])
            first, *others = (f"{fixed(found[s]['mean'])} × |with {label_of(s)}" for s in ranked)
            listed = join_words([first.replace("|", "as long as alone "), *others])
            lines.append(
                f"Under load, flows of class {name} take on average {listed.replace('|', '')}."
            )
        return lines

    def _notes(self) -> tuple[str, ...]:
        notes = []
        c = self.compared
        if c.left_out:
            listed = join_words(label_of(s) for s in c.left_out)
            notes.append(f"Not compared: {listed}, of which there is no figure.")
        if not self.complete:
            notes.append(
                "The run was interrupted: these figures cover only the runs that are done."
            )
        if any(c.unfinished.values()) or c.waiting:
            notes.append(
                "Flows stay unfinished where `end` in [simulation] stops the run before they are "
                "done, where no path leads to their host, or where too much is lost."
            )
        return tuple(notes)

    def _json(self) -> dict[str, Any]:
        c = self.compared
        return {
            "figure": c.figure,
            "schemes": list(c.schemes),
            "left_out": list(c.left_out),
            "seeds": list(c.seeds),
            "flows": c.judged,
            "finished_under_all": c.finished,
            "unfinished": dict(c.unfinished),
            "tested_unfinished": {s: int(sum(v.values())) for s, v in c.judged_unfinished.items()}
            if c.tested
            else None,
            "not_started": c.waiting,
            "values": {
                s: {"mean": self._mean(s), "per_seed": dict(v)} for s, v in c.values.items()
            },
        }


_EXPLAINED = {
    "s": (
        "S compares tested flows under load with the same flows alone: lower is better, and "
        "1.00 means that congestion does not hurt."
    ),
    "slowdown_p99": (
        "Slowdown is a flow's completion time over what it would be on an idle fabric, of tested "
        "flows where there are any; the score S needs tested long, short and Allreduce flows, "
        "under load and alone."
    ),
}


def _with_interval(values: PerSeed) -> str:
    interval = mean_interval(values.values())
    text = fixed(interval.mean)
    return text if interval.half_width is None else f"{text} ± {fixed(interval.half_width)}"


def _less(best: float, other: float) -> str:
    share = 1 - best / other if other else 0.0
    return f"{100 * share:.0f} % less" if share >= 0.005 else "hardly less"
