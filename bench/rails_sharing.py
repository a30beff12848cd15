"""Several processes of a host on the same rails: what they get together, and how evenly."""

import time

from bench.comparison import Comparison, compare
from bench.rails_lab import GOODPUT, JAIN, WINDOW, RailsLab, key, names
from bench.rails_progress import INTERVAL, Progress
from bench.turns import Times
from raddle.statistics.samples import jain

STEPS = tuple(range(1, 9))
"""How many processes are together, one step after the other."""

LIMITED = "dynamic"
OTHERS = ("static", "unidirectional")
LEAST_TOTAL = 0.95
LEAST_JAIN = 0.95
SETTLED_S = 0.5
"""Time from when a process comes until all share evenly, if they do; its start is part of it."""

END_S = 0.3
"""Time for which the first to come go on after the last step."""


def staircase(bench: RailsLab, rails: int, policy: str) -> Times:
    """Goodput of all processes together, and how even it is, at each step.

    Who is there stays: those that come later have to get their share of what others use.
    """
    step_s = SETTLED_S + bench.seconds
    words = ["--rails", names(rails), "--size", "1MiB", "--window", WINDOW, "--policy", policy]
    words += ["--warm-up", "1ms", "--count", "1", *INTERVAL]
    runs: list[Progress] = []
    begins: list[float] = []
    for number, processes in enumerate(STEPS):
        begins.append(time.monotonic())
        lasts = ["--time", f"{round(1000 * (step_s * (len(STEPS) - number) + END_S))}ms"]
        runs += [
            Progress(bench.start_perf(*words, *lasts, "--source-port", str(port)))
            for port in range(len(runs), processes)
        ]
        time.sleep(max(0.0, begins[-1] + step_s - time.monotonic()))
    ends = [begun + step_s for begun in begins]
    for progress in runs:
        progress.end()
    found: Times = {}
    for processes, ended in zip(STEPS, ends, strict=True):
        shares = [one.goodput(ended - bench.seconds, ended) for one in runs[:processes]]
        found |= {key(GOODPUT, processes): sum(shares), key(JAIN, processes): jain(shares) or 0.0}
    return found


def judge(rails: int, policy: str, rounds: list[dict[str, Times]]) -> list[Comparison]:
    """The total of several processes against that of one, and Jain's index."""
    limited, found = policy == LIMITED, []
    for processes in STEPS[1:]:
        what = f"{rails} rails, {policy}, {processes} processes"
        steps = [r[policy] for r in rounds]
        totals = [s[key(GOODPUT, processes)] / s[key(GOODPUT, 1)] for s in steps]
        even = [s[key(JAIN, processes)] for s in steps]
        found += [
            compare(f"{what}: total", LEAST_TOTAL if limited else None, totals),
            compare(f"{what}: Jain", LEAST_JAIN if limited else None, even),
        ]
    return found
