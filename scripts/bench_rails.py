#!/usr/bin/env python3
"""Measure messages over rails in labs: limit and measured value of each ratio.

All runs of a comparison take turns, forwards and backwards, so that the machine's moods hit all of
them. A comparison holds when the median of at least 20 ratios is inside the limit and its bootstrap
95 % interval is narrower than 10 %; while it is wider, runs are added. Plain TCP over one rail is
shown beside, without a limit. Needs root and what `make build` builds. Leaves out/bench-rails.json;
exit status 1 if a ratio does not hold.
"""

import argparse
import json
import os
import platform
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from legs import MOST_TIMES, OUT, Judge, Times, alternate, say
from pairs import FEWEST_PAIRS, Comparison, compare

from raddle.errors import LabError
from raddle.files import write_json
from raddle.lab import Lab, LabSpec

NAME = "bench-rails"
SELF = str(Path(__file__).resolve())
EVEN = (400_000_000,) * 4
UNEVEN = (400_000_000, 100_000_000)
SIZES = ("1MiB", "4MiB")
GOODPUT, LATENCY = 0, 1
"""Keys of what a run found: bit/s, and us."""

LEAST = {2: 1.9, 4: 3.6}
"""Goodput of so many equal rails over that of one."""

LEAST_OF_SUM = 0.9
LEAST_LATENCY = 1 / 1.05
SMALL_MESSAGES = 5000
TCP_PORT = 7651
PATIENCE_S = 60


@dataclass(frozen=True)
class Bench:
    """A lab whose h2 serves, and how long a run is."""

    lab: Lab
    seconds: float

    def goodput(self, interfaces: str, size: str) -> Times:
        """Goodput of messages over some rails."""
        words = ["--time", f"{round(1000 * self.seconds)}ms", "--warm-up", "300ms", "--count", "1"]
        return {GOODPUT: self._perf(interfaces, size, words)["goodput_bps"]}

    def one_way(self, interfaces: str, size: str) -> Times:
        """Latency of messages over some rails."""
        words = ["--time", "1ms", "--warm-up", "0s", "--count", f"{SMALL_MESSAGES}"]
        return {LATENCY: self._perf(interfaces, size, words)["latency_us"]}

    def tcp(self, size: str) -> Times:
        """Goodput of a plain TCP connection over rail 0."""
        words = [sys.executable, SELF, "--tcp-to", "h2", "--size", size]
        return {GOODPUT: float(self._ask([*words, "--seconds", str(self.seconds)]))}

    def _perf(self, interfaces: str, size: str, words: list[str]) -> dict[str, float]:
        run = ["raddle-perf", "run", "--peer", "h2", "--rails", interfaces, "--size", size]
        found: dict[str, float] = json.loads(self._ask([*run, *words, "--json"]).splitlines()[-1])
        return found

    def _ask(self, words: list[str]) -> str:
        done = subprocess.run(
            self.lab.command("h1", words), env=self.lab.environment(),
            capture_output=True, text=True, check=False, timeout=PATIENCE_S,
        )  # fmt: skip
        if done.returncode != 0:
            msg = f"{' '.join(words)}\n{done.stderr[-1500:]}"
            raise LabError(msg)
        return done.stdout

    def even(self, size: str, pairs: int) -> list[Comparison]:
        """Two and four equal rails against one."""
        legs = {
            "one": partial(self.goodput, "e0", size),
            **{f"{n}": partial(self.goodput, names(n), size) for n in LEAST},
            "TCP": partial(self.tcp, size),
        }

        def judge(rounds: list[dict[str, Times]]) -> list[Comparison]:
            found = [
                compare(
                    f"{size}, {rails} rails against one",
                    least,
                    [r[f"{rails}"][GOODPUT] / r["one"][GOODPUT] for r in rounds],
                )
                for rails, least in LEAST.items()
            ]
            plain = [r["one"][GOODPUT] / r["TCP"][GOODPUT] for r in rounds]
            return [*found, compare(f"{size}, one rail against TCP", None, plain)]

        return by_turns(f"equal rails, {size}", pairs, legs, judge)

    def uneven(self, size: str, pairs: int) -> list[Comparison]:
        """Rails of 4:1 against the sum of what each carries alone."""
        legs = {rails: partial(self.goodput, rails, size) for rails in ("e0", "e1", "e0,e1")}

        def judge(rounds: list[dict[str, Times]]) -> list[Comparison]:
            ratios = [r["e0,e1"][GOODPUT] / (r["e0"][GOODPUT] + r["e1"][GOODPUT]) for r in rounds]
            return [compare(f"{size}, rails of 4:1 against their sum", LEAST_OF_SUM, ratios)]

        return by_turns(f"rails of 4:1, {size}", pairs, legs, judge)

    def latency(self, pairs: int) -> list[Comparison]:
        """Small messages on four rails against those on one."""
        legs = {f"{n}": partial(self.one_way, names(n), "8B") for n in (1, 4)}

        def judge(rounds: list[dict[str, Times]]) -> list[Comparison]:
            ratios = [r["1"][LATENCY] / r["4"][LATENCY] for r in rounds]
            return [compare("8 B, latency of one rail / four", LEAST_LATENCY, ratios)]

        return by_turns("latency, 8 B", pairs, legs, judge)


