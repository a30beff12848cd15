"""Namespaces of a lab's nodes: each is kept by one sleeping process, its holder.

A node has its own network, host name, IPC (System V shared memory), mounts: /etc/hosts, /dev/shm,
/sys and a private folder for temporary files. Process ids, users and files are the machine's.
"""

import ctypes
import os
import shlex
import subprocess
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from raddle.errors import LabError
from raddle.services.lab.cgroups import Groups
from raddle.services.lab.processes import started_at

__all__ = [
    "Holder",
    "entering",
    "in_network",
    "joining",
    "start_detached",
    "start_holders",
]

KINDS = ("--net", "--uts", "--ipc", "--mount")
CLONE_NEWNET = 0x40000000
PATIENCE_S = 60.0
"""How long starting a process may take on a busy machine."""

JOIN = 'for g do shift; [ "$g" = -- ] && break; echo $$ >"$g" || exit 125; done; exec "$@"'
"""Write this process into the groups before `--`, then become the command behind it."""

HOLD = """
set -e
name=$1 state=$2
echo "$name" >/proc/sys/kernel/hostname
mount --bind "$state/hosts" /etc/hosts
mount -t tmpfs -o mode=1777 raddle-lab /dev/shm
mount -t tmpfs -o mode=1777 raddle-lab "$state/tmp"
mount --rbind /sys/fs/cgroup "$state/sys"
mount -t sysfs raddle-lab /sys
mount --rbind "$state/sys" /sys/fs/cgroup
umount -l "$state/sys"
[ ! -d /sys/fs/bpf ] || mount -t bpf raddle-lab /sys/fs/bpf 2>/dev/null || true
for kind in all default; do
    [ ! -e /proc/sys/net/ipv6 ] || echo 1 >/proc/sys/net/ipv6/conf/$kind/disable_ipv6
done
set_where_known() { [ -w "/proc/sys/net/$1" ] && echo "$2" >"/proc/sys/net/$1"; } 2>/dev/null
set_where_known bridge/bridge-nf-call-iptables 0 || true
tcp=ipv4/tcp_congestion_control
set_where_known $tcp cubic || set_where_known $tcp reno || true
echo ready
exec sleep infinity >/dev/null 2>&1
"""
"""What a holder does before it sleeps. A fresh /sys shows the links of the node's own network.

What the machine's own network was tuned for is not the lab's. Frames of a bridge do not go through
a firewall, which they do where containers have loaded `br_netfilter`. TCP is Linux' default, CUBIC,
or Reno where that is not allowed: both send short messages at once, BBR would pace them.
"""

GO_TO = 'cd "$1" 2>/dev/null || cd /; shift; exec "$@"'
"""Entering the mounts of a node leads to /; go back to where the user is."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Holder:
    """The process that keeps a node's namespaces, with its start time (clock ticks since boot),
    because numbers of processes are used again.
    """

    node: str
    process: int
    started: int

    def alive(self) -> bool:
        """Whether this very process, or a thread of it, still runs."""
        return started_at(self.process) == self.started

    def namespace(self, kind: str) -> int:
        """Number of one of its namespaces: `net`, `mnt`."""
        return Path(f"/proc/{self.process}/ns/{kind}").stat().st_ino


def joining(joins: Sequence[Path], command: Sequence[str | Path]) -> list[str]:
    """`command`, part of the control groups from its first moment on."""
    return ["/bin/sh", "-c", JOIN, "raddle-lab", *map(str, joins), "--", *map(str, command)]


def entering(process: int, command: Sequence[str | Path], folder: Path | None) -> list[str]:
    """`command`, inside the namespaces of a holder, in `folder` if that exists there."""
    words = ["nsenter", "--target", str(process), *KINDS, "--"]
    if folder is not None:
        words += ["/bin/sh", "-c", GO_TO, "raddle-lab", str(folder)]
    return [*words, *map(str, command)]


def start_holders(nodes: Sequence[str], state: Path, groups: Groups) -> dict[str, Holder]:
    """Start a holder for each node and wait until all sleep."""
    make = ["unshare", *KINDS, "--propagation", "private", "/bin/sh", "-c", HOLD, "raddle-lab"]
    starting = {
        node: _detach(groups.files("nodes"), [*make, node, str(state)], None) for node in nodes
    }
    holders: dict[str, Holder] = {}
    for node, (process, words, errors) in {n: _answer(p) for n, p in starting.items()}.items():
        started = started_at(process)
        if "ready" not in words or started is None:
            msg = (
                f"the namespaces of {node} cannot be made: {errors.strip() or 'no reason given'}\n"
                "  hint: start a container with --privileged: a lab has to mount and to make "
                "namespaces"
            )
            raise LabError(msg)
        holders[node] = Holder(node, process, started)
    return holders


def start_detached(joins: Sequence[Path], command: Sequence[str | Path], log: Path) -> int:
    """Start `command` in a session of its own, not as our child; gives its number."""
    process, _, errors = _answer(_detach(joins, command, log))
    if not process:
        msg = f"{command[0]} cannot be started: {errors.strip()}"
        raise LabError(msg)
    return process


def _detach(
    joins: Sequence[Path], command: Sequence[str | Path], log: Path | None
) -> subprocess.Popen[str]:
    where = "" if log is None else f">>{shlex.quote(str(log))} 2>&1"
    words = ["/bin/sh", "-c", f'"$@" {where} & echo "process $!"', "raddle-lab"]
    return subprocess.Popen(
        joining(joins, [*words, *command]),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd="/",
        start_new_session=True,
    )


def _answer(starting: subprocess.Popen[str]) -> tuple[int, list[str], str]:
    """Number of the detached process, what it said and its complaints, until it is silent."""
    try:
        out, errors = starting.communicate(timeout=PATIENCE_S)
    except subprocess.TimeoutExpired:
        starting.kill()
        msg = f"a process of the lab does not start within {PATIENCE_S:.0f} s"
        raise LabError(msg) from None
    lines = out.splitlines()
    numbers = [line.removeprefix("process ") for line in lines if line.startswith("process ")]
    return int(numbers[0]) if numbers else 0, lines, errors


def in_network(process: int, make: Callable[[], T]) -> T:
    """Call `make` inside the network namespace of a process: sockets stay where they were made.

    A namespace is a thread's own, so a thread goes there and ends.
    """
    result: list[T] = []
    failure: list[BaseException] = []

    def visit() -> None:
        try:
            libc = ctypes.CDLL(None, use_errno=True)
            with Path(f"/proc/{process}/ns/net").open() as namespace:
                if libc.setns(namespace.fileno(), CLONE_NEWNET) != 0:
                    number = ctypes.get_errno()
                    raise OSError(number, os.strerror(number))
            result.append(make())
        except BaseException as error:
            failure.append(error)

    thread = threading.Thread(target=visit)
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    return result[0]
