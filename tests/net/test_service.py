"""The software switch as a service: file and secret, other instances, signals, reloads, systemd."""

import contextlib
import fcntl
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import switch_harness as harness
from switch_harness import PATIENCE_S, SWITCH, SWITCH_ADDRESS, Net, Switch, run, until

pytestmark = pytest.mark.skipif(bool(harness.missing()), reason=harness.missing())

OTHER_METRICS = "127.0.0.1:9465"
FETCH = """
import sys, urllib.request
text = urllib.request.urlopen(f"http://{sys.argv[1]}/metrics", timeout=10).read().decode()
print(len(text.splitlines()))
"""
NOTIFIED_S = 20.0
SQUAT = """
import os, socket, sys, time
os.setgroups([])
os.setgid(65534)
os.setuid(65534)
held = [socket.socket(socket.AF_UNIX) for _ in sys.argv[1:]]
for one, port in zip(held, sys.argv[1:]):
    one.bind(f"\\0raddle-switch/port/{port}")
# The second one does not even answer.
held[0].listen()
print("held", flush=True)
time.sleep(600)
"""


@pytest.fixture
def net(tmp_path: Path) -> Iterator[Net]:
    with Net(tmp_path) as net:
        yield net


@pytest.fixture
def switch(net: Net) -> Switch:
    """A switch that runs between two hosts."""
    switch = net.add_switch("tor1")
    net.add_host(1, switch)
    net.add_host(2, switch)
    switch.start()
    return switch


