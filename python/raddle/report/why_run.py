"""Why one scheme is slower than another: which queue, which pauses, which flows."""

from collections.abc import Sequence

import numpy as np

from raddle.report.why import Part, Why
from raddle.results.columns import floats, integers
from raddle.results.folder import Results
from raddle.statistics.contrast import Contrast, mean_us, widest_contrast
from raddle.statistics.measured import Measured, Port
from raddle.statistics.rule import TIE_PERCENT
from raddle.statistics.verdict import label_of
from raddle.text import join_words, many, percent, size, span_us, verb

__all__ = ["why_of"]

CLEAR = 1.25
"""A queue so many times as long is called longer."""
PART = 0.1
"""Least share of the difference that is called a part of it."""
MOST_FLOWS = 3
NO_COUNTERS = "These results hold no counters of ports"
MEETS = {
    "last": ("goes", "go", "to the host behind that port"),
    "recorded": ("passes", "pass", "that port"),
    "shortest": ("has", "have", "that port on a shortest way"),
}
"""How flows meet the longest queue: verb of one, of many, and the rest."""


def why_of(results: Results, *, leaders: Sequence[str] = ()) -> Why:
    """Compare the two schemes that differ most in a class, a leading one with another if any."""
    contrast = widest_contrast(results, leaders=leaders)
    if contrast is None:
        nothing = "No flow finished, so there are no completion times to explain."
        return Why("Why", nothing, (), "", "From flows.parquet.")
    words = _Words(results, contrast)
    parts = (
        Part("Queue.", words.queue()),
        Part("Pauses.", words.pauses()),
        Part("Flows.", words.flows()),
    )
    seeds = len(results.seeds)
    source = "From flows, ports, queues and pauses of this folder; "
    source += f"seed {results.seeds[0]}." if seeds == 1 else f"means over {many(seeds, 'seed')}."
    return Why(words.title(), words.lead(), parts, words.verdict(), source)


