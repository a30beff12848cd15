"""A disk that is full and a reader that went away: every error names the file, nothing is left."""

import os
import resource
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BIN = ROOT / ".venv" / "bin"
TRACE = ROOT / "tests" / "data" / "traces" / "stencil.trace.parquet"
GOOD = Path(__file__).parent / "good"
EXPERIMENT = (GOOD / "experiment.toml").read_text()
ROUTES = (GOOD / "routes.toml").read_text()

WRITERS = {
    "run": "run my.toml --out full/out -q",
    "sweep": "sweep my.toml --set simulation.buffer=4MiB,8MiB --out full/out -q",
    "shard": "run my.toml --shard 1/2 --out full/out -q",
    "route": "route routes.toml --out full/out -q",
    "replay": f"replay {TRACE} --out full/out --seeds 1 --schedule none --traces -q",
    "trace generate": "trace generate transport --ranks 4 --out full/a.trace.parquet",
    "trace export": f"trace export {TRACE} --out full/a.goal",
    "trace plot": f"trace show {TRACE} --plot full/a.svg",
    "flows as CSV": "traffic write my.toml --out full/a.csv",
    "flows as Parquet": "traffic write my.toml --out full/a.parquet",
    "flows as text": "traffic write my.toml --out full/a.txt",
    "map": "fabric build my.toml --out full/map.toml",
    "experiment": "init full/new.toml",
    "mgid": "mgid routes.toml --csv full/mgids.csv",
}

PRINTERS = {
    "help": "--help",
    "version": "--version",
    "schema": "schema",
    "dry run": "run my.toml --dry-run",
    "dry run as JSON": "run my.toml --dry-run --json",
    "trace": f"trace show {TRACE} --json",
    "an error as JSON": "run nowhere.toml --json",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with an experiment, a route file and a folder for what is written."""
    (tmp_path / "my.toml").write_text(EXPERIMENT)
    (tmp_path / "routes.toml").write_text(ROUTES)
    (tmp_path / "full").mkdir()
    return tmp_path


def run(
    words: str, folder: Path, stdout: int = subprocess.PIPE, *, most_bytes: int | None = None
) -> subprocess.CompletedProcess[str]:
    """Run raddle, perhaps with files that cannot grow beyond `most_bytes`."""

    def limit() -> None:
        if most_bytes is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))

    return subprocess.run(
        [str(BIN / "raddle"), *words.split()],
        cwd=folder,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=60,
        preexec_fn=limit,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )


@pytest.mark.parametrize("most_bytes", [0, 300])
@pytest.mark.parametrize("words", WRITERS.values(), ids=WRITERS)
def test_a_full_disk_is_an_error_that_names_the_file(
    words: str, most_bytes: int, folder: Path
) -> None:
    done = run(words, folder, most_bytes=most_bytes)
    if most_bytes and done.returncode == 0:
        pytest.skip("what it writes is that small")
    assert done.returncode == 2, done.stderr
    # A drawing library that cannot keep its cache may say so before.
    assert "\nerror: full/" in "\n" + done.stderr
    assert "File too large" in done.stderr
    assert "Traceback" not in done.stderr
    assert ".tmp" not in done.stderr
    left = [file for file in (folder / "full").rglob("*") if file.is_file()]
    assert [file for file in left if not file.stat().st_size or file.name.endswith(".tmp")] == []


@pytest.mark.parametrize("words", PRINTERS.values(), ids=PRINTERS)
def test_a_full_disk_behind_standard_output_is_an_error(words: str, folder: Path) -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    try:
        done = run(words, folder, full)
    finally:
        os.close(full)
    assert done.returncode == 2
    wanted = "nowhere.toml: no such file" if "nowhere" in words else "standard output: No space"
    assert wanted in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("words", PRINTERS.values(), ids=PRINTERS)
def test_a_reader_that_went_away_is_no_error(words: str, folder: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = run(words, folder, writing)
    finally:
        os.close(writing)
    if "nowhere" in words:
        assert done.returncode == 2
    else:
        assert (done.returncode, done.stderr) == (0, "")


def test_a_closed_standard_output_takes_what_is_printed(folder: Path) -> None:
    command = f"exec {BIN}/raddle run my.toml --out out --json >&-"
    done = subprocess.run(
        ["sh", "-c", command], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    for table in (folder / "out").glob("*.parquet"):
        assert table.read_bytes()[:4] == b"PAR1", "standard output went into a table"
