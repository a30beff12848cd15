"""Streams in opposite directions over two rails: each policy, on free cards and on limited ones.

A rail of a lab carries as much both ways as each way alone. A limited card is made of the kernel's
own parts: all that an interface sends and receives passes one `ifb` device with one `tbf`, whose
rate is 1.6 times the rail's. So two streams that meet have 80 % each, as Zhang et al. measured.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial

from bench.comparison import Comparison, compare
from bench.rails_lab import GOODPUT, RailsLab, key
from bench.rails_progress import INTERVAL, Progress
from bench.turns import Times
from raddle.errors import LabError

HOSTS = ("h1", "h2")
RAILS = 2
RATE = 200_000_000
KEPT = 0.8
"""What a limited card keeps of each way's rate while the other is busy as well."""

WINDOWS = (4, 1)
"""Messages under way of each stream."""

SETTLE_S = 0.4
"""From when both streams have begun until they are measured."""

QUEUE = "latency 20ms"

ALONE, MET, APART, UNIDIRECTIONAL, DYNAMIC = (
    "one stream alone",
    "static, same rail",
    "static, own rails",
    "unidirectional",
    "dynamic",
)

Words = tuple[str, ...]
STREAMS: dict[str, tuple[Words, Words | None]] = {
    ALONE: (("--rails", "e0"), None),
    MET: (
        ("--rails", "e0,e1", "--policy", "static", "--source-port", "0"),
        ("--rails", "e0,e1", "--policy", "static", "--source-port", "0"),
    ),
    APART: (
        ("--rails", "e0,e1", "--policy", "static", "--source-port", "0"),
        ("--rails", "e0,e1", "--policy", "static", "--source-port", "1"),
    ),
    # A client sends on the first of the rails that it names.
    UNIDIRECTIONAL: (
        ("--rails", "e0,e1", "--policy", "unidirectional"),
        ("--rails", "e1,e0", "--policy", "unidirectional"),
    ),
    DYNAMIC: (
        ("--rails", "e0,e1", "--policy", "dynamic"),
        ("--rails", "e0,e1", "--policy", "dynamic"),
    ),
}
"""What the stream from h1 to h2, and the one back, are told."""


def streams(bench: RailsLab, side: str, window: int) -> Times:
    """Goodput of both streams together, and of each, while both go on."""
    lasts = round(1000 * (bench.seconds + SETTLE_S + 0.4))
    words = ["--size", "1MiB", "--window", str(window), "--warm-up", "1ms", "--count", "1"]
    words += [*INTERVAL, "--time", f"{lasts}ms", "--json"]
    runs = []
    for told, host, peer in zip(STREAMS[side], HOSTS, reversed(HOSTS), strict=True):
        if told is not None:
            program = ["raddle-perf", "run", "--peer", peer, *told, *words]
            runs.append(Progress(bench.start(host, program)))
    for run in runs:
        run.end()
    spans = [run.span() for run in runs]
    begun = max(first for first, _ in spans) + SETTLE_S
    ended = begun + bench.seconds
    if ended > min(last for _, last in spans) + 0.1:
        msg = f"{side}: the two streams were not {bench.seconds} s together"
        raise LabError(msg)
    each = [run.goodput(begun, ended) for run in runs]
    return {GOODPUT: sum(each), **{key(GOODPUT, n): one for n, one in enumerate(each, 1)}}


@contextmanager
def both_hosts_serve(bench: RailsLab) -> Iterator[None]:
    """Let h1 receive too."""
    with ExitStack() as stack:
        server = bench.start("h1", ["raddle-perf", "serve"])
        stack.callback(server.communicate)
        stack.callback(server.terminate)
        if server.stderr is None or "listening" not in server.stderr.readline():
            msg = "raddle-perf serve does not start on h1"
            raise LabError(msg)
        yield


def limit_cards(bench: RailsLab) -> None:
    """Let all that a card sends and receives pass one device of 2 x KEPT the rail's rate."""
    rate = round(2 * KEPT * RATE)
    shape = f"tbf rate {rate}bit burst {rate // 8 // 500}b {QUEUE}"
    for host in HOSTS:
        for rail in range(RAILS):
            card, interface = f"card{rail}", f"e{rail}"
            bench.ask(host, *f"ip link add {card} type ifb".split())
            bench.ask(host, *f"ip link set {card} up".split())
            bench.ask(host, *f"tc qdisc add dev {card} root {shape}".split())
            bench.ask(host, *f"tc qdisc add dev {interface} clsact".split())
            for way in ("ingress", "egress"):
                # Everything: kernels have u32 where they lack matchall.
                words = f"tc filter add dev {interface} {way} protocol all prio 1 u32 match u32 0 0"
                bench.ask(host, *f"{words} action mirred egress redirect dev {card}".split())


def sides(bench: RailsLab, window: int) -> dict[str, Callable[[], Times]]:
    """One stream alone, and two under each policy."""
    return {side: partial(streams, bench, side, window) for side in STREAMS}


def judge(what: str, rounds: list[dict[str, Times]]) -> list[Comparison]:
    """Both streams together against one alone, and each policy against the others; no limits."""

    def ratio(over: str, under: str) -> Comparison:
        found = [r[over][GOODPUT] / r[under][GOODPUT] for r in rounds]
        return compare(f"{what}: {over} / {under}", None, found)

    return [
        *(ratio(side, ALONE) for side in STREAMS if side != ALONE),
        ratio(UNIDIRECTIONAL, MET),
        ratio(UNIDIRECTIONAL, DYNAMIC),
        ratio(DYNAMIC, APART),
    ]
