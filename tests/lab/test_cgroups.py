"""Where control groups are, in the ways that systems mount them."""

from pathlib import Path

import pytest

from raddle.errors import LabError
from raddle.services.lab.cgroups import find_mounts

TOP = "/sys/fs/cgroup"
V2 = f"35 24 0:30 / {TOP} rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate"
BESIDE = f"41 31 0:38 / {TOP}/unified rw,relatime shared:10 - cgroup2 cgroup2 rw"
CPU = f"32 31 0:29 / {TOP}/cpu,cpuacct rw,relatime shared:11 - cgroup cgroup rw,cpu,cpuacct"
PIDS = f"39 31 0:36 / {TOP}/pids rw,relatime - cgroup cgroup rw,pids"
SYSTEMD = f"40 31 0:37 / {TOP}/systemd rw,relatime - cgroup cgroup rw,xattr,name=systemd"
OTHER = "27 1 254:0 / / rw,relatime - ext4 /dev/vda rw,discard"


@pytest.mark.parametrize(
    ("lines", "cpu", "tracking"),
    [
        ((OTHER, V2), None, ""),
        ((OTHER, CPU, PIDS, SYSTEMD, BESIDE), "cpu,cpuacct", "unified"),
        ((OTHER, CPU, PIDS, SYSTEMD), "cpu,cpuacct", "pids"),
        ((CPU, SYSTEMD), "cpu,cpuacct", "systemd"),
    ],
    ids=["version 2", "both", "version 1", "version 1 without pids"],
)
def test_both_versions_are_found(lines: tuple[str, ...], cpu: str | None, tracking: str) -> None:
    found = find_mounts("\n".join(lines) + "\n")
    assert found.cpu_v1 == (None if cpu is None else Path(TOP, cpu))
    assert found.tracking == Path(TOP, tracking)


def test_without_control_groups_there_is_no_lab() -> None:
    with pytest.raises(LabError, match="no control groups"):
        find_mounts(OTHER)
