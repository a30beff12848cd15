"""Times of rounds: of runs with so many messages that tables of them would be in the way."""

from dataclasses import dataclass

from raddle import _core
from raddle.core.answers import Answer

__all__ = ["RoundTimes", "round_times"]


@dataclass(frozen=True, slots=True)
class RoundTimes(Answer):
    """How the rounds of an experiment's first run went."""

    starts_ps: tuple[int, ...]
    """When the workload's first process began each round; empty where it has no rounds."""
    finished: bool
    """Whether the whole workload came to its end."""
    end_ps: int
    foreign_copies: int
    """Packets that reached hosts outside their group, late ones included."""
    second_copies: int
    """Second copies that members dropped."""
    drops: int
    """Packets that were lost."""
    timeouts: int
    """Times that a sender waited in vain for an acknowledgement."""
    members_missed: int
    """Members that never got a message."""


def round_times(text: str, path: str = "experiment.toml") -> RoundTimes:
    """Simulate the first run of an experiment's TOML; files are relative to the folder of `path`.

    Raises
    ------
    ExperimentError
        The experiment is wrong.
    """
    return RoundTimes.from_json(_core.round_times(text, path, _core.Progress()))
