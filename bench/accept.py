# ruff: noqa: D103 (the promise above a function says what it measures)
"""Measure every promise that has a number; one line each: command, limit, measured, verdict.

Exit status 1 if a promise is broken. To add one, write a function that returns an `Outcome` and
put `@promise(...)` above it; that is the whole list. Nothing here is simulated by this program
itself: each promise runs a command of the project.
"""

import argparse
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from bench import PYTHON, ROOT

RADDLE = ROOT / ".venv" / "bin" / "raddle"
EXPERIMENTS = ROOT / "experiments"
LARGE = EXPERIMENTS / "congestion" / "large.toml"

PASS, FAIL, NOT_RUN = "pass", "fail", "not run"


@dataclass(frozen=True)
class Outcome:
    """What came out: the figure with its unit, and whether it keeps the limit."""

    measured: str
    verdict: str


@dataclass(frozen=True)
class Promise:
    """One line of the list."""

    name: str
    command: str
    limit: str
    measure: Callable[[Path], Outcome]
    minutes: int


PROMISES: list[Promise] = []


def promise(
    name: str, command: str, limit: str, *, minutes: int = 1
) -> Callable[[Callable[[Path], Outcome]], Callable[[Path], Outcome]]:
    """Put a promise on the list; `minutes` of 5 or more are left out without --full."""

    def add(measure: Callable[[Path], Outcome]) -> Callable[[Path], Outcome]:
        PROMISES.append(Promise(name, command, limit, measure, minutes))
        return measure

    return add


def judge(measured: str, *, kept: bool) -> Outcome:
    """Turn a comparison into an outcome."""
    return Outcome(measured, PASS if kept else FAIL)


# ---- running commands ----------------------------------------------------------------------


@dataclass(frozen=True)
class Done:
    """A command that ended."""

    status: int
    stdout: str
    stderr: str
    seconds: float
    peak_bytes: int

    @property
    def last_words(self) -> str:
        """The last line that it said."""
        lines = (self.stderr.strip() or self.stdout.strip()).splitlines()
        return lines[-1].strip() if lines else "nothing was said"


def run(*command: str | Path, environment: Mapping[str, str] | None = None) -> Done:
    """Run a command to its end; with wall time and peak memory."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        started = time.monotonic()
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=out, stderr=err, env={**os.environ, **(environment or {})}
        )
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.monotonic() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        return Done(
            process.returncode,
            out.read().decode(errors="replace"),
            err.read().decode(errors="replace"),
            seconds,
            usage.ru_maxrss * 1024,
        )


class Broken(Exception):
    """A command of the project failed where it should not."""


def simulate(folder: Path, experiment: str | Path, *words: str) -> tuple[Done, dict[str, Any]]:
    """Call `raddle run`; the experiment is a file or TOML text. Also gives its summary."""
    if isinstance(experiment, str):
        file = folder / f"{hashlib.sha256(experiment.encode()).hexdigest()[:8]}.toml"
        file.write_text(experiment, encoding="utf-8")
    else:
        file = experiment
    done = run(RADDLE, "run", file, "--json", "--quiet", *words)
    if done.status != 0:
        raise Broken(done.last_words)
    return done, json.loads(done.stdout)


def unfinished(summary: Mapping[str, Any]) -> int:
    """Flows that did not end."""
    return sum(s["flows"] - s["finished"] for s in summary["schemes"].values())


def test_line(output: str) -> Outcome:
    """Read the totals of a test command out of what it printed."""
    from scripts.run_tests import count

    total = count(output)
    text = f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped"
    if total.failed:
        return Outcome(text, FAIL)
    return Outcome(text, PASS if total.passed else NOT_RUN)


def rust_tests(*patterns: str, crate: str = "engine") -> Outcome:
    """Run integration tests of a crate; `not run` as long as there are none of these names."""
    manifests = (ROOT / "crates").glob("*/*/Cargo.toml")
    manifest = next(m for m in manifests if f'name = "raddle-{crate}"' in m.read_text())
    folder = manifest.parent / "tests"
    files = [*folder.glob("*.rs"), *(main.parent for main in folder.glob("*/main.rs"))]
    names = sorted({f.stem for f in files if any(fnmatch(f.stem, p) for p in patterns)})
    if not names:
        return Outcome("no such test yet", NOT_RUN)
    chosen = [word for name in names for word in ("--test", name)]
    done = run("cargo", "test", "--locked", "--no-fail-fast", "-p", f"raddle-{crate}", *chosen)
    outcome = test_line(done.stdout + done.stderr)
    broken = done.status != 0 and outcome.verdict != FAIL
    return Outcome(done.last_words, FAIL) if broken else outcome


def python_tests(*words: str) -> Outcome:
    """Run some of the Python tests."""
    done = run(PYTHON, "-m", "pytest", "-q", *words)
    outcome = test_line(done.stdout)
    broken = done.status not in (0, 5) and outcome.verdict != FAIL
    return Outcome(done.last_words, FAIL) if broken else outcome


def example(crate: str, name: str) -> Path:
    """Build an example program for speed; gives its place."""
    build = ("cargo", "build", "--release", "--locked", "-p", f"raddle-{crate}", "--example", name)
    built = run(*build)
    if built.status != 0:
        raise Broken(built.last_words)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return target / "release" / "examples" / name


@contextmanager
def scratch() -> Iterator[Path]:
    """Give a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="raddle-accept-") as name:
        yield Path(name)


