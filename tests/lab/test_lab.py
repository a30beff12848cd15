"""A lab as its users meet it: up, names, programs, rates, several at once, bad words."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from laboratory import SWITCH, inside, lab, lab_json, missing, process, running, start, until, up
from raddle.cli.app import app
from raddle.errors import LabError

needs_lab = pytest.mark.skipif(bool(missing()), reason=missing())
needs_openmpi = pytest.mark.skipif(
    shutil.which("mpirun.openmpi") is None, reason="needs openmpi-bin"
)
needs_mpich = pytest.mark.skipif(shutil.which("mpiexec.mpich") is None, reason="needs mpich")
needs_switch = pytest.mark.skipif(SWITCH is None, reason="raddle-switch is not built")


def no_library() -> str:
    """Why no program can be offloaded here."""
    try:
        from raddle import _core
        from raddle.services.lab.tools import mpi_library

        mpi_library()
    except (ImportError, LabError) as error:
        return str(error).splitlines()[0]
    if not hasattr(_core, "job_key") or shutil.which("mpicc.openmpi") is None:
        return "needs mpicc.openmpi"
    return ""


SENDER = """
import socket, sys
s = socket.create_connection((sys.argv[1], 5001))
s.sendall(bytes(int(sys.argv[2])))
"""
RECEIVER = """
import socket, time
with socket.create_server(("", 5001)) as server:
    print("ready", flush=True)
    with server.accept()[0] as link:
        total = len(link.recv(1 << 16))
        begun, first = time.monotonic(), total
        while part := link.recv(1 << 16):
            total += len(part)
        print((total - first) * 8 / (time.monotonic() - begun))
"""


@pytest.fixture(scope="module")
def eight() -> Iterator[str]:
    """Eight hosts below two TORs and a SPINE."""
    with up(f"test-{os.getpid()}", "--hosts", "8") as name:
        yield name


@needs_lab
def test_status_shows_hosts_switches_and_links(eight: str) -> None:
    status = lab_json("status", "--name", eight)
    assert [host["name"] for host in status["hosts"]] == [f"h{i}" for i in range(1, 9)]
    assert {s["name"]: s["tier"] for s in status["switches"]} == {"tor1": 1, "tor2": 1, "spine1": 2}
    assert all(switch["works"] for switch in status["switches"])
    assert status["offload"] == "off"
    text = lab("status", "--name", eight).stdout
    assert "h8    10.100.0.8  tor2" in text
    assert "h1 h2 h3 h4 spine1" in text


@needs_lab
def test_every_name_resolves_on_every_node(eight: str) -> None:
    names = [*(f"h{i}" for i in range(1, 9)), "tor1", "tor2", "spine1"]
    for node in ("h1", "h8", "tor2", "spine1"):
        found = inside(eight, node, "getent", "ahostsv4", *names)
        assert {line.split()[0] for line in found.splitlines()} == {
            *(f"10.100.0.{i}" for i in range(1, 9)), "10.100.255.1", "10.100.255.2", "10.100.254.1",
        }  # fmt: skip


@needs_lab
def test_a_host_is_a_host(eight: str, tmp_path: Path) -> None:
    script = (
        "hostname; ls /sys/class/net | tr '\\n' ' '; echo; ls /dev/shm | wc -l; "
        "echo $PATH; pwd; mktemp; ipcs -m | grep -c 0x || true"
    )
    before = Path.cwd()
    os.chdir(tmp_path)
    try:
        said = inside(eight, "h5", "sh", "-c", script).splitlines()
    finally:
        os.chdir(before)
    assert said[0] == "h5"
    assert {"e0", "lo"} == set(said[1].split()) - {"sit0", "tunl0", "ip6tnl0"}
    assert said[2] == "0"
    # The caller's PATH, then the programs beside `raddle`.
    path = said[3].split(":")
    callers = list(dict.fromkeys(os.environ["PATH"].split(":")))
    assert path[: len(callers)] == callers
    assert str(Path(sys.executable).parent) in path
    assert said[4] == str(tmp_path)
    assert said[5].startswith(f"/run/raddle/lab/{eight}/tmp/")
    assert not Path(said[5]).exists(), "temporary files of hosts are not the machine's"
    assert said[6] == "0"


@needs_lab
def test_a_host_asks_for_an_address_until_the_link_is_there(eight: str, tmp_path: Path) -> None:
    down = tmp_path / "down"
    words = f"ip link set h2 down; touch {down}; sleep 0.6; ip link set h2 up"
    inside(eight, "h1", "ip", "neigh", "flush", "dev", "e0")
    cut = start("exec", "--name", eight, "tor1", "--", "sh", "-c", words)
    until(down.exists, "the link is down")
    said = inside(eight, "h1", "ping", "-c1", "-W3", "h2")
    assert cut.wait(20) == 0
    cut.communicate()
    # The first question is lost; Linux alone would ask again after a second.
    assert float(said.partition("time=")[2].split()[0]) < 800


@needs_lab
def test_ends_of_a_link_have_two_numbers(eight: str) -> None:
    numbers = []
    for node in ("h1", "h2", "h7", "tor1"):
        links = json.loads(inside(eight, node, "ip", "-j", "link", "show", "type", "veth"))
        numbers += [(link["ifindex"], link["link_index"]) for link in links]
    assert len(numbers) > 4
    assert all(ours != theirs for ours, theirs in numbers), numbers


@needs_lab
def test_parts_of_a_message_inside_a_host_do_not_wait_for_acknowledgements(eight: str) -> None:
    program = """
