"""The site holds all documents, all of the Python API and all examples, and it builds."""

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

import raddle
from raddle.cli.app import app
from scripts import gallery

ROOT = Path(__file__).resolve().parents[2]
SITE = ROOT / "docs" / "site"
NOT_A_PAGE = {"docs/README"}
"""The list of documents for who reads the repository."""


def listed() -> list[str]:
    """What the tables of contents of the site have."""
    found = []
    for page in SITE.glob("*.md"):
        for block in re.findall(r"```{toctree}\n(.*?)```", page.read_text(), re.DOTALL):
            lines = [line for line in block.splitlines() if line and not line.startswith(":")]
            found += [re.sub(r".*<(.*)>", r"\1", line) for line in lines]
    return found


def test_every_document_is_listed_once() -> None:
    pages = [page for page in (ROOT / "docs").rglob("*.md") if SITE not in page.parents]
    names = {page.relative_to(ROOT).with_suffix("").as_posix() for page in pages}
    in_docs = [name for name in listed() if name.startswith("docs/")]
    assert sorted(in_docs) == sorted(names - NOT_A_PAGE)


def test_every_public_name_has_a_page() -> None:
    named = re.findall(r"^   (\w+)$", (SITE / "api.md").read_text(), re.MULTILINE)
    assert sorted(named) == sorted(set(raddle.__all__) - {"__version__"})


def commands(path: str, command: Any) -> Iterator[str]:
    """A command and those below it."""
    yield path
    for name, below in getattr(command, "commands", {}).items():
        yield from commands(f"{path} {name}", below)


def keys(schema: Any) -> Iterator[str]:
    """All keys of a file that are described somewhere in its schema."""
    if isinstance(schema, dict):
        yield from schema.get("properties", {})
    for below in schema.values() if isinstance(schema, dict) else schema:
        if isinstance(below, dict | list):
            yield from keys(below)


def test_every_command_key_and_variable_has_its_place() -> None:
    reference = ROOT / "docs" / "reference"
    headings = re.findall(r"^## (.*)$", (reference / "commands.md").read_text(), re.MULTILINE)
    all_commands = list(commands("raddle", typer.main.get_command(app)))
    assert len(all_commands) > 40
    assert set(all_commands) <= set(headings)
    table = tomllib.loads((ROOT / "crates/base/text/environment.toml").read_text())
    variables = (reference / "environment.md").read_text()
    assert [one["name"] for one in table["setting"] if f"`{one['name']}`" not in variables] == []
    for kind, least in (("experiment", 150), ("route", 20)):
        found = set(keys(json.loads((reference / f"{kind}.schema.json").read_text())))
        assert len(found) > least
        page = (reference / f"{kind}-keys.md").read_text()
        assert [key for key in found if not re.search(rf"`\[*(\w+\.)*{key}\b", page)] == []


def test_the_gallery_shows_every_example() -> None:
    entries = gallery.entries()
    examples = {f"examples/{file.name}" for file in (ROOT / "examples").glob("*.toml")}
    assert examples <= {entry.file for entry in entries}
    assert all(entry.sha256 for entry in entries)


def build(*words: str) -> str:
    """Build the site; what was said."""
    done = subprocess.run(
        [sys.executable, "-m", "scripts.make_site", *words],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_builds_without_a_warning() -> None:
    """Every link is checked by Sphinx; two pages of the gallery stand for all."""
    build("--only", "examples/flow-file.toml", "--only", "examples/link-failure.toml")
    html = ROOT / "target" / "site" / "html" / raddle.__version__
    for page in ("index", "README", "docs/concepts/worlds", "api/raddle.run", "gallery/index",
                 "examples/tutorial", "crates", "../index", "../versions"):  # fmt: skip
        assert (html / f"{page}.html").is_file()
    crates = (html / "crates.html").read_text()
    for manifest in (ROOT / "crates").glob("*/*/Cargo.toml"):
        if (manifest.parent / "src" / "lib.rs").is_file():
            assert f"<code>raddle-{manifest.parent.name}</code>" in crates
    for link in re.findall(r'href="(rust/[^"]+)"', crates):
        assert (html / link).is_file()
    assert "link-failure" in (html / "searchindex.js").read_text()
    # Nothing is fetched when a page is looked at.
    for page in ("index", "docs/concepts/matching", "gallery/examples-flow-file"):
        text = (html / f"{page}.html").read_text()
        assert not re.findall(r"<(?:script|link|img)[^>]*(?:src|href)=\"https?:", text)


@pytest.mark.scale
def test_all_of_the_gallery_is_as_it_is_pinned() -> None:
    assert build().count("gallery: ") == len(gallery.entries())
