"""Nothing of a lab stays, whatever is killed and when."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from laboratory import (
    SWITCH,
    inside,
    lab,
    lab_json,
    missing,
    networks,
    networks_alive,
    running,
    start,
    traces,
    until,
)
from raddle.services.lab import Lab
from raddle.services.lab.cgroups import Groups
from raddle.services.lab.state import State

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())

STUBBORN = (
    "import os, signal, time\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
    "if os.fork() == 0:\n"
    "    os.setsid()\n"
    "    if os.fork() == 0:\n"
    "        open('/dev/shm/left-by-the-test', 'w').close()\n"
    "        os.closerange(0, 3)\n"
    "        time.sleep(1000)\n"
)
"""A daemon: another session, no parent, deaf to polite signals, with shared memory."""


@pytest.fixture
def name() -> Iterator[str]:
    """A name; what stands before the test has to stand after it, and nothing else."""
    name = f"test-clean-{os.getpid()}"
    before = traces(name)
    yield name
    lab("down", "--name", name)
    after = traces(name)
    for kind, things in before.items():
        assert after[kind] == things, kind


def pids(name: str) -> list[int]:
    status = lab_json("status", "--name", name)
    return [node["holder"] for node in (*status["hosts"], *status["switches"])]


def test_down_ends_what_runs_inside(name: str) -> None:
    lab("up", "--name", name, "--hosts", "3", "--rates", "1Gbps")
    own = networks(pids(name))
    assert len(own) == 4
    inside(name, "h1", "python3", "-c", STUBBORN)
    # The process between the two forks may still be on its way out.
    until(lambda: running(name) == 1, "the daemon alone runs")
    lab("down", "--name", name)
    until(lambda: not own & networks_alive(), "networks gone")


def test_a_stranger_in_its_networks_goes_too(name: str) -> None:
    lab("up", "--name", name, "--hosts", "2")
    (host, *_) = pids(name)
    stranger = subprocess.Popen(["nsenter", "--target", str(host), "--net", "sleep", "1000"])
    until(lambda: networks([stranger.pid]) == networks([host]), "it is inside")
    lab("down", "--name", name)
    assert stranger.wait(5) == -signal.SIGKILL


STEPS: dict[str, Callable[[Path, Path], bool]] = {
    "folder": lambda folder, group: folder.exists(),
    "some holders": lambda folder, group: len(members(group)) >= 3,
    "all holders": lambda folder, group: (folder / "nodes" / "h1").exists(),
    "links": lambda folder, group: (folder / "backend.json").exists(),
}
"""How far `up` has come."""


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("by", [signal.SIGKILL, signal.SIGTERM])
def test_up_ended_on_the_way(name: str, step: str, by: signal.Signals) -> None:
    building = start("up", "--name", name, "--hosts", "12", "--rates", "1Gbps")
    folder, group = State(name).folder, Groups(name).track / "nodes" / "cgroup.procs"
    until(lambda: STEPS[step](folder, group), step, pause=0.001)
    building.send_signal(by)
    _, error = building.communicate(timeout=30)
    if by is signal.SIGTERM:
        assert building.returncode == 130, error
        assert "no lab was up" in lab("down", "--name", name).stderr
    else:
        # `up` itself clears away what it finds if it is not a whole lab.
        lab("up", "--name", name, "--hosts", "2")


def members(group: Path) -> list[str]:
    try:
        return group.read_text().split()
    except OSError:
        return []


def test_dead_holders(name: str) -> None:
    lab("up", "--name", name, "--hosts", "3")
    inside(name, "h2", "python3", "-c", STUBBORN)
    for pid in pids(name):
        os.kill(pid, signal.SIGKILL)
    assert "not complete" in lab("status", "--name", name, status=2).stderr
    assert name in [found["name"] for found in lab_json("list")["labs"]]


def test_a_lost_folder(name: str) -> None:
    lab("up", "--name", name, "--hosts", "2")
    shutil.rmtree(f"/run/raddle/lab/{name}")
    assert "not complete" in lab("status", "--name", name, status=2).stderr


@pytest.mark.skipif(not os.access("/usr/bin/mpirun.openmpi", os.X_OK), reason="needs openmpi-bin")
def test_mpirun_and_its_agents_killed(name: str) -> None:
    lab("up", "--name", name, "--hosts", "4")
    run = start("mpirun", "--name", name, "--ppn", "2", "--", "sleep", "1000")
    until(lambda: running(name) >= 11, "ranks run")
    run.kill()
    run.communicate()
    # The kernel tells mpirun, which ends its ranks.
    until(lambda: running(name) == 0, "ranks ended")


@pytest.mark.skipif(SWITCH is None, reason="raddle-switch is not built")
def test_dead_switches(name: str) -> None:
    status = lab_json("up", "--name", name, "--hosts", "3", "--offload", "sockets")
    for switch in status["switches"]:
        os.kill(switch["process"], signal.SIGKILL)
    until(lambda: not any(s["works"] for s in Lab.find(name).status()["switches"]), "dead")


@pytest.mark.skipif(SWITCH is None, reason="raddle-switch is not built")
@pytest.mark.skipif(shutil.which("bpftool") is None, reason="needs bpftool")
def test_programs_in_the_kernel_go_with_their_switches(name: str) -> None:
    before = programs()
    up = start("up", "--name", name, "--hosts", "2", "--offload", "xdp")
    _, error = up.communicate(timeout=60)
    if "built without" in error:
        pytest.skip("raddle-switch is built without XDP")
    assert up.returncode == 0, error
    own = programs() - before
    assert own
    for switch in Lab.find(name).status()["switches"]:
        os.kill(switch["process"], signal.SIGKILL)
    until(lambda: not own & programs(), "programs gone")


def programs() -> set[int]:
    done = subprocess.run(
        ["bpftool", "--json", "prog", "list"], capture_output=True, text=True, check=True
    )
    return {
        row["id"] for row in json.loads(done.stdout) if row.get("name", "").startswith("raddle")
    }
