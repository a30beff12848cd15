"""The commands. Each one checks its words, calls one function of the package, and prints."""

from typing import Annotated

import typer

from raddle.cli import fabric, lab, trace, traffic
from raddle.cli.advise import advise
from raddle.cli.capacity import capacity
from raddle.cli.config import config
from raddle.cli.folders import compare, report
from raddle.cli.merge import merge
from raddle.cli.mgid import mgid
from raddle.cli.place import place
from raddle.cli.record import record
from raddle.cli.replay import replay
from raddle.cli.reproduce import reproduce
from raddle.cli.route import route
from raddle.cli.run import run
from raddle.cli.start import doctor, init, schema
from raddle.cli.status import status
from raddle.cli.sweep import sweep
from raddle.cli.talk import Commands, examples
from raddle.cli.view import view
from raddle.cli.why import why
from raddle.version import __version__

__all__ = ["PANELS", "app"]

PANELS = {
    "Simulate a fabric": (
        *("init", "run", "view", "report", "compare", "why", "sweep", "status", "merge", "schema"),
    ),
    "Recorded programs": ("record", "trace", "replay", "advise"),
    "Multicast groups": ("route", "mgid", "capacity", "place"),
    "Maps and traffic": ("fabric", "traffic"),
    "This machine": ("doctor", "lab", "config"),
    "The papers": ("reproduce",),
}
"""The commands in the order of the help, for those who see them for the first time."""


class Sorted(Commands):
    """The commands in the order of `PANELS`."""

    order = tuple(name for names in PANELS.values() for name in names)


app = typer.Typer(
    name="raddle",
    cls=Sorted,
    help="Simulate HPC fabrics, route multicast, replay MPI programs, run a virtual cluster.",
    epilog=examples(
        "raddle init my.toml            write a commented experiment that runs as it is",
        "raddle run my.toml             simulate it, write results and report.html",
        "raddle run my.toml --dry-run   what would run, and what it would cost",
        "raddle doctor                  what works on this machine",
    ),
    no_args_is_help=True,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)
app.add_typer(fabric.app, name="fabric")
app.add_typer(traffic.app, name="traffic")
app.add_typer(lab.app, name="lab")
app.add_typer(trace.app, name="trace")
app.command(
    name="route",
    epilog=examples(
        "raddle route experiments/multicast/grid-64x32x16.toml",
        "raddle route my.toml --out out/first --json | jq '.engines[].max_efi'",
        "raddle route my.toml --set multicast.colours=8,16,32,64,256 --out out/colours",
        "raddle route my.toml --dry-run   check the file, count the groups",
        "raddle route my.toml --check-loops   can unicast and the trees together deadlock?",
    ),
)(route)
app.command(
    name="mgid",
    epilog=examples(
        "raddle mgid my-routes.toml --csv mgids.csv",
        "raddle mgid --fabric map.toml --groups communicators.csv --colours 32",
        "raddle mgid --fabric map.toml --grid 64x32x16 --json | jq .sharing",
    ),
)(mgid)
app.command(
    name="capacity",
    epilog=examples(
        "raddle capacity --m 20 --colours 256                 groups that 40-port switches carry",
        "raddle capacity --m 20 --count 10000                 table entries for 10,000 groups",
        "raddle capacity --m 16 --grid 64x32x16 --processes 4 --colours 32",
        "raddle capacity my-routes.toml --json | jq .fewest_colours",
    ),
)(capacity)
app.command(
    name="place",
    epilog=examples(
        "raddle place jobs.toml",
        "raddle place jobs.toml --backfill --json | jq '.jobs[] | {name, state, reason}'",
    ),
)(place)
app.command(
    name="record",
    epilog=examples(
        "raddle record --out melt.trace.parquet -- mpirun -np 8 lmp -in in.melt",
        "raddle record -o my.trace.parquet -- ./job.sh     whatever starts the ranks",
        "raddle lab mpirun --record my.trace.parquet -- ./solver     between hosts of a lab",
    ),
    context_settings={"allow_interspersed_args": False},
)(record)
app.command(
    name="replay",
    epilog=examples(
        "raddle replay lammps.trace.parquet --out out/lammps",
        "raddle replay lammps.trace.parquet --fabric big.toml --dry-run",
        "raddle replay lammps.trace.parquet --scheme none --scheme hpcc --schedule both",
        "raddle replay lammps.trace.parquet --fabric big.toml --placement blocks:24 --out out/big",
        "raddle replay em.trace.parquet --schedule both --scheme hpcc --seeds 10 --out out/em",
        "raddle replay md.trace.parquet cfd.trace.parquet --fabric big.toml --collectives offload",
        "raddle replay em.trace.parquet --json | jq .schemes.none.schedules.both.gain_pct",
    ),
)(replay)
app.command(
    name="advise",
    epilog=examples(
        "raddle advise lammps.trace.parquet --fabric map.toml --out out/advice",
        "raddle advise lammps.trace.parquet --fabric map.toml --ranks-per-host 1 "
        "--rails 100Gbps,100Gbps",
        "raddle advise a.trace.parquet b.trace.parquet --fabric map.toml --systems "
        "schemes,collectives",
        "raddle advise a.trace.parquet --fabric map.toml --budget 60 --json | jq .advice",
        "Ctrl-C keeps finished runs; the same command goes on.",
    ),
)(advise)
app.command(
    name="reproduce",
    epilog=examples(
        "raddle reproduce --quick                    all five papers, in about an hour",
        "raddle reproduce multicast --out out/multicast",
        "raddle reproduce offload scheduling --quick --json | jq .papers.offload.verdicts",
        "Ctrl-C keeps what is done; the same command goes on.",
    ),
)(reproduce)
app.command(
    name="config",
    epilog=examples(
        "raddle config                       every RADDLE_* variable; exit 1 if a value is invalid",
        "raddle config --json | jq '.settings[] | select(.set)'",
    ),
)(config)


