"""A results folder as typed data: Arrow tables, read when they are asked for.

Every table is a `pyarrow.Table`: ``results.flows.to_pandas()`` gives a pandas frame and
``polars.from_arrow(results.flows)`` a polars one, without a copy where the types allow it. Units
stand in the column names.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa

from raddle.errors import ResultsError
from raddle.results.columns import runs_of, select
from raddle.results.flows import FlowFile
from raddle.results.parquet import AGAIN, opened, read

__all__ = ["AGAIN", "TABLES", "Results", "load"]

_RUN: list[tuple[str, pa.DataType]] = [("scheme", pa.string()), ("seed", pa.uint64())]
_NODES: list[tuple[str, pa.DataType]] = [
    ("node", pa.uint32()),
    ("kind", pa.string()),
    ("level", pa.uint8()),
    ("name", pa.string()),
]
TABLES: Mapping[str, pa.Schema] = {
    "flows": pa.schema(
        [
            *_RUN,
            ("src", pa.uint32()),
            ("dst", pa.uint32()),
            ("sport", pa.uint16()),
            ("size_bytes", pa.uint64()),
            ("start_ps", pa.uint64()),
            ("fct_ps", pa.uint64()),
            ("class", pa.string()),
            ("ideal_fct_ps", pa.uint64()),
        ]
    ),
    "pauses": pa.schema(
        [
            *_RUN,
            ("node", pa.uint32()),
            ("port", pa.uint16()),
            ("start_ps", pa.uint64()),
            ("end_ps", pa.uint64()),
        ]
    ),
    "ports": pa.schema(
        [
            *_RUN,
            ("node", pa.uint32()),
            ("port", pa.uint16()),
            ("peer", pa.uint32()),
            ("rate_bps", pa.uint64()),
            ("tx_bytes", pa.uint64()),
            ("tx_packets", pa.uint64()),
            ("ecn_marks", pa.uint64()),
            ("max_queue_bytes", pa.uint64()),
            ("pause_ps", pa.uint64()),
            ("drops", pa.uint64()),
        ]
    ),
    "throughput": pa.schema(
        [*_RUN, ("time_ps", pa.uint64()), ("class", pa.string()), ("delivered_bytes", pa.uint64())]
    ),
    "flow_throughput": pa.schema(
        [
            *_RUN,
            ("time_ps", pa.uint64()),
            ("src", pa.uint32()),
            ("dst", pa.uint32()),
            ("sport", pa.uint16()),
            ("delivered_bytes", pa.uint64()),
        ]
    ),
    "queues": pa.schema(
        [
            *_RUN,
            ("time_ps", pa.uint64()),
            ("buffered_bytes", pa.uint64()),
            ("max_port_bytes", pa.uint64()),
            ("paused_ports", pa.uint64()),
        ]
    ),
    "nodes": pa.schema(_NODES),
    "links": pa.schema(
        [
            ("link", pa.uint32()),
            ("node_a", pa.uint32()),
            ("port_a", pa.uint16()),
            ("node_b", pa.uint32()),
            ("port_b", pa.uint16()),
            ("rate_bps", pa.uint64()),
            ("delay_ps", pa.uint64()),
        ]
    ),
}
"""The tables of a results folder and their columns, in order."""


@dataclass(frozen=True)
class Results:
    """The results folder at `path`. Tables are read on first use and then kept."""

    path: Path

    @cached_property
    def manifest(self) -> Mapping[str, Any]:
        """How the results came about: versions, machine, runs, parameters and their sources."""
        return self._json("manifest.json")

    @cached_property
    def summary(self) -> Mapping[str, Any]:
        """`summary.json` (schema 1): the figures of every scheme."""
        return self._json("summary.json")

    @property
    def name(self) -> str:
        """The experiment's name, or the folder's if it has none."""
        return str(self.manifest.get("name") or self.path.name)

    @property
    def complete(self) -> bool:
        """Whether every run of the experiment is in the results."""
        return bool(self.manifest.get("complete", False))

    @cached_property
    def runs(self) -> tuple[tuple[str, int], ...]:
        """Scheme and seed of every run under load that is done, also of one that had no flows."""
        done = {
            (str(run["scheme"]), int(run["seed"]))
            for run in self.manifest.get("runs", [])
            if run.get("done") and run.get("variant") == "loaded"
        }
        done |= set(self.flow_file.counts)
        order = list(self.manifest.get("schemes", []))
        return tuple(
            sorted(done, key=lambda r: (order.index(r[0]) if r[0] in order else len(order), *r))
        )

    @cached_property
    def schemes(self) -> tuple[str, ...]:
        """Schemes that have results, in the experiment's order."""
        return tuple(dict.fromkeys(scheme for scheme, _ in self.runs))

    @cached_property
    def seeds(self) -> tuple[int, ...]:
        """Seeds that have results, ascending."""
        return tuple(sorted({seed for _, seed in self.runs}))

    @cached_property
    def isolated(self) -> "Results | None":
        """The twin runs with the tested flows alone, or None if the traffic has no twin."""
        folder = self.path / "isolated"
        return Results(folder) if (folder / "flows.parquet").is_file() else None

    @cached_property
    def flows(self) -> pa.Table:
        """One row per flow; `fct_ps` is null where the flow did not finish."""
        return self._table("flows", required=True)

    @cached_property
    def flow_file(self) -> FlowFile:
        """The file of the flows, to go through more of them than fit in memory."""
        file = self._file("flows", required=True)
        with opened(file) as parquet:
            _check_columns(parquet.schema_arrow, "flows", file)
        return FlowFile(file)

    @cached_property
    def flow_sample(self) -> pa.Table:
        """All flows, or a sample where they are too many (`flow_file.share`)."""
        return self.flows if self.flow_file.fits else self.flow_file.sample()

    def flow_batches(
        self, scheme: str, seed: int, columns: list[str] | None = None
    ) -> Iterator[pa.Table]:
        """The flows of a run in one table, or in several (of `columns`) where they are too many."""
        if self.flow_file.fits:
            yield select(self.flows, scheme=scheme, seed=seed)
        else:
            yield from self.flow_file.batches((scheme, seed), columns)

    @cached_property
    def pauses(self) -> pa.Table:
        """One row per PFC pause of a port (the port that had to be silent)."""
        return self._table("pauses")

    @cached_property
    def ports(self) -> pa.Table:
        """Counters of every port over the whole run."""
        return self._table("ports")

    @cached_property
    def throughput(self) -> pa.Table:
        """Bytes delivered per class in the interval that ends at `time_ps`."""
        return self._table("throughput")

    @cached_property
    def flow_throughput(self) -> pa.Table:
        """Bytes delivered per watched flow (1 MB or more, at most 64 of them)."""
        return self._table("flow_throughput")

    @cached_property
    def queues(self) -> pa.Table:
        """Buffered bytes over time: all switches, the fullest port, and paused ports."""
        return self._table("queues")

    @cached_property
    def nodes(self) -> pa.Table:
        """Hosts and switches; level 0 are the hosts, 1 the switches next to them."""
        return self._table("nodes")

    @cached_property
    def links(self) -> pa.Table:
        """Links with both ends; `port_a` and `port_b` count from 1."""
        return self._table("links")

    @cached_property
    def acks(self) -> pa.Table | None:
        """The per-ACK trace, if the experiment recorded one (`[record] acks = true`)."""
        return self._asked_for("acks")

    @cached_property
    def members(self) -> pa.Table | None:
        """One row per message to a group and member; `delivered_ps` is null where it was missed.

        None if the experiment has no groups. `src`, `dst` and `sport` name the message as in flows.
        """
        file = self.path / "members.parquet"
        return read(file) if file.is_file() else None

    @cached_property
    def jobs(self) -> pa.Table | None:
        """One row per job and run: how long it took, and alone. None if the experiment has none.

        `time_ps` is null where the run ended before the job, `alone_ps` and `slowdown` where it did
        not run alone. `host_calls`, `multicast_calls` and `offload_calls` say who carried how many
        of its collectives.
        """
        return self._asked_for("jobs")

    @cached_property
    def blame(self) -> pa.Table | None:
        """What each job's time was spent on, run by run; the rows of a job add up to its time.

        `cause` is a word of docs/reference/results.md, `culprit` the job or class of traffic that
        stood in the way, `port` the place ("NODE:3"); both are null where there is none. None if
        the experiment has no jobs, or does not want it (`[record] blame = false`).
        """
        return self._asked_for("blame")

    @cached_property
    def delays(self) -> pa.Table | None:
        """The same of every flow, if the experiment recorded it (`[record] delays = true`)."""
        return self._asked_for("delays")

    @cached_property
    def ranks(self) -> pa.Table | None:
        """What each rank of the jobs did when, if it was recorded (`[record] ranks = true`).

        Rows of a rank follow each other from the job's start on. `activity` is `start`,
        `computing`, `host` or `waiting`; of a wait, `from_rank` is the rank whose message or
        contribution ended it, `late_ps` the time until that rank had issued it, and `cause`,
        `culprit` and `port` what most of its way was spent on.
        """
        return self._asked_for("ranks")

    @cached_property
    def paths(self) -> pa.Table | None:
        """The way of every flow, hop by hop, if it was recorded (`[record] paths = true`).

        `src`, `dst` and `sport` name the flow as in flows; a row is a node (`node`, `name`), the
        port that packets leave by (from 1) and the node that it leads to (`peer`). A flow whose
        routes change has a second way from `since_ps` on; over rails there is a way for each
        `rail`, and `sport` is null. To a group it is the tree: `hop` is the distance from the host.
        """
        return self._asked_for("paths")

    @cached_property
    def port_queues(self) -> pa.Table | None:
        """Single ports over time, if any were recorded (`[record] ports` or `busiest`).

        `queue_bytes` wait to leave by the port, `ingress_bytes` came in by it and are still there
        (PFC's threshold is about these), `paused` says whether its peer has paused it; `tx_bytes`
        and `ecn_marks` are those since the last sample.
        """
        return self._asked_for("port_queues")

    def _table(self, name: str, *, required: bool = False) -> pa.Table:
        file = self._file(name, required=required)
        if not file.is_file():
            return TABLES[name].empty_table()
        table = read(file)
        _check_columns(table.schema, name, file)
        if name not in ("flows", "nodes", "links"):
            strange = runs_of(table) - set(self.runs)
            if strange:
                scheme, seed = min(strange)
                msg = (
                    f"{file} has rows of {scheme}, seed {seed}, of which there is no run here: it "
                    f"is of another experiment\n  hint: {AGAIN}"
                )
                raise ResultsError(msg)
        return table

    def _file(self, name: str, *, required: bool) -> Path:
        file = self.path / f"{name}.parquet"
        if required and not file.is_file():
            msg = f"{self.path} has no {file.name}\n  hint: {AGAIN}"
            raise ResultsError(msg)
        return file

    def _asked_for(self, name: str) -> pa.Table | None:
        """A table that not every experiment has; None in results that were made without it."""
        file = self.path / f"{name}.parquet"
        if file.is_file():
            return read(file)
        if file.name in (self.manifest.get("files") or {}):
            msg = f"{self.path} has no {file.name}\n  hint: {AGAIN}"
            raise ResultsError(msg)
        return None

    def _json(self, name: str) -> Mapping[str, Any]:
        file = self.path / name
        try:
            value = json.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except ValueError as error:
            msg = f"{file} is not JSON: {error}"
            raise ResultsError(msg) from error
        if not isinstance(value, dict):
            msg = f"{file}: expected a JSON object"
            raise ResultsError(msg)
        return value


