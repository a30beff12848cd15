"""Flows of experiments and of flow files: written, described, read for a picture."""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from raddle.core.traffic import describe, write
from raddle.services.overlay import naming_the_setting, overlays, parse_setting

__all__ = ["describe", "panels", "write"]


def panels(
    files: Sequence[Path], settings: Sequence[str], *, format: str, seed: int
) -> list[tuple[str, pa.Table]]:
    """Title and flows of each file, at each combination of ``KEY=VALUE,...`` settings."""
    chosen = [parse_setting(text) for text in settings]
    found = []
    with tempfile.TemporaryDirectory(prefix="raddle-") as folder:
        flows = Path(folder) / "flows.parquet"
        for file in files:
            sources: list[tuple[str, Path, Mapping[str, str]]] = [(file.stem, file, {})]
            if chosen:
                sources = []
                for values, text in overlays(file, chosen, beside=False):
                    words = ", ".join(f"{k.rpartition('.')[2]} {v}" for k, v in values.items())
                    point = Path(folder) / f"--set {words}.toml".replace("/", "_")
                    point.write_text(text, encoding="utf-8")
                    title = words if len(files) == 1 else f"{file.stem}, {words}"
                    sources.append((title, point, values))
            for title, source, values in sources:
                with naming_the_setting(source, values):
                    write(
                        source,
                        flows,
                        format=format,
                        out_format="parquet",
                        seed=seed,
                        isolated=False,
                    )
                found.append((title, pq.read_table(flows)))
    return found
