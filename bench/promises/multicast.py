# ruff: noqa: D103 (the promise above a function says what it measures)
"""Multicast routing, in files and under OpenSM."""

import json
import shutil
from pathlib import Path
from typing import Any

from bench.promises import (
    EXPERIMENTS,
    RADDLE,
    Broken,
    Done,
    Outcome,
    example,
    judge,
    promise,
    python_tests,
    run,
    rust_tests,
    test_line,
)

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