# ---- experiments that are measured ---------------------------------------------------------

MIX_320 = """schema = 1
[fabric]
kind = "fat-tree-320"
[traffic]
generator = "hpc-mix"
[simulation]
schemes = ["hpcc"]
isolated = false
"""


def k_ary(k: int, traffic: str) -> str:
    """Describe HPCC on a k-ary fat tree of k^3/4 hosts."""
    return f"""schema = 1
[fabric]
kind = "k-ary-fat-tree"
k = {k}
[traffic]
{traffic}
[simulation]
schemes = ["hpcc"]
isolated = false
"""


def speed(folder: Path, experiment: str, least_m: float) -> Outcome:
    """Packet-hops per second of the whole command, start and output included."""
    done, summary = simulate(folder, experiment, "--no-report", "--out", str(folder / "out"))
    (scheme,) = summary["schemes"].values()
    rate_m = scheme["packet_hops"] / done.seconds / 1e6
    text = f"{rate_m:.2f} M/s ({scheme['packet_hops'] / 1e6:.1f} M in {done.seconds:.1f} s)"
    return judge(text, kept=rate_m >= least_m and unfinished(summary) == 0)


# ---- the list ------------------------------------------------------------------------------


@promise("large experiment", "make demo (the raddle run in it)", "< 180 s, report < 15 MB")
def demo(folder: Path) -> Outcome:
    out = folder / "demo"
    done, summary = simulate(folder, LARGE, "--out", str(out))
    report_mb = (out / "report.html").stat().st_size / 1e6
    schemes = summary["schemes"]
    text = f"{done.seconds:.0f} s, {len(schemes)} schemes, report {report_mb:.1f} MB"
    complete = summary["complete"] and unfinished(summary) == 0 and len(schemes) == 6
    return judge(text, kept=complete and done.seconds < 180 and report_mb < 15)


@promise(
    "traffic of the paper", "raddle traffic describe, seeds 1-5", "19,181 flows, 58.76 % in 1.4 %"
)
def traffic(folder: Path) -> Outcome:
    file = folder / "mix.toml"
    file.write_text(MIX_320, encoding="utf-8")
    found = set()
    for seed in range(1, 6):
        done = run(RADDLE, "traffic", "describe", file, "--seed", str(seed), "--json")
        if done.status != 0:
            raise Broken(done.last_words)
        told = json.loads(done.stdout)
        shares = (told["large_share_of_bytes"], told["large_share_of_flows"])
        large = "{:.2%} of bytes in {:.1%} of flows".format(*shares)
        found.add(f"{told['flows']:,} flows, {large}")
    wanted = {"19,181 flows, 58.76% of bytes in 1.4% of flows"}
    return judge(" or ".join(sorted(found)), kept=found == wanted)