def _check_columns(schema: pa.Schema, name: str, file: Path) -> None:
    """Refuse a table that lacks a column of the table `name` or has it of another type."""
    for field in TABLES[name]:
        if field.name not in schema.names:
            has = ", ".join(schema.names[:8])
            problem = f"has no column `{field.name}` (it has {has})"
        elif _plain(schema.field(field.name).type) != field.type:
            found = schema.field(field.name).type
            problem = f"has `{field.name}` of type {found}, not {field.type}"
        else:
            continue
        msg = f"{file} {problem}: it is not the table `{name}` of these results\n  hint: {AGAIN}"
        raise ResultsError(msg)


def _plain(kind: pa.DataType) -> pa.DataType:
    """The type of the values, however they are stored."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return pa.string() if pa.types.is_large_string(kind) else kind


def load(path: str | Path) -> Results:
    """Open the results folder `path`.

    Raises
    ------
    ResultsError
        There is no such folder, or it holds no results.

    Examples
    --------
    >>> load("no/such/folder")
    Traceback (most recent call last):
    raddle.errors.ResultsError: no results folder at no/such/folder
    """
    folder = Path(path)
    if not folder.is_dir():
        msg = f"no results folder at {folder}"
        raise ResultsError(msg)
    if not (folder / "flows.parquet").is_file():
        msg = (
            f"{folder} is not a results folder: it has no flows.parquet\n"
            "  hint: `raddle run EXPERIMENT --out DIR` makes one"
        )
        raise ResultsError(msg)
    return Results(folder)
