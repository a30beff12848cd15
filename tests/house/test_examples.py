"""Every file in examples/ runs as its first lines say."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[2]
BIN = ROOT / ".venv" / "bin"
EXAMPLES = ROOT / "examples"


def run(*command: str | Path, folder: Path) -> str:
    """Run a command of the project; stdout, or a failure that shows what it said."""
    environment = {**os.environ, "RADDLE_NO_PROGRESS": "1"}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}:\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.toml")), ids=lambda file: file.stem)
def test_experiment_runs_and_every_flow_ends(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    summary = json.loads(run(BIN / "raddle", "run", file, "--out", out, "--json", folder=tmp_path))
    assert summary["complete"]
    for name, scheme in summary["schemes"].items():
        assert scheme["flows"] == scheme["finished"] > 0, name
    assert (out / "report.html").stat().st_size < 15_000_000


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.py")), ids=lambda file: file.stem)
def test_script_runs(file: Path, tmp_path: Path) -> None:
    assert run(BIN / "python", file, folder=tmp_path)


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.ipynb")), ids=lambda file: file.stem)
def test_notebook_runs(file: Path) -> None:
    """Every cell, in a kernel of its own; the pictures are there."""
    book = nbformat.read(file, as_version=4)  # type: ignore[no-untyped-call]
    assert not any(cell.get("outputs") for cell in book.cells), "outputs do not belong into git"
    NotebookClient(book, timeout=120, resources={"metadata": {"path": str(EXAMPLES)}}).execute()
    shown = [out.get("data", {}) for cell in book.cells for out in cell.get("outputs", [])]
    assert sum("image/png" in data for data in shown) == 2


@pytest.mark.parametrize(
    "command",
    [
        line.removeprefix("# ")
        for file in sorted(EXAMPLES.glob("*.toml"))
        for line in file.read_text().splitlines()
        if line.startswith("# raddle ") and " run " not in line
    ],
)
def test_commands_in_the_comments_work(command: str, tmp_path: Path) -> None:
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    program, *words = command.split()
    run(BIN / program, *words, folder=tmp_path)
