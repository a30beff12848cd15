# ruff: noqa: D103 (the promise above a function says what it measures)
"""Message scheduling and replays."""

import json
from pathlib import Path

from bench import PYTHON
from bench.promises import Broken, Outcome, cargo_test, compared, example, judge, promise, run


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
