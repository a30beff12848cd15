"""The Rust side, `raddle._core`: conversions only; values cross as str, bytes and int.

Errors that are the user's to mend (experiments, maps, flow files) are raised as
`raddle.errors.ExperimentError` with the whole one-screen message; a simulation that was asked to
stop raises `raddle.errors.RunCancelled`; a file that cannot be opened raises `OSError`.
`python/raddle/plan.py` documents the JSON that `validate` and `run` return, `python/raddle/core`
that of the others: it alone calls this module.
"""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import final

__all__ = [
    "Progress",
    "Replay",
    "ReplayPlan",
    "ReplaySchedule",
    "RouteProgress",
    "SetUp",
    "assemble_trace",
    "capacity",
    "capacity_file",
    "experiment_schema",
    "fabric_build",
    "fabric_check",
    "fabric_export",
    "fabric_import",
    "job_key",
    "measure",
    "merge",
    "mgid",
    "parse_quantity",
    "place",
    "replay_costs",
    "round_times",
    "route",
    "route_check",
    "route_schema",
    "run",
    "run_in_ranks",
    "schemes",
    "settings",
    "trace_describe",
    "trace_export",
    "trace_fabric",
    "trace_generate",
    "trace_import",
    "trace_import_chakra",
    "trace_training",
    "traffic_describe",
    "traffic_write",
    "validate",
    "version",
]

@final
class SetUp:
    """What the set-up of an experiment is at, safe to read from another thread."""

    def __new__(cls) -> SetUp: ...
    @property
    def step(self) -> tuple[str, int]:
        """The step in words, empty before the first, and the hosts that it is about, or 0."""

@final
class Progress:
    """Counters of one run, safe to read from another thread while it is under way."""

    def __new__(cls) -> Progress: ...
    @property
    def simulated_ps(self) -> int:
        """Simulated time reached, in ps."""
    @property
    def packet_hops(self) -> int:
        """Completed link traversals so far."""
    @property
    def flows_done(self) -> int: ...
    @property
    def flows_total(self) -> int:
        """Expected flows; 0 while unknown or for open-ended traffic."""
    def cancel(self) -> None:
        """Ask the run to stop; it ends with `RunCancelled` within about 50 ms."""

@final
class RouteProgress:
    """How far `route` is, safe to read from another thread while it is under way."""

    def __new__(cls) -> RouteProgress: ...
    @property
    def phase(self) -> str:
        """The engine at work, or words."""
    @property
    def engines_done(self) -> int: ...
    def cancel(self) -> None:
        """Ask the run to stop after the engine at work; it ends with `RunCancelled`."""

def version() -> str:
    """Version of the compiled core, e.g. "0.1.0"."""

def validate(text: str, path: str, set_up: SetUp | None = None) -> str:
    """Judge experiment TOML `text` (files are relative to the folder of `path`); JSON plan."""

def measure(plan_json: str, seconds: float) -> str:
    """Simulate a part of the plan's runs for `seconds` of processor time in all.

    Returns a JSON list with an estimate for each run, as in the plan. Setting up a large fabric
    takes its own time. Releases the GIL.
    """

def experiment_schema() -> str:
    """JSON Schema of an experiment file."""

def run(plan_json: str, index: int, out_dir: str, threads: int, progress: Progress) -> str:
    """Simulate run `index` of the plan and write `out_dir`/.runs/NAME/ by one rename.

    It runs on up to `threads` threads, from 1 to 1024; they change no byte. The folder holds the
    run's parquet parts and `stats.json`, which is also returned. Releases the GIL.
    """

def run_in_ranks(
    plan_json: str,
    index: int,
    out_dir: str,
    threads: int,
    progress: Progress,
    rank: int,
    ranks: int,
    exchange: Callable[[list[bytes]], Sequence[bytes]],
) -> str | None:
    """Simulate run `index` of the plan together with other ranks; this is number `rank` of `ranks`.

    Rank 0 does as `run`; the others write nothing and give None. `exchange` gives each rank its
    bytes and takes some from each, by rank. Releases the GIL between exchanges.
    """

