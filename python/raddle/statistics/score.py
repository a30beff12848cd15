"""The paper's score of congestion control: how much worse do tested flows fare under load?

S_L, S_S and S_A compare the tested long, short and Allreduce flows under load with the same flows
alone on the same fabric (>= 1 where congestion hurts)::

    S_L = bandwidth alone / bandwidth under load      bandwidth = size / FCT
    S_S = delay under load / delay alone              delay = FCT
    S_A = the same for Allreduce flows
    S   = a_L S_L + a_S S_S + a_A S_A + W

The paper's formula for W is lost; W is rebuilt as the population variance of the three parts
(`pvar`; also `var`, `std`, `none`). S is not monotone: S(1, 1, 4) = 4.00 but S(2, 2, 4) = 3.56.
`Score.monotone` stands beside it: the weighted p-norm of the parts, which never falls when a
part rises.

Readings of the ratio: ``per-flow`` pairs each flow with its twin and averages the ratios (the
paper's indices i, j, k suggest it); ``ratio-of-means`` divides the averages.

Unfinished flows are never dropped. A tested flow that does not end under load counts as if it had
ended with the run, so that the score is a lower bound (`Score.lower_bound`). A pair whose twin
does not end alone has no ratio; it is left out and counted in `Part.unpaired`.
"""

import math
import statistics
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, Literal, assert_never

import numpy as np
import pyarrow as pa

from raddle.results.columns import Floats, codes, floats, integers, take
from raddle.results.flows import is_tested

__all__ = [
    "CONFIGURATIONS",
    "Part",
    "Reading",
    "Role",
    "Rules",
    "Score",
    "VarianceMode",
    "Weights",
    "class_order",
    "combine",
    "finished_pairs",
    "monotone",
    "role_of",
    "score",
    "tested_flows",
]

Key = tuple[int, int, int, int]
"""What names a tested flow of one role: source, destination, bytes, and its place among those."""
Reading = Literal["per-flow", "ratio-of-means"]
VarianceMode = Literal["pvar", "var", "std", "none"]
PS_PER_US = 1e6


class Role(StrEnum):
    """The three kinds of tested flows that the score knows."""

    LONG = "long"
    SHORT = "short"
    ALLREDUCE = "allreduce"


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of the three parts; they must not be negative and must sum to 1.

    Examples
    --------
    >>> Weights(0.5, 0.25, 0.25).label
    'L 0.5 · S 0.25 · A 0.25'
    """

    long: float
    short: float
    allreduce: float

    def __post_init__(self) -> None:
        values = (self.long, self.short, self.allreduce)
        if not all(math.isfinite(v) and v >= 0 for v in values):
            msg = f"weights must be 0 or more, got {values}"
            raise ValueError(msg)
        if not math.isclose(sum(values), 1, abs_tol=1e-9):
            msg = f"weights must sum to 1, got {values} with sum {sum(values):g}"
            raise ValueError(msg)

    @property
    def label(self) -> str:
        """The weights in words."""
        if math.isclose(self.long, self.short) and math.isclose(self.short, self.allreduce):
            return "L ⅓ · S ⅓ · A ⅓"
        return f"L {self.long:g} · S {self.short:g} · A {self.allreduce:g}"


CONFIGURATIONS: Mapping[str, Weights] = {
    "1": Weights(1 / 3, 1 / 3, 1 / 3),
    "2": Weights(0.5, 0.25, 0.25),
    "3": Weights(0.25, 0.25, 0.5),
}
"""The paper's three configurations: equal, long bandwidth first, Allreduce first."""

OWN = "own"
"""The name of the weights that an experiment gives itself."""


@dataclass(frozen=True, slots=True)
class Rules:
    """How runs are judged: the `[score]` table of an experiment.

    `weights` are the weightings side by side; the first one decides.
    """

    weights: Mapping[str, Weights] = field(default_factory=lambda: CONFIGURATIONS)
    reading: Reading = "per-flow"
    variance: VarianceMode = "pvar"

    @property
    def primary(self) -> str:
        """The weighting that decides."""
        return next(iter(self.weights))

    @classmethod
    def from_json(cls, raw: Mapping[str, Any] | None) -> "Rules":
        """Read the `[score]` table; weights of its own stand before the paper's.

        Examples
        --------
        >>> Rules.from_json(None).primary
        '1'
        >>> own = {"long": 0.6, "short": 0.2, "allreduce": 0.2}
        >>> list(Rules.from_json({"weights": own, "variance": "std"}).weights)
        ['own', '1', '2', '3']
        """
        raw = raw or {}
        given = raw.get("weights")
        own = {OWN: Weights(**given)} if given else {}
        return cls(
            {**own, **CONFIGURATIONS}, raw.get("reading", "per-flow"), raw.get("variance", "pvar")
        )

    def as_json(self) -> Mapping[str, Any]:
        """The `[score]` table that gives these rules."""
        own = self.weights.get(OWN)
        return {
            **({} if own is None else {"weights": asdict(own)}),
            "reading": self.reading,
            "variance": self.variance,
        }


