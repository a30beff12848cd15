# ruff: noqa: D103 (the promise above a function says what it measures)
"""Messages over several rails."""

from pathlib import Path

from bench.promises import Outcome, cargo_test, compared, promise


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
