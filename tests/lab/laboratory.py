"""What the tests of `raddle lab` share: the program, and the traces that a lab could leave."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from raddle.cli.app import app
from raddle.services.lab import Lab

ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("RADDLE_")},
    "COLUMNS": "100",
    "NO_COLOR": "1",
}
LAB_NODE = re.compile(r"(h|tor|spine)\d+\b")
LAB_LINK = re.compile(r"(e\d+|h\d+|tor\d+|spine\d+|br0)\b")
LAB_SEGMENT = re.compile(r"left-by-the-test|\.h\d+\.")
NEEDED = {"ip": "iproute2", "tc": "iproute2", "nsenter": "util-linux"}
SWITCH = shutil.which("raddle-switch", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")


def missing() -> str:
    """Why there can be no lab here; empty if there can."""
    if os.geteuid() != 0:
        return "a lab needs root"
    absent = sorted({package for tool, package in NEEDED.items() if shutil.which(tool) is None})
    return f"a lab needs {', '.join(absent)}" if absent else ""


def start(*words: str | Path, variables: Mapping[str, str] | None = None) -> subprocess.Popen[str]:
    """Start `raddle lab ...` as a process of its own, with `variables` in its environment."""
    return subprocess.Popen(
        [sys.executable, "-m", "raddle", "lab", *map(str, words)],
        env={**ENVIRONMENT, **(variables or {})},
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        # A parent that runs in the background may have handed down an ignored SIGINT.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip


@dataclass(frozen=True)
class Done:
    """What a command said."""

    stdout: str
    stderr: str


def process(
    *words: str | Path, status: int = 0, variables: Mapping[str, str] | None = None
) -> Done:
    """Run `raddle lab ...` as a process; fails, showing what it said, at another status."""
    running = start(*words, variables=variables)
    out, error = running.communicate(timeout=60)
    assert running.returncode == status, f"{words}: {running.returncode}\n{out}{error}"
    return Done(out, error)


def lab(*words: str | Path, status: int = 0) -> Done:
    """The same within this process, which is quicker; not for `exec` and `mpirun`."""
    done = CliRunner().invoke(app, ["lab", *map(str, words)], prog_name="raddle")
    assert done.exit_code == status, f"{words}: {done.exit_code}\n{done.stdout}{done.stderr}"
    return Done(done.stdout, done.stderr)


def inside(name: str, node: str, *words: str, status: int = 0) -> str:
    """What a command prints on a node of a lab."""
    opened = Lab.find(name)
    done = subprocess.run(
        opened.command(node, list(words)), env=opened.environment(),
        stdout=subprocess.PIPE, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == status, f"{node}: {words}: {done.returncode}\n{done.stdout}"
    return done.stdout


def lab_json(*words: str | Path, status: int = 0) -> Any:
    """What `raddle lab ... --json` prints."""
    return json.loads(lab(*words, "--json", status=status).stdout)


def running(name: str) -> int:
    """How many processes run in a lab, besides those that keep it."""
    count: int = Lab.find(name).status()["processes"]
    return count


def until(
    true: Callable[[], object], what: str, seconds: float = 20.0, pause: float = 0.02
) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        time.sleep(pause)


@contextmanager
def up(name: str, *words: str) -> Iterator[str]:
    """A lab while the block runs."""
    lab("up", "--name", name, *words, "-q")
    try:
        yield name
    finally:
        lab("down", "--name", name, "-q")


def traces(name: str) -> dict[str, set[str]]:
    """Everything that a lab makes, as it stands on this machine outside of labs now.

    Other tests and programs work on the same machine: what cannot be of a lab is left out.
    """

    def lines(*command: str) -> list[str]:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    links = [line.split(":")[1].strip() for line in lines("ip", "-o", "link")]
    disciplines = [line for line in lines("tc", "qdisc", "show") if " tbf " in line]
    return {
        "control groups": {str(g) for g in Path("/sys/fs/cgroup").glob(f"**/raddle-lab-{name}")},
        "named networks": {
            n for n in lines("ip", "netns", "list") if name in n or LAB_NODE.match(n)
        },
        "links": {link for link in links if LAB_LINK.match(link)},
        "disciplines": {line for line in disciplines if LAB_LINK.match(line.split(" dev ")[1])},
        "mounts": {line.split()[4] for line in mounts if f"raddle/lab/{name}" in line},
        "shared memory": {e.name for e in Path("/dev/shm").iterdir() if LAB_SEGMENT.search(e.name)},
        "folders": {str(f) for f in Path("/run/raddle/lab").glob(name)},
        "processes": {
            entry.name for entry in Path("/proc").iterdir() if f"raddle/lab/{name}/" in words(entry)
        },
    }


def words(process: Path) -> str:
    """The command line of a process; empty if it is gone or the kernel's."""
    try:
        return (process / "cmdline").read_text(errors="replace").replace("\0", " ")
    except OSError:
        return ""


def networks(pids: list[int]) -> set[str]:
    """Numbers of the network namespaces of processes."""
    return {str(Path(f"/proc/{pid}/ns/net").readlink()) for pid in pids}


def networks_alive() -> set[str]:
    """Numbers of all network namespaces in which a process or a mount is."""
    done = subprocess.run(
        ["lsns", "--type", "net", "--noheadings", "--output", "NS"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return {f"net:[{line.strip()}]" for line in done.stdout.splitlines()}
