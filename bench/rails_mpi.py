"""Large messages of an MPI program with RADDLE_RAILS under it, beside Open MPI by itself.

Under ours, Open MPI has one rail: what is faster than that went by ours. What users get whose Open
MPI stripes already is a run of its own.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from bench.comparison import Comparison, compare
from bench.rails_lab import GOODPUT, RailsLab, names
from bench.turns import Times
from raddle.services.lab.tools import mpi_library

WARM_UP = 12
"""Windows until the library has measured both ways five times each, and opened its rails before."""

ONE = "Open MPI 1"
BOTH = "both"

Sides = dict[str, Callable[[], Times]]
Rounds = Sequence[Mapping[str, Times]]


def ours(bench: RailsLab, rails: str, size: int, plain: int = 1) -> Times:
    """Goodput with RADDLE_RAILS, over Open MPI on the first `plain` rails."""
    words = f"-x LD_PRELOAD={mpi_library()} -x RADDLE_RAILS={rails}"
    return bench.mpi(plain, size, words, WARM_UP)


def sides(bench: RailsLab, numbers: Sequence[int], size: int) -> Sides:
    """Open MPI on one rail; ours and Open MPI on each number of rails; both on the most."""
    most = max(numbers)
    return {
        ONE: partial(bench.mpi, 1, size),
        **{f"Open MPI {n}": partial(bench.mpi, n, size) for n in numbers},
        **{f"{n}": partial(ours, bench, names(n), size) for n in numbers},
        BOTH: partial(ours, bench, "on", size, most),
    }


def judge_even(what: str, least: Mapping[int, float], rounds: Rounds) -> list[Comparison]:
    """Ours on each number of equal rails against Open MPI on one, with limits; stripes without."""
    found = [
        comparison
        for rails, limit in least.items()
        for comparison in (
            ratio(f"{what}: {rails} rails / Open MPI 1", limit, rounds, f"{rails}", ONE),
            striped(what, rails, rounds),
        )
    ]
    return [*found, chosen(what, max(least), rounds)]


def judge_uneven(what: str, least: float, rounds: Rounds) -> list[Comparison]:
    """Ours on two uneven rails against the sum of what our messages get from each alone."""
    ratios = [goodput(r, "2") / (goodput(r, "e0") + goodput(r, "e1")) for r in rounds]
    return [
        compare(f"{what}, against their sum", least, ratios),
        striped(what, 2, rounds),
        chosen(what, 2, rounds),
    ]


def striped(what: str, rails: int, rounds: Rounds) -> Comparison:
    """Ours against Open MPI that stripes over the same rails."""
    stripes = f"Open MPI {rails}"
    return ratio(f"{what}: {rails} rails / {stripes}", None, rounds, f"{rails}", stripes)


def chosen(what: str, rails: int, rounds: Rounds) -> Comparison:
    """Ours and Open MPI on all rails, where the library takes what it finds faster."""
    stripes = f"Open MPI {rails}"
    return ratio(f"{what}: {BOTH} / {stripes}", None, rounds, BOTH, stripes)


def ratio(what: str, least: float | None, rounds: Rounds, over: str, under: str) -> Comparison:
    """Ratios of two sides' goodput."""
    return compare(what, least, [goodput(r, over) / goodput(r, under) for r in rounds])


def goodput(found: Mapping[str, Times], side: str) -> float:
    """A side's goodput in a round."""
    return found[side][GOODPUT]
