"""Broken experiments, flows and maps: one screen that names the place, nothing half written."""

import os
import re
import struct
import subprocess
from pathlib import Path

import pytest

RADDLE = Path(__file__).resolve().parents[2] / ".venv" / "bin" / "raddle"
SCREEN = 24
GOOD = Path(__file__).parent / "good"
EXPERIMENT = (GOOD / "experiment.toml").read_text() + 'buffer = "4MiB"\n'
ROUTES = (GOOD / "routes.toml").read_text()

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
    "empty": (EXPERIMENT, "", "schema|fabric"),
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
    "no colours": ("colours = 8", "colours = 0", r"file\.toml:18:11.*from 1 to 65535"),
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
    assert old in EXPERIMENT
    message = refuse(tmp_path, EXPERIMENT.replace(old, new))
    assert "file.toml" in message
    assert re.search(named, message), message


@pytest.mark.parametrize("name", FLOWS)
def test_broken_flow_file_is_refused(name: str, tmp_path: Path) -> None:
    file = tmp_path / name.replace(" ", "-")
    content = FLOWS[name]
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    traffic = f'file = "{file.name}"\nformat = "{FORMATS[file.suffix]}"\n'
    experiment = re.sub(r"generator.*?\n\n", traffic + "\n", EXPERIMENT, flags=re.DOTALL)
    assert file.name in refuse(tmp_path, experiment)


@pytest.mark.parametrize("name", MAPS)
def test_broken_map_is_refused(name: str, tmp_path: Path) -> None:
    file = tmp_path / name.replace(" ", "-")
    file.write_text(MAPS[name])
    fabric = f'file = "{file.name}"\nformat = "{FORMATS[file.suffix]}"\n'
    experiment = re.sub(r"kind.*?\n\n", fabric + "\n", EXPERIMENT, flags=re.DOTALL)
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


