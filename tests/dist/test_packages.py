"""What `make dist` has made, installed into new systems as a user would, and used there.

`make test-dist` makes the packages and runs this. Nothing here is compiled but a program in C that
uses a package's header.
"""

import json
import re
import shutil
import subprocess
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dist.system import DIST, ROOT, USER, System, missing

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())

MINUTES = 2
"""From the wheel to the first report."""


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """A new system."""
    place = tmp_path_factory.mktemp("system") / "root"
    yield System.make(place)
    shutil.rmtree(place, ignore_errors=True)


@pytest.fixture(scope="module")
def installed(bare: System) -> System:
    """The same with all Debian packages, and what they are used with."""
    packages = bare.bring(sorted((DIST / "debian").glob("*.deb")), "/root/packages")
    bare.install(*packages, "opensm", "ibsim-utils", "openmpi-bin", "mpich", "python3-mpi4py")
    return bare


def wheel(machine: str = "x86_64") -> Path:
    (found,) = DIST.glob(f"*_{machine}.whl")
    return found


# --- what lies in them ---


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_a_wheel_has_programs_manuals_licences_and_a_bill(machine: str) -> None:
    if not list(DIST.glob(f"*_{machine}.whl")):
        pytest.skip(f"no wheel for {machine} was made here")
    names = zipfile.ZipFile(wheel(machine)).namelist()
    ends = [
        *("scripts/raddle-switch", "scripts/raddle-perf", "share/man/man1/raddle-run.1"),
        *("share/man/man8/raddle-switch.8", "share/doc/raddle/NOTICES", "licenses/LICENSE"),
        *(".cyclonedx.json", "report/explorer/explorer.html", "raddle/_core.abi3.so"),
    ]
    assert [end for end in ends if not any(name.endswith(end) for name in names)] == []


