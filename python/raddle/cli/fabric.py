"""`raddle fabric`: build, check and show maps."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from raddle import report, services
from raddle.cli.options import AsJson, quantity
from raddle.cli.talk import EXIT_NO, examples, guarded, print_json, print_table, say
from raddle.errors import ExperimentError
from raddle.files import write_text
from raddle.text import many, map_words

if TYPE_CHECKING:
    from raddle.core.fabric import Fabric, Found, ImportedFabric, ImportNotes

__all__ = ["app"]

app = typer.Typer(
    help="Maps of fabrics: build, check, show, import and export them.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

MapFile = Annotated[
    Path,
    typer.Argument(
        help="A map (TOML or the reference topology format) or an experiment.", show_default=False
    ),
]


class MapFormat(StrEnum):
    """Formats that maps are written in."""

    TOML = "toml"
    HPCC_NS3 = "hpcc-ns3"


class ExportFormat(StrEnum):
    """Formats that maps are written in for other programs."""

    IBSIM = "ibsim"
    TOML = "toml"
    HPCC_NS3 = "hpcc-ns3"


class ImportFormat(StrEnum):
    """Formats of InfiniBand tools that maps are read from."""

    AUTO = "auto"
    IBNETDISCOVER = "ibnetdiscover"
    IBSIM = "ibsim"


class MapSource(StrEnum):
    """Formats that maps are read from."""

    AUTO = "auto"
    TOML = "toml"
    EXPERIMENT = "experiment"
    HPCC_NS3 = "hpcc-ns3"
    IBNETDISCOVER = "ibnetdiscover"
    IBSIM = "ibsim"


@app.command(
    epilog=examples(
        "raddle fabric build my.toml --out map.toml",
        "raddle fabric build my.toml --format hpcc-ns3 > topology.txt",
    )
)
@guarded
def build(
    file: Annotated[
        Path,
        typer.Argument(
            help="A file with a fabric table, such as an experiment.", show_default=False
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Where to write the map.", show_default="stdout"),
    ] = None,
    format: Annotated[
        MapFormat, typer.Option("--format", "-f", help="Format of the map.")
    ] = MapFormat.TOML,
    as_json: AsJson = False,
) -> None:
    """Write the whole map, node by node, that a few numbers describe."""
    text = services.fabric.Source.of(file).build(format.value)
    _deliver(text, format, out, as_json=as_json)


@app.command(epilog=examples("raddle fabric check topology.txt --format hpcc-ns3"))
@guarded
def check(
    file: MapFile,
    format: Annotated[
        MapSource, typer.Option("--format", "-f", help="Format of the map.")
    ] = MapSource.AUTO,
    as_json: AsJson = False,
) -> None:
    """Say whether a map is sound; exit 1 and the place if it is not."""
    # A file that cannot be read is bad usage, not a bad map.
    source = services.fabric.Source.of(file)
    try:
        found = source.check(format.value)
    except ExperimentError as error:
        if as_json:
            print_json({"sound": False, "message": str(error)})
        say(f"error: {error}")
        raise typer.Exit(EXIT_NO) from error
    if as_json:
        print_json({**found.as_json(), "sound": True})
    else:
        _describe(found)
        print("sound")


@app.command(
    epilog=examples("raddle fabric show my.toml", "raddle fabric show my.toml --out fabric.svg")
)
@guarded
def show(
    file: MapFile,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Also draw it: .svg, .png or .pdf.", show_default=False),
    ] = None,
    format: Annotated[
        MapSource, typer.Option("--format", "-f", help="Format of the map.")
    ] = MapSource.AUTO,
    as_json: AsJson = False,
) -> None:
    """Describe a map level by level, and draw it."""
    if out is not None:
        report.plots.check_ending(out)
    source = services.fabric.Source.of(file)
    found: Fabric
    if out is None:
        found = source.check(format.value)
    else:
        found = drawn = source.draw(format.value)
        report.plots.save(report.plots.draw_fabric(drawn), out)
    if as_json:
        print_json({**found.as_json(), "picture": None if out is None else str(out)})
    else:
        _describe(found)
        if out is not None:
            say(f"wrote {out}")


@app.command(
    name="import",
    epilog=examples(
        "ibnetdiscover > dump.txt",
        "raddle fabric import dump.txt --out map.toml",
        "raddle fabric import cluster.net --format ibsim --rate 200Gbps --out map.toml",
    ),
)
@guarded
def import_(
    file: Annotated[
        Path,
        typer.Argument(help="Output of ibnetdiscover, or a net file of ibsim.", show_default=False),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Where to write the map (TOML).", show_default=False),
    ] = None,
    format: Annotated[
        ImportFormat, typer.Option("--format", "-f", help="Format of the map.")
    ] = ImportFormat.AUTO,
    rate: Annotated[
        str | None,
        quantity("rate", help="Rate of links for which the file gives none.", show_default="8Gbps"),
    ] = None,
    delay: Annotated[
        str | None,
        quantity("time", help="Propagation delay of every link.", show_default="1us"),
    ] = None,
    whole_adapters: Annotated[
        bool,
        typer.Option(
            "--whole-adapters",
            help="Take an adapter with several links as one host, not a host for each port.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make a map of an InfiniBand fabric; say what kind it is, and what is missing or odd."""
    found, toml = services.fabric.Source.of(file).import_map(
        format.value,
        rate=rate,
        delay=delay,
        split_ports=not whole_adapters,
    )
    if out is not None:
        write_text(out, toml)
    if as_json:
        print_json({**found.as_json(), "file": None if out is None else str(out)})
        return
    _describe(found)
    _describe_tree(found)
    _describe_notes(found.notes)
    if out is not None:
        say(f"wrote {out}")


