"""The crates of others linked into a program or library, and npm packages in the explorer."""

import functools
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts.dist.common import ROOT, Target, run

__all__ = ["Part", "explorer", "linked"]

EXPLORER = ROOT / "python" / "raddle" / "report" / "explorer" / "explorer.html"
FEATURES = "raddle-shared-features"
"""A crate of ours that names crates and uses none."""

TEXTS = re.compile(r"(LICEN[CS]E|COPYING|COPYRIGHT|NOTICE|UNLICENSE)([-._].*)?", re.IGNORECASE)


@dataclass(frozen=True, order=True)
class Part:
    """Something of others that is inside a package."""

    name: str
    version: str
    licence: str
    """An SPDX expression."""
    kind: str
    """`cargo` or `npm`, as package URLs have it."""
    texts: tuple[str, ...] = ()
    """Its files of licences and notices."""

    @property
    def url(self) -> str:
        """As a package URL."""
        return f"pkg:{self.kind}/{self.name}@{self.version}"


@functools.cache
def metadata(target: Target) -> dict[str, Any]:
    """What cargo knows of all crates."""
    words = ["cargo", "metadata", "--locked", "--format-version", "1"]
    words += ["--filter-platform", target.triple]
    told: dict[str, Any] = json.loads(run(words))
    return told


def texts(folder: Path) -> tuple[str, ...]:
    """Licences and notices in the folder of a crate."""
    files = [file for file in folder.iterdir() if file.is_file() and TEXTS.fullmatch(file.name)]
    return tuple(file.read_text(errors="replace").strip() for file in sorted(files))


def linked(crates: Iterable[str], target: Target) -> list[Part]:
    """The crates of others that are linked into crates of ours."""
    told = metadata(target)
    packages = {package["id"]: package for package in told["packages"]}
    nodes = {node["id"]: node for node in told["resolve"]["nodes"]}
    wanted = set(crates)
    queue = [key for key, package in packages.items() if package["name"] in wanted]
    reached = set(queue)
    while queue:
        for below in nodes[queue.pop()]["deps"]:
            is_linked = any(kind["kind"] is None for kind in below["dep_kinds"])
            is_linked &= packages[below["pkg"]]["name"] != FEATURES
            if is_linked and below["pkg"] not in reached:
                reached.add(below["pkg"])
                queue.append(below["pkg"])
    return sorted(
        Part(
            package["name"],
            package["version"],
            package["license"].replace("/", " OR "),
            "cargo",
            texts(Path(package["manifest_path"]).parent),
        )
        for package in map(packages.__getitem__, reached)
        if package["source"] is not None
    )


def explorer() -> list[Part]:
    """The npm packages in the explorer's page, which names them at its end."""
    notes = EXPLORER.read_text().rpartition("<!-- Libraries in this page")[2].partition("-->")[0]
    heads = list(re.finditer(r"^(\S+) ([\d.]+) \((\S+)\)$", notes, re.MULTILINE))
    ends = [head.start() for head in heads[1:]] + [len(notes)]
    return [
        Part(head[1], head[2], head[3], "npm", (notes[head.end() : end].strip(),))
        for head, end in zip(heads, ends, strict=True)
    ]
