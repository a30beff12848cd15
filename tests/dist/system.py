"""A Debian system of its own in a folder: new, with packages installed, booted by systemd."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DIST = Path(os.environ.get("RADDLE_DIST", ROOT / "dist"))
"""What is tried."""

USER = "tester"

# The settings by which package managers reach their registries here.
INHERITED = ("PIP_", "http_proxy", "https_proxy", "no_proxy")


def missing() -> str:
    """What keeps the tests from running, for a skip; empty if nothing does."""
    if os.geteuid() != 0:
        return "needs root: it makes systems of their own"
    tools = [tool for tool in ("debootstrap", "systemd-nspawn") if shutil.which(tool) is None]
    if tools:
        return f"needs {', '.join(tools)} (packages debootstrap systemd-container)"
    if not (DIST / "debian").is_dir():
        return f"{DIST} has no packages: make dist"
    return ""


def codename() -> str:
    """The distribution that the Debian packages were made on."""
    lines = Path("/etc/os-release").read_text().splitlines()
    (name,) = [line.partition("=")[2] for line in lines if line.startswith("VERSION_CODENAME=")]
    return name


@dataclass(frozen=True)
class System:
    """A system in a folder."""

    place: Path

    @classmethod
    def make(cls, place: Path) -> "System":
        """Make one with what every Debian has, and nothing else."""
        words = ["debootstrap", "--variant=minbase", "--include=systemd,systemd-sysv,dbus,iproute2"]
        subprocess.run([*words, codename(), place], check=True, capture_output=True)
        shutil.copytree("/etc/apt", place / "etc/apt", dirs_exist_ok=True)
        shutil.copy2("/etc/resolv.conf", place / "etc/resolv.conf")
        # An installer writes it; debootstrap does not.
        (place / "etc/hosts").write_text("127.0.0.1 localhost\n")
        system = cls(place)
        system.run("useradd", "--create-home", USER)
        system.install("ca-certificates")
        # A site's own authority, where package managers reach their registries through one.
        for name in ("etc/pip.conf", "etc/ssl/certs/ca-certificates.crt"):
            if Path("/", name).exists():
                shutil.copy2(Path("/", name), place / name)
        return system

    def run(
        self,
        *words: str,
        user: str = "root",
        folder: str = "/",
        variables: Mapping[str, str] | None = None,
        check: bool = True,
        timeout: float = 600,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in it, without booting it; mounts of its own end with the command."""
        script = (
            # Labs need a root that is a mount of its own.
            'mount --bind "$0" "$0"; mount --rbind /dev "$0/dev"; mount -t proc proc "$0/proc";'
            ' mount --rbind /sys "$0/sys"; mount -t tmpfs tmpfs "$0/run"; exec chroot "$0" "$@"'
        )
        inside = ["env", "-C", folder, *(["runuser", "-u", user, "--"] if user != "root" else [])]
        command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec", script]
        environment = {
            "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": "/root" if user == "root" else f"/home/{user}",
            "LANG": "C.UTF-8",
            "DEBIAN_FRONTEND": "noninteractive",
            **{key: value for key, value in os.environ.items() if key.startswith(INHERITED)},
            **(variables or {}),
        }
        done = subprocess.run(
            [*command, self.place, *inside, *words],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if check:
            assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}\n{done.stderr}"
        return done

    def install(self, *packages: str) -> None:
        """Install packages of the distribution, or files that lie in the system."""
        self.run("apt-get", "update", "-q")
        self.run("apt-get", "install", "-qy", "--no-install-recommends", *packages)

    def bring(self, files: Sequence[Path], folder: str) -> list[str]:
        """Copy files into it; give their paths there."""
        (self.place / folder.lstrip("/")).mkdir(parents=True, exist_ok=True)
        return [
            "/"
            + str(Path(shutil.copy2(file, self.place / folder.lstrip("/"))).relative_to(self.place))
            for file in files
        ]

    def boot(self, script: str, timeout: float = 300) -> str:
        """Boot it with a network of its own, run a script as root, shut down; give what it said."""
        (self.place / "root/check.sh").write_text(script)
        (self.place / "etc/systemd/system/check.service").write_text(
            "[Unit]\nAfter=dbus.service\n"
            "[Service]\nType=oneshot\nEnvironment=LANG=C.UTF-8\n"
            "ExecStart=/bin/bash -ex /root/check.sh\n"
            "StandardOutput=file:/root/check.out\nStandardError=file:/root/check.err\n"
            "ExecStopPost=/bin/sh -c 'echo $EXIT_STATUS >/root/check.status;"
            " systemctl --no-block poweroff'\n"
            "[Install]\nWantedBy=multi-user.target\n"
        )
        self.run("systemctl", "enable", "check.service")
        words = ["systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--private-network"]
        # The packet program of raddle-switch.
        words += ["--system-call-filter=bpf perf_event_open"]
        words += ["--capability=all", "--boot", f"--directory={self.place}"]
        console = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        out, error = (
            (self.place / "root" / name).read_text() for name in ("check.out", "check.err")
        )
        status = (self.place / "root/check.status").read_text().strip()
        assert status == "0", f"{out}\n{error}\n{console.stdout[-3000:]}"
        return out