@app.command(
    epilog=examples(
        "raddle fabric export map.toml --format ibsim --out map.net", "ibsim -s map.net"
    )
)
@guarded
def export(
    file: MapFile,
    format: Annotated[
        ExportFormat, typer.Option("--format", "-f", help="Format of the map.")
    ] = ExportFormat.IBSIM,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where to write it.", show_default="stdout")
    ] = None,
    source: Annotated[
        MapSource, typer.Option("--from", help="Format of the map.")
    ] = MapSource.AUTO,
    as_json: AsJson = False,
) -> None:
    """Write a map for another program: as a net file of ibsim, on which OpenSM can run."""
    text = services.fabric.Source.of(file).export(source.value, format.value)
    _deliver(text, format, out, as_json=as_json)


def _deliver(text: str, format: StrEnum, out: Path | None, *, as_json: bool) -> None:
    """Write a map to its file, or show it."""
    if out is not None:
        write_text(out, text)
        if as_json:
            print_json({"file": str(out), "format": format.value})
        else:
            say(f"wrote {out}")
    elif as_json:
        print_json({"format": format.value, "map": text})
    else:
        print(text, end="")


def _describe(found: "Fabric") -> None:
    print(f"{found.name or 'map'}: {map_words(found.hosts, found.switches, found.links)}")
    levels = [
        (
            "hosts" if row.level == 0 else f"level {row.level}",
            f"{row.nodes:,}",
            str(row.ports),
        )
        for row in found.levels
    ]
    print_table(("", "nodes", "most ports"), levels)
    rates = [(row.rate, row.delay, f"{row.links:,}") for row in found.link_kinds]
    print_table(("rate", "delay", "links"), rates, left=0)


def _describe_tree(found: "ImportedFabric") -> None:
    tree = found.tree
    if tree is None:
        print(found.no_tree or "")
        return
    shape = ", ".join(f"{name} = {getattr(tree, name)}" for name in ("m", "q", "p", "k", "w"))
    kinds = {1: "one switch", 2: "two levels", 3: "three levels", 4: "four levels"}
    print(
        f"fat tree of {kinds[tree.levels]}: {shape}; {many(tree.cns, 'CN')}, "
        f"{many(tree.terminals_per_l0, 'host')} per L0"
    )
    words = {
        "l0": "L0 switches",
        "l1": "L1 switches",
        "l2": "L2 switches",
        "l3": "L3 switches",
        "cns": "CNs",
        "links": "links between switches",
        "short_of_hosts": "L0 with fewer hosts than others",
    }
    missing = {name: getattr(tree.missing, name) for name in words}
    if not any(missing.values()):
        print("complete")
    for name, count in missing.items():
        if count:
            lead = "" if name == "short_of_hosts" else "missing: "
            first = tree.missing_links if name == "links" else ()
            _found(f"{lead}{count:,} {words[name]}", count, first)


def _describe_notes(notes: "ImportNotes") -> None:
    words = {
        "slow": "links slower than the others of their kind",
        "from_one_end": "links that only one of the two nodes lists",
        "without_rate": "links without a rate in the file (see --rate)",
        "strange_rates": "rates that nobody knows",
        "split": "adapters with several links, now a host per port (see --whole-adapters)",
        "without_links": "nodes without links, left out",
        "aggregation_nodes": "aggregation nodes of switches, left out",
        "routers": "routers, left out",
        "ignored_lines": "lines that say nothing about the map",
    }
    for name, what in words.items():
        entry: Found = getattr(notes, name)
        if entry.count:
            _found(f"{entry.count:,} {what}", entry.count, entry.first)


def _found(headline: str, count: int, first: Sequence[str]) -> None:
    print(headline + (":" if first else ""))
    for example in first:
        print(f"  {example}")
    if first and count > len(first):
        print(f"  and {count - len(first):,} more")
