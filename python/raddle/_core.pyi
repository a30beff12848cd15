"""The Rust side, `raddle._core`: conversions only; values cross as str, bytes and int.

Errors that are the user's to mend (experiments, maps, flow files) are raised as
`raddle.errors.ExperimentError` with the whole one-screen message; a simulation that was asked to
stop raises `raddle.errors.RunCancelled`; a file that cannot be opened raises `OSError`.
`python/raddle/plan.py` documents the JSON that `validate` returns and `run` returns.
"""

from typing import final

__all__ = [
    "Progress",
    "experiment_schema",
    "fabric_build",
    "fabric_check",
    "merge",
    "run",
    "traffic_describe",
    "traffic_write",
    "validate",
    "version",
]

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

def version() -> str:
    """Version of the compiled core, e.g. "0.1.0"."""

def validate(text: str, path: str) -> str:
    """Judge experiment TOML `text` (files are relative to the folder of `path`); JSON plan."""

def experiment_schema() -> str:
    """JSON Schema of an experiment file."""

def run(plan_json: str, index: int, out_dir: str, progress: Progress) -> str:
    """Simulate run `index` of the plan and write `out_dir`/.runs/NAME/ by one rename.

    The folder holds the run's parquet parts and `stats.json`, which is also returned. Releases
    the GIL.
    """

def merge(plan_json: str, out_dir: str) -> None:
    """Join the parts whose stamps are in the plan into the results folder, in plan order.

    Parts that are missing are left out. Loaded runs go to `out_dir`, isolated ones to
    `out_dir`/isolated; every file is replaced by rename.
    """

def fabric_build(spec_text: str, path: str, format: str) -> str:
    """Map text in `format` ("toml" or "hpcc-ns3") from a fabric TOML or a whole experiment."""

def fabric_check(path: str, format: str, graph: bool) -> str:
    """Check a map (`format`: "auto", "toml", "experiment", "hpcc-ns3"); JSON description.

    With `graph` the JSON also carries the nodes and links as columns.
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