# Settings that exclude each other: what stands behind the experiment, and what must be named.
RELATIONS = {
    "marks that begin after they are certain": (
        '[schemes.dcqcn]\necn_kmin = "2MB"\necn_kmax = "1MB"\n',
        r"file\.toml:18:12.*`ecn_kmin` \(2MB\) is more than `ecn_kmax` \(1MB\)",
    ),
    "marks that begin after the usual end": (
        '[schemes.dcqcn]\necn_kmin = "2MB"\n',
        r"file\.toml:18:12.*`ecn_kmin` \(2MB\) is more than `ecn_kmax` \(1.6MB\)",
    ),
    "a threshold above the buffer": (
        '[schemes.dctcp]\necn_threshold = "8MiB"\n',
        r"file\.toml:18:17.*`ecn_threshold` \(8MiB\) is more than `buffer` of \[sim",
    ),
    "a low delay above the high one": (
        '[schemes.timely]\nt_low = "1ms"\nt_high = "10us"\n',
        r"file\.toml:18:9.*`t_low` \(1ms\) is more than `t_high` \(10us\)",
    ),
    "a small window above the large one": (
        "[schemes.swift]\nflow_scaling_min_window = 200\n",
        r"file\.toml:18:27.*`flow_scaling_min_window` \(200\) is more than",
    ),
    "no window": (
        '[schemes.none]\nwindow = "0B"\n',
        r"file\.toml:18:10: `window`: 0B is out of range: it must be at least 1B(.|\n)*no limit",
    ),
    "no window either": (
        '[schemes.hpcc]\nwindow = "0B"\n',
        r"file\.toml:18:10: `window`: 0B is out of range: it must be at least 1B",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", RELATIONS)
def test_settings_that_exclude_each_other_are_both_named(name: str, tmp_path: Path) -> None:
    table, named = RELATIONS[name]
    scheme = re.match(r"\[schemes\.(\w+)\]", table)
    assert scheme
    message = refuse(tmp_path, EXPERIMENT.replace('"hpcc"', f'"{scheme[1]}"') + table)
    assert re.search(named, message), message


def test_a_missing_table_is_not_missing_in_another(tmp_path: Path) -> None:
    message = refuse(tmp_path, re.sub(r"\[fabric\].*?\n\n", "", EXPERIMENT, flags=re.DOTALL))
    assert "file.toml:1:1: `fabric` is missing\n" in message, message


def test_a_small_buffer_is_warned_of_usual_thresholds(tmp_path: Path) -> None:
    file = tmp_path / "file.toml"
    experiment = EXPERIMENT.replace('"hpcc"', '"dcqcn"').replace('"4MiB"', '"1MiB"')
    file.write_text(experiment.replace("sources = 3", "sources = 1"))
    command = [str(RADDLE), "run", str(file), "--dry-run"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    warned = "[schemes.dcqcn] `ecn_kmax` (1.6MB) is more than `buffer` of [simulation] (1MiB)"
    assert warned in done.stderr


# What opens a file that a user names; FILE stands for it.
OPENING = {
    "run": ["run", "FILE", "--out", "out"],
    "sweep": ["sweep", "FILE", "--set", "simulation.buffer=4MiB", "--out", "out"],
    "route": ["route", "FILE", "--out", "out"],
    "mgid": ["mgid", "FILE"],
    "mgid fabric": ["mgid", "--fabric", "FILE", "--grid", "2x2"],
    "mgid groups": ["mgid", "--fabric", "good.toml", "--groups", "FILE.csv"],
    "capacity": ["capacity", "FILE"],
    "place": ["place", "FILE"],
    "fabric build": ["fabric", "build", "FILE"],
    "fabric check": ["fabric", "check", "FILE"],
    "fabric show": ["fabric", "show", "FILE"],
    "fabric import": ["fabric", "import", "FILE"],
    "fabric export": ["fabric", "export", "FILE"],
    "traffic write": ["traffic", "write", "FILE", "--out", "flows.csv"],
    "traffic describe": ["traffic", "describe", "FILE"],
    "traffic plot": ["traffic", "plot", "FILE", "--out", "flows.svg"],
    "trace show": ["trace", "show", "FILE"],
    "trace export": ["trace", "export", "FILE"],
    "trace import": ["trace", "import", "FILE", "--out", "x.trace.parquet"],
    "trace generate": ["trace", "generate", "transport", "--ranks", "4", "--out",
                       "x.trace.parquet", "--fabric", "FILE"],
    "replay": ["replay", "FILE", "--out", "out"],
    "replay fabric": ["replay", "good.trace.parquet", "--fabric", "FILE", "--out", "out"],
    "replay costs": ["replay", "good.trace.parquet", "--costs", "FILE", "--out", "out"],
}  # fmt: skip


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace of four ranks on two hosts."""
    folder = tmp_path_factory.mktemp("trace")
    (folder / "map.toml").write_text('schema = 1\nkind = "dumbbell"\nhosts_per_side = 2\n')
    file = folder / "good.trace.parquet"
    command = ["trace", "generate", "transport", "--ranks", "4", "--per-host", "2", "--exchanges"]
    words = [*command, "1", "--fabric", str(folder / "map.toml"), "--out", str(file)]
    subprocess.run([str(RADDLE), *words], check=True, capture_output=True, timeout=60)
    return file


def say_no(folder: Path, words: list[str], *, seconds: float = 20) -> str:
    """Call raddle with something impossible; the one screen that it said."""
    command = [str(RADDLE), *words]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=seconds, cwd=folder,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert done.returncode in (1, 2), f"exit {done.returncode}:\n{done.stderr}{done.stdout}"
    assert len(done.stderr.splitlines()) <= SCREEN, done.stderr
    for word in ("panicked", "Traceback", "RUST_BACKTRACE", "internal error"):
        assert word not in done.stderr, done.stderr
    return done.stderr


@pytest.mark.parametrize("what", ["a device", "a pipe", "a folder"])
@pytest.mark.parametrize("name", OPENING)
def test_what_is_no_file_is_not_opened(name: str, what: str, tmp_path: Path, trace: Path) -> None:
    ending = ".csv" if "FILE.csv" in OPENING[name] else ".toml"
    odd = tmp_path / f"odd{ending}"
    if what == "a device":
        odd.symlink_to("/dev/zero")
    elif what == "a pipe":
        os.mkfifo(odd)
    else:
        odd.mkdir()
    (tmp_path / "good.toml").write_text(ROUTES.partition("[groups]")[0].replace("[fabric]", ""))
    (tmp_path / "good.trace.parquet").symlink_to(trace)
    words = [odd.name if "FILE" in word else word for word in OPENING[name]]
    message = say_no(tmp_path, words)
    assert odd.name in message, message
    assert f"it is {what}, and only files are read here" in message, message


@pytest.mark.parametrize("table", ["fabric", "traffic"])
def test_what_a_file_names_must_be_a_file_too(table: str, tmp_path: Path) -> None:
    odd = tmp_path / "odd.txt"
    odd.symlink_to("/dev/zero")
    file = 'file = "odd.txt"\nformat = "hpcc-ns3"\n\n'
    experiment = re.sub(rf"\[{table}\].*?\n\n", f"[{table}]\n{file}", EXPERIMENT, flags=re.DOTALL)
    assert "it is a device" in refuse(tmp_path, experiment)


def test_a_stream_is_read_where_it_is_asked_for(tmp_path: Path) -> None:
    for name in ("-", "/dev/stdin"):
        done = subprocess.run(
            [str(RADDLE), "run", name, "--dry-run"],
            input=EXPERIMENT, capture_output=True, text=True, check=False, timeout=60, cwd=tmp_path,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    message = say_no(tmp_path, ["sweep", "-", "--set", "simulation.buffer=4MiB"])
    assert "name a file" in message


# What costs of hosts must not be, and what the message must name.
COSTS = {
    "no packet": ('mtu = "0B"', r"costs\.toml:1:7: `mtu`: 0B is out of range: it must be from 64B"),
    "an endless gap": (
        'nic_gap = "1000s"',
        r"`nic_gap`: 1000s is out of range: it must be at most",
    ),
    "an endless copy": ('copy_per_byte = "1s"', r"`copy_per_byte`: 1s is out of range"),
    "no unit": ("send_overhead = 5", r"costs\.toml:1:17: `send_overhead`: `5` has no unit"),
    "no such cost": ('nic_gpa = "1us"', r"costs\.toml:1:1: .*`nic_gpa`(.|\n)*`nic_gap`"),
    "a table": ('[host]\nenvelope = "1B"', "unknown key `host`"),
    "a date": ("mtu = 2026-01-01", "a date"),
}


@pytest.mark.parametrize("name", COSTS)
def test_impossible_costs_of_a_replay_are_refused(name: str, tmp_path: Path, trace: Path) -> None:
    text, named = COSTS[name]
    (tmp_path / "costs.toml").write_text(f"{text}\n")
    words = ["replay", str(trace), "--out", "out", "--costs", "costs.toml"]
    message = say_no(tmp_path, words)
    assert re.search(named, message), message


# Words on the command line that mean nothing, and what the message must name.
WORDS = {
    "colours beside a file": (["mgid", "good.toml", "-c", "4"], "give the file alone"),
    "no colours": (["mgid", "--fabric", "good.toml", "--grid", "2x2", "-c", "0"], "at least 1"),
    "negative colours": (["mgid", "--fabric", "good.toml", "--grid", "2x2", "-c", "-5"], "-5"),
    "colours of 64 bits": (["capacity", "--m", "4", "-c", str(2**40)], "65535"),
    "no m": (["capacity", "--m", "0"], "`0`: it must be at least 1"),
    "a huge count": (["capacity", "--m", "4", "--count", str(2**62)], "--count"),
    "a grid of nothing": (["capacity", "--m", "4", "--grid", "0x2"], "`dims`: 0 is out of range"),
    "a negative seed": (["traffic", "describe", "good.toml", "--seed", "-1"], "--seed"),
    "a rate without unit": (["fabric", "import", "good.toml", "--rate", "5"], "has no unit"),
    "a delay in bytes": (["fabric", "import", "good.toml", "--delay", "5GB"], "is not a unit of a"),
    "no jobs": (["run", "good.toml", "--jobs", "0"], "--jobs"),
    "jobs of 64 bits": (["run", "good.toml", "--jobs", str(2**40)], "--jobs"),
    "no seeds": (["replay", "TRACE", "--out", "out", "--seeds", "0"], "--seeds"),
    "sockets of 64 bits": (["replay", "TRACE", "--out", "out", "--sockets", str(2**40)], "--sock"),
    "too many sockets": (["replay", "TRACE", "--out", "out", "--sockets", "2000"], "`sockets`"),
    "no share": (["replay", "TRACE", "--out", "out", "--gap-share", "nan"], "a number from 0 to 1"),
    "a share above one": (["replay", "TRACE", "--out", "out", "--gap-share", "1.5"], "from 0 to 1"),
    "a skew in bytes": (["replay", "TRACE", "--out", "out", "--start-skew", "5MB"], "not a unit"),
    "an endless skew": (["replay", "TRACE", "--out", "out", "--start-skew", "9999s"], "start_skew"),
    "no scheme": (["replay", "TRACE", "--out", "out", "--scheme", "hpc"], "did you mean `hpcc`"),
    "a gap without unit": (["trace", "generate", "transport", "--out", "x.trace.parquet", "--gap",
                            "5"], "has no unit"),
    "ranks of 64 bits": (["trace", "generate", "transport", "--out", "x.trace.parquet", "--ranks",
                          str(2**40)], "--ranks"),
    "a tolerance of nothing": (["compare", ".", ".", "--tolerance", "nan"], "a number from 0"),
    "no hosts": (["lab", "up", "--hosts", "0"], "a lab has 1 to 250"),
    "rates without unit": (["lab", "up", "--rates", "5"], "has no unit"),
    "rates in bytes": (["lab", "up", "--rates", "5MB"], "not a unit of a data rate"),
    "rates too small": (["lab", "up", "--rates", "1bps"], "from 100kbps"),
}  # fmt: skip


@pytest.mark.parametrize("name", WORDS)
def test_impossible_words_are_refused(name: str, tmp_path: Path, trace: Path) -> None:
    words, named = WORDS[name]
    (tmp_path / "good.toml").write_text(ROUTES.partition("[groups]")[0].replace("[fabric]", ""))
    message = say_no(tmp_path, [str(trace) if word == "TRACE" else word for word in words])
    assert re.search(named, " ".join(message.replace("│", " ").split())), message


def test_the_good_route_file_is_not_refused(tmp_path: Path) -> None:
    file = tmp_path / "file.toml"
    file.write_text(ROUTES)
    command = [str(RADDLE), "route", str(file), "--out", str(tmp_path / "out"), "--no-report", "-q"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr


def test_the_good_experiment_is_not_refused(tmp_path: Path) -> None:
    file = tmp_path / "file.toml"
    file.write_text(EXPERIMENT)
    command = [str(RADDLE), "run", str(file), "--out", str(tmp_path / "out"), "--no-report", "-q"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
