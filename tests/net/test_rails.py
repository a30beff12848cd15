"""`raddle-perf` between two hosts of a lab: goodput of rails, a rail that fails, clear errors."""

import json
import os
import pty
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from laboratory import missing, until, up
from raddle.services.lab import Lab

PERF = shutil.which("raddle-perf", path=str(Path(sys.executable).parent))
REASON = missing() or ("" if PERF else "raddle-perf is not built: make build")
pytestmark = pytest.mark.skipif(bool(REASON), reason=REASON)

QUICK = ("--time", "1500ms", "--warm-up", "300ms", "--count", "20")
REQUEST_S = 5.0
"""How long a client's request may take."""

PATIENCE_S = 60
"""How long a program may take that ends in seconds on a quiet machine."""

CONNECT = """
import json, socket, sys
count, texts = int(sys.argv[1]), sys.argv[2:]
open_ones = [socket.create_connection(("h2", 7650)) for _ in range(count)]
for number, one in enumerate(open_ones):
    one.sendall(texts[number % len(texts)].encode())
print("connected", flush=True)
closed = 0
for one in open_ones:
    one.settimeout(30)
    try:
        while one.recv(4096):
            pass
        closed += 1
    except ConnectionResetError:
        closed += 1
    except TimeoutError:
        pass
print(closed)
"""
"""Opens connections, sends each one of some texts, and counts how many the server closes."""
TRIES = 4
"""Runs of which the best counts: the machine may be busy. Limits on a quiet one are the bench's."""


