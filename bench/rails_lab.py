"""A lab with rails whose h2 receives, and what is measured in it from h1."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench import OUT, SOURCES
from bench.turns import Side, Times
from raddle.errors import LabError
from raddle.services.lab import Lab, LabSpec

NAME = "bench-rails"
PLAIN = ("-m", "bench.plain_flows")
MPI_SOURCE = SOURCES / "stream.c"
GOODPUT, LATENCY, SUBFLOWS, JAIN, BUSY = range(5)
"""Keys of what a run found: bit/s, us, MPTCP's subflows, Jain's index, share of time busy."""

KEYS = ("goodput_bps", "latency_us", "subflows", "jain", "busy")

SMALL_MESSAGES = 5000
WARM_UP = "100ms"
WINDOW = "4"
"""Messages under way: enough that a rail never waits, few enough that the last are soon there."""
PATIENCE_S = 60


def names(rails: int) -> str:
    """Interfaces of the first rails."""
    return ",".join(f"e{rail}" for rail in range(rails))


@dataclass(frozen=True)
class RailsLab:
    """A lab whose h2 receives messages and all else, and how long a run is."""

    lab: Lab
    seconds: float

    def start(self, host: str, words: Sequence[str]) -> subprocess.Popen[str]:
        """Start a program on a host."""
        return subprocess.Popen(
            self.lab.command(host, list(words)), env=self.lab.environment(),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def ask(self, host: str, *words: str) -> str:
        """What a program on a host prints; fails if it does."""
        return finish(self.start(host, words))

    def start_perf(self, *words: str) -> subprocess.Popen[str]:
        """Start `raddle-perf run` on h1."""
        return self.start("h1", ["raddle-perf", "run", "--peer", "h2", *words, "--json"])

    def goodput_words(self, interfaces: str, size: str) -> list[str]:
        """What `raddle-perf run` is told to measure goodput."""
        time = ["--time", f"{round(1000 * self.seconds)}ms", "--warm-up", WARM_UP, "--count", "1"]
        return ["--rails", interfaces, "--size", size, "--window", WINDOW, *time]

    def goodput(self, interfaces: str, size: str) -> Times:
        """Goodput of messages over some rails."""
        found = report(self.start_perf(*self.goodput_words(interfaces, size)))
        return {GOODPUT: found["goodput_bps"]}

    def one_way(self, interfaces: str, size: str) -> Times:
        """Latency of messages over some rails."""
        words = ["--rails", interfaces, "--size", size, "--time", "1ms", "--warm-up", "0s"]
        words += ["--latency-size", size]
        found = report(self.start_perf(*words, "--count", f"{SMALL_MESSAGES}"))
        return {LATENCY: found["latency_us"]}

    def tcp(self) -> Times:
        """Goodput of a plain TCP connection over rail 0."""
        return {GOODPUT: self._plain("tcp")["bps"]}

    def udp(self, rails: int) -> Times:
        """Goodput of datagrams that fill the first rails: what the links carry."""
        to = ",".join(self.addresses("h2")[:rails])
        return {GOODPUT: self._plain("udp", "--to", to)["bps"]}

    def mptcp(self, rails: int) -> Times:
        """Goodput of an MPTCP connection with a subflow over each of the first rails."""
        for host in ("h1", "h2"):
            self.ask(host, "ip", "mptcp", "endpoint", "flush")
            limits = ["subflow", str(rails), "add_addr_accepted", str(rails)]
            self.ask(host, "ip", "mptcp", "limits", "set", *limits)
        for rail, address in list(enumerate(self.addresses("h2")))[1:rails]:
            words = ["endpoint", "add", address, "dev", f"e{rail}", "signal"]
            self.ask("h2", "ip", "mptcp", *words)
        found = self._plain("mptcp")
        return {GOODPUT: found["bps"], SUBFLOWS: found["subflows"]}

    def mpi(self, rails: int, size: int, words: str = "", warm_up: int = 1) -> Times:
        """Goodput of Open MPI that stripes over the first rails; more `words` for mpirun."""
        side = Side(self.lab, 2, f"--mca btl_tcp_if_include {names(rails)} {words}")
        out, _ = side.run([str(OUT / "stream"), str(size), str(self.seconds), str(warm_up)])
        return {GOODPUT: json.loads(out.splitlines()[-1])["bps"]}

    def addresses(self, host: str) -> list[str]:
        """A host's address on each rail."""
        found: list[dict[str, Any]] = json.loads(self.ask(host, "ip", "-j", "-4", "address"))
        rails = sorted((one["ifname"], one["addr_info"][0]["local"]) for one in found)
        return [address for name, address in rails if name.startswith("e")]

    def _plain(self, what: str, *words: str) -> dict[str, float]:
        run = [sys.executable, *PLAIN, what, "--seconds", str(self.seconds), *words]
        found: dict[str, float] = json.loads(self.ask("h1", *run))
        return found


def key(what: int, processes: int) -> int:
    """Key of what a run found while so many processes were together."""
    return what + len(KEYS) * processes


def label(found: int) -> str:
    """Name of a key."""
    processes, what = divmod(found, len(KEYS))
    return f"{KEYS[what]} of {processes}" if processes else KEYS[what]


def processor_s() -> tuple[float, float]:
    """Time that this machine's processors were busy and that they had, since it began."""
    line = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0]
    spent = [float(word) for word in line.split()[1:9]]
    # The fourth and fifth are idle, and idle while a disk works.
    return sum(spent) - spent[3] - spent[4], sum(spent)


def watched(side: Callable[[], Times]) -> Callable[[], Times]:
    """A run that tells as well how busy the processors were; both ends are on this machine."""

    def run() -> Times:
        begun = processor_s()
        found = side()
        busy, had = (after - before for before, after in zip(begun, processor_s(), strict=True))
        return {**found, BUSY: busy / had if had else 0.0}

    return run


def finish(process: subprocess.Popen[str]) -> str:
    """What a program printed; fails if it did."""
    try:
        out, error = process.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        out, error = process.communicate()
    if process.returncode != 0:
        msg = f"{process.args!r}\n{out[-500:]}{error[-1500:]}"
        raise LabError(msg)
    return out


def report(process: subprocess.Popen[str]) -> dict[str, Any]:
    """The last line of `raddle-perf run`."""
    found: dict[str, Any] = json.loads(finish(process).splitlines()[-1])
    return found


@contextmanager
def rails_lab(rates: Sequence[int], seconds: float) -> Iterator[RailsLab]:
    """A lab of two hosts with rails of these rates, in which h2 receives."""
    name = f"{NAME}-{len(rates)}"
    with ExitStack() as stack:
        stack.callback(Lab.down, name)
        spec = LabSpec(name=name, hosts=2, rails=len(rates), rates=tuple(rates))
        bench = RailsLab(Lab.up(spec, replace=True), seconds)
        for words in (["raddle-perf", "serve"], [sys.executable, *PLAIN, "serve"]):
            server = bench.start("h2", words)
            stack.callback(server.communicate)
            stack.callback(server.terminate)
            if server.stderr is None or "listening" not in server.stderr.readline():
                msg = f"{' '.join(words)} does not start"
                raise LabError(msg)
        yield bench


def build_mpi() -> None:
    """Compile the program that measures an MPI library."""
    OUT.mkdir(exist_ok=True)
    command = ["mpicc.openmpi", "-O2", "-o", str(OUT / "stream"), str(MPI_SOURCE)]
    subprocess.run(command, check=True)
