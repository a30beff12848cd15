"""Measure every promise that has a number; one line each: command, limit, measured, verdict.

Exit status 1 if a promise is broken. The promises are in bench/promises, a module for each topic.
"""

import argparse
import importlib
import json
import os
import platform
import re
import sys
from pathlib import Path

from bench.promises import FAIL, NOT_RUN, PASS, PROMISES, Broken, Outcome, Promise, run, scratch

TOPICS = ("simulation", "scale", "multicast", "offload", "scheduling", "rails", "house")
"""Modules of bench/promises, in the order in which they are measured."""


def promises() -> list[Promise]:
    """All promises."""
    for topic in TOPICS:
        importlib.import_module(f"bench.promises.{topic}")
    return PROMISES


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
    chosen = [p for p in promises() if not options.only or options.only in p.name]
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