import socket, statistics, threading, time
listener = socket.create_server(("127.0.0.1", 0))
def answer():
    peer = listener.accept()[0]
    for _ in range(10):
        peer.recv(2, socket.MSG_WAITALL)
        peer.send(b"!")
threading.Thread(target=answer).start()
client = socket.create_connection(listener.getsockname())
times = []
for _ in range(10):
    begun = time.monotonic()
    client.send(b"a")
    client.send(b"b")
    client.recv(1)
    times.append(time.monotonic() - begun)
print(statistics.median(times))
"""
    # By itself, Linux would acknowledge the first part after 40 ms, and the second would wait.
    assert float(inside(eight, "h1", sys.executable, "-c", program)) < 0.03


@needs_lab
def test_exec_gives_the_status_of_the_command(eight: str) -> None:
    words = ("exec", "--name", eight)
    done = process(*words, "h2", "--", "sh", "-c", "hostname; exit 7", status=7)
    assert done.stdout == "h2\n"
    assert process(*words, "h3", "ls", "-d", "/dev/shm").stdout == "/dev/shm\n"
    assert "no host `h9`" in process(*words, "h9", "--", "true", status=2).stderr
    inside(eight, "h2", "ping", "-c1", "-W2", "h7")


@needs_lab
@pytest.mark.parametrize(
    "mpi",
    [pytest.param("openmpi", marks=needs_openmpi), pytest.param("mpich", marks=needs_mpich)],
)
def test_mpirun_starts_ranks_where_they_belong(eight: str, mpi: str) -> None:
    words = ("mpirun", "--name", eight, "--mpi", mpi)
    done = process(*words, "--hosts", "4", "--", "hostname")
    assert sorted(done.stdout.split()) == ["h1", "h2", "h3", "h4"]
    done = process(*words, "--hosts", "h2,h7,h8", "--ppn", "1,3,2", "hostname")
    assert sorted(done.stdout.split()) == ["h2", "h7", "h7", "h7", "h8", "h8"]
    process(*words, "--hosts", "2", "--", "sh", "-c", "exit 3", status=3)


@needs_lab
@needs_openmpi
@needs_switch
@pytest.mark.skipif(bool(no_library()), reason=no_library())
def test_with_offload_the_program_finds_its_switches(eight: str, tmp_path: Path) -> None:
    program, report = tmp_path / "allreduce", tmp_path / "report.json"
    source = Path(__file__).parents[2] / "bench" / "programs" / "allreduce.c"
    subprocess.run(["mpicc.openmpi", "-o", program, source], check=True)
    words = ("mpirun", "--name", eight, "--hosts", "h1,h2,h6")
    variables = {"RADDLE_REPORT": str(report), "RADDLE_OFFLOAD": "always"}
    program_words = ("--", str(program), "-n", "50", "8")
    process(*words, "--offload", "sockets", *program_words, variables=variables)
    assert json.loads(report.read_text())["offloaded"] > 50
    report.unlink()
    plain = process(*words, "--offload", "off", *program_words, variables=variables)
    assert json.loads(plain.stdout)["ranks"] == 3
    assert not report.exists(), "nothing of ours is under a plain program"


@needs_lab
@needs_openmpi
def test_an_interrupted_mpirun_leaves_nothing_running(eight: str) -> None:
    before = running(eight)
    run = start("mpirun", "--name", eight, "--hosts", "3", "--", "sleep", "1000")
    # mpirun, two daemons, three ranks
    until(lambda: running(eight) >= before + 6, "ranks started")
    run.send_signal(signal.SIGINT)
    assert run.wait(20) == 130
    run.communicate()
    assert running(eight) == before
    assert not list(Path("/sys/fs/cgroup").glob(f"**/raddle-lab-{eight}/run-*"))


@needs_lab
def test_rates_hold_at_the_sending_host() -> None:
    words = ("--hosts", "2", "--rails", "2", "--rates", "100Mbps,400Mbps")
    with up(f"test-rates-{os.getpid()}", *words) as name:
        for target, rate in (("h2", 100e6), ("h2-e1", 400e6)):
            receiver = start("exec", "--name", name, "h2", "--", "python3", "-c", RECEIVER)
            assert receiver.stdout is not None
            assert receiver.stdout.readline() == "ready\n"
            size = str(round(rate / 8))  # a second at full rate
            inside(name, "h1", "python3", "-c", SENDER, target, size)
            measured = float(receiver.communicate(timeout=20)[0])
            assert 0.85 * rate < measured < 1.05 * rate, f"{measured / 1e6:.1f} Mbit/s"


@needs_lab
def test_a_large_lab_does_not_fill_the_kernels_table_of_neighbours() -> None:
    with up(f"test-large-{os.getpid()}", "--hosts", "36", "--hosts-per-tor", "9") as name:
        entries = inside(name, "h36", "ip", "neigh", "show", "nud", "permanent").splitlines()
        assert len(entries) == 35  # 36 hosts would need 1,260 of 1,024 entries
        inside(name, "h36", "ping", "-c1", "-W2", "h1")


@needs_lab
def test_labs_of_different_names_do_not_meet(eight: str) -> None:
    with up(f"test-other-{os.getpid()}", "--hosts", "2") as other:
        names = {found["name"] for found in lab_json("list")["labs"]}
        assert {eight, other} <= names
        # Same addresses, other machines: the other's h2 hears nothing on this lab's links.
        assert inside(other, "h2", "hostname") == "h2\n"
        inside(other, "h1", "getent", "hosts", "h3", status=2)
        inside(other, "h1", "ping", "-c1", "-W2", "h2")
        inside(other, "h1", "ping", "-c1", "-W0.2", "10.100.0.3", status=1)
    inside(eight, "h1", "ping", "-c1", "-W2", "h2")


@needs_lab
def test_a_name_is_taken_until_it_is_replaced() -> None:
    with up(f"test-again-{os.getpid()}", "--hosts", "2") as name:
        assert "is up already" in lab("up", "--name", name, status=2).stderr
        replaced = lab_json("up", "--name", name, "--hosts", "3", "--replace")
        assert len(replaced["hosts"]) == 3
    assert "no lab `" in lab("status", "--name", name, status=2).stderr
    assert "no lab was up" in lab("down", "--name", name).stderr


@needs_lab
@needs_switch
def test_switches_change_in_place(eight: str) -> None:
    from raddle.services.lab import Backend, Lab

    opened = Lab.find(eight)
    for backend in (Backend.SOCKETS, Backend.OFF, Backend.SOCKETS):
        opened.use(backend)
        inside(eight, "h1", "ping", "-c1", "-W2", "h8")
        inside(eight, "h8", "ping", "-c1", "-W2", "spine1")
    lab("switch", "--name", eight, "tor2", "kill")
    status = lab_json("status", "--name", eight, status=1)
    assert [s["name"] for s in status["switches"] if not s["works"]] == ["tor2"]
    inside(eight, "h1", "ping", "-c1", "-W0.5", "h8", status=1)
    lab("switch", "--name", eight, "tor2", "restart")
    inside(eight, "h1", "ping", "-c1", "-W2", "h8")
    opened.use(Backend.OFF)


@needs_lab
def test_a_switch_that_ends_at_once_is_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "raddle-switch"
    broken.write_text("#!/bin/sh\necho 'out of order' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr("raddle.services.lab.switches.switch_program", lambda: broken)
    monkeypatch.setattr("raddle.services.lab.virtual.switch_program", lambda: broken)
    name = f"test-broken-{os.getpid()}"
    done = lab("up", "--name", name, "--hosts", "2", "--offload", "sockets", status=2)
    assert "out of order" in done.stderr
    assert "no lab was up" in lab("down", "--name", name).stderr


@needs_lab
def test_a_bridge_cannot_be_killed(eight: str) -> None:
    assert "bridge of the kernel" in lab("switch", "--name", eight, "tor1", "kill", status=2).stderr
    assert "no switch `tor9`" in lab("switch", "--name", eight, "tor9", "kill", status=2).stderr


@needs_lab
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("up", "--hosts", "0"), "a lab has 1 to 250"),
        (("up", "--hosts", "1000"), "a lab has 1 to 250"),
        (("up", "--rates", "100"), "--rates `100` has no unit"),
        (("up", "--rates", "100Mbps,1Gbps"), "2 rates for 1 rail\n"),
        (("up", "--name", "../x"), "is not a name for a lab"),
        (("up", "--offload", "magic"), "magic"),
        (("exec", "--name", "nowhere", "h1", "true"), "no lab `nowhere`"),
        (("mpirun", "--name", "nowhere", "true"), "no lab `nowhere`"),
        (("mpirun",), "Missing argument"),
        (("down", "--name", "a/b"), "is not a name for a lab"),
        (("frobnicate",), "No such command"),
    ],
)
def test_bad_words_are_exit_2_with_the_way_out(words: tuple[str, ...], message: str) -> None:
    done = CliRunner().invoke(app, ["lab", *words], prog_name="raddle")
    assert done.exit_code == 2
    assert message in done.stderr


@needs_lab
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--hosts", "9"), "has 8"),
        (("--hosts", "h1,h1"), "twice"),
        (("--hosts", "h1,x"), "no host `x`"),
        (("--hosts", "3", "--ppn", "1,2"), "2 numbers for 3 hosts"),
        (("--ppn", "0"), "number of ranks"),
        (("--mpi-args", "'open"), "--mpi-args"),
    ],
)
def test_runs_that_do_not_fit_the_lab_are_refused(
    eight: str, words: tuple[str, ...], message: str
) -> None:
    line = ["lab", "mpirun", "--name", eight, *words, "--", "true"]
    done = CliRunner().invoke(app, line, prog_name="raddle")
    assert done.exit_code == 2
    assert message in done.stderr


def test_without_root_a_lab_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    for words in (("up",), ("down",), ("status",), ("list",), ("exec", "h1", "true")):
        done = CliRunner().invoke(app, ["lab", *words], prog_name="raddle")
        assert done.exit_code == 2
        assert "needs root" in done.stderr


def test_a_missing_program_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(
        shutil, "which", lambda name, **_: None if name == "unshare" else f"/bin/{name}"
    )
    done = CliRunner().invoke(app, ["lab", "up"], prog_name="raddle")
    assert done.exit_code == 2
    assert "install the Debian packages util-linux" in done.stderr
