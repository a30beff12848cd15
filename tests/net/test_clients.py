"""Clients of a switch's sockets that ask nothing, ask slowly, ask too much or do not read."""

import resource
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import switch_harness as harness
from switch_harness import SWITCH, SWITCH_ADDRESS, Net, Switch, run

pytestmark = pytest.mark.skipif(bool(harness.missing()), reason=harness.missing())

FLOOD = 400
QUICKLY_S = 2.0
"""How soon somebody is answered while others hold connections."""

FLOODER = """
import socket, sys
where, count, say = sys.argv[1], int(sys.argv[2]), sys.argv[3].encode()
held = []
for _ in range(count):
    if where.startswith("/"):
        s = socket.socket(socket.AF_UNIX)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
        s.settimeout(5)
        s.connect(where)
    else:
        s = socket.create_connection(("127.0.0.1", int(where)), timeout=5)
    try:
        s.send(say)
    except BrokenPipeError:
        pass
    held.append(s)
print("held", flush=True)
sys.stdin.read()
"""
FETCH = """
import time, urllib.request
begin = time.monotonic()
text = urllib.request.urlopen("http://127.0.0.1:9464/metrics", timeout=10).read().decode()
assert text.endswith("# EOF\\n")
print(time.monotonic() - begin)
"""
ASK = """
import socket, sys
s = socket.create_connection(("127.0.0.1", 9464), timeout=10)
answer = b""
try:
    s.sendall(eval(sys.argv[1]))
    s.shutdown(socket.SHUT_WR)
    while data := s.recv(65536):
        answer += data
except OSError:
    pass
print(answer.split(b"\\r\\n")[0].decode())
"""
SLOW = """
import socket, time
s = socket.create_connection(("127.0.0.1", 9464), timeout=30)
begin = time.monotonic()
try:
    for byte in b"GET /metrics HTTP/1.1\\r\\n" + b"x: y\\r\\n" * 1000:
        s.send(bytes([byte]))
        time.sleep(0.1)
except OSError:
    pass
print(time.monotonic() - begin)
"""


@pytest.fixture(scope="module")
def net(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Net]:
    with Net(tmp_path_factory.mktemp("net")) as net:
        switch = net.add_switch("tor1")
        net.add_host(1, switch)
        switch.start()
        yield net


@pytest.fixture
def switch(net: Net) -> Switch:
    return net.switches[0]


@contextmanager
def flood(net: Net, where: str, say: str = "") -> Iterator[None]:
    """Many connections that say this and then nothing."""
    words = ["ip", "netns", "exec", net.switches[0].namespace, "python3", "-c", FLOODER]
    words += [where, str(FLOOD), say]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as held:
        assert held.stdout is not None
        assert held.stdout.readline() == "held\n"
        yield
        held.communicate()


def fetch(net: Net) -> float:
    """Scrape the switch; give the seconds that it took."""
    return float(net.exec("tor1", "python3", "-c", FETCH))


@pytest.mark.parametrize(
    "say",
    ["", "GET", "GET /metrics HTTP/1.1\r\nHost: x\r\n", "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"],
    ids=["nothing", "a word", "half a head", "a request and never read"],
)
def test_many_idle_connections_do_not_starve_metrics(net: Net, say: str) -> None:
    with flood(net, "9464", say):
        for _ in range(3):
            assert fetch(net) < QUICKLY_S
        assert net.ping("h1", SWITCH_ADDRESS)


def test_few_descriptors_are_enough(net: Net, switch: Switch) -> None:
    assert switch.process is not None
    process = switch.process.pid
    few = len(list(Path(f"/proc/{process}/fd").iterdir())) + 8
    before = resource.prlimit(process, resource.RLIMIT_NOFILE)
    resource.prlimit(process, resource.RLIMIT_NOFILE, (few, before[1]))
    try:
        with flood(net, "9464"):
            for _ in range(3):
                assert fetch(net) < QUICKLY_S
                assert switch.status()["state"] == "running"
    finally:
        resource.prlimit(process, resource.RLIMIT_NOFILE, before)


def test_many_who_do_not_read_do_not_starve_the_status(net: Net, switch: Switch) -> None:
    with flood(net, str(switch.status_socket)):
        for _ in range(3):
            assert switch.status()["state"] == "running"
        assert fetch(net) < QUICKLY_S


def test_a_request_has_a_time_and_a_size(net: Net) -> None:
    slow = net.spawn("tor1", "python3", "-c", SLOW)
    start = r"b'GET /metrics HTTP/1.1\r\nHost: x\r\n' + "
    answers = {
        r"b'\r\n'": "HTTP/1.1 200 OK",
        r"b'X: ' + b'y' * (1 << 20) + b'\r\n\r\n'": "HTTP/1.1 431",
        r"b'X: y\r\n' * 10000 + b'\r\n'": "HTTP/1.1 431",
        r"b'Content-Length: 9999999999\r\n\r\n'": "HTTP/1.1 200 OK",
        r"b'\0' * 1000 + b'\r\n\r\n'": "HTTP/1.1 400",
    }
    for rest, answer in answers.items():
        said = net.exec("tor1", "python3", "-c", ASK, start + rest)
        # Who is cut off while it still sends may not see the answer.
        assert said.strip() == "" or said.startswith(answer), f"{rest}: {said}"
    assert net.exec("tor1", "python3", "-c", ASK, start + r"b'\r\n'").startswith("HTTP/1.1 200")
    out, _ = slow.communicate(timeout=60)
    assert 3 < float(out) < 20


def test_a_status_that_nobody_reads_is_no_error(switch: Switch) -> None:
    words = [str(SWITCH), "status", "--socket", str(switch.status_socket)]
    for more in ([], ["--json"]):
        command = " ".join([*words, *more])
        done = run("bash", "-c", f"{command} | true; echo ${{PIPESTATUS[0]}}")
        assert (done.stdout, done.stderr) == ("0\n", "")
        done = run("bash", "-c", f"{command} > /dev/full; echo $?")
        assert done.stdout == "1\n"
        assert done.stderr.startswith("error: cannot write to standard output: No space left")


def test_a_switch_that_does_not_answer_is_said_so(switch: Switch) -> None:
    assert switch.process is not None
    switch.process.send_signal(signal.SIGSTOP)
    try:
        done = run(SWITCH, "status", "--socket", switch.status_socket, check=False)
    finally:
        switch.process.send_signal(signal.SIGCONT)
    assert done.returncode == 1
    assert "does not answer" in done.stderr
    done = run(SWITCH, "status", "--socket", switch.status_socket.with_name("none"), check=False)
    assert done.returncode == 1
    assert "is the switch running here?" in done.stderr