@promise(
    "exact (compat)", "cargo test -p raddle-engine --test reference_micro", "to the nanosecond"
)
def exact(_: Path) -> Outcome:
    return rust_tests("reference_micro*")


@promise(
    "statistically equal (compat)",
    "cargo test -p raddle-engine --test reference_statistics",
    "FCT 2 % / 6 %, throughput 2 %, pauses 5 %",
)
def statistics(_: Path) -> Outcome:
    return rust_tests("reference_s*", "reference_large*")


@promise("conserved", "cargo test -p raddle-engine --test corrected", "all pass")
def conserved(_: Path) -> Outcome:
    return rust_tests("corrected*", "conserv*", "closed_form*")


@promise(
    "deterministic", "raddle run, twice, with --jobs 1 and 2, and a run alone", "same parquet bytes"
)
def deterministic(folder: Path) -> Outcome:
    text = MIX_320.replace('["hpcc"]', '["dcqcn", "hpcc", "pint"]').replace(
        '"fat-tree-320"', '"leaf-spine"\nleaves = 4\nspines = 2\nhosts_per_leaf = 8'
    )
    text += "seeds = [1, 2]\n"
    hashes = set()
    for name, jobs in (("a", "1"), ("b", "2"), ("c", "2")):
        out = folder / name
        simulate(folder, text, "--no-report", "--jobs", jobs, "--out", str(out))
        files = sorted(out.glob("*.parquet"))
        content = b"".join(f.name.encode() + f.read_bytes() for f in files)
        hashes.add(hashlib.sha256(content).hexdigest())
    alone = text.replace('["dcqcn", "hpcc", "pint"]', '["pint"]').replace("[1, 2]", "[2]")
    simulate(folder, alone, "--no-report", "--out", str(folder / "alone"))
    same = all(
        rows(folder / "a" / file.name) == rows(file)
        for file in sorted((folder / "alone").glob("*.parquet"))
    )
    text = f"{len(hashes)} hash of 3 runs, alone {'the same' if same else 'different'}"
    return judge(text, kept=len(hashes) == 1 and same)


def rows(file: Path) -> dict[str, list[Any]]:
    """Rows of the PINT run with seed 2; all rows of tables that do not tell runs apart."""
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    table = pq.read_table(file)
    if "scheme" in table.column_names:
        table = table.filter((pc.field("scheme") == "pint") & (pc.field("seed") == 2))
    content: dict[str, list[Any]] = table.to_pydict()
    return content


@promise(
    "speed, 320 hosts, default", "raddle run --no-report (19,181 flows, HPCC)", ">= 5 M hops/s"
)
def speed_320(folder: Path) -> Outcome:
    return speed(folder, MIX_320, 5)


@promise("speed, 320 hosts, compat", "the same with compat = hpcc-ns3", ">= 5 M hops/s")
def speed_320_compat(folder: Path) -> Outcome:
    return speed(folder, MIX_320 + 'compat = "hpcc-ns3"\n', 5)


# The paper's mix for 8,192 hosts at its density in a tenth of the time: 92 M packet-hops.
MIX_8192_TENTH = """generator = "hpc-mix"
window = "500us"
long_flows = 164
short_flows = 3279
allreduce_operations = 205
incast_events = 1321
broadcast_events = 1321
alltoall_groups = 44"""


@promise("speed, 8,192 hosts, permutation", "raddle run --no-report (HPCC, 1 MB)", ">= 3 M hops/s")
def speed_8192(folder: Path) -> Outcome:
    return speed(folder, k_ary(32, 'generator = "permutation"\nsize = "1MB"'), 3)


