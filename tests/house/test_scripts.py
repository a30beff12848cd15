"""Programs that the pages name run as they are written there, or say what to run first."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
TEXTS = [page.read_text() for page in PAGES]
SCRIPTS = sorted({name for text in TEXTS for name in re.findall(r"scripts/\w+\.py", text)})
MODULES = sorted(
    {
        name
        for text in TEXTS
        for name in re.findall(r"python3 -m ((?:bench|experiments)(?:\.[a-z0-9_]+)+)\b", text)
    }
)
RUNNABLE = sorted(
    ".".join(file.relative_to(ROOT).with_suffix("").parts)
    for folder in ("bench", "experiments")
    for file in (ROOT / folder).rglob("*.py")
    if '__name__ == "__main__"' in file.read_text()
)


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_that_a_page_names_starts_as_it_is_named(script: str) -> None:
    assert os.access(ROOT / script, os.X_OK), "not executable"
    done = run([f"./{script}", "--help"], ROOT)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("module", sorted({*MODULES, *RUNNABLE}))
def test_a_module_starts_with_any_python(module: str) -> None:
    done = run(["python3", "-m", module, "--help"], ROOT)
    assert done.returncode == 0, done.stderr
    assert f"python3 -m {module}" in done.stdout


@pytest.mark.parametrize("module", RUNNABLE)
def test_before_the_build_a_module_says_what_to_run(module: str, tmp_path: Path) -> None:
    for folder in ("bench", "experiments", "scripts"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    bare = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    done = run([str(bare), "-S", "-m", module, "--help"], tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {module} needs the Python packages raddle")
    assert "`make setup build`" in done.stderr
    assert "Traceback" not in done.stderr
