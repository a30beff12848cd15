"""Scripts that the pages name run as they are written there, or say what to run first."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
NAMED = sorted(
    {name for page in PAGES for name in re.findall(r"scripts/\w+\.py", page.read_text())}
)
NEED_RADDLE = sorted(
    str(file.relative_to(ROOT))
    for folder in ("scripts", "experiments")
    for file in (ROOT / folder).glob("*.py")
    if "\nimport interpreter" in file.read_text()
)


def run(command: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        command, cwd=folder, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize("script", NAMED)
def test_a_script_that_a_page_names_starts_as_it_is_named(script: str) -> None:
    assert os.access(ROOT / script, os.X_OK), "not executable"
    done = run([f"./{script}", "--help"], ROOT)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("script", NEED_RADDLE)
def test_before_the_build_a_script_says_what_to_run(script: str, tmp_path: Path) -> None:
    for folder in ("scripts", "experiments"):
        shutil.copytree(ROOT / folder, tmp_path / folder, symlinks=True)
    bare = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    done = run([str(bare), "-S", script, "--help"], tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {script} needs the Python packages raddle")
    assert "`make setup build`" in done.stderr
    assert "Traceback" not in done.stderr
