"""Flows of experiments and of flow files: written, described, read for a picture."""

import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from raddle import _core
from raddle.services.overlay import overlays, parse_setting

__all__ = ["describe", "panels", "write"]


def write(
    file: Path, out: Path, *, format: str, out_format: str, seed: int, isolated: bool = False
) -> int:
    """Write the flows of `file` to `out`; return how many there are.

    `format` and `out_format` as for `_core.traffic_write`. With `isolated` only the tested flows.
    """
    return _core.traffic_write(str(file), format, seed, isolated, str(out), out_format)


def describe(file: Path, *, format: str, seed: int) -> dict[str, Any]:
    """Count flows and bytes, in all and per class."""
    found: dict[str, Any] = json.loads(_core.traffic_describe(str(file), format, seed))
    return found


def panels(
    files: Sequence[Path], settings: Sequence[str], *, format: str, seed: int
) -> list[tuple[str, pa.Table]]:
    """Title and flows of each file, at each combination of ``KEY=VALUE,...`` settings."""
    chosen = [parse_setting(text) for text in settings]
    found = []
    with tempfile.TemporaryDirectory(prefix="raddle-") as folder:
        flows = Path(folder) / "flows.parquet"
        for file in files:
            sources = [(file.stem, file)]
            if chosen:
                sources = []
                for values, text in overlays(file, chosen, beside=False):
                    words = ", ".join(f"{k.rpartition('.')[2]} {v}" for k, v in values.items())
                    point = Path(folder) / f"--set {words}.toml".replace("/", "_")
                    point.write_text(text, encoding="utf-8")
                    sources.append((words if len(files) == 1 else f"{file.stem}, {words}", point))
            for title, source in sources:
                write(source, flows, format=format, out_format="parquet", seed=seed)
                found.append((title, pq.read_table(flows)))
    return found
