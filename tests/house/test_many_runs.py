"""The guide to many runs and the scripts of examples/many-runs do what they say."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BIN = ROOT / ".venv" / "bin"
EXAMPLES = ROOT / "examples" / "many-runs"
GUIDE = (ROOT / "docs" / "guide" / "many-runs.md").read_text()


def snakemake() -> str | None:
    """Return the program, of this environment or on PATH."""
    return shutil.which("snakemake", path=f"{BIN}:{os.environ['PATH']}")


def blocks(language: str) -> list[str]:
    """Return the fenced blocks of the guide in one language."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", GUIDE, re.MULTILINE | re.DOTALL)
    return [text for kind, text in found if kind == language]


def bash(*words: str | Path, folder: Path, **variables: str) -> str:
    """Run bash in `folder`, with the raddle of this checkout; what it said."""
    environment = {
        **os.environ,
        **variables,
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "RADDLE_NO_PROGRESS": "1",
    }
    done = subprocess.run(
        ["bash", "-e", *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, f"{words}:\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a copy of the example, with half of its seeds."""
    folder = tmp_path / "many-runs"
    shutil.copytree(EXAMPLES, folder)
    file = folder / "load.toml"
    file.write_text(file.read_text().replace("seeds = [1, 2]", "seeds = [1]"))
    return folder


def test_the_guide_can_be_followed(tmp_path: Path) -> None:
    (text,) = blocks("toml")
    (tmp_path / "load.toml").write_text(text)
    one, shared, merged = blocks("sh")
    bash("-c", one, folder=tmp_path)
    told = blocks("")[0].splitlines()[-1]
    assert bash("-c", shared, folder=tmp_path).splitlines()[-1] == told
    assert "Only in" not in bash("-c", merged, folder=tmp_path)


def test_the_guide_has_the_experiment_of_the_example() -> None:
    (text,) = blocks("toml")
    example = re.sub(r"^#.*\n", "", (EXAMPLES / "load.toml").read_text())
    assert example.startswith(text)


@pytest.mark.parametrize(
    ("script", "number"), [("slurm.sh", "SLURM_ARRAY_TASK_ID"), ("hyperqueue.sh", "HQ_TASK_ID")]
)
def test_the_tasks_of_an_array_do_all_runs(script: str, number: str, folder: Path) -> None:
    # Two tasks for six runs would do; the scripts have eight.
    text = (folder / script).read_text().replace("$HQ_TASK_ID/8", "$HQ_TASK_ID/2")
    (folder / script).write_text(text)
    given = {"SLURM_CPUS_PER_TASK": "2", "SLURM_ARRAY_TASK_COUNT": "2"}
    for task in "12":
        bash(script, folder=folder, **given, **{number: task})
    assert bash("-c", "raddle status out/incast", folder=folder) == "6 runs: 6 done; joined\n"


@pytest.mark.skipif(snakemake() is None, reason="snakemake is not installed")
def test_the_rules_of_snakemake_do_all_runs(folder: Path) -> None:
    command = f"{snakemake()} --cores 2 --config shards=2 --quiet all"
    bash("-c", f"{command} --dry-run", folder=folder)
    assert not (folder / "out").exists()
    bash("-c", command, folder=folder)
    assert (folder / "out" / "incast.json").stat().st_size > 1000
    assert bash("-c", "raddle status out/incast", folder=folder) == "6 runs: 6 done; joined\n"
