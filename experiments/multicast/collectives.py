"""The collectives of section 5: which runs there are, and the times of process 0's rounds."""

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w
from numpy.typing import NDArray

from raddle.core.rounds import RoundTimes, round_times
from raddle.files import read_text, write_text
from raddle.statistics.samples import mean_interval

HERE = Path(__file__).resolve().parent
BASE = HERE / "collectives.toml"
GRIDS = ((60, 60), (20, 180), (120, 30))
ENGINES = ("broadcast", "mr4lms", "c-mr4lms-fixed", "c-mr4lms-dynamic")
FIXED = "c-mr4lms-fixed"
OPERATIONS = {
    "MPI_Barrier": ("barrier", "8B"),
    "MPI_Allreduce": ("allreduce", "8B"),
    "MPI_Bcast 8 B": ("bcast", "8B"),
    "MPI_Bcast 2 KB": ("bcast", "2KiB"),
}
PUBLISHED = {
    "MPI_Barrier": ((28.4, 24.3, 25.5, 26.6), (40.6, 27.0, 25.4, 26.8), (33.1, 24.2, 25.6, 26.0)),
    "MPI_Allreduce": ((37.4, 29.3, 28.4, 29.3), (46.0, 31.7, 30.9, 27.1), (30.5, 26.5, 26.9, 29.1)),
    "MPI_Bcast 8 B": ((31.3, 27.0, 27.2, 26.9), (50.2, 27.2, 30.0, 28.4), (33.8, 27.0, 26.7, 27.0)),
    "MPI_Bcast 2 KB": (
        (51.8, 44.8, 31.1, 31.1),
        (92.6, 39.6, 34.4, 32.6),
        (52.0, 45.0, 27.5, 33.8),
    ),
}
"""Table 1: medians in us, a row per grid, by engine."""
TORUS = (15, 15, 16)
"""The 3-D grid beside Table 1: its size is lost."""
RANDOM_GROUPS = 120
"""The number of random groups beside Table 1 is lost: as many as 60 x 60 has."""
WARM_UP = 5
"""Rounds that do not count."""
BATCHES = 10
"""A run's rounds depend on one another: its interval is over the medians of so many parts."""
PICOSECONDS = 1e6
"""In a microsecond."""

Step = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Model:
    """What the paper does not say of the machine."""

    overhead_ps: int = 0
    """Software of a process, per collective."""
    foreign_ps: int = 0
    """A host's time for a packet of a group that it is not in."""
    foreign_byte_ps: int = 0
    noise_ps: int = 200_000
    """Mean of what is added to the software."""
    combining: str = "on-tree"
    delay_ns: int = 200


@dataclass(frozen=True, slots=True)
class Case:
    """A run: one cell of Table 1, or of Figure 12, or what the paper has beside them."""

    operation: str
    dims: tuple[int, ...]
    engine: str
    twice: bool = False
    random_groups: int | None = None
    cut: tuple[int, int] | None = None
    """The ends of a link that is cut before the first round."""

    @property
    def published(self) -> float:
        """A cell of Table 1."""
        grid = GRIDS.index((self.dims[0], self.dims[1]))
        return PUBLISHED[self.operation][grid][ENGINES.index(self.engine)]

    @property
    def shape(self) -> str:
        """How the processes are grouped."""
        if self.random_groups is not None:
            return f"{self.random_groups} random groups"
        return "x".join(map(str, self.dims))

    def experiment(self, model: Model, rounds: int) -> str:
        """Its experiment."""
        made: dict[str, Any] = tomllib.loads(BASE.read_text())
        operation, size = OPERATIONS[self.operation]
        made["fabric"]["delay"] = f"{model.delay_ns}ns"
        made["traffic"] |= {
            "dims": list(self.dims),
            "operation": operation,
            "size": size,
            "engine": self.engine,
            "fault_tolerant": self.twice,
            "combining": model.combining,
            "overhead": f"{model.overhead_ps}ps",
            "foreign_packet_time": f"{model.foreign_ps}ps",
            "foreign_packet_time_per_byte": f"{model.foreign_byte_ps}ps",
            "noise": f"{model.noise_ps}ps",
            "rounds": rounds + WARM_UP + 1,
        }
        if self.random_groups is not None:
            made["traffic"]["random_groups"] = self.random_groups
        if self.cut is not None:
            made["simulation"]["faults"] = [{"link": list(self.cut), "down": "0ns"}]
        return tomli_w.dumps(made)


@dataclass(frozen=True, slots=True)
class Times:
    """Rounds of a case, in us."""

    rounds: NDArray[np.float64]

    @property
    def median(self) -> float:
        """Of all rounds."""
        return float(np.median(self.rounds))

    @property
    def iqr(self) -> float:
        """Upper less lower quartile."""
        low, high = np.percentile(self.rounds, (25, 75))
        return float(high - low)

    def parts(self) -> list[NDArray[np.float64]]:
        """Rounds that follow one another."""
        return np.array_split(self.rounds, BATCHES)

    @property
    def medians(self) -> list[float]:
        """Of the parts."""
        return [float(np.median(part)) for part in self.parts()]

    @property
    def means(self) -> list[float]:
        """Of the parts."""
        return [float(np.mean(part)) for part in self.parts()]

    @property
    def iqrs(self) -> list[float]:
        """Of the parts."""
        return [Times(part).iqr for part in self.parts()]

    def median_ci(self) -> tuple[float, float] | None:
        """The median's interval."""
        found = mean_interval(self.medians)
        return None if found.low is None or found.high is None else (found.low, found.high)


