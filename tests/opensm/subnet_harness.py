"""A simulated InfiniBand subnet: ibsim, OpenSM with or without our plugin, groups, their tables.

Nothing here uses our own routing code: fabrics are made from their definition, tables are read
back with SMPs, and packets are flooded through them one by one.
"""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

ROOT = Path(__file__).resolve().parents[2]
UMAD2SIM = Path("/usr/lib/x86_64-linux-gnu/umad2sim/libumad2sim.so")
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
PLUGIN = TARGET / "release" / "libraddle.so"
CLIENT = Path(__file__).with_name("sa_client.c")
FIRST_MLID = 0xC000


def missing() -> str:
    """What keeps the tests from running, for a skip; empty if nothing does."""
    parts = [tool for tool in ("opensm", "ibsim", "cc") if shutil.which(tool) is None]
    if not UMAD2SIM.exists():
        parts.append(UMAD2SIM.name)
    if not Path("/usr/include/infiniband/umad.h").exists():
        parts.append("libibumad-dev")
    if parts:
        return f"needs {', '.join(parts)} (packages opensm ibsim-utils libibumad-dev)"
    if not PLUGIN.exists():
        return f"needs {PLUGIN.name}: install libopensm-dev and run make build"
    return ""


@dataclass
class Fabric:
    """Cables between named nodes; ports count from 1 in the order of cables."""

    m: int
    q: int
    p: int
    k: int
    w: int
    terminals: int
    cns: int
    hosts: list[str] = field(default_factory=list)
    switches: list[str] = field(default_factory=list)
    #: (peer, peer's port) by node and port - 1
    ports: dict[str, list[tuple[str, int]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for cn in range(self.cns):
            self._cn(cn)
        for tn in range(self.m * self.p):
            for i in range(self.k if self.k > 1 else 0):
                for j in range(self.w if self.k > 1 else 0):
                    self._cable(f"l2.{tn}.{i}", f"l3.{tn}.{j}")
        self.hosts = [f"h{i}" for i in range(self.cns * self.q * self.terminals)]
        self.switches = [name for name in self.ports if name[0] == "l"]
        self.radix = max(len(self.ports[name]) for name in self.switches)

    def _cn(self, cn: int) -> None:
        for i in range(self.q):
            for host in range(self.terminals):
                self._cable(f"h{(cn * self.q + i) * self.terminals + host}", f"l0.{cn}.{i}")
        for i in range(self.q):
            for g in range(self.m):
                self._cable(f"l0.{cn}.{i}", f"l1.{cn}.{g}")
        for g in range(self.m):
            for tn in range(g * self.p, (g + 1) * self.p):
                self._cable(f"l1.{cn}.{g}", f"l2.{tn}.{cn // self.w}")

    def _cable(self, a: str, b: str) -> None:
        ends = [self.ports.setdefault(name, []) for name in (a, b)]
        numbers = [len(end) + 1 for end in ends]
        ends[0].append((b, numbers[1]))
        ends[1].append((a, numbers[0]))

    def port(self, a: str, b: str) -> int:
        """Number of the port of `a` that leads to `b`."""
        return next(n for n, (peer, _) in enumerate(self.ports[a], 1) if peer == b)

    def guid(self, name: str) -> int:
        """GUID that ibsim gives: of the only port of a host, or of a switch."""
        if name[0] == "h":
            return 0x100001 + 2 * int(name[1:])
        return 0x200000 + self._order[name]

    def write(self, file: Path) -> None:
        """Write ibsim's net file: hosts first, every cable from both ends."""
        self._order = {name: place for place, name in enumerate(self.switches)}
        with file.open("w") as out:
            for name in self.hosts + self.switches:
                head = "Hca 1" if name[0] == "h" else f"Switch {self.radix}"
                out.write(f'{head} "{name}"\n')
                for number, (peer, there) in enumerate(self.ports[name], 1):
                    out.write(f'[{number}] "{peer}"[{there}]\n')
                out.write("\n")


Table = dict[str, dict[int, frozenset[int]]]


@dataclass
class Flood:
    """What the packets of groups did."""

    packets: int = 0
    missing: int = 0
    foreign: int = 0
    duplicate: int = 0
    looping: int = 0

    def __iadd__(self, other: "Flood") -> Self:
        self.packets += other.packets
        self.missing += other.missing
        self.foreign += other.foreign
        self.duplicate += other.duplicate
        self.looping += other.looping
        return self

    @property
    def faults(self) -> tuple[int, int, int]:
        """Missing, duplicate, looping."""
        return (self.missing, self.duplicate, self.looping)


Cable = frozenset[str]


@dataclass
class Walk:
    """Where the copies of one packet went."""

    #: How often each host got it.
    arrivals: Counter[str] = field(default_factory=Counter)
    #: How often it met a switch where it was before.
    looping: int = 0
    #: Cables between switches that it crossed, or would have crossed had they not been cut.
    asked: set[Cable] = field(default_factory=set)


def walk(fabric: Fabric, table: Table, mlid: int, source: str, cut: Collection[Cable] = ()) -> Walk:
    """Send one packet and follow its copies until the last has arrived; cut cables carry none."""
    result = Walk()
    switch, port = fabric.ports[source][0]
    seen = {switch}
    under_way = [(switch, port)]
    while under_way:
        switch, came = under_way.pop()
        for out in table[switch].get(mlid, ()):
            if out in (came, 0):
                continue
            peer, there = fabric.ports[switch][out - 1]
            if peer[0] == "h":
                result.arrivals[peer] += 1
                continue
            cable = frozenset((switch, peer))
            result.asked.add(cable)
            if cable in cut:
                continue
            if peer in seen:
                result.looping += 1
            else:
                seen.add(peer)
                under_way.append((peer, there))
    return result


def flood(fabric: Fabric, table: Table, mlid: int, source: str, members: set[str]) -> Flood:
    """Send one packet, and count what went wrong."""
    found = walk(fabric, table, mlid, source)
    return Flood(
        packets=1,
        missing=len(members - {source} - found.arrivals.keys()),
        foreign=len(found.arrivals.keys() - members),
        duplicate=sum(count - 1 for count in found.arrivals.values()),
        looping=found.looping,
    )


class Requests:
    """Requests under way, and their answers."""

    def __init__(self, subnet: "Subnet", lines: list[str], window: int) -> None:
        self._count = len(lines)
        # Files, not pipes: nobody reads while the client runs.
        folder = Path(tempfile.mkdtemp(prefix="requests-", dir=subnet.folder))
        asked = folder / "asked"
        asked.write_text("\n".join(lines) + "\n")
        self._told = folder / "told"
        with asked.open() as source, self._told.open("w") as sink:
            self._client = subprocess.Popen(
                [subnet.client, f"{window}"],
                stdin=source,
                stdout=sink,
                env=subnet.simulated(subnet.fabric.hosts[1]),
                cwd=folder,
            )

    def under_way(self) -> bool:
        """Whether answers are missing yet."""
        return self._client.poll() is None

    def answers(self) -> list[tuple[int, str]]:
        """Status and value of each in their order; status 0xffff: there was no answer."""
        assert self._client.wait() == 0
        answers: list[tuple[int, str]] = [(0xFFFF, "-")] * self._count
        for line in self._told.read_text().splitlines():
            number, status, value = line.split()
            answers[int(number)] = (int(status, 16), value)
        return answers


class Subnet:
    """ibsim and OpenSM on a fabric."""

    def __init__(self, fabric: Fabric, folder: Path, *, mlids: int = 1024) -> None:
        self.fabric = fabric
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.net = folder / "fabric.net"
        fabric.write(self.net)
        self.client = folder / "sa_client"
        subprocess.run(["cc", "-O2", "-o", self.client, CLIENT, "-libumad"], check=True)
        self.statistics = folder / "statistics.json"
        self.log = folder / "opensm.log"
        self.cache = folder / "cache"
        self._opensm: subprocess.Popen[bytes] | None = None
        self._environment = {**os.environ, "IBSIM_SOCKNAME": f"raddle{os.getpid()}-{id(self)}"}
        nodes = len(fabric.ports)
        command = ["ibsim", "-s", "-N", f"{nodes + 64}", "-S", f"{len(fabric.switches) + 64}"]
        command += ["-P", f"{len(fabric.switches) * (fabric.radix + 1) + 2 * nodes + 1024}"]
        command += ["-L", "49152", "-M", f"{mlids}", f"{self.net}"]
        self._ibsim_output = (folder / "ibsim.out").open("w")
        self._ibsim = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=self._ibsim_output,
            stderr=subprocess.STDOUT,
            env=self._environment,
            cwd=folder,
        )
        wait_for(lambda: "########################" in self._ibsim_text(), "ibsim", 120)

    def _ibsim_text(self) -> str:
        if self._ibsim.poll() is not None:
            message = f"ibsim ended: {(self.folder / 'ibsim.out').read_text()[-2000:]}"
            raise RuntimeError(message)
        return (self.folder / "ibsim.out").read_text(errors="replace")

    def console(self, command: str) -> None:
        """Type a command at ibsim's console."""
        assert self._ibsim.stdin is not None
        self._ibsim.stdin.write(f"{command}\n".encode())
        self._ibsim.stdin.flush()

    def unlink(self, a: str, b: str) -> None:
        """Cut the cable between two nodes."""
        self.console(f'Unlink "{a}"[{self.fabric.port(a, b)}]')

    def relink(self, a: str, b: str) -> None:
        """Mend the cable between two nodes."""
        self.console(f'Relink "{a}"[{self.fabric.port(a, b)}]')

    def simulated(self, host: str) -> dict[str, str]:
        """The environment of a program that runs on a host."""
        return {**self._environment, "SIM_HOST": host, "LD_PRELOAD": str(UMAD2SIM)}

    def start(
        self, *, plugin: bool, settings: str = "", options: str = "", wait: float = 60
    ) -> float:
        """Start OpenSM; the seconds until the subnet is up."""
        shutil.rmtree(self.cache, ignore_errors=True)
        self.cache.mkdir()
        config = self.folder / "raddle.toml"
        config.write_text(f'schema = 1\nstatistics = "{self.statistics}"\n{settings}')
        # each block of a multicast table that OpenSM itself writes is a line of this module
        (self.folder / "modules").write_text("osm_mcast_mgr.c=0xff\n")
        lines = [
            f"log_file {self.log}",
            f"per_module_logging_file {self.folder / 'modules'}",
            "force_log_flush TRUE",
            "log_flags 0x03",
            "sweep_interval 0",
            "sweep_on_trap TRUE",
            "ipoib_mcgroup_creation_validation FALSE",
            options,
        ]
        if plugin:
            lines += ["event_plugin_name raddle", f"event_plugin_options raddle={config}"]
        (self.folder / "opensm.conf").write_text("\n".join(lines) + "\n")
        return self._launch(wait)

    def start_again(self, wait: float = 60) -> float:
        """Start OpenSM as it was before; the seconds until the subnet is up."""
        return self._launch(wait)

    def _launch(self, wait: float) -> float:
        self.log.unlink(missing_ok=True)
        environment = self.simulated(self.fabric.hosts[0])
        environment |= {"OSM_CACHE_DIR": str(self.cache), "OSM_TMP_DIR": str(self.cache)}
        environment["LD_LIBRARY_PATH"] = str(PLUGIN.parent)
        environment.pop("RADDLE_OPENSM_CONFIG", None)
        started = time.monotonic()
        self._opensm = subprocess.Popen(
            ["opensm", "-F", self.folder / "opensm.conf"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            env=environment,
            cwd=self.folder,
        )
        self.wait_for_sweep(0, wait)
        self._lids = self._read_lids(self.cache / "guid2lid")
        return time.monotonic() - started

    def log_text(self) -> str:
        """OpenSM's log so far."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def sweeps(self) -> int:
        """How often the subnet came up."""
        return self.log_text().count("SUBNET UP")

    def wait_for_sweep(self, before: int, wait: float = 60) -> None:
        """Wait until the subnet has come up once more than `before` times."""

        def up() -> bool:
            assert self._opensm is not None
            if self._opensm.poll() is not None:
                message = f"opensm ended: {self.log_text()[-3000:]}"
                raise RuntimeError(message)
            return self.sweeps() > before

        wait_for(up, "SUBNET UP", wait)

    def sweep(self) -> None:
        """Have OpenSM sweep the whole subnet, and wait for it."""
        before = self.sweeps()
        self.ask_for_sweep()
        self.wait_for_sweep(before)

    def ask_for_sweep(self) -> None:
        """Have OpenSM sweep the whole subnet."""
        assert self._opensm is not None
        self._opensm.send_signal(signal.SIGHUP)

    def _read_lids(self, file: Path) -> dict[str, int]:
        by_guid = {}
        for line in file.read_text().splitlines():
            if fields := line.split():
                by_guid[int(fields[0], 16)] = int(fields[1], 16)
        return {name: by_guid[self.fabric.guid(name)] for name in self.fabric.ports}

    def lid(self, name: str) -> int:
        """LID of a host or switch."""
        return self._lids[name]

    def send(self, lines: list[str], *, window: int = 64) -> "Requests":
        """Begin to send requests, a number of them at a time."""
        return Requests(self, lines, window)

    def request(self, lines: list[str], *, window: int = 64) -> list[tuple[int, str]]:
        """Send requests; status and value of each in their order."""
        return self.send(lines, window=window).answers() if lines else []

    def join(self, groups: "dict[int, list[str]]", *, verb: str = "J") -> list[tuple[int, str]]:
        """Let all members of groups (by MGID number) join."""
        return self.request(self.join_lines(groups, verb=verb))

    def join_lines(self, groups: "dict[int, list[str]]", *, verb: str = "J") -> list[str]:
        """The requests with which all members of groups join."""
        return [
            f"{verb} {mgid(number)} {self.fabric.guid(member):x}"
            for number, members in groups.items()
            for member in members
        ]

    def mlids(self, groups: "dict[int, list[str]]") -> dict[int, int]:
        """MLID of each group: its members join once more, as when they are asked to register again.

        All members must be told the same one.
        """
        answers = iter(self.join(groups))
        result = {}
        for number, members in groups.items():
            told = {next(answers) for _ in members}
            assert len(told) == 1, f"group {number}: {told}"
            status, value = told.pop()
            assert status == 0, f"group {number}: status {status:#x}"
            result[number] = int(value[:4], 16)
        return result

    def settle(self, wait: float = 60) -> None:
        """Wait until OpenSM has written the tables of the last joins and leaves."""
        last = ("", 0)
        quiet = 0

        def still() -> bool:
            nonlocal last, quiet
            statistics = self.statistics.read_text() if self.statistics.exists() else ""
            now = (statistics, len(self.log_text()))
            quiet = quiet + 1 if now == last else 0
            last = now
            return quiet >= 5

        wait_for(still, "quiet tables", wait)

    def tables(self, mlids: Iterable[int]) -> Table:
        """Read the switches' multicast tables, as far as these MLIDs need."""
        blocks = sorted({(mlid - FIRST_MLID) // 32 for mlid in mlids})
        asked = [
            (switch, block, position)
            for switch in self.fabric.switches
            for block in blocks
            for position in range(len(self.fabric.ports[switch]) // 16 + 1)
        ]
        answers = self.request([f"M {self.lid(s)} {b} {p}" for s, b, p in asked])
        table: dict[str, dict[int, set[int]]] = {s: {} for s in self.fabric.switches}
        for (switch, block, position), (status, value) in zip(asked, answers, strict=True):
            assert status == 0, f"{switch}: block {block}, position {position}: {status:#x}"
            for place in range(32):
                mask = int(value[4 * place : 4 * place + 4], 16)
                if mask:
                    ports = table[switch].setdefault(FIRST_MLID + 32 * block + place, set())
                    ports |= {16 * position + bit for bit in range(16) if mask >> bit & 1}
        return {s: {m: frozenset(p) for m, p in rows.items()} for s, rows in table.items()}

    def recorded_block(self, switch: str) -> dict[int, frozenset[int]]:
        """A switch's first block of multicast masks, as OpenSM answers who asks for its record."""
        asked = subprocess.run(
            # one record: ibsim carries no answer of several packets
            ["saquery", "MFTR", f"{self.lid(switch)}/0/0"],
            env=self.simulated(self.fabric.hosts[1]),
            capture_output=True,
            text=True,
            check=True,
        )
        rows = re.findall(r"(0xc[0-9a-f]{3})\s+(0x[0-9a-f]{4})\n", asked.stdout)
        masks = {int(mlid, 16): int(mask, 16) for mlid, mask in rows}
        return {
            mlid: frozenset(bit for bit in range(16) if mask >> bit & 1)
            for mlid, mask in masks.items()
            if mask
        }

    def stable(self, groups: dict[int, list[str]]) -> tuple[dict[int, int], Table]:
        """MLIDs and tables once they are the same twice: SMPs may be under way after a change."""
        self.settle()
        before = None
        for _ in range(60):
            mlids = self.mlids(groups)
            now = (mlids, self.tables(mlids.values()))
            if now == before:
                return now
            before = now
            time.sleep(0.5)
        message = "MLIDs and tables do not come to rest"
        raise TimeoutError(message)

    def walk(self, ways: list[tuple[str, str]]) -> list[int]:
        """Follow unicast tables from host to host; hops of each, -1 where one ends elsewhere."""
        cache: dict[tuple[str, int], str] = {}
        at = {place: self.fabric.ports[source][0][0] for place, (source, _) in enumerate(ways)}
        hops = [-1] * len(ways)
        for hop in range(1, 20):
            wanted = sorted({(at[i], self.lid(ways[i][1]) // 64) for i in at} - cache.keys())
            answers = self.request([f"F {self.lid(switch)} {block}" for switch, block in wanted])
            cache |= {key: value for key, (_, value) in zip(wanted, answers, strict=True)}
            for place, switch in list(at.items()):
                lid = self.lid(ways[place][1])
                block = cache[switch, lid // 64]
                port = 0xFF if block == "-" else int(block[2 * (lid % 64) : 2 * (lid % 64) + 2], 16)
                if not 0 < port <= len(self.fabric.ports[switch]):
                    del at[place]
                    continue
                peer = self.fabric.ports[switch][port - 1][0]
                if peer[0] == "h":
                    hops[place] = hop + 1 if peer == ways[place][1] else -1
                    del at[place]
                else:
                    at[place] = peer
        return hops

    def blocks_written(self) -> int:
        """Blocks of multicast tables that OpenSM itself, not the plugin, has sent so far."""
        return len(re.findall(r"mcast_mgr_set_mft_block: Writing MFT block", self.log_text()))

    def kill(self) -> None:
        """End OpenSM as a crash does."""
        assert self._opensm is not None
        self._opensm.kill()
        self._opensm.wait(60)
        self._opensm = None

    def stop(self) -> None:
        """End OpenSM."""
        if self._opensm is not None:
            self._opensm.terminate()
            self._opensm.wait(60)
            self._opensm = None

    def close(self) -> None:
        """End OpenSM, then ibsim."""
        try:
            self.stop()
        finally:
            self._ibsim.kill()
            self._ibsim.wait()
            if self._ibsim.stdin is not None:
                self._ibsim.stdin.close()
            self._ibsim_output.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def mgid(number: int) -> str:
    """GID of a group: transient, no IPoIB signature, the number in the low half."""
    return f"ff15a01b00000000{number:016x}"


def wait_for(done: Callable[[], bool], what: str, seconds: float) -> None:
    """Ask again and again until it is so."""
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            message = f"no {what} within {seconds} s"
            raise TimeoutError(message)
        time.sleep(0.1)


def check(
    fabric: Fabric,
    table: Table,
    groups: dict[int, list[str]],
    mlids: dict[int, int],
    *,
    sources: int = 3,
) -> Flood:
    """Flood packets of the first, last and middle members of every group."""
    total = Flood()
    for number, members in groups.items():
        chosen = {members[i * (len(members) - 1) // max(sources - 1, 1)] for i in range(sources)}
        for source in sorted(chosen):
            total += flood(fabric, table, mlids[number], source, set(members))
    return total


def most_groups_on_a_switch(fabric: Fabric, groups: dict[int, list[str]]) -> int:
    """Most groups with a member below one L0 switch: no tables without merging need fewer MLIDs."""
    load: Counter[str] = Counter()
    for members in groups.values():
        load.update({fabric.ports[member][0][0] for member in members})
    return max(load.values())


def changed_entries(before: Table, after: Table) -> tuple[int, int]:
    """Entries and MLIDs that differ."""
    keys = {
        (switch, mlid)
        for switch in before
        for mlid in before[switch].keys() | after[switch].keys()
        if before[switch].get(mlid) != after[switch].get(mlid)
    }
    return len(keys), len({mlid for _, mlid in keys})
