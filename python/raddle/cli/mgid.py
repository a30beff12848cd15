"""`raddle mgid`: numbers for multicast groups that keep them apart."""

import csv
import io
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from raddle import services
from raddle.cli.options import (
    AsJson,
    Colours,
    FaultTolerant,
    GridLengths,
    GroupFile,
    Processes,
)
from raddle.cli.talk import guarded, print_json, print_table, say
from raddle.files import write_text
from raddle.text import many, verb

if TYPE_CHECKING:
    from raddle.core.groups import Group, Numbering

__all__ = ["Layers", "compose", "lengths_of", "mgid"]

MOST_ROWS = 40
COLUMNS = ("group", "name", "layer", "members", "mgid", "colour", "tree_group", "tn", "second_tn")
LAYER_COLUMNS = ("layer", "groups", "first_colour", "colours")


class Layers(StrEnum):
    """How the groups of a grid are put into layers."""

    TIGHT = "tight"
    LITERAL = "literal"
    GENERAL = "general"


@guarded
def mgid(
    file: Annotated[
        Path | None,
        typer.Argument(help="A route file; or use --fabric with --groups or --grid."),
    ] = None,
    fabric: Annotated[
        Path | None, typer.Option("--fabric", help="A map (TOML).", show_default=False)
    ] = None,
    groups: GroupFile = None,
    grid: GridLengths = None,
    processes: Processes = 1,
    layers: Annotated[
        Layers, typer.Option("--layers", help="Layers of a grid, or the general allocator.")
    ] = Layers.TIGHT,
    colours: Colours = None,
    fault_tolerant: FaultTolerant = False,
    out: Annotated[
        Path | None, typer.Option("--csv", help="Write all rows as CSV.", show_default=False)
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Number multicast groups (MGIDs) so that no terminal is in two trees of one colour."""
    if file is not None:
        given = (fabric, groups, grid, colours)
        if any(word is not None for word in given) or fault_tolerant or processes != 1:
            msg = "a route file names fabric, groups and colours itself: give the file alone"
            raise typer.BadParameter(msg)
        found = services.groups.number_file(file)
    else:
        entries = 32 if colours is None else colours
        text = compose(fabric, groups, grid, processes, layers, entries, two=fault_tolerant)
        found = services.groups.number(text, "mgid.toml")
    rows = found.rows
    if out is not None:
        write_text(out, _csv(rows))
    for warning in found.warnings:
        say(f"warning: {warning}")
    if as_json:
        print_json(found.as_json())
    else:
        _show(found)
    if out is not None:
        say(f"wrote {many(len(rows), 'row')} to {out}")


def compose(
    fabric: Path | None,
    groups: Path | None,
    grid: str | None,
    processes: int,
    layers: Layers,
    colours: int,
    *,
    two: bool,
) -> str:
    """The text of a route file without engines; words that do not fit together are refused."""
    if fabric is None:
        msg = "name a route file, or a map with --fabric and groups with --groups or --grid"
        raise typer.BadParameter(msg)
    if (groups is None) == (grid is None):
        msg = "give the groups with one of --groups and --grid"
        raise typer.BadParameter(msg)
    table: dict[str, Any]
    if groups is not None:
        table = {"pattern": "file", "file": str(groups)}
    else:
        table = {
            "pattern": "grid",
            "dims": lengths_of(str(grid)),
            "processes_per_terminal": processes,
            "layers": layers.value,
        }
    return services.groups.route_text(fabric, table, colours=colours, fault_tolerant=two)


def lengths_of(grid: str) -> list[int]:
    """The lengths of a grid as it is written: 64x32x16."""
    lengths = grid.lower().split("x")
    if not all(length.isdecimal() and len(length) < 10 for length in lengths):
        msg = f"{grid!r} is not a grid: write it like 64x32x16"
        raise typer.BadParameter(msg, param_hint="--grid")
    return [int(length) for length in lengths]


def _csv(rows: Sequence["Group"]) -> str:
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(row.as_json() for row in rows)
    return text.getvalue()


def _show(found: "Numbering") -> None:
    rows = found.rows
    print(
        f"{many(len(rows), 'group')} on {many(found.trees, 'spanning tree')} "
        f"({many(found.multicast.colours, 'colour')})"
    )
    if found.layers:
        print()
        print_table(
            ("layer", "groups", "first colour", "colours"),
            [tuple(f"{getattr(row, key):,}" for key in LAYER_COLUMNS) for row in found.layers],
            left=0,
        )
    print()
    names = {row.group: row.name for row in rows}
    two = any(row.second_tn is not None for row in rows)
    header = ["group", "layer", "members", "MGID", "colour", "tree", "TN"]
    table = [
        (
            row.name,
            *(
                f"{getattr(row, key):,}"
                for key in ("layer", "members", "mgid", "colour", "tree_group", "tn")
            ),
            *([f"{row.second_tn:,}"] if two else []),
            "" if row.shares_with is None else f"shares with {names[row.shares_with]}",
        )
        for row in rows[:MOST_ROWS]
    ]
    print_table([*header, *(["second TN"] if two else []), ""], table)
    if len(rows) > MOST_ROWS:
        print(f"... and {len(rows) - MOST_ROWS:,} more; --csv FILE or --json has all")
    if found.sharing is not None:
        sharing = found.sharing
        print(
            f"\n{many(sharing.trees_left, 'tree')} with fixed roots; "
            f"{many(sharing.merges, 'group')} {verb(sharing.merges, 'shares', 'share')} one, "
            f"at most {sharing.max_tfi:,} together"
        )