@promise(
    "speed, 8,192 hosts, HPC mix", "raddle run --no-report (HPCC, a tenth of it)", ">= 3 M hops/s"
)
def speed_8192_mix(folder: Path) -> Outcome:
    return speed(folder, k_ary(32, MIX_8192_TENTH), 3)


@promise(
    "instructions per packet-hop",
    "valgrind --tool=callgrind hop_benchmark --flows N, 2N",
    "< 1,000",
)
def instructions(folder: Path) -> Outcome:
    if not shutil.which("valgrind"):
        return Outcome("valgrind is not installed", NOT_RUN)
    binary = example("engine", "hop_benchmark")
    counts = []
    for flows in (500, 1000):
        grind = ("valgrind", "--tool=callgrind", f"--callgrind-out-file={folder / 'callgrind'}")
        done = run(*grind, binary, "--flows", str(flows))
        collected = re.search(r"Collected\s*:\s*(\d+)", done.stderr)
        if done.status != 0 or not collected:
            msg = f"no counts: {done.last_words}"
            raise Broken(msg)
        counts.append((int(collected[1]), int(json.loads(done.stdout)["packet_hops"])))
    (few, few_hops), (many, many_hops) = counts
    per_hop = (many - few) / (many_hops - few_hops)
    return judge(f"{per_hop:.0f} over {many_hops - few_hops:,} hops", kept=per_hop < 1000)


@promise("65,536 hosts", "raddle run --no-report (permutation, 64 KiB, HPCC)", "< 16 GiB, all end")
def hosts_65536(folder: Path) -> Outcome:
    experiment = k_ary(64, 'generator = "permutation"\nsize = "64KiB"')
    done, summary = simulate(folder, experiment, "--no-report", "--out", str(folder / "out"))
    gib = done.peak_bytes / 2**30
    left = unfinished(summary)
    text = f"{gib:.2f} GiB, {left} flows left, {done.seconds:.0f} s"
    return judge(text, kept=gib < 16 and left == 0)


# ---- multicast routing ---------------------------------------------------------------------

PUBLISHED_TFI = {
    "grid-64x32x16": 7,
    "grid-32x32x32": 6,
    "grid-256x32x16-4p": 26,
    "grid-100x50x26-4p": 20,
}
"""Max TFI of C-MR4LMS-fixed: the first two are printed in the paper, the others follow from it."""


def route(folder: Path, file: Path) -> dict[str, Any]:
    """Call `raddle route`; gives the measures by engine."""
    out = folder / file.stem
    words = ("--no-report", "--json", "--quiet", "--out", str(out))
    done = run(RADDLE, "route", file, *words)
    if done.status != 0:
        raise Broken(done.last_words)
    engines: dict[str, Any] = json.loads(done.stdout)["engines"]
    shutil.rmtree(out)
    return engines


def benchmark(part: str) -> tuple[list[dict[str, Any]], Done]:
    """Run one part of the multicast benchmark; gives its lines."""
    done = run(example("multicast", "multicast_benchmark"), part)
    if done.status != 0:
        raise Broken(done.last_words)
    return [json.loads(line) for line in done.stdout.splitlines()], done


@promise("multicast, theorems and equations", "cargo test -p raddle-multicast", "all pass")
def multicast_theorems(_: Path) -> Outcome:
    return rust_tests("*", crate="multicast")


@promise("multicast, published max TFI", "raddle route, four grids", "7, 6, 26, 20")
def multicast_tfi(folder: Path) -> Outcome:
    found = []
    for name in PUBLISHED_TFI:
        engines = route(folder, EXPERIMENTS / "multicast" / f"{name}.toml")
        found.append(engines["c-mr4lms-fixed"]["max_tfi"])
    return judge(", ".join(map(str, found)), kept=found == list(PUBLISHED_TFI.values()))


