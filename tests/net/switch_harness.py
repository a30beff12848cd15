"""A raddle-switch between hosts, each in a network namespace of its own."""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import time
import uuid
from pathlib import Path
from typing import Any, Self

ROOT = Path(__file__).resolve().parents[2]
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
SWITCH = TARGET / "release" / "raddle-switch"
ROUNDS = TARGET / "release" / "examples" / "allreduce_rounds"
SWITCH_ADDRESS = "10.77.0.253"
PATIENCE_S = 10.0
SERVER = """
import hashlib, socket, sys
server = socket.create_server((sys.argv[1], 5001))
print("ready", flush=True)
stream, _ = server.accept()
digest = hashlib.sha256()
while data := stream.recv(1 << 20):
    digest.update(data)
print(digest.hexdigest(), flush=True)
"""
CLIENT = """
import socket, sys
data = bytes(range(251)) * (int(sys.argv[2]) // 251)
stream = socket.create_connection((sys.argv[1], 5001))
stream.sendall(data)
stream.close()
"""


def missing() -> str:
    """What keeps the tests from running, for a skip; empty if nothing does."""
    if os.geteuid() != 0:
        return "needs root, for network namespaces"
    tools = [tool for tool in ("ip", "ping") if shutil.which(tool) is None]
    if tools:
        return f"needs {', '.join(tools)} (packages iproute2 iputils-ping)"
    if not SWITCH.exists():
        return f"needs {SWITCH}: run make build"
    return ""