def started(switch: Switch, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run `raddle-switch` in a switch's namespace, which must end by itself."""
    return run(*switch.command(*words), check=False)


def serves(net: Net, address: str) -> bool:
    """Whether a switch serves its metrics there."""
    return net.exec("tor1", "python3", "-c", FETCH, address, check=False)[:1].isdigit()


def settings(lines: list[dict[str, Any]], words: str) -> str:
    """The settings that a line of the log with these words names; empty if there is none."""
    found = (str(line.get("settings", "")) for line in lines if words in line["message"])
    return next(found, "")


# The file and the secret


def write(folder: Path, ports: str = '[[ports]]\ninterface = "p1"\n', **keys: str) -> Path:
    """A switch's file in which some keys differ."""
    values = {"name": "x", "address": "10.0.0.1", "secret_file": "s"} | keys
    text = "".join(f"{key} = {json.dumps(value)}\n" for key, value in values.items())
    path = folder / "x.toml"
    path.write_text(f"schema = 1\ntier = 1\n{text}{ports}")
    return path


def test_each_bad_secret_has_words_of_its_own(tmp_path: Path) -> None:
    good = run(SWITCH, "new-secret").stdout
    secret = tmp_path / "s"
    cases = {
        "missing": "there is no secret",
        "folder": "is a folder",
        "pipe": "is a pipe",
        "empty": "is empty",
        "short": "has 62 hexadecimal digits",
        "other": "holds no secret",
        "open": f"chmod 600 {secret}",
    }
    for kind, words in cases.items():
        if secret.is_dir():
            secret.rmdir()
        secret.unlink(missing_ok=True)
        match kind:
            case "folder":
                secret.mkdir()
            case "pipe":
                os.mkfifo(secret)
            case "empty" | "short" | "other" | "open":
                text = {"empty": "", "short": good[2:], "other": "key", "open": good}[kind]
                secret.write_text(text)
                secret.chmod(0o644 if kind == "open" else 0o600)
        commands: list[list[str | Path]] = [
            ["--config", write(tmp_path), "--check"],
            ["--config", write(tmp_path)],
            ["job-key", "--secret-file", secret, "7"],
        ]
        for command in commands:
            done = run(SWITCH, *command, check=False)
            assert done.returncode == 2, f"{kind}: {done}"
            assert words in done.stderr, f"{kind}: {done.stderr}"
            assert ("new-secret" in done.stderr) == (kind in ("missing", "folder", "pipe", "other"))


def test_a_new_secret_is_its_owners_alone_and_overwrites_none(tmp_path: Path) -> None:
    secret = tmp_path / "s"
    run(SWITCH, "new-secret", "--out", secret)
    assert secret.stat().st_mode & 0o777 == 0o600
    text = secret.read_text()
    again = run(SWITCH, "new-secret", "--out", secret, check=False)
    assert again.returncode == 2
    assert "already exists" in again.stderr
    assert secret.read_text() == text
    full = run(SWITCH, "new-secret", "--out", tmp_path / "none" / "s", check=False)
    assert full.returncode == 1
    assert "none/s: No such file" in full.stderr


def test_a_file_that_never_ends_is_refused(net: Net, switch: Switch) -> None:
    pipe = net.folder / "pipe"
    os.mkfifo(pipe)
    for file, what in ((pipe, "a pipe"), (Path("/dev/zero"), "a device"), (net.folder, "a folder")):
        for words in ((), ("--check",)):
            done = run(SWITCH, "--config", file, *words, check=False)
            assert done.returncode == 2
            assert f"cannot read {file}: it is {what}" in done.stderr
    config = switch.write_config()
    config.unlink()
    os.mkfifo(config)
    switch.send(signal.SIGHUP)
    until(lambda: any("it is a pipe" in line["message"] for line in switch.log()), "an error")
    assert net.ping("h1", "10.77.0.2")


def test_a_check_names_everything_that_the_machine_knows_better(net: Net, tmp_path: Path) -> None:
    switch = net.add_switch("tor1")
    net.add_host(1, switch)
    net.add_host(2, switch)
    config = switch.write_config()
    fine = started(switch, "--config", config, "--check")
    assert (fine.stdout, fine.returncode) == (f"{config}: fine, 2 ports\n", 0)
    net.exec("tor1", "ip", "addr", "add", "10.77.0.99/24", "dev", "p1")
    odd = started(switch, "--config", config, "--check")
    assert odd.returncode == 0
    assert "warning: " in odd.stderr
    assert "10.77.0.99" in odd.stderr
    net.exec("tor1", "ip", "link", "set", "p2", "down")
    switch.ports += [("lo", False), ("p9", False)]
    switch.settings["address"] = "10.77.0.99"
    switch.settings["metrics"] = "192.0.2.9:9464"
    config = switch.write_config()
    done = started(switch, "--config", config, "--check")
    assert done.returncode == 2
    for words in (
        "the kernel has 10.77.0.99 too, on p1",
        "`lo` is the loopback",
        "there is no interface `p9`",
        "`p2` is not switched on",
        "no socket can have 192.0.2.9",
    ):
        assert words in done.stderr
    assert "tor1.toml:3:11: `address`" in done.stderr
    assert len(done.stderr.splitlines()) <= 24


def test_a_switch_refuses_what_cannot_work_and_waits_for_what_may_come(net: Net) -> None:
    switch = net.add_switch("tor1")
    net.add_host(1, switch)
    switch.ports.append(("lo", False))
    done = started(switch, "--config", switch.write_config())
    assert done.returncode == 2
    assert "`lo` is the loopback" in done.stderr
    switch.ports[-1] = ("p2", False)
    switch.launch()
    until(lambda: switch.up() == {"p1": True, "p2": False}, "p1 up")
    assert any("there is no interface `p2`" in line["message"] for line in switch.log())
    switch.ports.pop()
    net.add_host(2, switch)
    until(lambda: all(switch.up().values()), "p2 up")
    assert net.ping("h1", "10.77.0.2")


def test_a_file_at_the_path_of_the_status_socket_is_left_alone(net: Net, tmp_path: Path) -> None:
    switch = net.add_switch("tor1")
    net.add_host(1, switch)
    precious = tmp_path / "precious"
    precious.write_text("data")
    switch.settings["status"] = str(precious)
    done = started(switch, "--config", switch.write_config())
    assert done.returncode == 2
    assert f"{precious} exists and is not a socket" in done.stderr
    assert precious.read_text() == "data"


# Other instances


def test_an_interface_belongs_to_one_switch(net: Net, switch: Switch) -> None:
    process = switch.process
    assert process is not None
    taken = f"`p1` is already a port of process {process.pid} ("
    switch.settings |= {"name": "b", "status": str(net.folder / "b"), "metrics": OTHER_METRICS}
    words = switch.command("--config", switch.write_config())
    # Another view of the file system, as containers have it, does not help.
    hidden = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs none /run && exec "$@"', "-"]
    for command in (words, [*words[:4], *hidden, *words[4:]]):
        done = run(*command, check=False)
        assert done.returncode == 1
        assert taken in done.stderr
        assert "tor1.toml" in done.stderr
    assert net.ping("h1", "10.77.0.2")


def test_one_switch_alone_forwards_for_an_interface_that_comes_under_two_names(net: Net) -> None:
    first = net.add_switch("tor1")
    first.ports.append(("other1", False))
    first.launch()
    until(first.status_socket.exists, "the first switch")
    second = Switch(net, "tor2", "10.77.0.252", namespace=first.namespace)
    net.switches.append(second)
    second.ports.append(("p1", False))
    second.settings["metrics"] = OTHER_METRICS
    second.launch()
    until(second.status_socket.exists, "the second switch")
    net.add_namespace("h1")
    net.connect(1, first)
    run("ip", "-n", first.namespace, "link", "property", "add", "dev", "p1", "altname", "other1")
    taken = "`p1` is already a port of process"
    until(lambda: taken in (net.folder / "tor1.log").read_text(), "the first switch's words")
    assert (first.up(), second.up()) == ({"other1": False}, {"p1": True})


def test_a_user_who_holds_the_name_of_a_lock_does_not_keep_a_switch_from_starting(
    net: Net,
) -> None:
    switch = net.add_switch("tor1")
    for number in (1, 2):
        net.add_host(number, switch)
    ports = [port for port, _ in switch.ports]
    with net.spawn("tor1", "python3", "-c", SQUAT, *ports) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline()
            switch.start()
        finally:
            holder.kill()
    warned = [line for line in switch.log() if "not a switch" in line["message"]]
    assert sorted(line["port"] for line in warned) == ["p1", "p2"]
    assert any(f"process {holder.pid} (" in str(line) for line in warned)


def test_a_status_socket_belongs_to_one_switch(net: Net, switch: Switch) -> None:
    process = switch.process
    assert process is not None
    other = net.add_switch("tor2", "10.77.0.252")
    net.add_host(3, other)
    other.settings["status"] = str(switch.status_socket)
    done = started(other, "--config", other.write_config())
    assert done.returncode == 1
    assert f"{switch.status_socket} belongs to process {process.pid} (" in done.stderr
    assert "tor1.toml" in done.stderr
    assert switch.status()["name"] == "tor1"


def test_a_killed_switch_is_replaced_at_once(net: Net, switch: Switch) -> None:
    for number in (signal.SIGKILL, signal.SIGTERM) * 3:
        assert switch.process is not None
        old = switch.process
        old.send_signal(number)
        # Nobody waits for the old one to be gone.
        switch.start()
        old.wait(timeout=PATIENCE_S)
        assert switch.process.poll() is None
    assert net.ping("h1", "10.77.0.2")


# Signals


def test_signals_that_are_no_end_leave_it_working(net: Net, switch: Switch) -> None:
    numbers = (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGPIPE)
    for number in (*numbers, signal.SIGSTOP, signal.SIGCONT, *numbers):
        switch.send(number)
        time.sleep(0.05)
    until(lambda: any(line["message"] == "status" for line in switch.log()), "a status in the log")
    line = next(line for line in switch.log() if line["message"] == "status")
    assert (line["state"], line["ports"], line["up"]) == ("running", 2, 2)
    assert net.ping("h1", "10.77.0.2")
    assert switch.stop() == 0


def test_who_reads_its_log_may_stop_or_go(net: Net) -> None:
    switch = net.add_switch("tor1")
    net.add_host(1, switch)
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    switch.start(stderr=writer)
    os.close(writer)
    # More lines than the pipe takes, and nobody reads.
    for _ in range(60):
        switch.send(signal.SIGUSR1)
        time.sleep(0.03)
    assert net.ping("h1", SWITCH_ADDRESS)
    assert switch.status()["state"] == "running"
    os.close(reader)
    for _ in range(3):
        switch.send(signal.SIGUSR1)
        time.sleep(0.05)
    assert net.ping("h1", SWITCH_ADDRESS)
    assert switch.stop() == 0


# A changed file


def test_a_changed_file_is_taken_over_while_groups_go_on(net: Net, switch: Switch) -> None:
    tree: list[tuple[Switch, Switch | None, list[int]]] = [(switch, None, [1, 2])]
    members = net.start_allreduce(tree, "--rounds", "20000")
    until(lambda: bool(switch.status()["jobs"]), "a group")
    switch.settings |= {"log_level": "debug", "metrics": OTHER_METRICS, "drain": "1s"}
    switch.extra = 'ageing = "100s"\nspin = "0us"\n[quotas]\njob_groups = 1\nlease = "20s"\n'
    lines = switch.reload()
    assert settings(lines, "reloaded") == (
        "spin, ageing, drain, metrics, log_level, quotas.job_groups, quotas.lease"
    )
    assert not settings(lines, "restart")
    assert serves(net, OTHER_METRICS)
    assert not serves(net, "127.0.0.1:9464")
    # All addresses of the port that it has already.
    switch.settings["metrics"] = "0.0.0.0:9465"
    assert settings(switch.reload(), "reloaded") == "metrics"
    assert serves(net, OTHER_METRICS)
    assert not settings(switch.reload(), "reloaded")
    for result in net.finish(members):
        assert result["rounds"] == 20000
    freed = [line for line in switch.log() if line["message"] == "group freed"]
    assert len(freed) == 1


def test_what_needs_a_restart_is_named(switch: Switch) -> None:
    switch.settings |= {"address": "10.77.0.250", "tier": 2, "name": "tor2", "log": "text"}
    switch.extra = "[faults]\nloss = 0.5\n"
    lines = switch.reload()
    assert settings(lines, "restart") == "name, address, tier, log, faults"
    assert not settings(lines, "reloaded")
    assert switch.status()["address"] == SWITCH_ADDRESS


def test_a_wrong_file_changes_nothing(net: Net, switch: Switch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
    taken = f"""
import socket, sys
s = socket.create_server(("127.0.0.1", {port}))
print("ready", flush=True)
sys.stdin.read()
"""
    wrong: list[tuple[dict[str, str | int | list[str]], str, str]] = [
        ({"log_level": "loud"}, "", "unknown `log_level` `loud`"),
        ({"log_level": "debug", "secret_file": "none"}, "", "there is no secret"),
        ({"log_level": "debug", "metrics": f"127.0.0.1:{port}"}, "", "Address already in use"),
        ({"log_level": "debug"}, '[[ports]]\ninterface = "lo"\n', "is the loopback"),
    ]
    before = dict(switch.settings)
    words = ["ip", "netns", "exec", switch.namespace, "python3", "-c", taken]
    with subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "ready\n"
        for changed, tables, reason in wrong:
            switch.settings = before | changed
            switch.extra = tables
            lines = switch.reload()
            errors = [line["message"] for line in lines if line["level"] == "ERROR"]
            assert len(errors) == 1
            assert "not reloaded" in errors[0]
            assert reason in errors[0]
            assert not settings(lines, "reloaded")
            assert serves(net, "127.0.0.1:9464")
        holder.communicate()
    switch.settings, switch.extra = before, ""
    assert not settings(switch.reload(), "reloaded")
    assert net.ping("h1", "10.77.0.2")


def test_ports_come_and_go_with_the_file(net: Net, switch: Switch) -> None:
    net.add_host(3, switch)
    assert not net.ping("h1", "10.77.0.3", "-W", "1")
    assert settings(switch.reload(), "reloaded") == "ports"
    until(lambda: switch.up() == {"p1": True, "p2": True, "p3": True}, "p3 up")
    assert net.ping("h1", "10.77.0.3")
    assert net.ping("h2", "10.77.0.3")
    # The first one goes, the others keep what they carried; its place is the next one's.
    carried = switch.status()["ports"][1]["received"]
    assert carried > 0
    switch.ports = [("p3", False), ("p2", True)]
    switch.reload()
    until(lambda: list(switch.up()) == ["p3", "p2"], "p1 gone")
    ports = switch.status()["ports"]
    assert ports[1]["uplink"]
    assert ports[1]["received"] >= carried
    assert not net.ping("h1", "10.77.0.3", "-W", "1")
    net.add_host(4, switch)
    switch.reload()
    until(lambda: switch.up() == {"p3": True, "p2": True, "p4": True}, "p4 up")
    assert switch.status()["ports"][2]["received"] < carried
    assert net.ping("h4", "10.77.0.3")
    # What was given up is free for another switch.
    other = Switch(net, "tor1", "10.77.0.250", namespace=switch.namespace)
    other.settings |= {"name": "b", "status": str(net.folder / "b"), "metrics": OTHER_METRICS}
    other.status_socket = net.folder / "b"
    other.ports = [("p1", False)]
    net.switches.append(other)
    other.start()
    assert net.ping("h1", "10.77.0.250")


def test_a_new_secret_holds_for_new_jobs(net: Net, switch: Switch) -> None:
    tree: list[tuple[Switch, Switch | None, list[int]]] = [(switch, None, [1, 2])]
    members = net.start_allreduce(tree, "--rounds", "20000", job=7)
    until(lambda: bool(switch.status()["jobs"]), "a group")
    (net.folder / "site.secret").unlink()
    assert settings(switch.reload(), "reloaded") == "the secret"
    for result in net.finish(members):
        assert result["rounds"] == 20000
    for result in net.allreduce(tree, "--rounds", "100", job=8):
        assert result["rounds"] == 100


# A service manager


class Manager:
    """A service manager's end of `sd_notify`."""

    def __init__(self, path: Path, own: socket.socket) -> None:
        self.path = path
        self.socket = own
        self.socket.bind(str(path))
        self.socket.settimeout(NOTIFIED_S)

    def hear(self, *ignored: str) -> dict[str, str]:
        """The next message that says something else."""
        while True:
            lines = self.socket.recv(4096).decode().splitlines()
            said = dict(line.split("=", 1) for line in lines)
            if not set(said) <= set(ignored):
                return said


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[Manager]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as own:
        yield Manager(tmp_path / "notify", own)


def test_a_service_manager_hears_how_it_is(net: Net, manager: Manager) -> None:
    switch = net.add_switch("tor1")
    net.add_host(1, switch)
    switch.start(NOTIFY_SOCKET=str(manager.path), WATCHDOG_USEC="600000")
    assert manager.hear("WATCHDOG")["READY"] == "1"
    time.sleep(1)
    for _ in range(5):
        assert manager.hear() == {"WATCHDOG": "1"}
    switch.write_config()
    for wrong in (False, True):
        if wrong:
            (net.folder / "tor1.toml").write_text("schema = 2")
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        switch.send(signal.SIGHUP)
        said = manager.hear("WATCHDOG")
        assert said["RELOADING"] == "1"
        now = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        assert before <= int(said["MONOTONIC_USEC"]) <= now
        said = manager.hear("WATCHDOG")
        assert said["READY"] == "1"
        assert ("wrong" in said["STATUS"]) == wrong
    # A switch that hangs is not fed.
    switch.send(signal.SIGSTOP)
    time.sleep(0.1)
    manager.socket.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            manager.socket.recv(4096)
    time.sleep(1)
    with pytest.raises(BlockingIOError):
        manager.socket.recv(4096)
    manager.socket.settimeout(NOTIFIED_S)
    switch.send(signal.SIGCONT)
    assert manager.hear() == {"WATCHDOG": "1"}
    switch.send(signal.SIGTERM)
    said = manager.hear("WATCHDOG")
    assert said["STOPPING"] == "1"
    assert int(said["EXTEND_TIMEOUT_USEC"]) >= 30_000_000
    assert switch.process is not None
    assert switch.process.wait(timeout=PATIENCE_S) == 0


def test_a_service_manager_that_has_gone_harms_nobody(net: Net) -> None:
    switch = net.add_switch("tor1")
    net.add_host(1, switch)
    switch.start(NOTIFY_SOCKET=str(net.folder / "none"))
    assert net.ping("h1", SWITCH_ADDRESS)
    assert any("NOTIFY_SOCKET" in line["message"] for line in switch.log())