class _Words:
    """What was measured of a contrast, in sentences."""

    def __init__(self, results: Results, contrast: Contrast) -> None:
        self.of = contrast
        self.measured = Measured(results, contrast)
        self.seeds = len(results.seeds)
        self.a = label_of(contrast.slow)
        self.b = None if contrast.fast is None else label_of(contrast.fast)
        self.count = contrast.under_slow.num_rows
        ids = integers(results.nodes, "node").tolist()
        self.names = dict(zip(ids, results.nodes["name"].to_pylist(), strict=True))

    def name(self, node: int) -> str:
        return str(self.names.get(node, f"node {node}"))

    def against(self, words: str) -> str:
        """What holds under the faster scheme, if there is one."""
        return "" if self.b is None else f" ({self.b}: {words})"

    def title(self) -> str:
        if self.b is None:
            return f"Why flows wait under {self.a}"
        if self.of.tie:
            return "Why they are level"
        return f"Why {self.a} is slower than {self.b} for flows of class {self.of.kind}"

    def lead(self) -> str:
        mean = span_us(mean_us(self.of.under_slow))
        flows = f"{many(self.count, 'flow')} of class {self.of.kind}"
        if self.of.unfinished:
            flows += f", without {self.of.unfinished:,} that did not finish"
        if self.b is None:
            return f"A flow takes {mean} in the mean, {self._over_idle()} ({flows})."
        other = span_us(mean_us(self.of.under_fast))
        if self.of.tie:
            return (
                f"In no class two schemes differ by more than a tie. {self.a} and {self.b} differ "
                f"most: a flow takes {mean} and {other} in the mean ({flows})."
            )
        return (
            f"Under {self.a} a flow takes {self.of.ratio:.2f} times as long as under {self.b}: "
            f"{mean} against {other} in the mean ({flows})."
        )

    def _over_idle(self) -> str:
        idle = floats(self.of.under_slow, "ideal_fct_ps")
        if not np.isfinite(idle).all() or idle.mean() <= 0:
            return "of which an idle fabric's share is not known"
        return f"{mean_us(self.of.under_slow) * 1e6 / idle.mean():.2f} times as long as when idle"

    def queue(self) -> str:
        port, held = self.measured.port, self.measured.held_bytes
        if port is None:
            known = self.measured.paused_us is not None
            return "No port had a queue." if known else f"{NO_COUNTERS}."
        meets = port.passing is not None and port.passing.any()
        which = " that they can meet" if meets else ""
        text = (
            f"The longest queue{which} stood at {self.name(port.node)} → {self.name(port.peer)}: "
            f"up to {size(port.queue_bytes)}, which takes {span_us(port.drain_us)} to send"
            f"{self.against(size(port.other_bytes) + ' there')}"
        )
        running = "while these flows ran, "
        if port.p99_bytes is not None:
            text += (
                f"; {running}99 % of the port's samples held at most {size(round(port.p99_bytes))}"
            )
            running = ""
        if held is not None:
            text += (
                f"{' and' if not running else ';'} {running}the fullest port held "
                f"{size(round(held[0]))} in the mean{self.against(size(round(held[1])))}"
            )
        return text + "."

    def pauses(self) -> str:
        paused, silenced = self.measured.paused_us, self.measured.silenced_us
        if paused is None:
            return f"{NO_COUNTERS}, so pauses are not known."
        if paused[0] == 0:
            if self.b is None:
                return "No port was paused."
            if paused[1] == 0:
                return "No port was paused under either."
            return f"No port was paused{self.against(f'for {span_us(paused[1])} in all')}."
        text = f"Ports were paused for {span_us(paused[0])} in all{self.against(_time(paused[1]))}"
        text += self._pauser()
        if silenced is not None:
            text += (
                f"; while a flow ran, its source was silenced for {_time(silenced[0])}"
                f"{' in the mean' if silenced[0] else ''}{self.against(_time(silenced[1]))}"
            )
        return text + "."

    def _pauser(self) -> str:
        """Who paused longest, and whom."""
        pauser = self.measured.pauser
        if pauser is None:
            return ""
        whom = join_words(self.name(edge.paused) for edge in pauser.edges)
        if len(pauser.edges) > MOST_FLOWS:
            whom = many(len(pauser.edges), "neighbour")
        which = "" if self.seeds == 1 else f" (seed {pauser.seed})"
        time = span_us(pauser.total_us)
        return f", most by {self.name(pauser.node)}, which silenced {whom} for {time}{which}"

    def flows(self) -> str:
        port, longest = self.measured.port, self._longest()
        sentences = []
        if port is not None and port.passing is not None:
            sentences.append(self._who_meets(port))
        if longest:
            sentences.append(f"the longest waits: {longest}")
        if not sentences:
            return "Neither ways nor waits of these flows are known."
        text = "; ".join(sentences)
        return f"{text[0].upper()}{text[1:]}."

    def _who_meets(self, port: Port) -> str:
        """How many of the flows meet the longest queue, and how long these and others wait."""
        met = 0 if port.passing is None else int(port.passing.sum())
        flows, apart = many(self.count, "flow"), self.measured.apart_us
        which = f"{met:,} of {flows}"
        if met in (0, self.count):
            which = "none of the flows" if met == 0 else f"all {flows}"
        if met == self.count == 1:
            which = "the only flow"
        one, more, rest = MEETS[port.how]
        text = f"{which} {verb(min(met, self.count), one, more)} {rest}"
        if apart is not None:
            text += f" and waited {span_us(apart[0])} in the mean, the others {span_us(apart[1])}"
        return text

    def _longest(self) -> str:
        waits = np.nan_to_num(self.measured.waits_us, nan=-1.0)
        flows = self.of.under_slow
        src, dst, bytes_ = (integers(flows, c) for c in ("src", "dst", "size_bytes"))
        words: dict[str, str] = {}
        for row in np.argsort(-waits, kind="stable").tolist():
            if len(words) == MOST_FLOWS or waits[row] <= 0:
                break
            pair = f"{self.name(int(src[row]))} → {self.name(int(dst[row]))}"
            words.setdefault(pair, f"{pair} ({span_us(waits[row])} for {size(int(bytes_[row]))})")
        return join_words(words.values())

    # What the parts explain.

    def verdict(self) -> str:
        if self.of.fast is None:
            return self._alone()
        if self.of.tie:
            return (
                f"One seed and {TIE_PERCENT:g} % at most: too little to look for a cause."
                if self.seeds == 1
                else f"Over {many(self.seeds, 'seed')} that may be chance; more seeds would tell."
            )
        gap = mean_us(self.of.under_slow) - mean_us(self.of.under_fast)
        points = [*self._queue_point(gap), *self._pause_point(gap), *self._drop_point()]
        if points:
            return f"The difference of {span_us(gap)} goes with {join_words(points)}."
        return (
            f"Queues and pauses do not explain the difference of {span_us(gap)}. What is left is "
            "how fast the senders sent: `[record] acks = true` records their rates."
        )

    def _queue_point(self, gap_us: float) -> list[str]:
        """Queues that are longer, and long enough to matter."""
        port, held = self.measured.port, self.measured.held_bytes
        if held is None or port is None or held[0] <= CLEAR * held[1]:
            return []
        if port.drain_us < PART * gap_us:
            return []
        longer = f"{held[0] / held[1]:.1f} times as long in the mean" if held[1] > 0 else "at all"
        return [f"queues {longer}"]

    def _pause_point(self, gap_us: float) -> list[str]:
        silenced = self.measured.silenced_us
        share = 0.0 if silenced is None else (silenced[0] - silenced[1]) / gap_us
        return [f"pauses of the sources ({percent(share)} of it)"] if share >= PART else []

    def _drop_point(self) -> list[str]:
        own, other = self.measured.drops
        return [f"{many(own, 'dropped packet')} against {other:,}"] if own > other else []

    def _alone(self) -> str:
        waits, silenced = self.measured.waits_us, self.measured.silenced_us
        waited = float(np.nanmean(waits)) if not np.isnan(waits).all() else 0.0
        if waited <= 0 or silenced is None:
            return ""
        share = silenced[0] / waited
        how = f"are {percent(share)}" if share > 0 else "are nothing"
        return f"Of what flows waited beyond an idle fabric, pauses of their sources {how}."


def _time(time_us: float) -> str:
    return span_us(time_us) if time_us else "no time"
