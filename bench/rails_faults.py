"""Rails that are cut and restored while messages travel: what arrives, how fast, how soon."""

import re
import subprocess
import time
from dataclasses import dataclass
from itertools import pairwise
from statistics import quantiles

from bench.comparison import Comparison, compare
from bench.rails_lab import RailsLab, names, report
from bench.rails_progress import INTERVAL, Progress
from raddle.errors import LabError

HEARTBEAT_S = 0.020
"""What `raddle-perf` has; three without an answer are a rail's end."""

LEAST_OF_SHARE = 0.95
DOWN_S, UP_S, SETTLED_S = 1.3, 1.3, 0.4
TENTHS = 10
GIVE_UP_S = 1.0
AFTER_S = 0.5
"""How much later than the set time a program may end."""


@dataclass(frozen=True)
class Check:
    """A limit that is no ratio, and what was measured."""

    what: str
    limit: str
    measured: str
    holds: bool

    def line(self) -> str:
        """The check as a line."""
        return f"{self.what}: {self.measured} ({self.limit}): {'holds' if self.holds else 'MISSED'}"


def cut_and_restore(
    bench: RailsLab, rails: int, total: str
) -> tuple[list[Comparison], list[Check]]:
    """Cut a rail in turn and restore it, again and again, until all of `total` has arrived.

    The server looks at every byte and the order; both sides count. Goodput counts from the cut on.
    """
    words = ["--rails", names(rails), "--size", "1MiB", "--bytes", total]
    progress = Progress(bench.start_perf(*words, "--check", *INTERVAL, "--count", "1"))
    cuts: list[tuple[float, float]] = []
    time.sleep(UP_S)
    while progress.process.poll() is None:
        interface = f"e{1 + len(cuts) % (rails - 1)}"
        bench.ask("h1", "ip", "link", "set", interface, "down")
        cut = time.monotonic()
        time.sleep(DOWN_S)
        bench.ask("h1", "ip", "link", "set", interface, "up")
        cuts.append((cut, time.monotonic()))
        time.sleep(UP_S)
    try:
        progress.end()
    except LabError as error:
        return [], [Check(f"{total} arrive", "all, every byte right", str(error), holds=False)]
    return judge(progress, cuts, rails, total)


def judge(
    progress: Progress, cuts: list[tuple[float, float]], rails: int, total: str
) -> tuple[list[Comparison], list[Check]]:
    """Compare each cut with the time before it."""
    ended = progress.lines[-1][0]
    whole = [pair for pair in pairwise(cuts) if pair[1][1] < ended]
    ratios, gaps, rises = [], [], []
    for (_, restored), (cut, again) in whole:
        before = progress.goodput(restored + SETTLED_S, cut)
        ratios.append(progress.goodput(cut, again) / before * rails / (rails - 1))
        gaps.append(max(one["longest_gap_ms"] for one in progress.intervals(cut, again)) / 1000)
        rises.append(min(progress.rises(again, again + UP_S), default=again + UP_S) - again)
    found = progress.report
    came = f"{found['messages']} messages, {found['retransmissions']} segments sent again"
    return (
        [compare(f"a rail of {rails} is cut, against its share", LEAST_OF_SHARE, ratios)],
        [
            Check(f"{total} arrive, {len(cuts)} cuts", "all, every byte right", came, holds=True),
            within(f"longest time without a message, {len(gaps)} cuts", gaps),
            within(f"a restored rail carries again, {len(rises)} times", rises),
        ],
    )


def within(what: str, times: list[float]) -> Check:
    """Whether nine tenths of times are within three heartbeats."""
    limit = 3 * HEARTBEAT_S
    if len(times) < TENTHS:
        return Check(what, f"{1000 * limit:.0f} ms", "too few", holds=False)
    most = quantiles(times, n=TENTHS)[-1]
    measured = f"{1000 * most:.1f} ms (90 %), {1000 * max(times):.1f} ms (all)"
    return Check(what, f"{1000 * limit:.0f} ms for 90 %", measured, holds=most <= limit)


def all_down(bench: RailsLab, rails: int) -> Check:
    """Cut all rails: an error after the set time."""
    words = ["--rails", names(rails), "--time", "60s", "--give-up", f"{1000 * GIVE_UP_S:.0f}ms"]
    running = bench.start_perf(*words)
    time.sleep(1.5)
    for rail in range(1, rails):
        bench.ask("h1", "ip", "link", "set", f"e{rail}", "down")
    # The last one carries the control connection as well.
    bench.ask("h1", "ip", "link", "set", "e0", "down")
    cut = time.monotonic()
    try:
        _, error = running.communicate(timeout=30)
        took = time.monotonic() - cut
    except subprocess.TimeoutExpired:
        running.kill()
        _, error = running.communicate()
        took = float("inf")
    for rail in range(rails):
        bench.ask("h1", "ip", "link", "set", f"e{rail}", "up")
    said = re.search(r"error: .*", error)
    in_time = GIVE_UP_S - 3 * HEARTBEAT_S <= took <= GIVE_UP_S + AFTER_S
    return Check(
        "all rails are cut",
        f"an error after {GIVE_UP_S} s",
        f"status {running.returncode} after {took:.2f} s: {said.group() if said else error}",
        holds=in_time and running.returncode == 1 and said is not None,
    )


def still_works(bench: RailsLab, rails: int) -> Check:
    """Restored rails carry a new connection."""
    found = report(bench.start_perf(*bench.goodput_words(names(rails), "1MiB")))
    measured = f"{found['goodput_bps'] / 1e6:.0f} Mbit/s"
    return Check("and restored", "messages again", measured, holds=found["messages"] > 0)
