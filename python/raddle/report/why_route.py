"""Why engines differ: which tables are full, which trees merged, what that costs."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from raddle.core.route import RoutedEngine, RouteSummary
from raddle.report.merges import Merged
from raddle.report.why import Part, Why
from raddle.results.columns import integers, take
from raddle.text import elapsed_s, fixed, join_words, many, percent

__all__ = ["why_of_routes"]

MOST_SWITCHES = 3
SMALL = 0.005
ONE_TREE = "broadcast"
"""The engine that puts all groups on one tree: nothing to explain, and no measure for others."""


def why_of_routes(folder: Path, summary: RouteSummary, merges: Sequence[Merged]) -> Why:
    """What the tables of a route folder say about the engines that could route."""
    routed, failed = summary.routed, summary.failed
    compared = {n: row for n, row in routed.items() if n != ONE_TREE} or routed
    parts = (
        Part("Tables.", _tables(folder, summary, compared, failed)),
        Part("Trees.", _trees(compared, merges)),
        Part("Cost.", _cost(folder, compared)),
    )
    title = "Why the engines differ" if len(compared) > 1 else "Why the routes are as they are"
    source = "From tables, merges, trees and links of this folder."
    if ONE_TREE in routed and len(routed) > 1:
        source += f" {ONE_TREE} has one tree for all groups by design and is not compared."
    return Why(title, _lead(compared), parts, "", source)


def _lead(routed: Mapping[str, RoutedEngine]) -> str:
    if not routed:
        return "No engine could route these groups."
    ranked = sorted(routed, key=lambda name: routed[name].mean_efi)
    best, worst = ranked[0], ranked[-1]
    least, most = (fixed(routed[name].mean_efi) for name in (best, worst))
    if best == worst:
        return (
            f"{best}: of groups a used link carries {least} in the mean, "
            f"{routed[best].max_efi:,} at most."
        )
    ratio = routed[worst].mean_efi / routed[best].mean_efi
    if ratio < 1 + SMALL:
        return f"{join_words(ranked)} put equally many groups on a used link: {least} in the mean."
    return (
        f"{best} puts fewest groups on a used link, {least} in the mean; {worst} puts {most}, "
        f"{ratio:.1f} times as many."
    )


# Tables.


def _tables(
    folder: Path,
    summary: RouteSummary,
    routed: Mapping[str, RoutedEngine],
    failed: Mapping[str, str],
) -> str:
    """Where entries run out, or how far the fullest tables are from it."""
    limit = summary.multicast.colours
    words = [f"{name} ran out: {error.partition(';')[0]}" for name, error in failed.items()]
    full = {name: row for name, row in routed.items() if row.table_entries_max >= limit}
    if full:
        words += [f"{name} fills tables of {_fullest(folder, name, limit)}" for name in full]
    elif routed:
        name = max(routed, key=lambda n: routed[n].table_entries_max)
        most = routed[name].table_entries_max
        which = "of the others no table is full" if failed else "No table is full"
        words.append(
            f"{which}: the fullest hold {most:,} of {many(limit, 'entry')} "
            f"({name}, {_fullest(folder, name, most)})"
        )
    return "; ".join(words) + "."


def _fullest(folder: Path, engine: str, most: int) -> str:
    """The switches with a table of so many entries: how many, of which level, the first names."""
    table = pq.read_table(
        folder / "tables.parquet",
        columns=["switch", "in_port"],
        filters=pc.field("engine") == engine,
    )
    counts = table.group_by(["switch", "in_port"]).aggregate([([], "count_all")])
    rows = np.flatnonzero(integers(counts, "count_all") >= most)
    switches = np.unique(integers(take(counts, rows), "switch")).tolist()
    nodes = pq.read_table(folder / "nodes.parquet", columns=["node", "name", "level"])
    place = {node: row for row, node in enumerate(integers(nodes, "node").tolist())}
    at = [place[switch] for switch in switches if switch in place]
    names = [str(nodes["name"][row].as_py()) for row in at[:MOST_SWITCHES]]
    levels = sorted({int(nodes["level"][row].as_py()) for row in at})
    named = join_words(names)
    if len(at) > MOST_SWITCHES:
        named = f"{', '.join(names)} and {len(at) - MOST_SWITCHES:,} more"
    where = f"level{'' if len(levels) == 1 else 's'} {join_words(map(str, levels))}"
    return f"{many(len(at), 'switch')} of {where}: {named}"


# Trees.


def _trees(routed: Mapping[str, RoutedEngine], merges: Sequence[Merged]) -> str:
    apart = [name for name, row in routed.items() if row.merges == 0]
    merged = [m for m in merges if m.engine in routed]
    if not merged:
        others = [m.engine for m in merges]
        besides = f", except with {join_words(others)}" if others else ""
        return f"No groups share a tree{besides}." if apart else "There are no trees."
    words = [
        f"{m.engine} lets {many(m.groups, 'group')} share {many(m.trees, 'tree')} ({m.sizes}), "
        f"which meet at {m.places}"
        for m in merged
    ]
    if apart:
        words.append(f"{join_words(apart)} give{'s' if len(apart) == 1 else ''} each group its own")
    return "; ".join(words) + "."


# What it costs.


def _cost(folder: Path, routed: Mapping[str, RoutedEngine]) -> str:
    """What merging delivers to hosts that do not want it, and what not merging takes."""
    if not routed:
        return "Nothing was routed."
    trees = pq.read_table(folder / "trees.parquet", columns=["engine", "tree", "copy", "members"])
    found = {name: _deliveries(trees, name) for name in routed}
    took = {name: f"{elapsed_s(routed[name].route_s)} to route" for name in routed}
    wanted = max(members for members, _ in found.values())
    if not any(others for _, others in found.values()):
        return (
            f"A message to each group goes to its members only, {wanted:,} in all; "
            f"{join_words(f'{name} takes {took[name]}' for name in routed)}."
        )
    words = [
        f"{name} {others:,} ({f'{percent(others / members)} more, ' if others else ''}{took[name]})"
        for name, (members, others) in found.items()
    ]
    return (
        f"A message to each group goes to {many(wanted, 'member')}, and to so many hosts that are "
        f"no members: {join_words(words)}."
    )


def _deliveries(trees: pa.Table, engine: str) -> tuple[int, int]:
    """Members of all groups; and hosts that get a message of a group whose tree they share."""
    own = trees.filter((pc.field("engine") == engine) & (pc.field("copy") == 0))
    tree = integers(own, "tree")
    lists = own["members"]
    lengths = integers(pa.table({"members": pc.list_value_length(lists)}), "members")
    members = integers(pa.table({"members": pc.list_flatten(lists)}), "members")
    many_nodes = int(members.max(initial=0)) + 1
    # A host that is in several groups of a tree counts once.
    pairs = np.unique(np.repeat(tree, lengths) * many_nodes + members)
    size = np.bincount(pairs // many_nodes, minlength=int(tree.max(initial=0)) + 1)
    wanted = int(lengths.sum())
    return wanted, int(size[tree].sum()) - wanted
