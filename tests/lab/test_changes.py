"""What the switches of a lab run can be changed, and a change that fails is undone."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from laboratory import ENVIRONMENT, SWITCH, inside, lab, lab_json, missing, process, until, up
from raddle.errors import LabError
from raddle.services.lab import Backend, Lab
from raddle.services.lab.processes import started_at

needs_lab = pytest.mark.skipif(
    bool(missing()) or SWITCH is None, reason=missing() or "raddle-switch is not built"
)
needs_openmpi = pytest.mark.skipif(
    shutil.which("mpirun.openmpi") is None, reason="needs openmpi-bin"
)
OFF, SOCKETS, XDP = Backend.OFF, Backend.SOCKETS, Backend.XDP

ALL_CHANGES = (SOCKETS, XDP, OFF, XDP, SOCKETS, OFF)
"""From `off` on: each of the six ordered changes once."""

LABS = [
    pytest.param(2, 4, id="1 switch"),
    pytest.param(4, 2, id="3 switches"),
    pytest.param(16, 16, id="1 switch of 16 ports", marks=pytest.mark.scale),
    pytest.param(16, 4, id="5 switches", marks=pytest.mark.scale),
    pytest.param(16, 1, id="17 switches", marks=pytest.mark.scale),
]

LEADER_ENDS = """
import ctypes, socket, sys, threading, time
server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen()
threading.Thread(target=time.sleep, args=(float(sys.argv[2]),)).start()
ctypes.CDLL(None).pthread_exit(None)
"""


def change(opened: Lab, to: Backend) -> None:
    """Change what the switches run; skips where `raddle-switch` has no XDP."""
    try:
        opened.use(to)
    except LabError as error:
        if "was built without it" in str(error):
            pytest.skip("raddle-switch was built without XDP: needs clang and libbpf-dev")
        raise


def check_works(opened: Lab, backend: Backend) -> None:
    """All switches run this, and hosts reach each other through them."""
    status = lab_json("status", "--name", opened.name)
    assert status["offload"] == backend
    assert status["changing_to"] is None
    last = f"h{len(status['hosts'])}"
    inside(opened.name, "h1", "ping", "-c1", "-W2", last)
    ours = set(opened.groups.processes("switches"))
    assert ours == ({s["process"] for s in status["switches"]} if backend is not OFF else set())


@needs_lab
@pytest.mark.parametrize(("hosts", "per_tor"), LABS)
def test_every_change_of_back_ends(hosts: int, per_tor: int) -> None:
    words = ("--hosts", str(hosts), "--hosts-per-tor", str(per_tor))
    with up(f"test-change-{os.getpid()}", *words) as name:
        opened = Lab.find(name)
        for backend in ALL_CHANGES:
            change(opened, backend)
            check_works(opened, backend)
            before = opened.state.read_running()
            opened.use(backend)
            assert opened.state.read_running() == before, "nothing changes from one to itself"


@needs_lab
@needs_openmpi
def test_mpirun_changes_switches_that_run_xdp() -> None:
    words = ("--hosts", "4", "--hosts-per-tor", "2")
    with up(f"test-change-mpi-{os.getpid()}", *words) as name:
        change(Lab.find(name), XDP)
        for offload in ("xdp", "sockets"):
            done = process("mpirun", "--name", name, "--offload", offload, "--", "hostname")
            assert sorted(done.stdout.split()) == ["h1", "h2", "h3", "h4"]


@pytest.fixture(scope="module")
def three() -> Iterator[Lab]:
    """Four hosts below two TORs and a SPINE."""
    words = ("--hosts", "4", "--hosts-per-tor", "2", "--offload", "sockets")
    with up(f"test-undo-{os.getpid()}", *words) as name:
        yield Lab.find(name)


def stand_in(folder: Path, does: str) -> Path:
    """A raddle-switch that runs the shell words `does` where it is to be spine1 with XDP."""
    program = folder / "raddle-switch"
    program.write_text(
        "#!/bin/sh\n"
        'if grep -q spine1.sock "$2" && grep -q \'backend = "xdp"\' "$2"; then\n'
        f'{does}\nfi\nexec {SWITCH} "$@"\n'
    )
    program.chmod(0o755)
    return program


@needs_lab
@pytest.mark.parametrize(
    ("does", "said"),
    [
        ("echo 'XDP cannot be attached' >&2; exit 1", "XDP cannot be attached"),
        ("exit 1", "spine1"),
        ("sleep 0.3; kill -KILL $$", "spine1 ended: it logged nothing"),
    ],
    ids=["refuses", "silent", "killed"],
)
@pytest.mark.parametrize("before", [OFF, SOCKETS])
def test_a_change_that_fails_is_undone(
    three: Lab,
    before: Backend,
    does: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    three.use(before)
    program = stand_in(tmp_path, does)
    monkeypatch.setattr("raddle.services.lab.switches.switch_program", lambda: program)
    with pytest.raises(LabError) as failure:
        three.use(XDP)
    words = str(failure.value)
    assert said in words
    assert words.endswith(f"lab `{three.name}` runs {before} again")
    assert "draining" not in words, "what an earlier raddle-switch logged is not quoted"
    check_works(three, before)


@needs_lab
def test_a_switch_that_never_answers_is_not_waited_for_for_ever(
    three: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    three.use(SOCKETS)
    program = stand_in(tmp_path, "sleep 1000")
    monkeypatch.setattr("raddle.services.lab.switches.switch_program", lambda: program)
    monkeypatch.setattr("raddle.services.lab.virtual.READY_S", 2.0)
    monkeypatch.setattr("raddle.services.lab.virtual.READY_PER_SWITCH_S", 0.0)
    with pytest.raises(LabError, match=r"do not work after 2 s: (.|\n)* runs sockets again"):
        three.use(XDP)
    check_works(three, SOCKETS)


@needs_lab
@pytest.mark.parametrize("before", [SOCKETS, XDP])
def test_bridges_that_cannot_be_made_are_undone(
    three: Lab, before: Backend, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(three, before)

    def refuse(*_: object) -> None:
        msg = "the bridges of the lab cannot be set: no"
        raise LabError(msg)

    monkeypatch.setattr("raddle.services.lab.network.build_bridges", refuse)
    with pytest.raises(LabError, match=f"runs {before} again"):
        three.use(OFF)
    check_works(three, before)


@needs_lab
def test_what_cannot_be_put_back_is_said(
    three: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    three.use(SOCKETS)
    broken = tmp_path / "raddle-switch"
    broken.write_text("#!/bin/sh\necho 'out of order' >&2\nexit 1\n")
    broken.chmod(0o755)
    with monkeypatch.context() as patched:
        patched.setattr("raddle.services.lab.switches.switch_program", lambda: broken)
        with pytest.raises(LabError, match=r"sockets cannot be put back(.|\n)*--replace"):
            three.use(XDP)
    said: list[str] = []
    again = Lab.find(three.name, say=said.append)
    assert "sockets runs again" in "".join(said)
    check_works(again, SOCKETS)


def start_stuck_change(opened: Lab, folder: Path) -> subprocess.Popen[str]:
    """Start an mpirun whose change to XDP does not come to an end."""
    stuck = folder / "stuck"
    program = stand_in(folder, f"touch {stuck}; sleep 1000")
    script = (
        "import sys, pathlib, raddle.services.lab.switches as switches\n"
        f"switches.switch_program = lambda: pathlib.Path({str(program)!r})\n"
        "from raddle.cli.app import app\n"
        "app(prog_name='raddle')\n"
    )
    words = ("lab", "mpirun", "--name", opened.name, "--offload", "xdp", "--", "true")
    running = subprocess.Popen(
        [sys.executable, "-c", script, *words],
        env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    until(stuck.exists, "it is stuck")
    return running


@needs_lab
@needs_openmpi
@pytest.mark.parametrize("before", [OFF, SOCKETS])
def test_an_interrupted_change_is_undone(three: Lab, before: Backend, tmp_path: Path) -> None:
    three.use(before)
    changing = start_stuck_change(three, tmp_path)
    changing.terminate()
    _, error = changing.communicate(timeout=60)
    assert changing.returncode == 130, error
    assert f"run {before} again" in error
    check_works(three, before)


@needs_lab
@needs_openmpi
@pytest.mark.parametrize("before", [OFF, SOCKETS])
def test_after_a_killed_change_the_next_command_undoes_it(
    three: Lab, before: Backend, tmp_path: Path
) -> None:
    three.use(before)
    changing = start_stuck_change(three, tmp_path)
    status = lab_json("status", "--name", three.name, status=0 if before is OFF else 1)
    assert status["changing_to"] == "xdp", "who asks meanwhile does not wait for it"
    changing.kill()
    changing.communicate(timeout=60)
    said = lab("status", "--name", three.name).stderr
    assert f"a change from {before} to xdp was cut off; {before} runs again" in said
    check_works(three, before)


@needs_lab
def test_several_who_want_the_same_change_get_it(three: Lab) -> None:
    three.use(OFF)
    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(Lab.find(three.name).use, SOCKETS) for _ in range(4)]:
            done.result()
    check_works(three, SOCKETS)


@needs_lab
@needs_openmpi
def test_mpirun_names_a_switch_that_stands_still(three: Lab) -> None:
    three.use(SOCKETS)
    lab("switch", "--name", three.name, "spine1", "kill")
    done = process("mpirun", "--name", three.name, "--hosts", "h1", "--", "true")
    assert "spine1 does not run" in done.stderr
    assert f"`raddle lab switch --name {three.name} spine1 start`" in done.stderr
    lab("switch", "--name", three.name, "spine1", "start")
    check_works(three, SOCKETS)


@needs_lab
def test_dead_switches_come_back_one_by_one(three: Lab) -> None:
    three.use(SOCKETS)
    for name in ("tor1", "spine1"):
        lab("switch", "--name", three.name, name, "kill")
    lab("switch", "--name", three.name, "tor1", "start")
    assert three.idle_switches() == ["spine1"]
    inside(three.name, "h1", "ping", "-c1", "-W2", "h2")
    lab("switch", "--name", three.name, "spine1", "start")
    check_works(three, SOCKETS)


def test_a_process_lives_until_its_last_thread_has_ended(tmp_path: Path) -> None:
    """A raddle-switch whose first thread has gone still listens, and XDP is on its ports."""
    words = [sys.executable, "-c", LEADER_ENDS, str(tmp_path / "socket"), "0.5"]
    with subprocess.Popen(words) as running:
        stat = Path(f"/proc/{running.pid}/stat")
        until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "Z", "a zombie")
        assert started_at(running.pid) is not None
        until(lambda: started_at(running.pid) is None, "it has ended")
        assert running.wait() == 0