def test_twine_takes_wheels_and_sources() -> None:
    files = [*DIST.glob("*.whl"), *DIST.glob("*.tar.gz")]
    words: list[str | Path] = [ROOT / ".venv/bin/twine", "check", "--strict", *files]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_lintian_finds_nothing_that_is_not_explained() -> None:
    words = ["lintian", "--fail-on", "error,warning", "--tag-display-limit", "0"]
    # The project has no public address yet.
    words += ["--suppress-tags", "bogus-mail-host,bogus-mail-host-in-debian-changelog"]
    words += ["--allow-root"]
    words += [str(file) for file in (DIST / "debian").glob("*.deb")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


# --- the wheel alone ---


def test_the_first_report_from_the_wheel_comes_soon_and_without_a_compiler(bare: System) -> None:
    bare.install("python3-venv")
    assert bare.run("sh", "-c", "command -v cc cargo", check=False).returncode != 0
    (file,) = bare.bring([wheel()], "/home/tester")
    started = time.monotonic()
    home = f"/home/{USER}"
    bare.run("python3", "-m", "venv", "env", user=USER, folder=home)
    bare.run("env/bin/pip", "install", "--quiet", file, user=USER, folder=home)
    bare.run("env/bin/raddle", "init", "my.toml", user=USER, folder=home)
    bare.run("env/bin/raddle", "run", "my.toml", "--out", "out", user=USER, folder=home)
    took = time.monotonic() - started
    assert (bare.place / "home/tester/out/report.html").stat().st_size > 50_000
    print(f"first report after {took:.0f} s")
    assert took < 60 * MINUTES
    for program in ("raddle-switch", "raddle-perf", "raddle-mpi-run"):
        bare.run(f"env/bin/{program}", "--help", user=USER, folder=home)


# --- the Debian packages ---


def test_the_command_runs_an_experiment(installed: System) -> None:
    home = f"/home/{USER}"
    installed.run("raddle", "init", "deb.toml", user=USER, folder=home)
    installed.run("raddle", "run", "deb.toml", "--out", "deb", user=USER, folder=home)
    assert (installed.place / "home/tester/deb/report.html").stat().st_size > 50_000
    told = installed.run("raddle", "doctor", "--json", user=USER, folder=home, check=False).stdout
    checks = {check["what"]: check for check in json.loads(told)["checks"]}
    assert checks["MPI programs (raddle record, offload)"]["works"], told


@pytest.mark.parametrize(
    ("launcher", "options"),
    [("mpirun.openmpi", ["--allow-run-as-root", "--oversubscribe"]), ("mpiexec.mpich", [])],
)
def test_an_mpi_program_is_recorded(installed: System, launcher: str, options: list[str]) -> None:
    (installed.place / "root/hello.c").write_text(
        "#include <mpi.h>\n"
        "int main(int n, char **v) { double a = 1, b; MPI_Init(&n, &v);\n"
        "MPI_Allreduce(&a, &b, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);\n"
        "MPI_Finalize(); return b != 2; }\n"
    )
    kind = launcher.rpartition(".")[2]
    program = installed.place / "root" / f"hello-{kind}"
    # The system has no compiler; this machine has one, for the same MPI libraries.
    source = installed.place / "root/hello.c"
    subprocess.run([f"mpicc.{kind}", source, "-o", program], check=True)
    trace = f"/root/{kind}.trace.parquet"
    installed.run(
        *("raddle", "record", "--out", trace, "--", launcher, *options, "-n", "2"),
        f"/root/{program.name}",
    )
    told = installed.run("raddle", "trace", "show", trace).stdout
    assert re.search(r"2 ranks|ranks +2", told), told


def test_opensm_loads_the_plugin(installed: System) -> None:
    (installed.place / "root/net").write_text(
        'Switch 4 "leaf1"\n[1] "host1"[1]\n[2] "host2"[1]\n[3] "spine"[1]\n\n'
        'Switch 4 "leaf2"\n[1] "host3"[1]\n[2] "host4"[1]\n[3] "spine"[2]\n\n'
        'Switch 4 "spine"\n[1] "leaf1"[3]\n[2] "leaf2"[3]\n\n'
        'Hca 1 "host1"\n[1] "leaf1"[1]\n\nHca 1 "host2"\n[1] "leaf1"[2]\n\n'
        'Hca 1 "host3"\n[1] "leaf2"[1]\n\nHca 1 "host4"\n[1] "leaf2"[2]\n'
    )
    script = (
        "cd /root; (sleep 60) | ibsim -s net >ibsim.log 2>&1 & sleep 2;"
        " cp /usr/share/doc/libraddle-opensm/examples/opensm.conf .;"
        " sed -i s,/etc/opensm,/usr/share/doc/libraddle-opensm/examples, opensm.conf;"
        " SIM_HOST=host1 LD_PRELOAD=$(echo /usr/lib/*/umad2sim/libumad2sim.so)"
        " timeout 30 opensm -F opensm.conf -o -f opensm.log; status=$?; cat opensm.log;"
        " exit $status"
    )
    told = installed.run("sh", "-c", script).stdout
    assert "raddle" in told, told[-3000:]
    assert "SUBNET UP" in told, told[-3000:]


def test_a_program_in_c_uses_rails(installed: System) -> None:
    installed.install("gcc", "libc6-dev", "pkgconf")
    installed.bring([ROOT / "crates/real/rails-c/tests/ring.c"], "/root")
    installed.run(
        "sh", "-c", "cd /root; cc ring.c -o ring $(pkg-config --cflags --libs raddle-rails)"
    )
    addresses = [f"127.77.1.{end}:4791" for end in range(1, 5)]
    installed.run("/root/ring", *addresses)


SWITCH = """
systemd-analyze verify --man=no /lib/systemd/system/raddle-switch@.service
for port in 1 2; do
    ip netns add h$port
    ip link add p$port type veth peer name e0 netns h$port
    sysctl -qw net.ipv6.conf.p$port.disable_ipv6=1
    ip link set p$port up
    ip -n h$port address add 10.0.0.$port/24 dev e0
    ip -n h$port link set e0 up
done
cp /usr/share/doc/raddle-switch/examples/switch.toml /etc/raddle/tor1.toml
raddle-switch new-secret --out /etc/raddle/site.secret
chown root:raddle-switch /etc/raddle/site.secret
chmod 640 /etc/raddle/site.secret
systemctl start raddle-switch@tor1
systemctl is-active raddle-switch@tor1
process=$(systemctl show --property MainPID --value raddle-switch@tor1)
ps -o user= -p $process || stat -c %U /proc/$process
ip netns exec h1 ping -c 3 -w 20 10.0.0.2
systemctl reload raddle-switch@tor1
sleep 1
systemctl is-active raddle-switch@tor1
raddle-switch status --name tor1
kill -9 $process
sleep 2
systemctl is-active raddle-switch@tor1
ip netns exec h2 ping -c 3 -w 20 10.0.0.1
systemctl stop raddle-switch@tor1
install -D -m 644 /usr/share/doc/raddle-switch/examples/xdp.conf \\
    /etc/systemd/system/raddle-switch@tor1.service.d/xdp.conf
sed -i 's/^backend = .*/backend = "xdp"/' /etc/raddle/tor1.toml
systemctl daemon-reload
systemctl start raddle-switch@tor1 || { journalctl --no-pager -n 20 -u raddle-switch@tor1; exit 1; }
ip netns exec h1 ping -c 3 -w 20 10.0.0.2
raddle-switch status --name tor1
systemctl stop raddle-switch@tor1
systemctl is-failed raddle-switch@tor1 || true
"""


def test_the_switch_is_a_service_without_root(installed: System) -> None:
    installed.install("iputils-ping", "procps")
    told = installed.boot(SWITCH)
    assert told.count("active\n") >= 3, told
    assert "raddle-switch\n" in told or "raddle-+" in told, told
    assert told.count(" 0% packet loss") == 3, told
    assert re.search(r"^tor1 .* sockets  running", told, re.MULTILINE), told
    assert re.search(r"^tor1 .* xdp  running", told, re.MULTILINE), told
    assert told.rstrip().endswith("inactive"), told


def test_removing_them_leaves_nothing(installed: System) -> None:
    names = [file.name.partition("_")[0] for file in (DIST / "debian").glob("*.deb")]
    installed.run("apt-get", "purge", "-qy", *names)
    for place in ("usr/lib/raddle", "usr/bin/raddle", "usr/lib/x86_64-linux-gnu/raddle"):
        assert not (installed.place / place).exists(), place