@dataclass(frozen=True, slots=True)
class Runs:
    """Runs of one model, each simulated once and kept in a folder."""

    home: Path
    rounds: int
    model: Model = field(default_factory=Model)

    def answer(self, case: Case, rounds: int | None = None) -> RoundTimes:
        """Simulate a case, or read what an earlier call kept of the same experiment."""
        text = case.experiment(self.model, self.rounds if rounds is None else rounds)
        file = self.home / f"{sha256(text.encode()).hexdigest()[:20]}.json"
        if file.is_file():
            return RoundTimes.from_json(read_text(file))
        found = round_times(text)
        self.home.mkdir(parents=True, exist_ok=True)
        write_text(file, found.to_json())
        return found

    def times(self, case: Case, rounds: int | None = None) -> Times:
        """The times of process 0's rounds."""
        found = self.answer(case, rounds)
        return Times(np.diff(np.array(found.starts_ps) / PICOSECONDS)[WARM_UP:])

    def all_times(self, cases: Sequence[Case], jobs: int, step: Step) -> dict[Case, Times]:
        """Simulate several at once."""
        done = 0

        def one(case: Case) -> tuple[Case, Times]:
            nonlocal done
            found = self.times(case)
            done += 1
            step(done, len(cases))
            return case, found

        with ThreadPoolExecutor(jobs) as pool:
            return dict(pool.map(one, cases))


SOFTWARE = Case("MPI_Bcast 8 B", (60, 60), "mr4lms")
PACKET = Case("MPI_Bcast 8 B", (20, 180), "broadcast")
BYTE = Case("MPI_Bcast 2 KB", (20, 180), "broadcast")
FITTED = (SOFTWARE, PACKET, BYTE)
"""The cells that the three constants are taken from: none of them is in a sentence on 60 x 60."""
FIT_ROUNDS = 40
FIT_STEPS = 6
BYTES_MORE = 2040
"""By how much a packet of 2 KB is longer than one of 8 B."""
HEARD = 200
"""Groups at 20 x 180: the packets that a host hears in a round."""


def fit(runs: Runs) -> Model:
    """The software's time, then the costs of a foreign packet and of its bytes.

    Each is moved until its own cell has the published median; the first is seen twice in a round,
    the others once for each packet that a host hears. The next one is begun with those before
    settled.
    """
    model = runs.model
    for case, name, often, start in (
        (SOFTWARE, "overhead_ps", 2, 11_000_000),
        (PACKET, "foreign_ps", HEARD, 240_000),
        (BYTE, "foreign_byte_ps", HEARD * BYTES_MORE, 100),
    ):
        model = with_constant(model, name, start)
        for _ in range(FIT_STEPS):
            rounds = min(FIT_ROUNDS, runs.rounds)
            found = replace(runs, model=model).times(case, rounds).median
            missing = case.published - found
            if abs(missing) < 0.002 * case.published:
                break
            value = max(0, getattr(model, name) + round(missing * PICOSECONDS / often))
            model = with_constant(model, name, value)
    return model


def with_constant(model: Model, name: str, value: int) -> Model:
    """The model with one of its constants changed."""
    changed: dict[str, Any] = {name: value}
    return replace(model, **changed)


def table_1() -> list[Case]:
    """Its cells, in order."""
    return [Case(*cell) for cell in product(OPERATIONS, GRIDS, ENGINES)]


def beside() -> Iterator[Case]:
    """A 3-D grid and random groups, which the paper says are alike."""
    for operation, engine in product(OPERATIONS, ("broadcast", "mr4lms", FIXED)):
        yield Case(operation, TORUS, engine)
        yield Case(operation, GRIDS[0], engine, random_groups=RANDOM_GROUPS)


def twice() -> list[Case]:
    """Figure 12."""
    return [Case(operation, GRIDS[0], FIXED, twice=True) for operation in OPERATIONS]


def cut_links() -> list[tuple[int, int]]:
    """The links from the switch above process 0 upwards; switches are numbered after the hosts."""
    fabric = tomllib.loads(BASE.read_text())["fabric"]
    first = fabric["cns"] * fabric["q"] * fabric["terminals_per_l0"]
    above = first + fabric["cns"] * fabric["q"]
    return [(first, above + up) for up in range(fabric["m"])]


def stopped(runs: Runs, engine: str, *, twice: bool) -> int:
    """With how many links cut, one after the other, not all messages arrive."""
    answers = (
        runs.answer(Case("MPI_Bcast 8 B", GRIDS[0], engine, twice=twice, cut=link), 1)
        for link in cut_links()
    )
    return sum(found.members_missed > 0 or not found.finished for found in answers)


Found = Mapping[Case, Times]
