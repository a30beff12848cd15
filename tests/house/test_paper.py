"""The paper cites what is in the bibliography, has its picture, and is named as in CITATION.cff."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_, HEAD, TEXT = (ROOT / "paper" / "paper.md").read_text(encoding="utf-8").split("---\n", 2)
CITATION = (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def entries(text: str, key: str) -> list[str]:
    """What a key of YAML says, wherever it stands, without quotes."""
    return [e.strip("'\"") for e in re.findall(rf"^(?:\s*- )?{key}: (.+)$", text, re.MULTILINE)]


def test_every_citation_is_known() -> None:
    (name,) = entries(HEAD, "bibliography")
    library = (ROOT / "paper" / name).read_text(encoding="utf-8")
    known = set(re.findall(r"^@\w+\{(\w+),", library, re.MULTILINE))
    cited = set(re.findall(r"@(\w+)", TEXT))
    assert cited
    assert cited <= known


def test_every_picture_is_there() -> None:
    pictures = re.findall(r"!\[[^\]]*\]\(([^)]+)\)", TEXT)
    assert pictures
    assert [name for name in pictures if not (ROOT / "paper" / name).is_file()] == []


def test_title_and_authors_are_those_of_the_citation_file() -> None:
    assert entries(HEAD, "title") == entries(CITATION, "title")
    named = [name.lower() for name in entries(CITATION, "name")]
    assert [name.lower() for name in entries(HEAD, "name")][: len(named)] == named
