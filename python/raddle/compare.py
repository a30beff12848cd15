"""Two results folders side by side."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raddle.results import load

__all__ = ["Difference", "compare_folders"]


@dataclass(frozen=True, slots=True)
class Difference:
    """One figure of one scheme in both folders; None where a folder does not have it."""

    scheme: str
    figure: str
    a: float | None
    b: float | None

    @property
    def change_percent(self) -> float | None:
        """B against A in %, None if one is missing or A is 0 and B is not."""
        if self.a is None or self.b is None:
            return None
        if self.a == self.b:
            return 0.0
        return None if self.a == 0 else (self.b / self.a - 1) * 100

    def exceeds(self, tolerance_percent: float) -> bool:
        """Whether the two differ by more than that; a missing figure always does."""
        change = self.change_percent
        return change is None or abs(change) > tolerance_percent

    def as_json(self) -> Mapping[str, Any]:
        """The row as JSON."""
        return {
            "scheme": self.scheme,
            "figure": self.figure,
            "a": self.a,
            "b": self.b,
            "change_percent": self.change_percent,
        }


def compare_folders(a: Path, b: Path) -> list[Difference]:
    """Every figure that at least one of the folders has, by scheme."""
    left, right = (load(p).summary.get("schemes", {}) for p in (a, b))
    rows: list[Difference] = []
    for scheme in dict.fromkeys([*left, *right]):
        first = dict(_figures(left.get(scheme, {})))
        second = dict(_figures(right.get(scheme, {})))
        rows += [
            Difference(scheme, figure, first.get(figure), second.get(figure))
            for figure in dict.fromkeys([*first, *second])
        ]
    return rows


def _figures(row: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    score = row.get("score")
    if score:
        for name, value in score["s"].items():
            yield f"S, weights {name}", value["mean"]
        for role, part in score["parts"].items():
            yield f"S part {role}", part["ratio"]["mean"]
    for name, spread in (row.get("fct_us") or {}).items():
        for key in ("p50", "p95", "p99"):
            if spread.get(key) is not None:
                yield f"FCT {name} {key}, µs", spread[key]
    for key, label in (
        ("goodput_gbps", "goodput, Gb/s"),
        ("long_flow_rate_gbps", "long flows, Gb/s"),
        ("pause_us", "pause time, µs"),
        ("max_port_queue_bytes", "longest queue, B"),
    ):
        if row.get(key) is not None:
            yield label, row[key]