def _version(value: bool) -> None:
    if not value:
        return
    print(f"raddle {__version__}")
    raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Simulate HPC fabrics, route multicast, replay MPI programs, run a virtual cluster."""


app.command(
    name="run",
    epilog=examples(
        "raddle run experiments/congestion/small.toml",
        "raddle run my.toml --out out/first --jobs 4",
        "raddle run large.toml --jobs 1 --threads 8   one run after the other, each on eight cores",
        "raddle run my.toml --json --no-report | jq .verdict.leaders",
        "Ctrl-C keeps finished runs; the same command resumes.",
    ),
)(run)
app.command(
    name="sweep",
    epilog=examples(
        "raddle sweep my.toml --set simulation.buffer=4MiB,8MiB,16MiB,32MiB",
        "raddle sweep my.toml --set traffic.load_factor=0.3,0.6,0.9 --set simulation.buffer=8MiB,"
        "32MiB --out out/sweep",
        "raddle sweep my.toml --set schemes.hpcc.target_utilisation=0.9,0.95 --json",
        "raddle sweep my.toml --set simulation.buffer=4MiB,8MiB --engine dask --jobs 8",
        "raddle sweep my.toml --set simulation.buffer=4MiB,8MiB "
        "--shard $SLURM_ARRAY_TASK_ID/$SLURM_ARRAY_TASK_COUNT",
        "Ctrl-C keeps finished runs; the same command resumes.",
    ),
)(sweep)
app.command(
    name="status",
    epilog=examples(
        "raddle status out/my-sweep",
        "raddle status out/shard-* --json | jq .counts",
        "watch raddle status out/my-sweep   once more every two seconds",
    ),
)(status)
app.command(
    name="merge",
    epilog=examples(
        "raddle merge out/shard-1 out/shard-2 out/shard-3 --out out/all",
        "raddle merge out/my-sweep   what shards left in one folder, in place",
    ),
)(merge)
app.command(
    name="view",
    epilog=examples(
        "raddle view out/my",
        "raddle view out/my out/other   two runs side by side",
        "raddle view md.trace.parquet   lanes, messages, supersteps, critical path",
        "raddle view out/my --port 8000 --no-browser   for ssh -L 8000:localhost:8000",
        "raddle report out/my --explorer   the same as one file",
    ),
)(view)
app.command(
    name="why",
    epilog=examples(
        "raddle why out/jobs --job halo",
        "raddle why out/jobs --job halo --setup hpcc --prove   run again without the culprit",
        "raddle why out/jobs --job halo --json | jq '.parts[] | select(.culprit)'",
        "raddle why out/my --flow 3:17   needs `delays = true` in [record]",
    ),
)(why)
app.command(name="report", epilog=examples("raddle report out/my"))(report)
app.command(
    name="compare",
    epilog=examples(
        "raddle compare out/before out/after",
        "raddle compare out/a out/b --tolerance 2   exit 1 if a figure differs by more than 2 %",
    ),
)(compare)
app.command(
    name="init",
    epilog=examples("raddle init my.toml", "raddle init | raddle run /dev/stdin --out out/first"),
)(init)
app.command(
    name="schema",
    epilog=examples(
        "raddle schema > experiment.schema.json", "raddle schema route > route.schema.json"
    ),
)(schema)
app.command(name="doctor", epilog=examples("raddle doctor", "raddle doctor --json"))(doctor)

_panel_of = {name: panel for panel, names in PANELS.items() for name in names}
for _command in app.registered_commands:
    _command.rich_help_panel = _panel_of[_command.name or ""]
for _group in app.registered_groups:
    _group.rich_help_panel = _panel_of[_group.name or ""]