def names(rails: int) -> str:
    """Interfaces of the first rails."""
    return ",".join(f"e{rail}" for rail in range(rails))


def by_turns(
    what: str, pairs: int, legs: Mapping[str, Callable[[], Times]], judge: Judge
) -> list[Comparison]:
    """Let all runs of a comparison take turns."""
    return alternate(what, pairs, lambda: nullcontext(legs), pairs, judge)


@contextmanager
def bench(rates: tuple[int, ...], seconds: float) -> Iterator[Bench]:
    """A lab of two hosts, in which h2 serves messages and TCP."""
    name = f"{NAME}-{len(rates)}"
    with ExitStack() as stack:
        stack.callback(Lab.down, name)
        lab = Lab.up(LabSpec(name=name, hosts=2, rails=len(rates), rates=rates), replace=True)
        for words in (["raddle-perf", "serve"], [sys.executable, SELF, "--tcp-serve"]):
            server = subprocess.Popen(
                lab.command("h2", words), env=lab.environment(),
                stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
            stack.callback(server.communicate)
            stack.callback(server.terminate)
            if server.stderr is None or "listening" not in server.stderr.readline():
                msg = f"{' '.join(words)} does not start"
                raise LabError(msg)
        yield Bench(lab, seconds)


def tcp_serve() -> None:
    """Receive what comes, one connection after the other, and answer each with its bytes."""
    with socket.create_server(("", TCP_PORT)) as listener:
        print("listening", file=sys.stderr, flush=True)
        room = bytearray(1 << 20)
        while True:
            with listener.accept()[0] as stream:
                total = 0
                while count := stream.recv_into(room):
                    total += count
                stream.sendall(f"{total}\n".encode())


def tcp_send(host: str, size: int, seconds: float) -> float:
    """Send messages for a while; bit/s until the other side has counted them."""
    message = bytes(size)
    with socket.create_connection((host, TCP_PORT)) as stream:
        begun = time.monotonic()
        while time.monotonic() - begun < seconds:
            stream.sendall(message)
        stream.shutdown(socket.SHUT_WR)
        total = int(stream.makefile().readline())
        return 8 * total / (time.monotonic() - begun)


def main() -> int:
    """Measure, print, judge."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--pairs", type=int, default=FEWEST_PAIRS,
        help=f"rounds of each comparison (%(default)s); up to {MOST_TIMES} times as many while an "
        "interval is too wide, fewer than the default are never a pass",
    )  # fmt: skip
    parser.add_argument("--seconds", type=float, default=1.5, help="time of a run (%(default)s)")
    parser.add_argument("--out", type=Path, default=OUT / "bench-rails.json")
    # What this script runs of itself on hosts of the lab.
    parser.add_argument("--tcp-serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--tcp-to", help=argparse.SUPPRESS)
    parser.add_argument("--size", default="1MiB", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.tcp_serve:
        tcp_serve()
    if options.tcp_to:
        size = int(options.size.removesuffix("MiB")) << 20
        print(tcp_send(options.tcp_to, size, options.seconds))
        return 0
    return measure(options.pairs, options.seconds, options.out)


def measure(pairs: int, seconds: float, out: Path) -> int:
    """Run all comparisons; exit status 1 if one fails."""
    begun = time.monotonic()
    found: list[Comparison] = []
    with bench(EVEN, seconds) as even:
        for size in SIZES:
            found += even.even(size, pairs)
        found += even.latency(pairs)
    with bench(UNEVEN, seconds) as uneven:
        for size in SIZES:
            found += uneven.uneven(size, pairs)
    print(f"{'ratio':<44}{'least':>7}  {'median [95 % interval]':<24}")
    for comparison in found:
        print(comparison.line())
    holds = not any(comparison.fails for comparison in found)
    OUT.mkdir(exist_ok=True)
    document = {
        "schema": 1,
        "holds": holds,
        "machine": {"kernel": platform.release(), "cores": os.cpu_count()},
        "command": " ".join(sys.argv),
        "seconds": round(time.monotonic() - begun),
        "comparisons": [comparison.as_json() for comparison in found],
    }
    write_json(out, document)
    say(f"wrote {out}")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main())
