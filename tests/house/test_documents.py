"""The pages tell the truth where a machine can check it."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

PROSE = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def fenced(page: Path, language: str) -> list[str]:
    """Fenced blocks of a page in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """Anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.+?)\s*$", text, re.MULTILINE):
        words = re.sub(r"[^\w\- ]", "", re.sub(r"\]\([^)]*\)", "", heading).lower())
        first = words.replace(" ", "-")
        anchor, number = first, 0
        while anchor in found:
            number += 1
            anchor = f"{first}-{number}"
        found.add(anchor)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    dead = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if re.match(r"https?:|mailto:", link):
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            dead.append(link)
    assert dead == []


def test_every_page_that_is_named_exists() -> None:
    """A path below docs/ in code, comments, errors and pages leads to a file, and to a heading."""
    command = [
        "git",
        "grep",
        "-InoE",
        r"docs/[A-Za-z0-9_./-]+\.(md|json|toml|bib|svg)(#[a-z0-9-]+)?",
    ]
    outside = ["--", ".", ":!tests/data", ":!fuzz/corpus"]
    done = subprocess.run(
        command + outside, cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    dead = []
    for line in done.splitlines():
        place, _, named = line.rpartition(":")
        name, _, anchor = named.partition("#")
        page = ROOT / name
        if not page.exists() or (anchor and anchor not in anchors(page)):
            dead.append(f"{place}: {named}")
    assert dead == []


@pytest.mark.parametrize("page", PROSE, ids=lambda page: str(page.relative_to(ROOT)))
def test_lines_are_short_outside_tables_and_code(page: Path) -> None:
    code = False
    long = []
    for number, line in enumerate(page.read_text().splitlines(), 1):
        code ^= line.lstrip().startswith("```")
        table = line.lstrip().startswith(("|", "    "))
        if len(line) > 120 and not code and not table:
            long.append(f"{number}: {line[:60]}")
    assert long == []


def test_the_experiment_in_the_readme_runs(tmp_path: Path) -> None:
    (block,) = fenced(ROOT / "README.md", "toml")
    file = tmp_path / "my.toml"
    file.write_text(block)
    out = tmp_path / "out"
    raddle = str(ROOT / ".venv" / "bin" / "raddle")
    command = [raddle, "run", str(file), "--out", str(out), "--no-report", "-q"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (out / "flows.parquet").exists()


def test_make_help_lists_every_command_the_pages_name() -> None:
    done = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True)
    listed = {line.split()[0] for line in done.stdout.splitlines()}
    code = re.compile(r"(?:^|`)make ([a-z-]+)", re.MULTILINE)
    named = {
        (page.name, goal)
        for page in PAGES
        for goal in code.findall(page.read_text())
        if goal not in listed
    }
    assert not named


def test_the_version_stands_once() -> None:
    cargo = tomllib.loads((ROOT / "Cargo.toml").read_text())
    version = cargo["workspace"]["package"]["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert version in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.parametrize("kind", ["experiment", "route"])
def test_the_published_schema_is_the_one_raddle_prints(kind: str) -> None:
    raddle = str(ROOT / ".venv" / "bin" / "raddle")
    done = subprocess.run([raddle, "schema", kind], capture_output=True, text=True, check=True)
    published = ROOT / "docs" / "reference" / f"{kind}.schema.json"
    assert published.read_text().strip() == done.stdout.strip(), "run `make generate`, commit"


def test_the_generated_pages_say_what_the_programs_say() -> None:
    programs = ROOT / "target" / "release"
    if not all((programs / name).exists() for name in ("raddle-switch", "raddle-perf")):
        pytest.skip("raddle-switch and raddle-perf are not built (make build)")
    command = [sys.executable, str(ROOT / "scripts" / "reference.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
