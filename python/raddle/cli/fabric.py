"""`raddle fabric`: build, check and show maps."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from raddle.cli.talk import EXIT_NO, guarded, print_json, print_table, say
from raddle.errors import ExperimentError

__all__ = ["app"]

app = typer.Typer(
    help="Maps: build one from a few numbers, check one, look at one.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

AsJson = Annotated[
    bool, typer.Option("--json", help="Print JSON (schema 1) instead of text.", show_default=False)
]
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


class MapSource(StrEnum):
    """Formats that maps are read from."""

    AUTO = "auto"
    TOML = "toml"
    EXPERIMENT = "experiment"
    HPCC_NS3 = "hpcc-ns3"


@app.command(
    epilog="[bold]Examples[/bold]\n\nraddle fabric build my.toml --out map.toml\n\n"
    "raddle fabric build my.toml --format hpcc-ns3 > topology.txt"
)
@guarded
def build(
    file: Annotated[
        Path, typer.Argument(help="A fabric table or an experiment.", show_default=False)
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Where to write the map.", show_default="-")
    ] = None,
    format: Annotated[MapFormat, typer.Option("--format", "-f")] = MapFormat.TOML,
    as_json: AsJson = False,
) -> None:
    """Write the whole map, node by node, that a few numbers describe."""
    from raddle import _core
    from raddle.files import write_text

    text = _core.fabric_build(read(file), str(file), format.value)
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


@app.command(epilog="[bold]Examples[/bold]\n\nraddle fabric check topology.txt --format hpcc-ns3")
@guarded
def check(
    file: MapFile,
    format: Annotated[MapSource, typer.Option("--format", "-f")] = MapSource.AUTO,
    as_json: AsJson = False,
) -> None:
    """Say whether a map is sound; exit 1 and the place if it is not."""
    from raddle import _core

    read(file)  # a file that cannot be read is bad usage, not a bad map
    try:
        found = json.loads(_core.fabric_check(str(file), format.value, False))
    except ExperimentError as error:
        if as_json:
            print_json({"sound": False, "message": str(error)})
        say(f"error: {error}")
        raise typer.Exit(EXIT_NO) from error
    if as_json:
        print_json({**found, "sound": True})
    else:
        _describe(found)
        print("sound")


@app.command(
    epilog="[bold]Examples[/bold]\n\nraddle fabric show my.toml\n\n"
    "raddle fabric show my.toml --out fabric.svg"
)
@guarded
def show(
    file: MapFile,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Also draw it: .svg, .png or .pdf.", show_default=False),
    ] = None,
    format: Annotated[MapSource, typer.Option("--format", "-f")] = MapSource.AUTO,
    as_json: AsJson = False,
) -> None:
    """Describe a map level by level, and draw it."""
    from raddle import _core

    found: dict[str, Any] = json.loads(_core.fabric_check(str(file), format.value, out is not None))
    graph = found.pop("graph", None)
    if out is not None and graph is not None:
        from raddle.plots import draw_fabric, save

        save(draw_fabric(graph["nodes"], graph["links"], title=str(found.get("name", ""))), out)
    if as_json:
        print_json({**found, "picture": None if out is None else str(out)})
    else:
        _describe(found)
        if out is not None:
            say(f"wrote {out}")


def read(file: Path) -> str:
    """Text of `file`, or an error that names it."""
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        msg = f"{file}: no such file"
        raise ExperimentError(msg) from error
    except UnicodeDecodeError as error:
        msg = f"{file}: not UTF-8 text (byte {error.start})"
        raise ExperimentError(msg) from error
    except OSError as error:
        msg = f"{file}: {error.strerror}"
        raise ExperimentError(msg) from error


def _describe(found: dict[str, Any]) -> None:
    print(
        f"{found.get('name') or 'map'}: {found['hosts']:,} hosts, {found['switches']:,} switches, "
        f"{found['links']:,} links"
    )
    levels = [
        (
            "hosts" if row["level"] == 0 else f"level {row['level']}",
            f"{row['nodes']:,}",
            str(row.get("ports", "")),
        )
        for row in found.get("levels", [])
    ]
    print_table(("", "nodes", "most ports"), levels)
    rates = [
        (row["rate"], row["delay"], f"{row['links']:,}") for row in found.get("link_kinds", [])
    ]
    print_table(("rate", "delay", "links"), rates, left=0)