def round_times(text: str, path: str, progress: Progress) -> str:
    """Simulate the first run of experiment TOML `text` and keep no tables; JSON."""

def merge(plan_json: str, out_dir: str) -> None:
    """Join the parts whose stamps are in the plan into the results folder, in plan order.

    Parts that are missing are left out. Loaded runs go to `out_dir`, isolated ones to
    `out_dir`/isolated; every file is replaced by rename.
    """

def fabric_build(spec_text: str, path: str, format: str) -> str:
    """Map text in `format` ("toml" or "hpcc-ns3") from a fabric TOML or a whole experiment."""

def fabric_check(text: str, path: str, format: str, graph: bool) -> str:
    """Check a map; JSON description. With `graph` also the nodes and links as columns.

    `format` is "auto", "toml", "experiment", "hpcc-ns3", "ibnetdiscover" or "ibsim".
    """

def fabric_export(text: str, path: str, format: str, out_format: str) -> str:
    """A map (`format` as for `fabric_check`) as "ibsim", "toml" or "hpcc-ns3"."""

def fabric_import(
    text: str, path: str, format: str, rate: str | None, delay: str | None, split_ports: bool
) -> tuple[str, str]:
    """Map of an InfiniBand fabric (`format`: "auto", "ibnetdiscover", "ibsim"): JSON, TOML.

    The JSON holds what `fabric_check` gives, `notes`, and `tree` (shape and what is missing) or
    `no_tree`.
    """

def traffic_write(
    path: str, format: str, seed: int, isolated: bool, out: str, out_format: str
) -> int:
    """Write the flows of `path` to `out` (by rename); number of flows written.

    `format` is "auto", "experiment", "hpcc-ns3", "csv" or "parquet"; `out_format` one of the last
    three. Parquet and CSV columns: start_ps, src, dst, size_bytes, class.
    """

def traffic_describe(path: str, format: str, seed: int) -> str:
    """JSON: flows, bytes, first and last start, and the same per class."""

def route_schema() -> str:
    """JSON Schema of a route file."""

def route_check(text: str, path: str) -> str:
    """Judge route TOML `text` (files are relative to the folder of `path`); JSON description."""

def route(text: str, path: str, out_dir: str, progress: RouteProgress) -> str:
    """Route with all engines, write tables and `summary.json` to `out_dir`; gives the summary.

    Every file is replaced whole, the summary last. Releases the GIL.
    """

def mgid(text: str, path: str) -> str:
    """MGIDs of the groups of route TOML `text`; JSON with a row per group."""

def capacity(request: str) -> str:
    """Groups that table entries carry and entries that groups need; JSON in and out."""

def capacity_file(text: str, path: str) -> str:
    """The same for the groups of route TOML `text`."""

def place(text: str, path: str, backfill: bool, widen: bool) -> str:
    """Place the jobs of job TOML `text` by the seven rules; JSON with a row per job."""

def settings() -> str:
    """Every RADDLE_* variable, as TOML: `[[setting]]` name, used_by, values, default, meaning."""

def job_key(secret: bytes, job: int) -> bytes:
    """Key (16 bytes) of a job at a site with this secret (32 bytes), as its switches derive it."""

def assemble_trace(
    folder: str | PathLike[str],
    out: str | PathLike[str],
    fabric: str = "",
    processors: int | None = None,
) -> str:
    """Join the recordings `rank-N.rec` of `folder` into the trace `out`; JSON description.

    `fabric` is the TOML of the map that the trace is replayed on by default.
    """

def trace_describe(path: str | PathLike[str], matrix: bool) -> str:
    """JSON description of a trace; with `matrix` also who sends how much to whom."""