@dataclass(frozen=True, slots=True)
class Part:
    """One of S_L, S_S, S_A with what it was made from.

    `ratio` is that of the chosen reading, one of `ratios`. `alone` and `loaded` are means: Gb/s for
    long flows, µs otherwise.
    """

    role: Role
    ratio: float
    ratios: Mapping[Reading, float]
    alone: float
    loaded: float
    pairs: int
    unfinished: int
    unpaired: int


@dataclass(frozen=True, slots=True)
class Score:
    """The parts and what the chosen weights make of them."""

    parts: Mapping[Role, Part]
    reading: Reading
    mode: VarianceMode
    variance_term: float
    totals: Mapping[str, float]
    monotone: Mapping[str, float]

    def total(self, weights: Weights, *, reading: Reading, mode: VarianceMode) -> float:
        """S by any reading, whichever was chosen."""
        long, short, allreduce = (self.parts[role].ratios[reading] for role in Role)
        return combine((long, short, allreduce), weights, mode)

    @property
    def lower_bound(self) -> bool:
        """True if a tested flow did not finish under load: the true figures are higher."""
        return any(part.unfinished for part in self.parts.values())


def role_of(class_name: str) -> Role | None:
    """The tested role of a flow class, None for background and unknown classes.

    A tested class starts with ``T_`` or ``tested`` and names its role.

    Examples
    --------
    >>> role_of("T_long"), role_of("tested-allreduce"), role_of("B_incast"), role_of("long")
    (<Role.LONG: 'long'>, <Role.ALLREDUCE: 'allreduce'>, None, None)
    """
    if not is_tested(class_name):
        return None
    name = class_name.lower()
    for role in (Role.ALLREDUCE, Role.SHORT, Role.LONG):
        if role.value in name.replace("all-reduce", "allreduce"):
            return role
    return None


def class_order(class_name: str) -> tuple[int, str]:
    """Sort key of classes: tested long, short, Allreduce, other tested ones, then the rest."""
    role = role_of(class_name)
    if role is not None:
        return list(Role).index(role), class_name
    return (len(Role) if is_tested(class_name) else len(Role) + 1), class_name


def variance_term(ratios: tuple[float, float, float], mode: VarianceMode = "pvar") -> float:
    """W, the term that punishes uneven parts."""
    match mode:
        case "pvar":
            return statistics.pvariance(ratios)
        case "var":
            return statistics.variance(ratios)
        case "std":
            return statistics.pstdev(ratios)
        case "none":
            return 0.0
        case _:
            assert_never(mode)


def combine(
    ratios: tuple[float, float, float], weights: Weights, mode: VarianceMode = "pvar"
) -> float:
    """S of (S_L, S_S, S_A), the paper's formula.

    Examples
    --------
    >>> equal = CONFIGURATIONS["1"]
    >>> f"{combine((1, 1, 4), equal):.2f} {combine((2, 2, 4), equal):.2f}"  # not monotone
    '4.00 3.56'
    """
    return _weighted(ratios, weights) + variance_term(ratios, mode)


def monotone(ratios: tuple[float, float, float], weights: Weights, p: float = 2.0) -> float:
    """The weighted p-norm (Σ a_i S_i^p)^(1/p), p >= 1: also punishes uneven parts, and never
    falls when a part rises.

    Examples
    --------
    >>> equal = CONFIGURATIONS["1"]
    >>> f"{monotone((1, 1, 4), equal):.2f} {monotone((2, 2, 4), equal):.2f}"
    '2.45 2.83'
    """
    if not p >= 1:
        msg = f"the norm needs p >= 1, got {p}"
        raise ValueError(msg)
    # The largest ratio is taken out so that large ratios cannot overflow.
    top = max(ratios)
    if top <= 0 or math.isinf(top):
        return top
    long, short, allreduce = ((r / top) ** p for r in ratios)
    return top * math.pow(_weighted((long, short, allreduce), weights), 1 / p)


def score(
    loaded: pa.Table,
    alone: pa.Table,
    *,
    end_ps: int | None = None,
    reading: Reading = "per-flow",
    mode: VarianceMode = "pvar",
    weights: Mapping[str, Weights] = CONFIGURATIONS,
    p: float = 2.0,
    only: Mapping[Role, AbstractSet[Key]] | None = None,
) -> Score | None:
    """Score one run (one scheme, one seed) from its flows under load and alone.

    Parameters
    ----------
    loaded, alone
        Tables with the columns of `flows`.
    end_ps
        End of the loaded run, ps: where an unfinished flow counts to. The latest end of any flow
        if not given.
    only
        The pairs to score, as `finished_pairs` names them; all if not given.

    Returns
    -------
    Score or None
        None if one of the three tested kinds has no pair of flows to compare.
    """
    end = float(end_ps) if end_ps is not None else _last_end_ps(loaded)
    parts: dict[Role, Part] = {}
    for role in Role:
        part = _part(role, loaded, alone, end, reading, None if only is None else only[role])
        if part is None:
            return None
        parts[role] = part
    ratios = (
        parts[Role.LONG].ratio,
        parts[Role.SHORT].ratio,
        parts[Role.ALLREDUCE].ratio,
    )
    return Score(
        parts=parts,
        reading=reading,
        mode=mode,
        variance_term=variance_term(ratios, mode),
        totals={name: combine(ratios, w, mode) for name, w in weights.items()},
        monotone={name: monotone(ratios, w, p) for name, w in weights.items()},
    )


