"""`raddle traffic`: write, describe and plot flows."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from raddle import report, services
from raddle.cli.options import AsJson, Seed, key_values
from raddle.cli.talk import examples, guarded, print_json, print_table, say
from raddle.text import many, size, span_us

__all__ = ["app"]

app = typer.Typer(
    help="Flows of an experiment: write, describe and plot them.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

FlowSource = Annotated[
    Path, typer.Argument(help="An experiment or a flow file.", show_default=False)
]


class FlowFormat(StrEnum):
    """Formats that flows are written in."""

    HPCC_NS3 = "hpcc-ns3"
    CSV = "csv"
    PARQUET = "parquet"


class SourceFormat(StrEnum):
    """Formats that flows are read from."""

    AUTO = "auto"
    EXPERIMENT = "experiment"
    HPCC_NS3 = "hpcc-ns3"
    CSV = "csv"
    PARQUET = "parquet"


Format = Annotated[SourceFormat, typer.Option("--format", "-f", help="Format of the source.")]

ENDINGS = {".csv": FlowFormat.CSV, ".parquet": FlowFormat.PARQUET, ".txt": FlowFormat.HPCC_NS3}


@app.command(
    epilog=examples(
        "raddle traffic write my.toml --out flows.csv --seed 2",
        "raddle traffic write my.toml --isolated --out tested.txt",
    )
)
@guarded
def write(
    file: FlowSource,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The flow file to write.", show_default=False)
    ],
    to: Annotated[
        FlowFormat | None, typer.Option("--to", help="Its format.", show_default="by its ending")
    ] = None,
    seed: Seed = 1,
    isolated: Annotated[
        bool, typer.Option("--isolated", help="Only the tested flows, without background load.")
    ] = False,
    format: Format = SourceFormat.AUTO,
    as_json: AsJson = False,
) -> None:
    """Write the flows of an experiment, or convert a flow file."""
    chosen = to if to is not None else ENDINGS.get(out.suffix.lower())
    if chosen is None:
        msg = f"cannot tell the format from {out.name!r}: use .csv, .parquet or .txt, or --to"
        raise typer.BadParameter(msg, param_hint="--out")
    count = services.traffic.write(
        file, out, format=format.value, out_format=chosen.value, seed=seed, isolated=isolated
    )
    if as_json:
        print_json({"file": str(out), "format": chosen.value, "flows": count})
    else:
        say(f"wrote {many(count, 'flow')} to {out}")


@app.command(epilog=examples("raddle traffic describe my.toml --json"))
@guarded
def describe(
    file: FlowSource, seed: Seed = 1, format: Format = SourceFormat.AUTO, as_json: AsJson = False
) -> None:
    """Count flows and bytes, in total and by class."""
    found = services.traffic.describe(file, format=format.value, seed=seed)
    if as_json:
        print_json(found.as_json())
        return
    print(
        f"{many(found.flows, 'flow')}, {size(found.bytes)}, starting from "
        f"{span_us(found.first_start_ps / 1e6)} to {span_us(found.last_start_ps / 1e6)}\n"
    )
    rows = [
        (
            row.name,
            f"{row.flows:,}",
            f"{row.flows / max(found.flows, 1):.1%}",
            size(row.bytes),
            f"{row.bytes / max(found.bytes, 1):.1%}",
        )
        for row in found.classes
    ]
    print_table(("class", "flows", "of all", "bytes", "of all"), rows)


@app.command(
    epilog=examples(
        "raddle traffic plot my.toml --out traffic.svg",
        "raddle traffic plot my.toml --set traffic.load_factor=0.3,0.6,0.9 --out figure-7.pdf",
    )
)
@guarded
def plot(
    files: Annotated[list[Path], typer.Argument(help="Experiments or flow files, one panel each.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Picture: .svg, .png or .pdf.", show_default=False)
    ],
    settings: Annotated[
        list[str] | None,
        key_values("--set", help="A key of the experiment and its values, one panel each."),
    ] = None,
    seed: Seed = 1,
    format: Format = SourceFormat.AUTO,
    as_json: AsJson = False,
) -> None:
    """Plot source against destination: dots are tested flows, triangles background."""
    report.plots.check_ending(out)
    panels = services.traffic.panels(files, settings or (), format=format.value, seed=seed)
    report.plots.save(report.plots.draw_traffic(panels, seed=seed), out)
    if as_json:
        print_json({"file": str(out), "flows": [table.num_rows for _, table in panels]})
    else:
        say(f"wrote {out}")
