"""Several processes of a host on the same rails: what they get together, and how evenly."""

from collections.abc import Callable, Mapping
from functools import partial

from legs import Times
from pairs import Comparison, compare
from rails_diary import INTERVAL, Diary
from rails_lab import GOODPUT, JAIN, RailsLab, names

PROCESSES = {"dynamic": tuple(range(1, 9)), "static": (1, 2, 4, 8), "unidirectional": (1, 2, 4, 8)}
"""How many are together, by policy."""

LIMITED = "dynamic"
LEAST_TOTAL = 0.95
LEAST_JAIN = 0.95
SETTLED_S = 2.0
"""Time from when all processes are there until they share evenly, if they do."""


START_S = 0.5
"""Time within which all processes are there."""


def jain(shares: list[float]) -> float:
    """Jain's index: 1 if all have the same, 1/n if one has all."""
    return sum(shares) ** 2 / (len(shares) * sum(share**2 for share in shares))


def together(bench: RailsLab, rails: int, policy: str, processes: int) -> Times:
    """Goodput of processes while all of them send, and how even it is."""
    time = ["--time", f"{round(1000 * (bench.seconds + SETTLED_S + START_S))}ms", "--count", "1"]
    words = ["--rails", names(rails), "--size", "1MiB", "--window", "8", *time, *INTERVAL]
    diaries = [
        Diary(bench.start_perf(*words, "--policy", policy, "--source-port", str(process)))
        for process in range(processes)
    ]
    for diary in diaries:
        diary.end()
    spans = [diary.span() for diary in diaries]
    begun, ended = max(first for first, _ in spans) + SETTLED_S, min(last for _, last in spans)
    shares = [diary.goodput(begun, ended) for diary in diaries]
    return {GOODPUT: sum(shares), JAIN: jain(shares)}


def legs(bench: RailsLab, rails: int) -> Mapping[str, Callable[[], Times]]:
    """All policies, with one to eight processes."""
    return {
        f"{policy} {processes}": partial(together, bench, rails, policy, processes)
        for policy, numbers in PROCESSES.items()
        for processes in numbers
    }


def judge(rails: int, rounds: list[dict[str, Times]]) -> list[Comparison]:
    """The total of several processes against one's, and Jain's index; other policies are shown."""
    found = []
    for policy, numbers in PROCESSES.items():
        limited = policy == LIMITED
        for processes in numbers:
            what = f"{rails} rails, {policy}, {processes} processes"
            mine = [r[f"{policy} {processes}"] for r in rounds]
            ones = [r[f"{LIMITED} 1"][GOODPUT] for r in rounds]
            totals = [m[GOODPUT] / one for m, one in zip(mine, ones, strict=True)]
            if processes > 1 or not limited:
                found.append(compare(f"{what}: total", LEAST_TOTAL if limited else None, totals))
            if processes == 1:
                continue
            even = [m[JAIN] for m in mine]
            found.append(compare(f"{what}: Jain", LEAST_JAIN if limited else None, even))
    return found