def trace_import_chakra(paths: Sequence[str], out: str | PathLike[str], fabric: str) -> str: ...
def trace_import(path: str, out: str | PathLike[str], fabric: str) -> str:
    """Read a GOAL schedule into the trace `out`; JSON description."""

def trace_export(path: str | PathLike[str]) -> str:
    """A trace as a GOAL schedule, its collectives as messages."""

def trace_generate(
    application: str,
    sizes: str,
    ranks: int,
    per_host: int,
    exchanges: int,
    gap: str,
    seed: int,
    fabric: str,
    out: str | PathLike[str],
) -> str:
    """Make a trace of a known kind of program and write it to `out`; JSON description."""

def trace_training(text: str, name: str, fabric: str, out: str | PathLike[str]) -> str:
    """Make a trace of steps of training as the TOML of the file `name` says; JSON description."""

def schemes() -> list[tuple[str, str]]:
    """Schemes of congestion control: name and one line about each, as reports order them."""

def parse_quantity(kind: str, text: str) -> int:
    """A "time" in ps, a "size" in bytes or a "rate" in bit/s; ValueError says what is wrong."""

def trace_fabric(path: str | PathLike[str]) -> str:
    """The map that a trace is replayed on when no other is named, as TOML; empty: it has none."""

def replay_costs(text: str = "", path: str = "costs") -> str:
    """Costs of hosts in a replay, as JSON: those of the TOML `text`, else the usual ones."""

@final
class ReplayPlan:
    """The order and the joined messages of all supersteps."""

@final
class ReplaySchedule:
    """A trace with its messages as a plan has them."""

    @property
    def messages(self) -> int:
        """Messages of the program between hosts, without those of collectives."""
    @property
    def parcels(self) -> int:
        """What is issued instead: messages and joined messages."""
    @property
    def joined(self) -> int:
        """Joined messages among them."""

@final
class Replay:
    """A trace on a fabric, to be replayed with several schedules and seeds."""

    def __new__(
        cls,
        path: str | PathLike[str],
        fabric: str | None,
        placement: str,
        scheme: str,
        sockets: int,
        costs: str,
        gap_share: float,
        start_skew: str,
        processors: int | None,
        algorithms: list[str],
    ) -> Replay:
        """`fabric` is the path of a map, None the trace's own; `costs` as `replay_costs()`.

        `algorithms` has choices such as "allreduce=ring".
        """
    def under(self, scheme: str) -> Replay:
        """The same under another scheme; plans and schedules of one are good for the other."""
    def plan(self, name: str, scope: str | None, leaders: int) -> ReplayPlan:
        """Schedule all supersteps: "none", "reorder", "aggregate", "both", "published", "library".

        `scope` says which messages may be joined: "rank-to-rank" or "rank-to-node", None: as the
        schedule does; so many `leaders` of a host take those for several of its ranks apart.
        """
    def scheduled(self, plan: ReplayPlan) -> ReplaySchedule:
        """The program with the messages of a plan."""
    def run(self, schedule: ReplaySchedule, seed: int, threads: int, progress: Progress) -> str:
        """Replay with the noise of `seed` on up to `threads` threads; JSON times.

        Releases the GIL.
        """
    def retell(
        self,
        schedule: ReplaySchedule,
        seed: int,
        threads: int,
        progress: Progress,
        out: str | PathLike[str],
    ) -> None:
        """Replay with the noise of `seed`, write the trace `out`: the same calls, these times."""
    def one_thread(self) -> str | None:
        """Why its runs keep to one thread however many they may use, if they do."""
    def algorithms(self) -> str:
        """The algorithm of each kind of collective that has several, as JSON."""
    def occupied(self) -> tuple[int, int, int]:
        """Hosts that have a rank, hosts of the map, and the most ranks of a host."""
    def recorded(self) -> tuple[float, float]:
        """Seconds that the program took when recorded, and the ranks' mean of them in MPI."""
