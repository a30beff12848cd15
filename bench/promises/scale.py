# ruff: noqa: D103 (the promise above a function says what it measures)
"""Size: large fabrics, many flows; a run on several threads, on several ranks, many at once."""

import hashlib
import shutil
from pathlib import Path

from bench.promises import (
    NOT_RUN,
    RADDLE,
    Broken,
    Outcome,
    judge,
    promise,
    python_tests,
    run,
    simulate,
    unfinished,
)

K_ARY_8192 = 'kind = "k-ary-fat-tree"\nk = 32'
K_ARY_265302 = 'kind = "k-ary-fat-tree"\nk = 102'
CN_TN_262144 = 'kind = "cn-tn"\nm = 16\nq = 32\np = 6\nk = 32\nw = 16\ncns = 512\nradix = 40'
XGFT_1048576 = 'kind = "xgft"\nchildren = [32, 32, 32, 32]\nparents = [1, 32, 32, 32]'
"""Trees of four levels of 64-port switches."""


def permutation(fabric: str, size: str) -> str:
    """Describe a permutation under HPCC."""
    return f"""schema = 1
[fabric]
{fabric}
[traffic]
generator = "permutation"
size = "{size}"
[simulation]
schemes = ["hpcc"]
isolated = false
"""


def hpc_mix(fabric: str) -> str:
    """Describe the HPC mix under HPCC."""
    mix = permutation(fabric, "1MB").replace("permutation", "hpc-mix")
    return mix.replace('size = "1MB"\n', "")


def large(folder: Path, fabric: str, limit_s: float | None, limit_gib: float) -> Outcome:
    """Run a permutation of 64 KiB to its end on one thread."""
    words = ("--threads", "1", "--out", str(folder / "out"))
    done, summary = simulate(folder, permutation(fabric, "64KiB"), *words)
    gib, left = done.peak_bytes / 2**30, unfinished(summary)
    page_mb = (folder / "out" / "report.html").stat().st_size / 1e6
    text = f"{done.seconds:.0f} s, {gib:.1f} GiB, {left} flows left, page {page_mb:.1f} MB"
    in_time = limit_s is None or done.seconds < limit_s
    return judge(text, kept=in_time and gib < limit_gib and left == 0 and page_mb < 15)


@promise("265,302 hosts", "raddle run (permutation of 64 KiB)", "< 50 s, 5 GiB", minutes=5)
def hosts_265302(folder: Path) -> Outcome:
    return large(folder, K_ARY_265302, 50, 5)


@promise("262,144 terminals (CN/TN)", "raddle run (the same)", "< 50 s, 5 GiB", minutes=5)
def terminals_262144(folder: Path) -> Outcome:
    return large(folder, CN_TN_262144, 50, 5)


@promise("1,048,576 hosts", "raddle run (the same)", "< 18 GiB, all end", minutes=20)
def hosts_1048576(folder: Path) -> Outcome:
    return large(folder, XGFT_1048576, None, 18)


def small_messages(flows: int) -> str:
    """Describe messages of 900 to 1,000 B among 32 hosts, one flow each."""
    return f"""schema = 1
[fabric]
kind = "leaf-spine"
leaves = 4
spines = 2
hosts_per_leaf = 8
[traffic]
generator = "poisson"
load = 0.1
sizes = {{ table = [["900B", 0.0], ["1000B", 1.0]] }}
flows = {flows}
[simulation]
schemes = ["hpcc"]
isolated = false
"""


@promise(
    "10,000,000 flows",
    "raddle run (messages of 900 to 1,000 B), and of a tenth as many",
    "at most 1.2 times the memory, page < 15 MB",
    minutes=5,
)
def many_flows(folder: Path) -> Outcome:
    mib = []
    for flows in (1_000_000, 10_000_000):
        out = folder / f"{flows}"
        done, summary = simulate(folder, small_messages(flows), "--out", str(out))
        mib.append(done.peak_bytes / 2**20)
    left, page_mb = unfinished(summary), (out / "report.html").stat().st_size / 1e6
    text = (
        f"{done.seconds:.0f} s, {mib[0]:.0f} and {mib[1]:.0f} MiB, {left} flows left, "
        f"page {page_mb:.1f} MB"
    )
    return judge(text, kept=mib[1] < 1.2 * mib[0] and left == 0 and page_mb < 15)


