"""What `raddle route` prints."""

from pathlib import Path
from typing import TYPE_CHECKING

from raddle import statistics
from raddle.cli.talk import print_table, say
from raddle.text import elapsed_s, fixed, many, map_words, memory

if TYPE_CHECKING:
    from raddle.core.route import RouteCheck, RouteSummary

__all__ = ["say_results", "show_check", "show_summary"]

HEADER = (
    "engine", "groups", "max EFI", "mean EFI", "max TFI", "mean TFI", "trees", "merges", "entries",
    "time", "grew by",
)  # fmt: skip


def show_check(checked: "RouteCheck") -> None:
    """The fabric and the groups of a route file."""
    print(f"{checked.name}: {', '.join(checked.engines)}")
    _describe(checked)


def show_summary(summary: "RouteSummary") -> None:
    """A table of the engines side by side."""
    print(statistics.routes.headline(summary))
    _describe(summary)
    print()
    rows = []
    for name, row in summary.engines.items():
        rows.append(
            (
                name,
                *(_whole(count) for count in (row.groups, row.max_efi)),
                fixed(row.mean_efi),
                _whole(row.max_tfi),
                fixed(row.mean_tfi),
                *(_whole(n) for n in (row.trees_left, row.merges, row.table_entries_max)),
                "–" if row.route_s is None else elapsed_s(row.route_s),
                "–" if row.process_growth_bytes is None else memory(row.process_growth_bytes),
            )
        )
    print_table(HEADER, rows)
    for name, row in summary.engines.items():
        if row.error is not None:
            print(f"{name}: {row.error}")
        elif row.credit_check_error is not None:
            print(f"{name}: {row.credit_check_error}")
        elif row.credit_loop is not None:
            print(f"{name}: credit loop of unicast and trees: {row.credit_loop}")
        elif row.credit_check_s is not None:
            took = elapsed_s(row.credit_check_s)
            print(f"{name}: no credit loop of unicast and trees (checked in {took})")


def say_results(folder: Path, *, report: bool) -> None:
    """Where things are."""
    say(f"\ntrees     {folder / 'trees.parquet'}")
    say(f"tables    {folder / 'tables.parquet'}")
    if report:
        say(f"report    {folder / 'report.html'}")


def _describe(found: "RouteCheck | RouteSummary") -> None:
    fabric, groups, multicast = found.fabric, found.groups, found.multicast
    print(f"fabric    {map_words(fabric.hosts, fabric.switches, fabric.links)}")
    layers = f" in {many(groups.layers, 'layer')}" if groups.layers > 1 else ""
    print(
        f"groups    {groups.count:,}{layers}, {groups.smallest:,} to "
        f"{many(groups.largest, 'member')}"
    )
    two = ", two trees per group" if multicast.fault_tolerant else ""
    print(f"tables    {many(multicast.colours, 'colour')}, {multicast.table}{two}")


def _whole(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"