def finished_pairs(loaded: pa.Table, alone: pa.Table) -> dict[Role, set[Key]]:
    """The tested flows that finished both under load and alone."""
    return {
        role: _Tested.of(loaded, role).finished & _Tested.of(alone, role).finished for role in Role
    }


def tested_flows(loaded: pa.Table) -> dict[Role, set[Key]]:
    """The tested flows of a run."""
    return {role: set(_Tested.of(loaded, role).keys) for role in Role}


def _weighted(ratios: tuple[float, float, float], weights: Weights) -> float:
    long, short, allreduce = ratios
    return weights.long * long + weights.short * short + weights.allreduce * allreduce


def _last_end_ps(flows: pa.Table) -> float:
    fct = floats(flows, "fct_ps")
    start = floats(flows, "start_ps")
    ends = np.where(np.isnan(fct), start, start + fct)
    return float(ends.max()) if ends.size else 0.0


@dataclass(frozen=True, slots=True)
class _Tested:
    """The tested flows of one role, ordered so that twins stand at the same place."""

    keys: list[Key]
    size_bytes: Floats
    start_ps: Floats
    fct_ps: Floats

    @classmethod
    def of(cls, flows: pa.Table, role: Role) -> "_Tested":
        indices, values = codes(flows, "class")
        wanted = [code for code, name in enumerate(values) if role_of(name) is role]
        rows = np.flatnonzero(np.isin(indices, wanted))
        part = take(flows, rows)
        src, dst = integers(part, "src"), integers(part, "dst")
        size, start = integers(part, "size_bytes"), integers(part, "start_ps")
        order = np.lexsort((integers(part, "sport"), start, size, dst, src))
        src, dst, size, start = src[order], dst[order], size[order], start[order]
        # Twins are the k-th flows of equal source, destination and size: ports and, in closed
        # loops, start times may differ between the two runs.
        keys: list[Key] = []
        seen: dict[tuple[int, int, int], int] = {}
        for s, d, z in zip(src.tolist(), dst.tolist(), size.tolist(), strict=True):
            rank = seen.get((s, d, z), 0)
            seen[s, d, z] = rank + 1
            keys.append((s, d, z, rank))
        return cls(
            keys, size.astype(np.float64), start.astype(np.float64), floats(part, "fct_ps")[order]
        )

    @property
    def finished(self) -> set[Key]:
        """Those that ended."""
        ended = ~np.isnan(self.fct_ps)
        return {key for key, done in zip(self.keys, ended.tolist(), strict=True) if done}


def _part(
    role: Role,
    loaded: pa.Table,
    alone: pa.Table,
    end_ps: float,
    reading: Reading,
    only: AbstractSet[Key] | None,
) -> Part | None:
    under, idle = _Tested.of(loaded, role), _Tested.of(alone, role)
    position = {key: i for i, key in enumerate(idle.keys) if only is None or key in only}
    pairs = [(i, position[key]) for i, key in enumerate(under.keys) if key in position]
    if not pairs:
        return None
    here, there = np.asarray(pairs, dtype=np.int64).T
    unfinished = np.isnan(under.fct_ps[here])
    fct = np.where(unfinished, np.maximum(end_ps - under.start_ps[here], 1.0), under.fct_ps[here])
    fct_alone = idle.fct_ps[there]
    valid = ~np.isnan(fct_alone)
    if not valid.any():
        return None
    size, fct, fct_alone = under.size_bytes[here][valid], fct[valid], fct_alone[valid]
    unpaired = len(under.keys) - int(valid.sum()) + len(idle.keys) - len(pairs)
    if role is Role.LONG:
        mean_loaded, mean_alone = _rate(size, fct), _rate(size, fct_alone)
        ratio_of_means = mean_alone / mean_loaded
    else:
        mean_loaded, mean_alone = float(fct.mean()), float(fct_alone.mean())
        ratio_of_means = mean_loaded / mean_alone
        mean_loaded, mean_alone = mean_loaded / PS_PER_US, mean_alone / PS_PER_US
    # Equal sizes in a pair: the ratio of bandwidths is the ratio of times the other way round.
    ratios: dict[Reading, float] = {
        "per-flow": float((fct / fct_alone).mean()),
        "ratio-of-means": ratio_of_means,
    }
    return Part(
        role=role,
        ratio=ratios[reading],
        ratios=ratios,
        alone=mean_alone,
        loaded=mean_loaded,
        pairs=int(valid.sum()),
        unfinished=int(unfinished[valid].sum()),
        unpaired=unpaired,
    )


def _rate(size_bytes: Floats, fct_ps: Floats) -> float:
    return float((size_bytes * 8e3 / fct_ps).mean())