@promise(
    "figures of 10,000,000 flows",
    "pytest -m scale tests/python/test_many_flows.py",
    "those of all flows, constant memory",
    minutes=5,
)
def many_figures(_: Path) -> Outcome:
    return python_tests("-m", "scale", "tests/python/test_many_flows.py")


def speed_up(folder: Path, experiment: str, at_least: float) -> Outcome:
    """Compare two threads with one, in turns, three times each; the median of the ratios."""
    ratios = []
    for turn in range(3):
        seconds = {}
        for threads in (("1", "2"), ("2", "1"))[turn % 2]:
            words = ("--no-report", "--threads", threads, "--replace")
            out = folder / f"{turn}-{threads}"
            done, _ = simulate(folder, experiment, *words, "--out", str(out))
            seconds[threads] = done.seconds
            shutil.rmtree(out)
        ratios.append(seconds["1"] / seconds["2"])
    ratios.sort()
    text = f"{ratios[1]:.2f} [{ratios[0]:.2f}, {ratios[2]:.2f}]"
    return judge(text, kept=ratios[1] >= at_least)


@promise("two threads, 320 hosts", "raddle run --threads 1 and 2, in turns", ">= 1.6 times")
def threads_320(folder: Path) -> Outcome:
    return speed_up(folder, hpc_mix('kind = "fat-tree-320"'), 1.6)


@promise("two threads, 8,192 hosts", "the same, permutation of 1 MB", ">= 1.8 times", minutes=5)
def threads_8192(folder: Path) -> Outcome:
    return speed_up(folder, permutation(K_ARY_8192, "1MB"), 1.8)


@promise("two threads, 8,192 hosts", "the same, HPC mix for 400 us", ">= 1.8 times", minutes=5)
def threads_8192_mix(folder: Path) -> Outcome:
    return speed_up(folder, hpc_mix(K_ARY_8192) + 'end = "400us"\n', 1.8)


@promise("ranks", "mpirun -n 2, 3 and 4 raddle-mpi-run (1,024 hosts)", "bytes of raddle run")
def ranks(folder: Path) -> Outcome:
    mpirun = shutil.which("mpirun.openmpi")
    if mpirun is None:
        return Outcome("openmpi-bin is not installed", NOT_RUN)
    experiment = folder / "ranks.toml"
    experiment.write_text(permutation('kind = "k-ary-fat-tree"\nk = 16', "64KiB"))
    words = (experiment, "--no-report", "--quiet", "--out")
    hashes = set()
    for count in (0, 2, 3, 4):
        out = folder / f"{count}"
        program: list[str | Path] = [RADDLE, "run"]
        if count:
            program = [mpirun, "--allow-run-as-root", "--oversubscribe", "-n", f"{count}"]
            program.append(RADDLE.with_name("raddle-mpi-run"))
        done = run(*program, *words, out)
        if done.status != 0:
            raise Broken(done.last_words)
        files = (file for file in sorted(out.rglob("*")) if file.is_file())
        content = b"".join(f.read_bytes() for f in files if f.name != "manifest.json")
        hashes.add(hashlib.sha256(content).hexdigest())
    return judge(f"{len(hashes)} hash of 4 runs", kept=len(hashes) == 1)


@promise("Dask", "pytest tests/python/test_dask.py", "all pass, a worker killed among them")
def dask(_: Path) -> Outcome:
    return python_tests("tests/python/test_dask.py")


@promise("shards", "pytest tests/python/test_shards.py", "all pass, processes killed among them")
def shards(_: Path) -> Outcome:
    return python_tests("tests/python/test_shards.py")