@promise(
    "multicast, the paper's 18 patterns",
    "raddle route experiments/multicast/{grid,random}-*.toml",
    "C-MR4LMS < 0.5 s each, MR4LMS < 20 s each",
    minutes=2,
)
def multicast_patterns(folder: Path) -> Outcome:
    files = sorted((EXPERIMENTS / "multicast").glob("[gr]*.toml"))
    slowest = {"c-mr4lms": 0.0, "mr4lms": 0.0}
    for file in files:
        for name, measures in route(folder, file).items():
            kind = "c-mr4lms" if name.startswith("c-") else name
            if kind in slowest:
                slowest[kind] = max(slowest[kind], measures["route_s"])
    text = f"{len(files)} patterns, {slowest['c-mr4lms']:.3f} s, {slowest['mr4lms']:.2f} s"
    kept = len(files) == 18 and slowest["c-mr4lms"] < 0.5 and slowest["mr4lms"] < 20
    return judge(text, kept=kept)


@promise(
    "multicast, 262,144 terminals",
    "multicast_benchmark full (100,000 random groups of 16; grid 128x64x32)",
    "< 10 s each, < 8 GiB",
)
def multicast_full(_: Path) -> Outcome:
    lines, done = benchmark("full")
    seconds = [line["route_s"] for line in lines if "route_s" in line]
    gib = done.peak_bytes / 2**30
    text = f"{', '.join(f'{s:.2f}' for s in seconds)} s, {gib:.2f} GiB"
    return judge(text, kept=len(seconds) == 4 and max(seconds) < 10 and gib < 8)


@promise(
    "multicast, join and leave",
    "multicast_benchmark churn (64 members, 10,000 groups, MGIDs in layers; median of 5 runs)",
    "p99 < 50 us",
)
def multicast_churn(_: Path) -> Outcome:
    lines, _done = benchmark("churn")
    layered = [line for line in lines if line.get("pattern") == "churn layered"]
    p99 = [line[f"{what}_us_p99"] for line in layered for what in ("join", "leave")]
    single = [line[f"{what}_us_p99_single"] for line in layered for what in ("join", "leave")]
    interrupted = max(line["interruptions_per_s"] for line in layered)
    text = (
        f"fixed {p99[0]:.0f} / {p99[1]:.0f} us, dynamic {p99[2]:.0f} / {p99[3]:.0f} us"
        f" (single times {'/'.join(f'{time:.0f}' for time in single)} us;"
        f" an idle loop is interrupted {interrupted:.0f} times a second)"
    )
    return judge(text, kept=max(p99) < 50)


@promise(
    "multicast, cut links",
    "cargo test -p raddle-engine --test corrected multicast",
    "pairs of trees lose nothing",
)
def multicast_cuts(_: Path) -> Outcome:
    words = ("--locked", "-p", "raddle-engine", "--test", "corrected", "multicast")
    done = run("cargo", "test", *words)
    return test_line(done.stdout + done.stderr)


@promise("OpenSM on ibsim", "pytest tests/opensm", "0 missing, duplicate, looping")
def opensm(_: Path) -> Outcome:
    return python_tests("tests/opensm", "-m", "not scale")


@promise(
    "OpenSM on ibsim, 480 and 7,680 switches",
    "pytest -m scale tests/opensm",
    "0 missing, duplicate, looping; 40,448 nodes up in < 15 min",
    minutes=10,
)
def opensm_scale(_: Path) -> Outcome:
    return python_tests("tests/opensm", "-m", "scale")


# ---- in-network Allreduce ------------------------------------------------------------------

ALL = ("-m", "scale or not scale")
"""Quick and long tests of a file."""


def cargo_test(crate: str, test: str, *words: str) -> Outcome:
    """Run some tests of one integration test, long ones where `--ignored` is among the words."""
    done = run("cargo", "test", "--locked", "-p", f"raddle-{crate}", "--test", test, *words)
    outcome = test_line(done.stdout + done.stderr)
    return judge(outcome.measured, kept=outcome.verdict == PASS and done.status == 0)


