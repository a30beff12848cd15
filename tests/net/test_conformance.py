"""One description, two worlds: members of a reduction say and hear the same in both.

Each scenario runs in the simulator and between hosts in network namespaces, through a real
raddle-switch. What a member sends and gets must come in the same order, message by message; and
where timers decide when, times must agree within 10 %. `pytest -s` prints both.
"""

import json
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest

import switch_harness as harness
from switch_harness import ROUNDS, TARGET, Net, Switch, transfer

SIMULATED = TARGET / "release" / "examples" / "reduction_events"
pytestmark = [
    pytest.mark.skipif(bool(harness.missing()), reason=harness.missing()),
    pytest.mark.skipif(not ROUNDS.exists(), reason=f"needs {ROUNDS}: run make build"),
    pytest.mark.skipif(not SIMULATED.exists(), reason=f"needs {SIMULATED}: run make build"),
]
RETRY_MS, GIVE_UP_MS = 200, 1000
TOLERANCE = 0.1
FOR_EVER = 1 << 40


@dataclass(frozen=True)
class Lost:
    """Messages of a member that are lost: what it sends, or what it would hear."""

    member: int
    sent: bool
    first: int
    count: int = 1


@dataclass(frozen=True)
class Scenario:
    """What happens; both worlds read it as JSON."""

    members: int = 3
    rounds: int = 6
    elements: int = 1
    lost: tuple[Lost, ...] = ()
    beside: int = 0
    retry_ms: int = RETRY_MS
    give_up_ms: int = GIVE_UP_MS

    def file(self, folder: Path) -> Path:
        """It, as a file."""
        path = folder / "scenario.json"
        path.write_text(json.dumps(asdict(self)))
        return path


SCENARIOS = {
    "nothing happens": Scenario(),
    "a contribution is lost": Scenario(lost=(Lost(1, sent=True, first=3),)),
    "a result is lost": Scenario(lost=(Lost(2, sent=False, first=4),)),
    "a contribution is lost twice": Scenario(lost=(Lost(0, sent=True, first=2, count=2),)),
    "a segment of several is lost": Scenario(
        elements=120, rounds=2, lost=(Lost(1, sent=True, first=2),)
    ),
    "two members lose at once": Scenario(
        members=4, lost=(Lost(0, sent=True, first=2), Lost(3, sent=True, first=2))
    ),
    "beside a long TCP transfer": Scenario(rounds=200, beside=20_000_000),
}
Event = dict[str, Any]


def simulated(scenario: Scenario, folder: Path) -> list[list[Event]]:
    """What each member says and hears in the simulator."""
    done = subprocess.run(
        [SIMULATED, scenario.file(folder)], capture_output=True, text=True, check=True
    )
    events = [event for event in json.loads(done.stdout) if is_data(event)]
    # What a member hears and says at one instant, it says because of that.
    events.sort(key=lambda event: (event["at_us"], event["sent"]))
    return [
        [event for event in events if event["member"] == member]
        for member in range(scenario.members)
    ]


def real(
    scenario: Scenario, folder: Path, meanwhile: Callable[[Net, Switch], None] = lambda *_: None
) -> list[list[Event]]:
    """The same between real hosts."""
    with Net(folder) as net:
        switch = net.add_switch("tor1")
        hosts = list(range(1, scenario.members + 1))
        for host in hosts:
            net.add_host(host, switch)
        switch.start()
        beside = threading.Thread(target=meanwhile, args=(net, switch))
        members = net.start_allreduce(
            [(switch, None, hosts)], "--scenario", str(scenario.file(folder))
        )
        beside.start()
        results = net.finish(members)
        beside.join()
    return [result["events"] for result in results]


def is_data(event: Event) -> bool:
    """Whether it belongs to a round; leases come by the clock."""
    return bool(event["what"].startswith(("Contribution", "Result")))


