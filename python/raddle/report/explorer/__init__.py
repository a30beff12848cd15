"""The explorer: one page that looks into results folders, built from the sources in `explorer/`.

It shows what `raddle run` and `raddle route` leave. `raddle view` serves it beside the Parquet
files of a folder; :func:`write_explorer` writes it with the tables inside, as one file that needs
no server and no network.
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from raddle.errors import ResultsError
from raddle.files import write_text
from raddle.results.columns import integers, take
from raddle.results.parquet import opened, read
from raddle.text import many

__all__ = ["MOST_BYTES", "TABLES", "explorer_page", "files_of", "write_explorer"]

TABLES = (
    "nodes", "links", "ports", "jobs", "blame", "queues", "flows", "pauses", "paths", "delays",
    "ranks", "port_queues", "flow_throughput", "merges", "trees", "tables",
)  # fmt: skip
"""What the page reads; the first ones are kept whole where room is scarce."""

TRACE = ".trace.parquet"
"""How names of traces end."""

MOST_BYTES = 15_000_000
"""Size of the page with its tables."""
SMALLEST_ROOM = 400_000
"""Bytes that a sampled table gets at least, or it is left out."""
BY_FLOW = ("flows", "paths", "delays")
HELD = '<script type="application/json" id="held">null</script>'


def explorer_page() -> str:
    """The page without tables."""
    return (Path(__file__).parent / "explorer.html").read_text(encoding="utf-8")


def files_of(place: Path) -> Mapping[str, Path]:
    """The tables of a results folder that the page reads, or that of a trace, by their names.

    Raises
    ------
    ResultsError
        Nothing is there, a folder holds neither results of `raddle run` nor of `raddle route`, a
        file is no trace, or one of the tables is damaged.
    """
    if place.name.endswith(TRACE) and place.is_file():
        with opened(place) as trace:
            if "requests" not in trace.schema_arrow.names:
                msg = f"{place} is no trace: raddle record writes them"
                raise ResultsError(msg)
        return {"trace.parquet": place}
    if not place.is_dir():
        msg = f"there is no folder {place}, nor a trace NAME{TRACE}"
        raise ResultsError(msg)
    named = {f"{name}.parquet": place / f"{name}.parquet" for name in TABLES}
    files = {name: file for name, file in named.items() if file.is_file()}
    own = ("trees", "tables") if "trees.parquet" in files else ("flows", "ports")
    for name in (*own, "nodes", "links"):
        if f"{name}.parquet" not in files:
            msg = (
                f"{place} has no {name}.parquet\n"
                "  hint: the explorer looks into what `raddle run` and `raddle route` leave, and"
                " into traces"
            )
            raise ResultsError(msg)
    for file in files.values():
        with opened(file):
            pass
    return files


@dataclass
class _Held:
    """Tables in the page, as long as there is room."""

    room: int
    contents: dict[str, str] = field(default_factory=dict)
    files: dict[str, int] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)

    def put(self, name: str, data: bytes) -> None:
        self.contents[f"{name}.parquet"] = base64.b64encode(data).decode()
        self.files[f"{name}.parquet"] = len(data)
        self.room -= len(data)


def write_explorer(folder: Path) -> Path:
    """Write `folder`/explorer.html, the page with the tables inside, and return its path.

    The page is at most :data:`MOST_BYTES` long. What does not fit is left out in steps, and the
    page says so: seeds after the first, then all but every n-th flow or rank, then a table.

    Raises
    ------
    ResultsError
        The folder holds no results of these two, or one of its files cannot be read.
    """
    page = explorer_page()
    held = _Held(room=(MOST_BYTES - len(page.encode()) - 100_000) * 3 // 4)
    sizes = {name: file.stat().st_size for name, file in files_of(folder).items()}
    for name in TABLES:
        file = folder / f"{name}.parquet"
        if file.name not in sizes:
            continue
        if sizes[file.name] <= held.room // _share(name, sizes):
            held.put(name, file.read_bytes())
        else:
            _put_part(held, name, read(file), held.room // _share(name, sizes))
    told = {
        "folders": [
            {
                "name": folder.resolve().name,
                "files": held.files,
                "left_out": held.left_out,
                "contents": held.contents,
            }
        ]
    }
    # An angle bracket could end the script that holds the text.
    text = json.dumps(told).replace("<", "\\u003c")
    out = folder / "explorer.html"
    write_text(out, page.replace(HELD, HELD.replace("null", text)))
    return out


def _share(name: str, sizes: Mapping[str, int]) -> int:
    """Which part of the room a table may take: flows leave some to what tells of them."""
    others = any(f"{other}.parquet" in sizes for other in TABLES[TABLES.index(name) + 1 :])
    return 2 if others else 1


def _put_part(held: _Held, name: str, table: pa.Table, room: int) -> None:
    """Keep as much of a table as its room allows."""
    if room < SMALLEST_ROOM:
        held.left_out.append(f"{name}.parquet is not in this page: raddle view shows it.")
        return
    seeds = np.unique(integers(table, "seed")) if "seed" in table.column_names else np.zeros(0)
    if seeds.size > 1:
        table = take(table, np.flatnonzero(integers(table, "seed") == seeds[0]))
        held.left_out.append(
            f"{name}.parquet: this page has seed {seeds[0]} alone, of {many(seeds.size, 'seed')}."
        )
    data = _bytes(table)
    if len(data) > room:
        thinned = _thinned(name, table, -(-len(data) // room))
        data = b"" if thinned is None else _bytes(thinned)
        if not data or len(data) > 1.3 * room:
            held.left_out.append(f"{name}.parquet is not in this page: raddle view shows it.")
            return
        assert thinned is not None
        kept = many(thinned.num_rows, "row")
        held.left_out.append(f"{name}.parquet: this page has {kept} of {table.num_rows:,}.")
    held.put(name, data)


def _thinned(name: str, table: pa.Table, parts: int) -> pa.Table | None:
    """Every n-th flow or rank, the same ones in all tables; None for tables of other things."""
    if name in BY_FLOW:
        columns = [integers(table, column) for column in ("src", "dst")]
        # Mixed, so that a pattern of the traffic and the choice do not meet.
        key = (columns[0] * 2654435761 + columns[1] * 40503) >> 7
        return take(table, np.flatnonzero(key % (2 * parts) == 0))
    if name == "ranks":
        return take(table, np.flatnonzero(integers(table, "rank") % parts == 0))
    return None


def _bytes(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    data: bytes = sink.getvalue().to_pybytes()
    return data
