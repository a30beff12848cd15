"""Eight jobs at one switch under quotas: each gets what is its own, the dead make room."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

import switch_harness as harness
from switch_harness import ROUNDS, Net, Switch, until

pytestmark = [
    pytest.mark.skipif(bool(harness.missing()), reason=harness.missing()),
    pytest.mark.skipif(not ROUNDS.exists(), reason=f"needs {ROUNDS}: run make build"),
]
JOBS = range(1, 9)
LEASE_S = 10
"""What allreduce_rounds asks for."""
QUOTAS = f'[quotas]\ngroups = 8\njob_groups = 1\njob_slots = 16\nlease = "{LEASE_S}s"\n'
FETCH = (
    "import urllib.request as u; print(u.urlopen('http://127.0.0.1:9464/metrics').read().decode())"
)


def metrics(net: Net, switch: Switch) -> dict[str, float]:
    """The metrics of a switch, by name and labels."""
    text = net.exec(switch.name, "python3", "-c", FETCH)
    lines = (line.rsplit(" ", 1) for line in text.splitlines() if line and line[0] != "#")
    return {name: float(value) for name, value in lines}


def jobs(switch: Switch) -> dict[int, dict[str, Any]]:
    return {job["job"]: job for job in switch.status()["jobs"]}


def hosts_of(job: int) -> list[int]:
    return [2 * job - 1, 2 * job]


@pytest.mark.parametrize("backend", ["sockets", pytest.param("xdp", marks=pytest.mark.scale)])
def test_eight_jobs_under_quotas(tmp_path: Path, backend: str) -> None:
    with Net(tmp_path) as net:
        switch = net.add_switch("tor1")
        switch.extra = f'backend = "{backend}"\n{QUOTAS}'
        for host in range(1, 19):
            name = net.add_host(host, switch)
            net.exec(name, "ethtool", "-K", "e0", "gro", "on")
        try:
            switch.start()
        except AssertionError:
            if "was built without it" in (tmp_path / "tor1.log").read_text():
                pytest.skip("raddle-switch was built without XDP: needs clang and libbpf-dev")
            raise
        running = {
            job: net.start_allreduce(
                [(switch, None, hosts_of(job))], "--rounds", "1000000", job=job
            )
            for job in JOBS
        }
        until(lambda: set(jobs(switch)) == set(JOBS), "eight jobs")
        shown = metrics(net, switch)
        for job, status in jobs(switch).items():
            assert (status["groups"], status["slots"]) == (1, 16)
            assert shown[f'raddle_switch_job_groups{{job="{job}"}}'] == 1
            assert shown[f'raddle_switch_job_slots{{job="{job}"}}'] == 16

        # There is no room for a ninth, and it is told so.
        ninth: list[tuple[Switch, Switch | None, list[int]]] = [(switch, None, [17, 18])]
        first, second = net.start_allreduce(ninth, "--rounds", "10", job=9)
        assert first.wait(10) != 0
        second.kill()
        for member in (first, second):
            member.communicate()
        assert set(jobs(switch)) == set(JOBS)

        # The dead keep their slots for the lease, no longer.
        for member in running.pop(3):
            member.kill()
            member.communicate()
        begun = time.monotonic()
        while 3 in jobs(switch):
            assert time.monotonic() - begun < LEASE_S + 1
            time.sleep(0.1)
        assert 'raddle_switch_job_groups{job="3"}' not in metrics(net, switch)
        results = net.allreduce(ninth, "--rounds", "1000", job=9)
        assert [(r["rounds"], r["wrong"]) for r in results] == [(1000, 0)] * 2

        # All others have gone on meanwhile.
        before = jobs(switch)
        time.sleep(0.5)
        after = jobs(switch)
        assert set(after) >= set(JOBS) - {3}
        for job in running:
            assert after[job]["rounds"] > before[job]["rounds"], json.dumps(after[job])
        for members in running.values():
            for member in members:
                member.kill()
                member.communicate()