def start(name: str, host: str, *words: str) -> subprocess.Popen[str]:
    """Start a program on a host of a lab."""
    opened = Lab.find(name)
    return subprocess.Popen(
        opened.command(host, list(words)), env=opened.environment(),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def finish(process: subprocess.Popen[str], status: int = 0) -> tuple[str, str]:
    """What a program said; fails at another exit status."""
    out, error = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == status, f"{process.returncode}\n{out}{error}"
    return out, error


def perf(name: str, *words: str) -> dict[str, Any]:
    """What `raddle-perf run` from h1 to h2 measures."""
    words = ("raddle-perf", "run", "--peer", "h2", *QUICK, *words, "--json")
    out, _ = finish(start(name, "h1", *words))
    found: dict[str, Any] = json.loads(out.splitlines()[-1])
    return found


def works(name: str, *words: str) -> bool:
    """Whether `raddle-perf run` on h1 measures."""
    run = start(name, "h1", "raddle-perf", "run", *QUICK, *words)
    run.communicate(timeout=PATIENCE_S)
    return run.returncode == 0


def best(measure: Callable[[], float], enough: float) -> float:
    """The best of a few measurements, or the first that is enough."""
    found = 0.0
    for _ in range(TRIES):
        found = max(found, measure())
        if found >= enough:
            break
    return found


@contextmanager
def served(name: str, rates: str) -> Iterator[str]:
    """A lab of two hosts with two rails, and a server on h2."""
    with up(name, "--hosts", "2", "--rails", "2", "--rates", rates):
        server = start(name, "h2", "raddle-perf", "serve")
        try:
            assert server.stderr is not None
            assert "listening" in server.stderr.readline()
            yield name
        finally:
            server.terminate()
            server.communicate(timeout=10)


@pytest.fixture(scope="module")
def even() -> Iterator[str]:
    """Two rails of 400 Mbit/s."""
    with served("rails-even", "400Mbps,400Mbps") as name:
        yield name


def test_two_rails_carry_more_than_one(even: str) -> None:
    """Every message is counted at both ends: the client fails if they differ."""

    def ratio() -> float:
        one = perf(even, "--rails", "e0")
        two = perf(even)
        assert [rail["interface"] for rail in one["rails"]] == ["e0"]
        assert [rail["interface"] for rail in two["rails"]] == ["e0", "e1"]
        assert one["goodput_bps"] <= 400e6
        for found in (one, two):
            measured = found["goodput_bps"] * found["seconds"] / 8
            assert sum(rail["bytes_sent"] for rail in found["rails"]) >= 0.95 * measured
            assert found["messages"] * found["size"] >= measured
            assert 0 < found["latency_us"] <= found["latency_p99_us"]
        gained: float = two["goodput_bps"] / one["goodput_bps"]
        return gained

    assert best(ratio, 1.4) >= 1.4


def test_uneven_rails_carry_most_of_their_sum() -> None:
    """Rails of 4:1 carry what each of them does: the least part of what a rail could."""
    rates = (400e6, 100e6)
    with served("rails-uneven", "400Mbps,100Mbps") as name:

        def least_part() -> float:
            found = perf(name, "--split", "weighted", "--policy", "dynamic")
            assert found["goodput_bps"] <= sum(rates)
            parts = zip(found["rails"], rates, strict=True)
            return min(float(rail["rate_bps"]) / rate for rail, rate in parts)

        assert best(least_part, 0.7) >= 0.7


def test_policies_and_splits_of_one_way_rails(even: str) -> None:
    """One way: the client sends on the first half of the rails; the other carries little."""
    found = perf(even, "--policy", "unidirectional", "--split", "equal")
    assert (found["policy"], found["split"]) == ("unidirectional", "equal")
    first, second = (rail["bytes_sent"] for rail in found["rails"])
    assert second < first / 10


def test_a_rail_that_goes_and_comes_does_not_end_a_run(even: str) -> None:
    """What was on it goes by the other; all messages come, and every byte is looked at."""
    words = ("run", "--peer", "h2", "--time", "3s", "--count", "10", "--check", "--json")
    running = start(even, "h1", "raddle-perf", *words)
    for pause, state in ((1.0, "down"), (0.7, "up")):
        time.sleep(pause)
        finish(start(even, "h1", "ip", "link", "set", "e1", state))
    out, _ = finish(running)
    found = json.loads(out.splitlines()[-1])
    assert found["retransmissions"] > 0
    assert found["goodput_bps"] >= 200e6
    until(lambda: "e1" in finish(start(even, "h1", "ip", "-br", "link", "show", "up"))[0], "e1 up")


def test_without_any_rail_it_is_an_error_after_the_set_time(even: str) -> None:
    """No hang; and the rails carry again when they are back."""
    words = ("run", "--peer", "h2", "--time", "60s", "--give-up", "500ms")
    running = start(even, "h1", "raddle-perf", *words)
    time.sleep(1)
    for rail in ("e0", "e1"):
        finish(start(even, "h1", "ip", "link", "set", rail, "down"))
    cut = time.monotonic()
    _, error = finish(running, 1)
    assert "no rail carried anything" in error
    assert time.monotonic() - cut < 10
    for rail in ("e0", "e1"):
        finish(start(even, "h1", "ip", "link", "set", rail, "up"))

    until(lambda: works(even, "--peer", "h2"), "the rails carry again")


def test_what_comes_is_told_meanwhile(even: str) -> None:
    """A line of JSON for each interval, and as many bytes at least as were asked for."""
    size, least = 1 << 20, 80_000_000
    words = ["--warm-up", "0s", "--bytes", "80MB", "--check", "--count", "1"]
    run = ("raddle-perf", "run", "--peer", "h2", *words, "--interval", "50ms", "--json")
    out, _ = finish(start(even, "h1", *run))
    lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    told, found = [one for one in lines if one.get("type") == "interval"], lines[-1]
    assert found["messages"] * size >= least
    times = [one["at_s"] for one in told]
    assert times == sorted(times)
    spans = [after - before for before, after in zip([0.0, *times], times, strict=False)]
    came = sum(one["goodput_bps"] * span / 8 for one, span in zip(told, spans, strict=True))
    assert 0.5 * least <= came <= found["messages"] * size
    assert all(one["longest_gap_ms"] > 0 for one in told)


def segments(name: str) -> list[str]:
    """Shared memory of the hosts of a lab, as they see it."""
    found = []
    for host in ("h1", "h2"):
        network, _ = finish(start(name, host, "stat", "-Lc", "%i", "/proc/self/ns/net"))
        entries = finish(start(name, host, "ls", "/dev/shm"))[0].split()
        end = f"-{network.strip()}"
        found += [e for e in entries if e.startswith("raddle-rails-") and e.endswith(end)]
    return found


def test_processes_share_rails_and_leave_nothing(even: str) -> None:
    """One of four is killed; the others go on, and the last one cleans up."""
    words = ("run", "--peer", "h2", "--time", "3s", "--count", "10", "--check", "--json")
    running = [start(even, "h1", "raddle-perf", *words) for _ in range(4)]
    until(lambda: len(segments(even)) == 2, "shared memory")
    time.sleep(1)
    killed = running.pop()
    killed.kill()
    killed.communicate(timeout=10)
    found = [json.loads(finish(one)[0].splitlines()[-1]) for one in running]
    assert all(one["knows_neighbours"] and one["messages"] > 0 for one in found)
    until(lambda: not segments(even), "nothing is left")


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("--peer", "h1"), 1, "raddle-perf serve"),
        (("--peer", "nowhere.invalid"), 1, "nowhere.invalid"),
        (("--peer", "h2", "--rails", "e0,e7"), 2, "no interface e7"),
        (("--peer", "h2", "--rails", "lo"), 1, "rail lo"),
        (("--peer", "h2", "--size", "0B"), 2, "--size"),
        (("--peer", "h2", "--latency-size", "1GiB"), 2, "--latency-size"),
        (("--peer", "h2", "--bytes", "0B"), 2, "--bytes"),
        (("--peer", "h2", "--time", "0s"), 2, "--time"),
        (("--peer", "h2", "--scheme", "hpcc"), 1, "telemetry"),
        (("--peer", "h2", "--rates", "1Gbps,1Gbps,1Gbps"), 2, "3 rates for 2 rails"),
    ],
)
def test_errors_name_what_is_wrong(
    even: str, words: tuple[str, ...], status: int, said: str
) -> None:
    """Status 1: the peer or the system; 2: the command line."""
    _, error = finish(start(even, "h1", "raddle-perf", "run", *words), status)
    assert said in error
    assert "panicked" not in error


