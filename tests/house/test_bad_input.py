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


ROUTES = """schema = 1

[fabric]
kind = "cn-tn"
m = 2
q = 4
p = 2
k = 2
w = 2
cns = 4

[groups]
pattern = "grid"
dims = [8, 4]

[multicast]
engines = ["c-mr4lms-fixed", "broadcast"]
colours = 8
fault_tolerant = false
"""

# name: (what to replace, by what, what the message must name)
ROUTE_FILES = {
    "truncated": ("colours = 8\nfault_tolerant = false\n", "colours = [", r"file\.toml:18"),
    "no schema": ("schema = 1\n", "", "schema"),
    "another schema": ("schema = 1", "schema = 2", "schema"),
    "unknown table": ("[multicast]", "[multcast]", "did you mean `multicast"),
    "unknown key": ("colours =", "colors =", "did you mean `colours"),
    "unknown engine": ('"c-mr4lms-fixed"', '"c-mr4lsm"', "possible: c-mr4lms"),
    "unknown pattern": ('"grid"', '"gird"', "did you mean `grid"),
    "no engines": ('["c-mr4lms-fixed", "broadcast"]', "[]", "the list is empty"),
    "no colours": ("colours = 8", "colours = 0", r"file\.toml:18:11.*without colours"),
    "negative colours": ("colours = 8", "colours = -8", "colours"),
    "too many colours": ("colours = 8", "colours = 65536", "65535"),
    "a table for nobody": ("fault_", 'table = "per-hose"\nfault_', "per-switch"),
    "no second tree": ("m = 2", "m = 1\nterminals_per_l0 = 2", "m = 1"),
    "no fat tree": ('kind = "cn-tn"\nm = 2\nq = 4\np = 2\nk = 2\nw = 2\ncns = 4',
                    'kind = "dumbbell"\nhosts_per_side = 16', "no CN/TN fat tree"),
    "one dimension": ("[8, 4]", "[8]", "2 or 3"),
    "an empty dimension": ("[8, 4]", "[8, 0]", "at least 1"),
    "a grid larger than the machine": ("[8, 4]", "[8, 5]", "do not fit"),
    "a huge grid": ("[8, 4]", "[4294967295, 4294967295, 4294967295]", "dims"),
    "dims of text": ("[8, 4]", '["eight", 4]', "dims"),
    "processes beyond a row": ("dims = [8, 4]", "dims = [2, 4]\nprocesses_per_terminal = 4",
                               "most X"),
    "count for a grid": ("dims = [8, 4]", "dims = [8, 4]\ncount = 7", "does not use it"),
    "random without a count": ('"grid"\ndims = [8, 4]', '"random"', "count"),
    "missing file": ('"grid"\ndims = [8, 4]', '"file"\nfile = "nowhere.csv"', "nowhere.csv"),
    "empty": (ROUTES, "", "schema|fabric"),
}  # fmt: skip

GROUP_FILES = {
    "unknown member.csv": "group,member\na,h0\na,h99\n",
    "a switch as member.csv": "group,member\na,h0\na,s33\n",
    "no such column.csv": "group,membre\na,h0\n",
    "mgid out of range.csv": "group,mgid,member\na,4294967296,h0\n",
    "negative mgid.csv": "group,mgid,member\na,-1,h0\n",
    "mgid twice.csv": "group,mgid,member\na,1,h0\nb,1,h1\n",
    "mgid for some.csv": "group,mgid,member\na,1,h0\nb,,h1\n",
    "empty.csv": "",
    "unknown member.toml": 'schema = 1\n[[group]]\nname = "a"\nmembers = ["ghost"]\n',
    "no members.toml": 'schema = 1\n[[group]]\nname = "a"\nmembers = []\n',
    "mgid out of range.toml": 'schema = 1\n[[group]]\nname = "a"\nmgid = -5\nmembers = [0]\n',
    "name twice.toml": 'schema = 1\n[[group]]\nname = "a"\nmembers = [0]\n'
    '[[group]]\nname = "a"\nmembers = [1]\n',
    "truncated.toml": 'schema = 1\n[[group]]\nname = "a',
}


def refuse(folder: Path, experiment: str, command: str = "run") -> str:
    """Run an experiment that must be refused; what raddle said."""
    file = folder / "file.toml"
    file.write_text(experiment)
    out = folder / "out"
    before = sorted(folder.iterdir())
    done = subprocess.run(
        [str(RADDLE), command, str(file), "--out", str(out)],
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


@pytest.mark.parametrize("name", ROUTE_FILES)
def test_broken_route_file_is_refused(name: str, tmp_path: Path) -> None:
    old, new, named = ROUTE_FILES[name]
    assert old in ROUTES
    routes = ROUTES.replace(old, new)
    if name == "no second tree":
        routes = routes.replace("fault_tolerant = false", "fault_tolerant = true")
    message = refuse(tmp_path, routes, "route")
    assert "file.toml" in message
    assert re.search(named, message), message


@pytest.mark.parametrize("name", GROUP_FILES)
def test_broken_group_file_is_refused(name: str, tmp_path: Path) -> None:
    file = tmp_path / name.replace(" ", "-")
    file.write_text(GROUP_FILES[name])
    groups = f'pattern = "file"\nfile = "{file.name}"\n'
    routes = re.sub(r"pattern.*?\n\n", groups + "\n", ROUTES, flags=re.DOTALL)
    assert file.name in refuse(tmp_path, routes, "route")


def test_the_good_route_file_is_not_refused(tmp_path: Path) -> None:
    file = tmp_path / "file.toml"
    file.write_text(ROUTES)
    command = [str(RADDLE), "route", str(file), "--out", str(tmp_path / "out"), "--no-report", "-q"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


def test_the_good_experiment_is_not_refused(tmp_path: Path) -> None:
    file = tmp_path / "file.toml"
    file.write_text(GOOD)
    command = [str(RADDLE), "run", str(file), "--out", str(tmp_path / "out"), "--no-report", "-q"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