def in_bursts(events: list[Event]) -> list[Event]:
    """Events, with results that are heard in one burst in order of their names.

    A kernel queues what a program sends on the core that the program runs on, so segments may
    overtake each other where it has moved to another core in between: two results of a round come
    in any order. No timer of ours runs out within a burst.
    """
    found: list[Event] = []
    burst: list[Event] = []
    for event in events:
        late = bool(burst) and event["at_us"] - burst[0]["at_us"] > RETRY_MS * 1000 / 2
        if event["sent"] or late:
            found += sorted(burst, key=lambda heard: str(heard["what"]))
            burst.clear()
        (found if event["sent"] else burst).append(event)
    return found + sorted(burst, key=lambda heard: str(heard["what"]))


def words(events: list[Event], *, loses: bool) -> list[str]:
    """Events without their times, and without those that are chance.

    All members miss the result of a message that one of them lost, and ask again when their own
    timer says so. Who is first is chance by microseconds. The others may hear the result before
    they ask, and whoever asks after that hears it twice. So what is heard again is left out, and
    what is said again by members that lost nothing.
    """
    found: list[str] = []
    for event in in_bursts(events):
        word = f"{'says' if event['sent'] else 'hears'} {event['what']}"
        if word not in found or (event["sent"] and loses):
            found.append(word)
    return found if loses else [word for word in found if not word.endswith("again")]


def waits(events: list[Event]) -> list[float]:
    """Seconds from a message to its repetition: from one said before, or from one said again."""
    found: list[float] = []
    last: dict[str, float] = {}
    for event in events:
        if event["sent"]:
            name = event["what"].removesuffix(" again")
            if event["what"] != name:
                found.append((event["at_us"] - last[name]) / 1e6)
            last[name] = event["at_us"]
    return found


def told(name: str, pairs: list[tuple[float, float]]) -> None:
    """Print times of both worlds."""
    for in_simulator, between_hosts in pairs:
        print(f"{name}: {in_simulator:.4f} s simulated, {between_hosts:.4f} s real")


@pytest.mark.parametrize("name", SCENARIOS)
def test_members_say_and_hear_the_same(name: str, tmp_path: Path) -> None:
    scenario = SCENARIOS[name]

    def meanwhile(net: Net, _: Switch) -> None:
        if scenario.beside:
            transfer(net, "h1", "h2", "10.77.0.2", scenario.beside // 1_000_000)

    here, there = simulated(scenario, tmp_path), real(scenario, tmp_path, meanwhile)
    for member, (own, other) in enumerate(zip(here, there, strict=True)):
        loses = any(lost.member == member for lost in scenario.lost)
        assert words(own, loses=loses) == words(other, loses=loses), f"member {member}"
        pairs = list(zip(waits(own), waits(other), strict=loses))
        told(f"{name}, member {member}", pairs)
        for in_simulator, between_hosts in pairs:
            assert between_hosts == pytest.approx(in_simulator, TOLERANCE)
    if scenario.lost:
        assert any(waits(own) for own in here), "something is sent again"


def test_members_of_a_dead_switch_say_the_same(tmp_path: Path) -> None:
    """They ask again and again, later each time, until they give up.

    In which round the switch dies is chance; what comes after the last result is compared.
    """
    dead = [
        Lost(member, sent=sent, first=4, count=FOR_EVER)
        for member in range(3)
        for sent in (True, False)
    ]
    here = simulated(Scenario(lost=tuple(dead)), tmp_path)

    def kill(_: Net, switch: Switch) -> None:
        time.sleep(1.0)
        assert switch.process is not None
        switch.process.kill()

    there = real(Scenario(rounds=10_000_000), tmp_path, kill)
    for own, other in zip(here, there, strict=True):
        tails = [last_words(events) for events in (own, other)]
        assert [event["what"].endswith("again") for event in tails[0]] == [
            event["what"].endswith("again") for event in tails[1]
        ]
        pairs = list(zip(waits(tails[0]), waits(tails[1]), strict=True))
        told("a dead switch", pairs)
        assert len(pairs) >= 2
        for in_simulator, between_hosts in pairs:
            assert between_hosts == pytest.approx(in_simulator, TOLERANCE)


def last_words(events: list[Event]) -> list[Event]:
    """What a member says after the last thing that it hears and does not lose."""
    says = [event for event in events if event["sent"]]
    last = says[-1]["what"].removesuffix(" again")
    return [event for event in says if event["what"].removesuffix(" again") == last]