@promise(
    "offload, bits of plain MPI at 16 hosts",
    "pytest -m scale tests/mpi/test_sixteen_hosts.py",
    "0 differ; C, Fortran; Node, Socket; sockets, XDP; MPICH at 2 and 4 ranks",
    minutes=25,
)
def offload_bits(_: Path) -> Outcome:
    return python_tests("tests/mpi/test_sixteen_hosts.py", *ALL)


@promise(
    "offload, orders of plain MPI",
    "pytest tests/mpi/test_order.py, quick and long",
    "0 differ; Open MPI to 16 ranks, MPICH to 4",
    minutes=10,
)
def offload_orders(_: Path) -> Outcome:
    return python_tests("tests/mpi/test_order.py", *ALL)


@promise(
    "offload, mpi4py's own tests",
    "pytest -m scale tests/mpi/test_mpi4py.py (2, 3, 4 ranks)",
    "the same passes and skips with and without",
    minutes=20,
)
def offload_mpi4py(_: Path) -> Outcome:
    return python_tests("tests/mpi/test_mpi4py.py", *ALL)


@promise(
    "offload, switches and ranks that die",
    "pytest tests/mpi/test_faults.py, quick and long",
    "right results, no hang, state free within the lease",
    minutes=30,
)
def offload_faults(_: Path) -> Outcome:
    return python_tests("tests/mpi/test_faults.py", *ALL)


@promise(
    "offload, loss, duplication, reordering",
    "pytest -m scale tests/net/test_rounds.py",
    "10^6 rounds at 1 %, 10^5 at 10 %: all sums right",
    minutes=30,
)
def offload_loss(_: Path) -> Outcome:
    return python_tests("tests/net/test_rounds.py", "-m", "scale")


@promise(
    "offload, random schedules",
    "cargo test -p raddle-offload --test schedules -- --ignored",
    "100,000 schedules: every sum exact, every slot freed",
    minutes=8,
)
def offload_schedules(_: Path) -> Outcome:
    return cargo_test("offload", "schedules", "--", "--ignored")


@promise(
    "offload, program in the kernel and core",
    "cargo test -p raddle-switch --test xdp a_million_random -- --ignored",
    "10^6 sequences: equal bytes, state, actions",
    minutes=15,
)
def offload_kernel(_: Path) -> Outcome:
    return cargo_test("switch", "xdp", "a_million_random", "--", "--ignored")


@promise(
    "offload, forged and hostile packets",
    "cargo test -p raddle-offload --test hostile -- --include-ignored",
    "5 x 10^7 packets change no group, no memory",
    minutes=8,
)
def offload_hostile(_: Path) -> Outcome:
    return cargo_test("offload", "hostile", "--", "--include-ignored")


@promise(
    "offload, eight jobs under quotas",
    "pytest tests/net/test_jobs.py, quick and long",
    "slots of the dead are free within the lease",
    minutes=2,
)
def offload_jobs(_: Path) -> Outcome:
    return python_tests("tests/net/test_jobs.py", *ALL)


@promise(
    "offload, nothing stays of a lab",
    "pytest tests/lab/test_cleanup.py (kill -9 of anything)",
    "no namespace, qdisc, BPF program, cgroup, shared memory",
)
def offload_cleanup(_: Path) -> Outcome:
    return python_tests("tests/lab/test_cleanup.py", *ALL)


@promise(
    "offload, faster than plain MPI",
    "python3 -m bench.mpi",
    "Allreduce >= 1.8, 2, 3x at 4, 9, 16 hosts, elsewhere >= 0.97; icoFoam >= 1.25, 1.8, 1.8x",
    minutes=70,
)
def offload_speed(folder: Path) -> Outcome:
    return compared(folder, "bench.mpi")


def compared(folder: Path, module: str) -> Outcome:
    """Run a program of paired comparisons; what does not hold is named."""
    out = folder / "compared.json"
    done = run(PYTHON, "-m", module, "--out", out)
    if not out.exists():
        raise Broken(done.last_words)
    document = json.loads(out.read_text())
    limited = [one for one in document["comparisons"] if one["at_least"] is not None]
    others = [one for one in limited if one["verdict"] != "holds"]
    missed = [f"{one['what']} {one['median']} ({one['verdict']})" for one in others]
    checks = document.get("checks", [])
    missed += [f"{one['what']} {one['measured']}" for one in checks if not one["holds"]]
    count = len(limited) + len(checks)
    text = "; ".join([f"{count - len(missed)} of {count} hold", *missed])
    return judge(text, kept=document["holds"])


