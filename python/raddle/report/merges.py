"""Which groups share trees after `raddle route`, in a line per engine and a few examples."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from raddle.results.columns import integers
from raddle.text import join_words

__all__ = ["Example", "Merged", "read_merges"]

MOST_EXAMPLES = 5
MOST_NAMES = 4
MOST_PLACES = 3
LINK = re.compile(r"need the link (\S+) – (\S+) with")


@dataclass(frozen=True, slots=True)
class Example:
    """A shared tree: how many groups, their names, and why."""

    tfi: int
    names: str
    why: str


@dataclass(frozen=True, slots=True)
class Merged:
    """What an engine merged: shared trees, the groups in them, how many each, where they meet."""

    engine: str
    trees: int
    groups: int
    sizes: str
    places: str
    examples: tuple[Example, ...]


def read_merges(folder: Path, engines: Sequence[str]) -> list[Merged]:
    """The engines that merged groups, with the largest trees as examples."""
    table = pq.read_table(folder / "merges.parquet").to_pylist()
    named = pq.read_table(folder / "trees.parquet", columns=["group", "name"])
    names = dict(zip(integers(named, "group").tolist(), named["name"].to_pylist(), strict=True))
    nodes = pq.read_table(folder / "nodes.parquet", columns=["name", "level"])
    named_nodes = [str(name) for name in nodes["name"].to_pylist()]
    level = dict(zip(named_nodes, integers(nodes, "level").tolist(), strict=True))
    found = []
    for engine in engines:
        rows = [row for row in table if row["engine"] == engine]
        if not rows:
            continue
        rows.sort(key=lambda row: (-len(row["groups"]), row["groups"]))
        found.append(
            Merged(
                engine,
                len(rows),
                sum(len(row["groups"]) for row in rows),
                _sizes([len(row["groups"]) for row in rows]),
                _places([row["reason"] for row in rows], level),
                tuple(
                    Example(
                        len(row["groups"]),
                        _some([str(names[group]) for group in row["groups"]]),
                        row["reason"],
                    )
                    for row in rows[:MOST_EXAMPLES]
                ),
            )
        )
    return found


def _sizes(groups: Sequence[int]) -> str:
    """How many trees have how many groups.

    Examples
    --------
    >>> _sizes([7, 7, 6])
    '2 of 7, 1 of 6'
    >>> _sizes(list(range(2, 99)))
    '97 of 2 to 98'
    """
    counts = Counter(groups)
    if len(counts) > MOST_NAMES:
        return f"{len(groups):,} of {min(groups):,} to {max(groups):,}"
    return ", ".join(f"{counts[size]:,} of {size:,}" for size in sorted(counts, reverse=True))


def _places(reasons: Sequence[str], level: dict[str, int]) -> str:
    """Between which levels the links lie that two groups of a tree need, the commonest first.

    Examples
    --------
    >>> _places(["a and b both need the link s1 – s2 with colour 3"], {"s1": 1, "s2": 2})
    'links between levels 1 and 2 (1)'
    """
    counts: Counter[str] = Counter()
    for reason in reasons:
        link = LINK.search(reason)
        ends = sorted(level[end] for end in link.groups() if end in level) if link else []
        if len(ends) != 2:
            counts["switches"] += 1
        elif ends[0] == 0:
            counts["links to hosts"] += 1
        else:
            counts[f"links between levels {ends[0]} and {ends[1]}"] += 1
    return ", ".join(f"{place} ({number:,})" for place, number in counts.most_common(MOST_PLACES))


def _some(names: list[str]) -> str:
    """The first names and how many more there are."""
    if len(names) <= MOST_NAMES:
        return join_words(names)
    return f"{', '.join(names[:MOST_NAMES])} and {len(names) - MOST_NAMES:,} more"