def test_the_server_refuses_what_is_no_client(even: str) -> None:
    """A line of another program or version gets an error line, and the server goes on."""
    program = (
        "import socket, sys; s = socket.create_connection(('h2', 7650)); "
        "s.sendall(sys.argv[1].encode()); print(s.makefile().readline())"
    )
    for line, said in (("GET / HTTP/1.1\r\n", "not understood"), ('{"version": 9}\n', "version 9")):
        out, _ = finish(start(even, "h1", sys.executable, "-c", program, line))
        assert said in json.loads(out)["error"]
    assert perf(even)["messages"] > 0


def connections(name: str, count: int, *texts: str, port: int = 7650) -> subprocess.Popen[str]:
    """Connections of h1 to a server, which say one of these texts each and nothing more."""
    script = CONNECT.replace("7650", str(port))
    program = start(name, "h1", sys.executable, "-c", script, str(count), *texts)
    assert program.stdout is not None
    assert program.stdout.readline() == "connected\n"
    return program


def test_connections_without_a_request_starve_no_client(even: str) -> None:
    """Idle ones, and ones that send half a request; nor do they last if nobody needs the place."""
    begun = time.monotonic()
    program = connections(even, 200, "", '{"version": 2, "job"')
    assert perf(even)["messages"] > 0
    closed, _ = finish(program)
    assert int(closed) == 200
    assert time.monotonic() - begun >= REQUEST_S - 1, "some of them were waited for"


def test_a_server_without_descriptors_goes_on(even: str) -> None:
    """It says what is missing, and serves again when there is room."""
    words = ("sh", "-c", "ulimit -n 24; exec raddle-perf serve --port 7651")
    server = start(even, "h2", *words)
    assert server.stderr is not None
    try:
        assert "listening" in server.stderr.readline()
        program = connections(even, 40, "", port=7651)
        assert "a connection cannot be taken" in server.stderr.readline()
        program.kill()
        program.communicate(timeout=10)
        until(lambda: works(even, "--peer", "h2:7651"), "it serves again")
    finally:
        server.terminate()
        server.communicate(timeout=10)


def request(port: int) -> str:
    """A right request of a client that has nothing more to say."""
    rail = {"address": f"10.100.0.1:{port}", "mtu": 1500}
    return json.dumps(
        {
            "version": 2, "job": port, "secret": False, "rails": [rail], "rates": ["10Gbps"],
            "policy": "dynamic", "split": "weighted", "scheme": "swift", "size": "1MiB",
            "check": False,
        }
    ) + "\n"  # fmt: skip


@pytest.mark.scale
def test_clients_that_only_ask_lose_their_places(even: str) -> None:
    """Sixteen places are theirs until their rails have been silent for ten seconds."""
    programs = [connections(even, 1, request(20_000 + client)) for client in range(16)]
    _, error = finish(start(even, "h1", "raddle-perf", "run", "--peer", "h2", *QUICK), 1)
    assert "already measures with 16 clients" in error
    assert [finish(program)[0].strip() for program in programs] == ["1"] * 16
    assert perf(even)["messages"] > 0


