"""Broken experiments, flows and maps: one screen that names the place, nothing half written."""

import re
import struct
import subprocess
from pathlib import Path

import pytest

RADDLE = Path(__file__).resolve().parents[2] / ".venv" / "bin" / "raddle"
SCREEN = 24

GOOD = """schema = 1

[fabric]
kind = "dumbbell"
hosts_per_side = 2
host_rate = "100Gbps"

[traffic]
generator = "incast"
sources = 3
size = "64KiB"

[simulation]
schemes = ["hpcc"]
seeds = [1]
buffer = "4MiB"
"""

# name: (what to replace, by what, what the message must name)
EXPERIMENTS = {
    "truncated": ("seeds = [1]\n" + 'buffer = "4MiB"\n', "seeds = [1", r"file\.toml:15"),
    "no schema": ("schema = 1\n", "", "schema"),
    "another schema": ("schema = 1", "schema = 99", "schema"),
    "unknown table": ("[simulation]", "[simulatoin]", "did you mean `?simulation"),
    "unknown key": ("seeds =", "sedes =", "did you mean `?seeds"),
    "unknown kind": ('"dumbbell"', '"dumbell"', "dumbbell"),
    "unknown generator": ('"incast"', '"incats"', "incast"),
    "unknown scheme": ('"hpcc"', '"hpc"', "hpcc"),
    "no unit": ('"100Gbps"', '"100"', "host_rate"),
    "a number for a quantity": ('"100Gbps"', "100", "host_rate"),
    "wrong unit": ('"64KiB"', '"64us"', "size"),
    "negative": ('"64KiB"', '"-64KiB"', "size"),
    "negative count": ("sources = 3", "sources = -3", "sources"),
    "NaN": ('"4MiB"', '"NaNMiB"', "buffer"),
    "not a number": ("sources = 3", "sources = nan", "sources"),
    "infinite": ("sources = 3", "sources = inf", "sources"),
    "huge": ("hosts_per_side = 2", "hosts_per_side = 4000000000", "hosts_per_side"),
    "beyond 64 bit": ('"64KiB"', '"99999999999999999999GiB"', "size"),
    "wrong type": ('["hpcc"]', "5", "schemes"),
    "no schemes": ('["hpcc"]', "[]", "scheme"),
    "more sources than hosts": ("sources = 3", "sources = 300", "sources"),
    "include of itself": ("schema = 1", 'schema = 1\ninclude = ["file.toml"]', "include"),
    "missing file": ('kind = "dumbbell"\nhosts_per_side = 2\nhost_rate = "100Gbps"',
                     'file = "nowhere.toml"', "nowhere.toml"),
    "empty": (GOOD, "", "schema|fabric"),
}  # fmt: skip

CSV = "src,dst,size_bytes,start_ns\n0,2,1000,0\n"
FLOWS: dict[str, str | bytes] = {
    "truncated.csv": CSV[:-6],
    "header only by halves.csv": "src,dst\n0,2\n",
    "no unit.csv": "src,dst,size,start\n0,2,1000,0\n",
    "unknown column.csv": "src,dst,size_bytes,start_ns,colour\n0,2,1000,0,red\n",
    "self-flow.csv": CSV + "1,1,1000,0\n",
    "unknown host.csv": CSV + "0,77,1000,0\n",
    "switch as host.csv": CSV + "0,4,1000,0\n",
    "negative.csv": CSV + "0,2,-5,0\n",
    "nan.csv": CSV + "0,2,NaN,0\n",
    "huge.csv": CSV + "0,2,99999999999999999999999,0\n",
    "no bytes.csv": CSV + "0,2,0,0\n",
    "wrong type.csv": CSV + "0,two,1000,0\n",
    "empty.csv": "",
    "count too high.txt": "3\n0 2 3 100 1000 0.0\n",
    "count missing.txt": "0 2 3 100 1000 0.0\n",
    "negative.txt": "1\n0 2 3 100 -1000 0.0\n",
    "nan.txt": "1\n0 2 3 100 1000 nan\n",
    "unknown host.txt": "1\n0 99 3 100 1000 0.0\n",
    "self-flow.txt": "1\n2 2 3 100 1000 0.0\n",
    "huge.txt": "99999999999999999999\n0 2 3 100 1000 0.0\n",
    "truncated.parquet": "PAR1" + "\0" * 40,
    "not parquet.parquet": CSV,
    "lying footer.parquet": b"PAR1" + b"\0" * 8 + struct.pack("<I", 0xFFFFFFF0) + b"PAR1",
}

