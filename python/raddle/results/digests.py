"""Size and SHA-256 of the tables of a results folder: whether they are as the run wrote them."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["as_written", "digests"]


def digests(out: Path) -> dict[str, Any]:
    """Size and SHA-256 of each table of a results folder, for its manifest."""
    found = sorted([*out.glob("*.parquet"), *out.glob("isolated/*.parquet")])
    return {
        file.relative_to(out).as_posix(): {"bytes": file.stat().st_size, "sha256": _sha256(file)}
        for file in found
    }


def as_written(file: Path, written: Mapping[str, Any]) -> bool:
    """Whether a file has the size and the hash that a manifest says."""
    same_size = file.stat().st_size == int(written["bytes"])
    return same_size and _sha256(file) == str(written["sha256"])


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
