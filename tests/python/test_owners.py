"""Claims of runs in a folder that several processes write: one owner each, whoever dies."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from raddle.results.owners import Claims, Owner, Process

KEY = "point/hpcc-seed1-loaded"


def take(owner: Owner, key: str = KEY, *, force: bool = False) -> bool:
    return owner.take(key, lambda: (0.5, 7), lambda: None, force=force) is not None


@pytest.fixture
def claims(tmp_path: Path) -> Claims:
    return Claims(tmp_path)


def elsewhere(claims: Claims, token: str = "far", *, age_s: float = 0.0) -> Path:
    """A claim of a process on another machine; its sign of life, `age_s` old."""
    process = {
        "token": token, "host": "node7", "pid": os.getpid(), "started": "1", "place": "other",
        "shard": None,
    }  # fmt: skip
    sign = claims.sign(token)
    sign.parent.mkdir(parents=True, exist_ok=True)
    sign.write_text(json.dumps({"process": process, "runs": {KEY: {"since": 0.0}}}))
    file = claims.file(KEY, 1)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"process": process, "released": False}))
    when = time.time() - age_s
    os.utime(sign, (when, when))
    return sign


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[str]]:
    """A process of this machine that claims `KEY` in the folder that it is told, and sleeps."""
    script = (
        "import sys, time; from pathlib import Path; from raddle.results.owners import Claims\n"
        "with Claims(Path(sys.stdin.readline().strip())).owner('2/3') as owner:\n"
        f"    print(owner.take({KEY!r}, lambda: (0.5, 7), lambda: None) is not None, flush=True)\n"
        "    time.sleep(60)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    yield process
    process.kill()
    process.communicate()


def claim_in(process: "subprocess.Popen[str]", folder: Path) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{folder}\n")
    process.stdin.flush()
    assert process.stdout.readline() == "True\n"


def test_of_many_that_claim_at_once_one_gets_the_run(claims: Claims) -> None:
    keys = [f"run{number}" for number in range(20)]
    got: list[tuple[str, str]] = []
    start = threading.Barrier(8)

    def claim() -> None:
        with claims.owner() as owner:
            start.wait()
            got.extend((key, owner.process.token) for key in keys if take(owner, key))
            start.wait()

    threads = [threading.Thread(target=claim) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(key for key, _ in got) == sorted(keys)


def test_a_run_is_its_owners_until_it_is_given_back(claims: Claims) -> None:
    with claims.owner("1/2") as first, claims.owner() as second:
        assert take(first)
        assert not take(second)
        claim = claims.last(KEY)
        assert claim is not None
        assert claim.work is not None
        assert (claim.number, claim.work.share, claim.work.packet_hops) == (1, 0.5, 7)
        assert claim.process is not None
        assert claim.process.shard == "1/2"
        first.release(KEY, done=False)
        assert take(second)
        assert not take(first)
        # Nobody's claim was removed for it.
        assert [released for _, released in claims.history(KEY)] == [True, False]


def test_the_claim_of_a_run_that_is_done_stays(claims: Claims) -> None:
    with claims.owner() as first, claims.owner() as second:
        assert take(first)
        first.release(KEY, done=True)
        assert not take(second)


def test_a_process_that_was_killed_loses_its_runs_at_once(
    claims: Claims, tmp_path: Path, sleeper: "subprocess.Popen[str]"
) -> None:
    claim_in(sleeper, tmp_path)
    with claims.owner() as owner:
        assert not take(owner)
        assert [process.pid for process in claims.at_work()] == [sleeper.pid, os.getpid()] or [
            process.pid for process in claims.at_work()
        ] == [os.getpid(), sleeper.pid]
        sleeper.send_signal(signal.SIGSTOP)
        assert not take(owner)  # it sleeps, and may wake up
        sleeper.kill()
        sleeper.wait()
        assert take(owner)
        hosts = [process.pid for process, _ in claims.history(KEY) if process is not None]
        assert hosts == [sleeper.pid, os.getpid()]


def test_a_new_process_with_the_number_of_a_dead_one_is_not_taken_for_it(claims: Claims) -> None:
    own = Process.this()
    assert own.here
    assert own.runs()
    twin = Process(own.token, own.host, own.pid, f"{own.started}0", own.place)
    assert not twin.runs()


@pytest.mark.parametrize(("age_s", "taken"), [(0.0, False), (100.0, False), (130.0, True)])
def test_a_process_of_another_machine_is_dead_when_it_gave_no_sign_for_long(
    claims: Claims, age_s: float, taken: bool
) -> None:
    elsewhere(claims, age_s=age_s)
    with claims.owner() as owner:
        assert take(owner) is taken


def test_clocks_need_not_agree(claims: Claims, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time", lambda: 0.0)  # ours is wrong by decades
    elsewhere(claims)
    sign = claims.sign("far")
    os.utime(sign)  # now, by the file system
    with claims.owner() as owner:
        assert not take(owner)


def test_a_claim_that_nobody_filled_is_taken_when_it_is_old(claims: Claims) -> None:
    file = claims.file(KEY, 1)
    file.parent.mkdir(parents=True)
    file.touch()
    with claims.owner() as owner:
        assert not take(owner)
        os.utime(file, (1.0, 1.0))
        assert take(owner)


def test_who_lost_a_run_is_told_at_the_next_sign_of_life(claims: Claims) -> None:
    lost = threading.Event()
    with claims.owner(beat_s=0.01) as first, claims.owner() as second:
        assert first.take(KEY, lambda: (0.0, 0), lost.set)
        assert take(second, force=True)
        assert lost.wait(10)
        assert first.lost(KEY)
        assert not second.lost(KEY)


def test_clearing_the_claims_stops_all(claims: Claims, tmp_path: Path) -> None:
    lost = threading.Event()
    with claims.owner(beat_s=0.01) as owner:
        assert owner.take(KEY, lambda: (0.0, 0), lost.set)
        claims.clear()
        assert lost.wait(10)
        assert not take(owner, "another")
    assert not (tmp_path / ".runs" / "claims").exists()