def run(
    *command: str | Path, check: bool = True, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Run a command; its output is kept, and shown when it fails."""
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        **options,
    )
    assert not check or done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done


def until(true: Any, what: str) -> None:
    """Wait until `true()` is, at most PATIENCE_S."""
    limit = time.monotonic() + PATIENCE_S
    while not true():
        assert time.monotonic() < limit, f"{what} did not happen within {PATIENCE_S} s"
        time.sleep(0.02)


class Switch:
    """A raddle-switch in a namespace of its own."""

    def __init__(
        self, net: "Net", name: str, address: str, *, tier: int = 1, namespace: str = ""
    ) -> None:
        self.net = net
        self.name = name
        self.address = address
        self.tier = tier
        self.namespace = namespace or net.add_namespace(name)
        self.status_socket = net.folder / f"{name}.sock"
        self.ports: list[tuple[str, bool]] = []
        self.settings: dict[str, str | int | list[str]] = {
            "schema": 1,
            "name": name,
            "address": address,
            "tier": tier,
            "secret_file": "site.secret",
            "metrics": "127.0.0.1:9464",
            "status": str(self.status_socket),
            "log": "json",
            "log_level": "info",
        }
        self.extra = ""
        self.process: subprocess.Popen[str] | None = None

    def write_config(self) -> Path:
        """Write the switch's file."""
        secret = self.net.folder / "site.secret"
        if not secret.exists():
            run(SWITCH, "new-secret", "--out", secret)
        settings = "".join(f"{key} = {json.dumps(value)}\n" for key, value in self.settings.items())
        tables = "".join(
            f'[[ports]]\ninterface = "{port}"\nuplink = {str(uplink).lower()}\n'
            for port, uplink in self.ports
        )
        path = self.net.folder / f"{self.name}.toml"
        path.write_text(f"{settings}{self.extra}\n{tables}")
        return path

    def command(self, *words: str | Path) -> list[str]:
        """A command line of `raddle-switch` in its namespace."""
        return ["ip", "netns", "exec", self.namespace, str(SWITCH), *map(str, words)]

    def launch(self, *, stderr: int | None = None, **environment: str) -> None:
        """Start it."""
        with (self.net.folder / f"{self.name}.log").open("a") as log:
            self.process = subprocess.Popen(
                self.command("--config", self.write_config()),
                stderr=log if stderr is None else stderr,
                env=os.environ | environment,
                text=True,
            )

    def start(self, *, stderr: int | None = None, **environment: str) -> None:
        """Start it, and wait until all of its ports are up."""
        self.launch(stderr=stderr, **environment)
        until(lambda: self.status_socket.exists() and all(self.up().values()), f"{self.name} up")

    def reload(self) -> list[dict[str, Any]]:
        """Have it read its file, written anew; give what it logs of that."""
        before = len(self.log())
        self.write_config()
        self.send(signal.SIGHUP)
        words = "reloaded"
        until(
            lambda: any(words in line["message"] for line in self.log()[before:]),
            "the reload's end",
        )
        return self.log()[before:]

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        assert self.process is not None
        self.process.send_signal(number)

    def log(self) -> list[dict[str, Any]]:
        """What it has logged."""
        text = (self.net.folder / f"{self.name}.log").read_text()
        return [json.loads(line) for line in text.splitlines() if line.endswith("}")]

    def status(self) -> dict[str, Any]:
        """Its status."""
        done = run(SWITCH, "status", "--socket", self.status_socket, "--json")
        status: dict[str, Any] = json.loads(done.stdout)
        return status

    def up(self) -> dict[str, bool]:
        """Which of its ports are up."""
        done = run(SWITCH, "status", "--socket", self.status_socket, "--json", check=False)
        if done.returncode != 0:
            return {"no answer": False}
        return {port["interface"]: port["up"] for port in json.loads(done.stdout)["ports"]}

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send it a signal; give its exit status."""
        self.send(number)
        assert self.process is not None
        status = self.process.wait(timeout=PATIENCE_S)
        self.process = None
        return status


class Net:
    """Hosts and switches; everything goes when the context ends."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tag = f"rdl{uuid.uuid4().hex[:6]}"
        self.namespaces: list[str] = []
        self.switches: list[Switch] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for switch in self.switches:
            if switch.process is not None:
                switch.process.kill()
                switch.process.wait()
        for namespace in self.namespaces:
            pids = run("ip", "netns", "pids", namespace, check=False).stdout.split()
            for pid in pids:
                os.kill(int(pid), signal.SIGKILL)
            run("ip", "netns", "del", namespace, check=False)

    def add_namespace(self, name: str) -> str:
        namespace = f"{self.tag}-{name}"
        run("ip", "netns", "add", namespace)
        self.namespaces.append(namespace)
        for setting in ("all", "default"):
            self.exec(name, "sysctl", "-qw", f"net.ipv6.conf.{setting}.disable_ipv6=1")
        run("ip", "-n", namespace, "link", "set", "lo", "up")
        return namespace

    def add_switch(self, name: str, address: str = SWITCH_ADDRESS, *, tier: int = 1) -> Switch:
        switch = Switch(self, name, address, tier=tier)
        self.switches.append(switch)
        return switch

    def add_host(self, number: int, switch: Switch, *, mtu: int = 1500) -> str:
        """A host 10.77.0.NUMBER behind port pNUMBER of a switch."""
        host = f"h{number}"
        self.add_namespace(host)
        self.connect(number, switch, mtu=mtu)
        switch.ports.append((f"p{number}", False))
        return host

    def connect(self, number: int, switch: Switch, *, mtu: int = 1500) -> None:
        """Make the cable of a host."""
        host = f"{self.tag}-h{number}"
        run(
            *("ip", "-n", host, "link", "add", "e0", "mtu", str(mtu), "type", "veth"),
            *("peer", "name", f"p{number}", "mtu", str(mtu), "netns", switch.namespace),
        )
        run("ip", "-n", host, "addr", "add", f"10.77.0.{number}/24", "dev", "e0")
        run("ip", "-n", host, "link", "set", "e0", "up")
        run("ip", "-n", switch.namespace, "link", "set", f"p{number}", "up")

    def uplink(self, below: Switch, above: Switch) -> None:
        """Make a cable between two switches."""
        port = f"d-{below.name}"
        run(
            *("ip", "-n", below.namespace, "link", "add", "name", "up", "type", "veth"),
            *("peer", "name", port, "netns", above.namespace),
        )
        run("ip", "-n", below.namespace, "link", "set", "dev", "up", "up")
        run("ip", "-n", above.namespace, "link", "set", port, "up")
        below.ports.append(("up", True))
        above.ports.append((port, False))

    def exec(self, name: str, *command: str | Path, check: bool = True) -> str:
        """Run a command in a namespace; give its output."""
        done = run("ip", "netns", "exec", f"{self.tag}-{name}", *command, check=check)
        return done.stdout + ("" if check else done.stderr)

    def spawn(self, name: str, *command: str | Path) -> subprocess.Popen[str]:
        """Start a command in a namespace."""
        words = ["ip", "netns", "exec", f"{self.tag}-{name}", *map(str, command)]
        return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)

    def ping(self, host: str, address: str, *options: str) -> bool:
        """Whether an address answers."""
        out = self.exec(host, "ping", "-c", "1", "-W", "2", *options, address, check=False)
        return " 1 received" in out

    def start_allreduce(
        self, switches: list[tuple[Switch, Switch | None, list[int]]], *options: str, job: int = 7
    ) -> list[subprocess.Popen[str]]:
        """Start rounds; a line of `switches` has a switch, its parent and its hosts."""
        hosts = sorted(host for _, _, below in switches for host in below)
        numbers = {host: member for member, host in enumerate(hosts)}
        secret = self.folder / "site.secret"
        group = {
            "job": job,
            "key": run(SWITCH, "job-key", "--secret-file", secret, str(job)).stdout.strip(),
            "members": [f"10.77.0.{host}" for host in hosts],
            "switches": [
                {
                    "address": switch.address,
                    "parent": parent.address if parent else None,
                    "members": [numbers[host] for host in below],
                }
                for switch, parent, below in switches
            ],
        }
        file = self.folder / f"group-{job}.json"
        file.write_text(json.dumps(group))
        return [
            self.spawn(f"h{host}", ROUNDS, file, str(numbers[host]), *options) for host in hosts
        ]

    def finish(self, members: list[subprocess.Popen[str]]) -> list[dict[str, Any]]:
        """Wait for the members; what each printed."""
        results = []
        for process in members:
            out, _ = process.communicate(timeout=3000)
            assert process.returncode == 0, f"status {process.returncode}: {out}"
            results.append(json.loads(out))
        return results

    def allreduce(
        self, switches: list[tuple[Switch, Switch | None, list[int]]], *options: str, job: int = 7
    ) -> list[dict[str, Any]]:
        """Run rounds of Allreduce to their end."""
        return self.finish(self.start_allreduce(switches, *options, job=job))


def transfer(net: Net, source: str, target: str, address: str, megabytes: int) -> float:
    """Send bytes over TCP; give the seconds that it took. They must arrive as they were sent."""
    with net.spawn(target, "python3", "-c", SERVER, address) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "ready\n"
        begin = time.monotonic()
        net.exec(source, "python3", "-c", CLIENT, address, str(megabytes << 20))
        digest = server.stdout.readline().strip()
        seconds = time.monotonic() - begin
    sent = bytes(range(251)) * ((megabytes << 20) // 251)
    assert digest == hashlib.sha256(sent).hexdigest()
    return seconds
