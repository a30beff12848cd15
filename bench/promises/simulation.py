# ruff: noqa: D103 (the promise above a function says what it measures)
"""The simulator: exact, deterministic, conserved, fast."""

import hashlib
import json
import re
import shutil
from pathlib import Path
from typing import Any

from bench.promises import (
    EXPERIMENTS,
    NOT_RUN,
    RADDLE,
    Broken,
    Outcome,
    example,
    judge,
    promise,
    run,
    rust_tests,
    simulate,
    unfinished,
)

LARGE = EXPERIMENTS / "congestion" / "large.toml"


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
    """Packet-hops per second of the whole command on one thread, start and output included."""
    words = ("--no-report", "--threads", "1", "--out", str(folder / "out"))
    done, summary = simulate(folder, experiment, *words)
    (scheme,) = summary["schemes"].values()
    rate_m = scheme["packet_hops"] / done.seconds / 1e6
    text = f"{rate_m:.2f} M/s ({scheme['packet_hops'] / 1e6:.1f} M in {done.seconds:.1f} s)"
    return judge(text, kept=rate_m >= least_m and unfinished(summary) == 0)


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
    "deterministic",
    "raddle run with --jobs 1 and 2, with --threads 1 and 3, and a run alone",
    "same parquet bytes",
)
def deterministic(folder: Path) -> Outcome:
    text = MIX_320.replace('["hpcc"]', '["dcqcn", "hpcc", "pint"]').replace(
        '"fat-tree-320"', '"leaf-spine"\nleaves = 4\nspines = 2\nhosts_per_leaf = 8'
    )
    text += "seeds = [1, 2]\n"
    hashes = set()
    for name, jobs, threads in (("a", "1", "1"), ("b", "2", "1"), ("c", "1", "3")):
        out = folder / name
        words = ("--no-report", "--jobs", jobs, "--threads", threads, "--out", str(out))
        simulate(folder, text, *words)
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
    "speed, 320 hosts, default", "raddle run --threads 1 (19,181 flows, HPCC)", ">= 5 M hops/s"
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


@promise("speed, 8,192 hosts, permutation", "raddle run --threads 1 (HPCC, 1 MB)", ">= 3 M hops/s")
def speed_8192(folder: Path) -> Outcome:
    return speed(folder, k_ary(32, 'generator = "permutation"\nsize = "1MB"'), 3)


@promise(
    "speed, 8,192 hosts, HPC mix", "raddle run --threads 1 (HPCC, a tenth of it)", ">= 3 M hops/s"
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
    per_hop, hops = count_instructions(folder, example("engine", "hop_benchmark"))
    return judge(f"{per_hop:.0f} over {hops:,} hops", kept=per_hop < 1000)


def count_instructions(folder: Path, binary: Path) -> tuple[float, int]:
    """Give a packet-hop's instructions in a build of hop_benchmark, and over how many hops.

    What starting takes is left out: it is the same for few flows and many.
    """
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
    return (many - few) / (many_hops - few_hops), many_hops - few_hops


@promise("65,536 hosts", "raddle run --no-report (permutation, 64 KiB, HPCC)", "< 16 GiB, all end")
def hosts_65536(folder: Path) -> Outcome:
    experiment = k_ary(64, 'generator = "permutation"\nsize = "64KiB"')
    done, summary = simulate(folder, experiment, "--no-report", "--out", str(folder / "out"))
    gib = done.peak_bytes / 2**30
    left = unfinished(summary)
    text = f"{gib:.2f} GiB, {left} flows left, {done.seconds:.0f} s"
    return judge(text, kept=gib < 16 and left == 0)