def test_goodput_is_told_before_latency_is_measured(even: str) -> None:
    """Latency ends at its limit, with as many messages as went; by default they are short."""
    words = ["--time", "500ms", "--warm-up", "100ms", "--count", "1000000"]
    words += ["--latency-time", "1s", "--json"]
    running = start(even, "h1", "raddle-perf", "run", "--peer", "h2", *words)
    assert running.stdout is not None
    assert running.stdout.readline().startswith("goodput ")
    told = time.monotonic()
    out, error = finish(running)
    assert time.monotonic() - told > 0.9, "latency was measured after that"
    assert error == "", "there is no progress where nobody watches"
    found = json.loads(out.splitlines()[-1])
    assert found["latency_size"] == 8
    assert 100 < found["latency_messages"] < 1_000_000


def test_latency_of_long_messages_has_a_limit(even: str) -> None:
    """A thousand messages of 16 MiB there and back would take five minutes and more."""
    begun = time.monotonic()
    words = ("--time", "300ms", "--latency-size", "16MiB", "--latency-time", "1s")
    out, _ = finish(start(even, "h1", "raddle-perf", "run", "--peer", "h2", *words, "--json"))
    assert time.monotonic() - begun < 20
    found = json.loads(out.splitlines()[-1])
    assert found["latency_size"] == 16 << 20
    assert 1 <= found["latency_messages"] < 20
    # Half a round trip: 16 MiB over 800 Mbit/s take 168 ms.
    assert found["latency_us"] > 150_000


def test_bytes_end_it_when_they_are_there(even: str) -> None:
    """Not before, and not only after some time; both ends it too, by what is first."""
    base = ("raddle-perf", "run", "--peer", "h2", "--warm-up", "0s", "--count", "1", "--json")

    def seconds(*words: str) -> float:
        out, _ = finish(start(even, "h1", *base, *words))
        found = json.loads(out.splitlines()[-1])
        measured: float = found["seconds"]
        return measured

    # 10 MB take 0.1 s; the default time is 5 s.
    assert seconds("--bytes", "10MB") < 3
    assert seconds("--bytes", "10MB", "--time", "60s") < 3
    assert 1 <= seconds("--bytes", "10GB", "--time", "1s") < 5


def test_progress_is_shown_on_a_terminal(even: str) -> None:
    """And results stand on lines of their own."""
    leader, follower = pty.openpty()
    opened = Lab.find(even)
    words = ["raddle-perf", "run", "--peer", "h2", *QUICK]
    running = subprocess.Popen(
        opened.command("h1", words), env=opened.environment(),
        stdout=subprocess.PIPE, stderr=follower, text=True,
    )  # fmt: skip
    os.close(follower)
    out, _ = running.communicate(timeout=PATIENCE_S)
    shown = os.read(leader, 1 << 16).decode()
    os.close(leader)
    assert running.returncode == 0
    assert "warming up: " in shown
    assert re.search(r"goodput \d+\.\d Mbit/s: \d\.\d s of 1\.5s", shown)
    assert shown.endswith("\r\x1b[2K"), "the line is empty at the end"
    assert [line.split()[0] for line in out.splitlines()] == [
        "goodput", "rail", "e0", "e1", "latency", out.splitlines()[-1].split()[0],
    ]  # fmt: skip
    assert out.endswith("sent again\n")


def test_a_reader_that_goes_ends_a_run(even: str) -> None:
    """As `raddle-perf run --interval 50ms | head -1` does: it has what it wanted."""
    words = ("raddle-perf", "run", "--peer", "h2", "--time", "60s", "--interval", "50ms")
    with start(even, "h1", *words) as running:
        assert running.stdout is not None
        running.stdout.readline()
        running.stdout.close()
        assert running.stderr is not None
        assert running.stderr.read() == ""
    assert running.returncode == 0


def test_a_full_disk_is_an_error(even: str) -> None:
    words = ("sh", "-c", f"raddle-perf run --peer h2 {' '.join(QUICK)} >/dev/full")
    _, error = finish(start(even, "h1", *words), 1)
    assert error == "error: standard output: No space left on device (os error 28)\n"


def test_a_client_waits_for_a_server_that_starts(even: str) -> None:
    """As where both are typed in one line."""
    words = ("raddle-perf", "run", "--peer", "h2:7652", *QUICK)
    running = start(even, "h1", *words)
    time.sleep(0.5)
    server = start(even, "h2", "raddle-perf", "serve", "--port", "7652")
    try:
        finish(running)
    finally:
        server.terminate()
        server.communicate(timeout=10)
