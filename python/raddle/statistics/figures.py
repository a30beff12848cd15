"""The main figures of a scheme: their names, words, and values of each seed.

Names are those of `sweep.json` and of `raddle compare --json`; completion times are named
`fct_p99_us.CLASS`, scores at other weights `s.WEIGHTS`.
"""

from collections.abc import Mapping
from typing import Any

from raddle.statistics.rule import PerSeed

__all__ = [
    "FIGURES",
    "HIGHER_IS_BETTER",
    "SCORE_WORDS",
    "label_of_figure",
    "of_finished",
    "per_seed",
]

Json = Mapping[str, Any]

FIGURES: Mapping[str, str] = {
    "s": "score S, at the weights that decide",
    "s_long": "S_L, bandwidth of tested long flows alone over under load",
    "s_short": "S_S, delay of tested short flows under load over alone",
    "s_allreduce": "S_A, delay of tested Allreduce flows under load over alone",
    "slowdown_p50": "median slowdown of all flows",
    "slowdown_p99": "p99 slowdown of all flows",
    "goodput_gbps": "payload of finished flows over the time they took, Gb/s",
    "long_flow_rate_gbps": "mean rate of flows of 1 MB and more, Gb/s",
    "pause_us": "PFC pause time of all ports together, µs",
    "max_port_queue_bytes": "longest queue of a port, bytes",
    "drops": "dropped packets",
}
"""The figures of a scheme at a point, as `sweep.json` names them."""
HIGHER_IS_BETTER = frozenset({"goodput_gbps", "long_flow_rate_gbps"})
SCORE_WORDS = (
    ("S_L", "bandwidth of tested long flows, alone over under load"),
    ("S_S", "delay of tested short flows, under load over alone"),
    ("S_A", "delay of tested Allreduce flows, under load over alone"),
    ("W", "how uneven the three are"),
    ("S", "weighted sum of the three plus W; 1.00: the load does not hurt; lower is better"),
)
"""The columns of a score, in words."""
_PLAIN = ("goodput_gbps", "long_flow_rate_gbps", "pause_us", "max_port_queue_bytes", "drops")
_PERCENTILES = ("p50", "p95", "p99")
_LABELS = {
    "slowdown_p50": "slowdown p50",
    "slowdown_p99": "slowdown p99",
    "goodput_gbps": "goodput, Gb/s",
    "long_flow_rate_gbps": "long flows, Gb/s",
    "pause_us": "pause time, µs",
    "max_port_queue_bytes": "longest queue, B",
    "s_long": "S_L",
    "s_short": "S_S",
    "s_allreduce": "S_A",
}


def label_of_figure(name: str) -> str:
    """A figure's name for a row of a table.

    Examples
    --------
    >>> label_of_figure("fct_p99_us.tested-short"), label_of_figure("s.2")
    ('FCT tested-short p99, µs', 'S, weights 2')
    """
    kind, _, of = name.partition(".")
    if kind == "s":
        return f"S, weights {of}" if of else "S"
    if kind.startswith("fct_"):
        return f"FCT {of} {kind.split('_')[1]}, µs"
    return _LABELS.get(name, name)


def of_finished(name: str) -> bool:
    """Whether the figure is of flows that finished, and so depends on which did."""
    return not name.startswith(("pause_us", "max_port_queue_bytes", "drops"))


def per_seed(row: Json) -> dict[str, PerSeed]:
    """Every figure of a scheme's row in `summary.json`, of each seed that has it."""
    found: dict[str, dict[str, float]] = {}
    for seed, run in (row.get("per_seed") or {}).items():
        score = run.get("score")
        own: dict[str, float | None] = {}
        if score:
            own |= {f"s.{weights}": value for weights, value in score["s"].items()}
            own |= {f"s_{role}": value for role, value in score["parts"].items()}
        for name, value in _known(own | _of_flows(run)).items():
            found.setdefault(name, {})[seed] = value
    return dict(found)


def _of_flows(row: Json) -> dict[str, float | None]:
    slowdown = row.get("slowdown") or {}
    found = {f"slowdown_{key}": slowdown.get(key) for key in ("p50", "p99")}
    for name, spread in (row.get("fct_us") or {}).items():
        found |= {f"fct_{key}_us.{name}": spread.get(key) for key in _PERCENTILES}
    return found | {key: row.get(key) for key in _PLAIN}


def _known(found: Mapping[str, float | None]) -> dict[str, float]:
    return {name: float(value) for name, value in found.items() if value is not None}
