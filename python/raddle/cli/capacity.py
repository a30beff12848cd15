"""`raddle capacity`: groups that table entries carry, and entries that groups need."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from raddle import services
from raddle.cli.mgid import Layers, compose, lengths_of
from raddle.cli.options import (
    AsJson,
    Colours,
    FaultTolerant,
    GridLengths,
    GroupFile,
    Processes,
    whole,
)
from raddle.cli.talk import answer_no, guarded, print_json, print_table, say
from raddle.text import many, verb

if TYPE_CHECKING:
    from raddle.core.groups import Capacity

__all__ = ["capacity"]

MOST_ROWS = 40


@guarded
def capacity(
    file: Annotated[
        Path | None,
        typer.Argument(help="A route file; or use --fabric or --m."),
    ] = None,
    fabric: Annotated[
        Path | None,
        typer.Option("--fabric", help="A map (TOML), with --groups or --grid.", show_default=False),
    ] = None,
    m: Annotated[
        int | None,
        whole(
            "--m",
            help="L1 switches in a CN (half the ports of a switch): trees for each colour.",
            show_default=False,
        ),
    ] = None,
    count: Annotated[
        int | None,
        whole(
            "--count",
            "-n",
            least=0,
            most=10**15,
            help="Number of groups; a terminal is in at most one (with --m).",
            show_default=False,
        ),
    ] = None,
    groups: GroupFile = None,
    grid: GridLengths = None,
    processes: Processes = 1,
    colours: Colours = None,
    fault_tolerant: FaultTolerant = False,
    as_json: AsJson = False,
) -> None:
    """Say how many groups with a tree each the tables hold; exit 1 if the given ones do not fit.

    Worst case, whoever the members are (Corollary 2): m groups for each entry of each layer.
    """
    if sum(source is not None for source in (file, fabric, m)) != 1:
        msg = "name one of: a route file, a map with --fabric, --m"
        raise typer.BadParameter(msg)
    if file is not None:
        given = (groups, grid, count, colours)
        if any(word is not None for word in given) or fault_tolerant or processes != 1:
            msg = "a route file names groups and colours itself: give the file alone"
            raise typer.BadParameter(msg)
        found = services.groups.capacity_of_file(file)
    elif fabric is not None:
        if count is not None:
            msg = "--count goes with --m: with --fabric give --groups or --grid"
            raise typer.BadParameter(msg, param_hint="--count")
        entries = 32 if colours is None else colours
        text = compose(fabric, groups, grid, processes, Layers.TIGHT, entries, two=fault_tolerant)
        found = services.groups.capacity_of_groups(text, "capacity.toml")
    else:
        if groups is not None or (grid is not None and count is not None):
            msg = "with --m give one of --count and --grid, or neither; --groups needs --fabric"
            raise typer.BadParameter(msg)
        assert m is not None  # neither file nor map: the check above leaves --m
        request = services.groups.CapacityRequest(
            m=m,
            colours=32 if colours is None else colours,
            fault_tolerant=fault_tolerant,
            groups=count,
            dims=lengths_of(grid) if grid is not None else (),
            processes_per_terminal=processes,
        )
        found = services.groups.capacity(request)
    for warning in found.warnings:
        say(f"warning: {warning}")
    if as_json:
        print_json(found.as_json())
    else:
        _show(found)
    if found.fits is False:
        answer_no()


def _show(found: "Capacity") -> None:
    two = ", two trees per group" if found.fault_tolerant else ""
    print(
        f"{many(found.colours, 'colour')}, m = {found.m:,}{two}: "
        f"{many(found.groups_carried, 'group')} with a tree each, a terminal in at most one"
    )
    if found.groups is None or found.colours_needed is None:
        return
    print(
        f"{many(found.groups, 'group')} {verb(found.groups, 'needs', 'need')} "
        f"{many(found.colours_needed, 'colour')} whoever their members are: "
        f"{'they fit' if found.fits else 'they do not fit without sharing trees'}"
    )
    if found.fewest_colours is not None:
        fewest = found.fewest_colours
        print(f"with these members {many(fewest, 'colour')} {verb(fewest, 'is', 'are')} enough")
    if found.spare is None:
        print(found.refused)
        return
    keys = (
        "layer", "groups", "first_colour", "colours", "colours_without_sharing", "groups_per_tree",
    )  # fmt: skip
    print()
    print_table(
        ("layer", "groups", "first colour", "colours", "colours needed", "groups on a tree"),
        [tuple(f"{getattr(row, key):,}" for key in keys) for row in found.layers[:MOST_ROWS]],
        left=0,
    )
    if len(found.layers) > MOST_ROWS:
        print(f"... and {len(found.layers) - MOST_ROWS:,} more; --json has all")
    spare = found.spare
    more = f"{many(spare, 'more group')} {verb(spare, 'fits', 'fit')}"
    print(f"\n{more} without a further group on the fullest tree")