# ---- message scheduling --------------------------------------------------------------------


@promise(
    "scheduling, a million messages",
    "cargo run --release -p raddle-schedule --example schedule_benchmark",
    "< 1 s, all kinds of traffic, variants and scopes",
    minutes=2,
)
def scheduling_time(_: Path) -> Outcome:
    done = run(example("schedule", "schedule_benchmark"))
    if done.status != 0:
        raise Broken(done.last_words)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    worst = max(rows, key=lambda row: row["schedule_s"])
    where = f"{worst['traffic']}, {worst['ranks']} ranks, {worst['schedule']}, {worst['scope']}"
    fewest = min(row["messages"] for row in rows)
    text = f"{worst['schedule_s']:.2f} s ({where}), all of {fewest:,} messages or more"
    return judge(text, kept=worst["schedule_s"] < 1 and fewest >= 0.95e6)


@promise(
    "scheduling, delivery is the same",
    "cargo test -p raddle-matching --test delivery",
    "bytes and matching order of a model of MPI's rules, any interleaving",
    minutes=2,
)
def scheduling_delivery(_: Path) -> Outcome:
    return cargo_test("matching", "delivery")


@promise(
    "scheduling, recording costs little",
    "python3 -m bench.record",
    "< 3 % of the time of LAMMPS and icoFoam",
    minutes=15,
)
def scheduling_record(folder: Path) -> Outcome:
    return compared(folder, "bench.record")


@promise(
    "scheduling, messages are joined",
    "python3 -m bench.schedule",
    "32 messages per peer: 8x to 256 B, 4x at 1 KiB, 1.5x at 4 KiB; 60 % of packing by hand; "
    "16 KiB and more, LAMMPS, icoFoam: at most 2 % slower",
    minutes=60,
)
def scheduling_messages(folder: Path) -> Outcome:
    return compared(folder, "bench.schedule")


@promise(
    "replay, LAMMPS recorded in labs",
    "python3 -m experiments.replay.findings",
    "time in MPI within 15 % of the measured one: 2 and 4 hosts, 1 and 2 ranks each",
    minutes=5,
)
def replay_recorded(folder: Path) -> Outcome:
    done = run(PYTHON, "-m", "experiments.replay.findings", "--out", folder / "replay")
    if done.status not in (0, 1):
        raise Broken(done.last_words)
    return judge(done.stdout.strip().splitlines()[-1], kept=done.status == 0)


# ---- several rails -------------------------------------------------------------------------


@promise(
    "rails, random schedules",
    "cargo test -p raddle-rails --test rails -- --ignored",
    "100,000 schedules: every message once, in order, every byte",
    minutes=15,
)
def rails_schedules(_: Path) -> Outcome:
    return cargo_test("rails", "rails", "--", "--ignored")


@promise(
    "rails, goodput, latency, cuts, sharing",
    "python3 -m bench.rails",
    "two rails 1.9 x, four 3.6 x, 4:1 90 % of the sum, 8 B within 5 %; 10 GB over cut rails",
    minutes=240,
)
def rails_measured(folder: Path) -> Outcome:
    return compared(folder, "bench.rails")


# ---- what holds for all --------------------------------------------------------------------


@promise("bad input", "pytest tests/house/test_bad_input.py", "all refused on one screen")
def bad_input(_: Path) -> Outcome:
    return python_tests("tests/house/test_bad_input.py")


@promise("report in Chromium", "pytest -m browser", "1280 and 390 px, no console error")
def browser(_: Path) -> Outcome:
    return python_tests("-m", "browser")