MAP = """schema = 1
[[host]]
count = 2
[[switch]]
[[link]]
a = 0
b = 2
rate = "100Gbps"
delay = "1us"
[[link]]
a = 1
b = 2
rate = "100Gbps"
delay = "1us"
"""
LINK = '[[link]]\na = 1\nb = 2\nrate = "100Gbps"\ndelay = "1us"\n'
MAPS = {
    "disconnected.toml": MAP.replace(LINK, ""),
    "duplicate link.toml": MAP + LINK,
    "self-link.toml": MAP + LINK.replace("a = 1", "a = 2"),
    "unknown node.toml": MAP + LINK.replace("a = 1", 'a = "ghost"'),
    "over radix.toml": MAP.replace("schema = 1", "schema = 1\nradix = 1"),
    "missing unit.toml": MAP.replace('"100Gbps"', '"100"', 1),
    "number for a rate.toml": MAP.replace('"100Gbps"', "100", 1),
    "negative.toml": MAP.replace('"1us"', '"-1us"', 1),
    "zero rate.toml": MAP.replace('"100Gbps"', '"0Gbps"', 1),
    "huge.toml": MAP.replace("count = 2", "count = 4000000000"),
    "unknown key.toml": MAP.replace("delay", "dealy", 1),
    "wrong type.toml": MAP.replace("count = 2", 'count = "two"'),
    "truncated.toml": MAP[:-8],
    "empty.toml": "",
    "truncated.txt": "4 1 3\n3\n0 3 100Gbps 1us 0\n",
    "unknown node.txt": "3 1 2\n2\n0 2 100Gbps 1us 0\n9 2 100Gbps 1us 0\n",
    "negative.txt": "3 1 2\n2\n0 2 -100Gbps 1us 0\n1 2 100Gbps 1us 0\n",
    "no unit.txt": "3 1 2\n2\n0 2 100 1us 0\n1 2 100Gbps 1us 0\n",
    "nan.txt": "3 1 2\n2\n0 2 nanGbps 1us 0\n1 2 100Gbps 1us 0\n",
    "huge.txt": "4000000000 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n",
    "disconnected.txt": "4 1 2\n3\n0 3 100Gbps 1us 0\n1 3 100Gbps 1us 0\n",
    "duplicate link.txt": "3 1 3\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n",
}

FORMATS = {".csv": "csv", ".txt": "hpcc-ns3", ".parquet": "parquet", ".toml": "toml"}


def refuse(folder: Path, experiment: str) -> str:
    """Run an experiment that must be refused; what raddle said."""
    file = folder / "file.toml"
    file.write_text(experiment)
    out = folder / "out"
    before = sorted(folder.iterdir())
    done = subprocess.run(
        [str(RADDLE), "run", str(file), "--out", str(out)],
        capture_output=True,
        text=True,
        check=False,
        timeout=20,
        cwd=folder,
    )
    assert done.returncode == 2, f"exit {done.returncode}:\n{done.stderr}{done.stdout}"
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) <= SCREEN, done.stderr
    for word in ("panicked", "Traceback", "RUST_BACKTRACE"):
        assert word not in done.stderr
    assert sorted(folder.iterdir()) == before, "something was written"
    return done.stderr


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_broken_experiment_is_refused(name: str, tmp_path: Path) -> None:
    old, new, named = EXPERIMENTS[name]
    assert old in GOOD
    message = refuse(tmp_path, GOOD.replace(old, new))
    assert "file.toml" in message
    assert re.search(named, message), message


@pytest.mark.parametrize("name", FLOWS)
def test_broken_flow_file_is_refused(name: str, tmp_path: Path) -> None:
    file = tmp_path / name.replace(" ", "-")
    content = FLOWS[name]
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    traffic = f'file = "{file.name}"\nformat = "{FORMATS[file.suffix]}"\n'
    experiment = re.sub(r"generator.*?\n\n", traffic + "\n", GOOD, flags=re.DOTALL)
    assert file.name in refuse(tmp_path, experiment)


@pytest.mark.parametrize("name", MAPS)
def test_broken_map_is_refused(name: str, tmp_path: Path) -> None:
    file = tmp_path / name.replace(" ", "-")
    file.write_text(MAPS[name])
    fabric = f'file = "{file.name}"\nformat = "{FORMATS[file.suffix]}"\n'
    experiment = re.sub(r"kind.*?\n\n", fabric + "\n", GOOD, flags=re.DOTALL)
    experiment = experiment.replace("sources = 3", "sources = 1")
    assert file.name in refuse(tmp_path, experiment)


def test_the_good_experiment_is_not_refused(tmp_path: Path) -> None:
    file = tmp_path / "file.toml"
    file.write_text(GOOD)
    command = [str(RADDLE), "run", str(file), "--out", str(tmp_path / "out"), "--no-report", "-q"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
