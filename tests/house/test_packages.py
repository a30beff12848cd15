"""What packages are made from fits the rest; `make test-dist` installs them and uses them."""

import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import typer.main

from raddle.cli.app import app
from scripts.dist import bill, build, crates, notices, recipes
from scripts.dist.__main__ import release_notes
from scripts.dist.common import TARGETS, version

ROOT = Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
NAMES = {re.split(r"[<>=]", told, maxsplit=1)[0]: told for told in PROJECT["dependencies"]}
PROGRAMS = [ROOT / ".venv" / "bin" / name for name in ("raddle-switch", "raddle-perf")]


def test_all_have_one_version() -> None:
    check: list[str | Path] = [sys.executable, ROOT / "scripts" / "set_version.py", "--check"]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"({version()})" in (ROOT / "CHANGELOG.md").read_text()


def test_the_changelog_has_notes_of_this_release() -> None:
    notes = release_notes()
    assert notes.startswith(f"# Raddle {version()}\n")
    assert "### Added" in notes


# --- recipes ---


def test_the_conda_recipe_needs_what_the_project_needs() -> None:
    text = (PACKAGING / "conda" / "recipe.yaml").read_text()
    below = text.partition("\n  run:\n")[2].partition("\n\n")[0]
    needed = {line.strip(" -").replace("-base", "").replace(" ", "") for line in below.splitlines()}
    assert needed - {"python"} == set(PROJECT["dependencies"])


def test_the_spack_recipe_needs_what_the_project_needs() -> None:
    file = PACKAGING / "spack/spack_repo/raddle/packages/raddle/package.py"
    text = file.read_text()
    compile(text, file, "exec")
    needed = set(re.findall(r'depends_on\("py-([a-z0-9-]+)@', text))
    assert needed == {*NAMES, "maturin", "distributed"}
    for name, told in NAMES.items():
        least = re.search(r">=([\d.]+)", told)
        assert least is not None
        assert re.search(rf'"py-{name}@{re.escape(least[1])}(:|")', text), told


def test_the_easybuild_recipe_needs_what_the_project_needs() -> None:
    (file,) = (PACKAGING / "easybuild").iterdir()
    text = file.read_text()
    modules = {
        "jinja2": "Python-bundle-PyPI", "rich": "Python-bundle-PyPI",
        "tomli-w": "Python-bundle-PyPI", "numpy": "SciPy-bundle", "plotly": "plotly.py",
        "pyarrow": "Arrow",
    }  # fmt: skip
    for name in NAMES:
        assert f"('{modules.get(name, name)}', " in text, name


def test_recipes_are_filled_in(tmp_path: Path) -> None:
    source = tmp_path / f"raddle-{version()}.tar.gz"
    source.write_bytes(b"what a release is built from")
    recipes.write(source, tmp_path / "recipes")
    files = [file for file in (tmp_path / "recipes").rglob("*") if file.is_file()]
    assert len(files) == 6
    for file in files:
        text = file.read_text()
        assert not re.search(r"@[A-Z0-9_]+@", text), file
        assert "@" not in file.name
        if file.parent.name in ("conda", "easybuild") or file.name == "package.py":
            assert version() in text
            assert re.search(r"\b[0-9a-f]{64}\b", text)


# --- what goes into packages ---


def all_commands() -> set[str]:
    found: set[str] = set()

    def walk(path: str, command: object) -> None:
        found.add(path)
        for name, below in getattr(command, "commands", {}).items():
            walk(f"{path}-{name}", below)

    walk("raddle", typer.main.get_command(app))
    return found


def test_every_command_has_a_man_page(tmp_path: Path) -> None:
    if not all(program.exists() for program in PROGRAMS):
        pytest.skip("raddle-switch and raddle-perf are not built: make build")
    words: list[str | Path] = [sys.executable, "-m", "scripts.dist.manuals", tmp_path, *PROGRAMS]
    subprocess.run(words, cwd=ROOT, check=True)
    pages = {file.stem for file in tmp_path.glob("man1/*.1")}
    assert pages == {*all_commands(), "raddle-mpi-run", "raddle-perf"}
    assert {file.name for file in tmp_path.glob("man[78]/*")} == {
        "raddle-environment.7",
        "raddle-switch.8",
    }
    settings = tomllib.loads((ROOT / "crates/base/text/environment.toml").read_text())["setting"]
    text = (tmp_path / "man7/raddle-environment.7").read_text()
    assert all(setting["name"] in text for setting in settings)
    if shutil.which("groff"):
        for page in tmp_path.glob("man?/*"):
            check: list[str | Path] = ["groff", "-man", "-Tutf8", "-ww", "-z", page]
            assert subprocess.run(check, capture_output=True, check=True).stderr == b"", page


def test_the_bill_and_the_notices_have_all_that_is_linked() -> None:
    parts = [*crates.linked(["raddle-switch", "raddle-python"], TARGETS[0]), *crates.explorer()]
    told = json.loads(bill.bill(parts))
    urls = {component["purl"] for component in told["components"]}
    assert len(urls) == len(set(parts)) > 100
    assert any(url.startswith("pkg:npm/preact@") for url in urls)
    assert bill.bill(parts) == bill.bill(reversed(parts))
    text = notices.notices(parts)
    for part in parts:
        assert f"{part.name} {part.version}: {part.licence}" in text
    # A crate without a file of its licence names it at least.
    assert [part.name for part in parts if not part.texts] in ([], ["flatbuffers"])


def test_the_service_is_one_that_systemd_takes(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    (source,) = (PACKAGING / "debian").glob("*.service")
    file = tmp_path / "raddle-switch@.service"
    # Its program and its user need not be here.
    text = source.read_text().replace("/usr/bin/raddle-switch", "/bin/true")
    file.write_text(text.replace("User=raddle-switch", "User=daemon"))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", file], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_debian_packages_are_described_and_filled() -> None:
    text = (PACKAGING / "debian" / "control").read_text()
    described = set(re.findall(r"^Package: (.*)$", text, re.MULTILINE))
    assert described == {
        *("raddle", "raddle-perf", "raddle-switch", "libraddle-mpi", "libraddle-mpi-openmpi"),
        *("libraddle-mpi-mpich", "libraddle-opensm", "libraddle-rails0", "libraddle-rails-dev"),
    }
    page = (ROOT / "docs" / "guide" / "install.md").read_text()
    assert all(f"`{name}`" in page for name in described)
    assert build.rails_name() == "libraddle_rails.so.0"