@promise("wheel in a fresh environment", "maturin build; pip install; raddle --version", "runs")
def wheel(folder: Path) -> Outcome:
    maturin = ROOT / ".venv" / "bin" / "maturin"
    built = run(maturin, "build", "--release", "--locked", "--out", folder)
    if built.status != 0:
        raise Broken(built.last_words)
    (file,) = folder.glob("*.whl")
    fresh = folder / "venv"
    for command in (
        (sys.executable, "-m", "venv", fresh),
        (fresh / "bin" / "pip", "install", "-q", file),
        (fresh / "bin" / "raddle", "--version"),
    ):
        done = run(*command)
        if done.status != 0:
            raise Broken(done.last_words)
    return Outcome(f"{done.stdout.strip()}, wheel {file.stat().st_size / 1e6:.1f} MB", PASS)


@promise("build from nothing", "make build in a fresh clone", "< 600 s", minutes=5)
def build(folder: Path) -> Outcome:
    clone = folder / "raddle"
    run("git", "clone", "-q", ROOT, clone)
    done = run(
        "make", "-C", clone, "build", environment={"CARGO_TARGET_DIR": str(clone / "target")}
    )
    if done.status != 0:
        raise Broken(done.last_words)
    return judge(f"{done.seconds:.0f} s", kept=done.seconds < 600)


@promise("tests from nothing", "make test in a fresh clone", "< 1,200 s", minutes=20)
def tests(folder: Path) -> Outcome:
    clone = folder / "raddle"
    run("git", "clone", "-q", ROOT, clone)
    done = run("make", "-C", clone, "test", environment={"CARGO_TARGET_DIR": str(clone / "target")})
    return judge(
        f"{done.seconds:.0f} s, {done.stdout.strip().splitlines()[-1]}",
        kept=done.status == 0 and done.seconds < 1200,
    )


# ---- printing ------------------------------------------------------------------------------


def machine() -> str:
    """Name the machine that was measured."""
    model = re.search(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    commit = run("git", "rev-parse", "--short", "HEAD").stdout.strip()
    cores = os.cpu_count()
    return f"{model[1] if model else platform.machine()}, {cores} cores, commit {commit}"


def main() -> int:
    """Measure what was asked for and print the lines as they come."""
    parser = argparse.ArgumentParser(
        prog="python3 -m bench.accept", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--only", metavar="WORD", help="only promises whose name has WORD")
    parser.add_argument("--full", action="store_true", help="also what takes 5 minutes or more")
    parser.add_argument("--list", action="store_true", help="list the promises")
    parser.add_argument("--json", action="store_true", help="JSON Lines instead of a table")
    options = parser.parse_args()
    chosen = [p for p in PROMISES if not options.only or options.only in p.name]
    verdicts = []
    if not options.json:
        print(machine())
    for item in chosen:
        if options.list:
            outcome = Outcome("", NOT_RUN)
        elif item.minutes >= 5 and not options.full and not options.only:
            outcome = Outcome(f"takes {item.minutes} minutes; --full runs it", NOT_RUN)
        else:
            with scratch() as folder:
                try:
                    outcome = item.measure(folder)
                except (Broken, OSError, KeyError, ValueError) as error:
                    outcome = Outcome(f"{type(error).__name__}: {error}", FAIL)
        verdicts.append(outcome.verdict)
        line = {
            "schema": 1,
            "name": item.name,
            "command": item.command,
            "limit": item.limit,
            "measured": outcome.measured,
            "verdict": outcome.verdict,
        }
        if options.json:
            print(json.dumps(line), flush=True)
        else:
            shown = (
                f"{item.name}  [{item.command}]  limit {item.limit}  measured {outcome.measured}"
            )
            print(f"{outcome.verdict:<8} {shown}", flush=True)
    if not options.json:
        print(", ".join(f"{verdicts.count(v)} {v}" for v in (PASS, FAIL, NOT_RUN)))
    return 1 if FAIL in verdicts else 0


if __name__ == "__main__":
    sys.exit(main())
