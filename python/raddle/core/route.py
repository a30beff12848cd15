"""Route files: checked, and routed by all of their engines."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from raddle import _core
from raddle.core.answers import Answer

__all__ = [
    "FailedEngine",
    "Progress",
    "RouteCheck",
    "RouteSummary",
    "RoutedEngine",
    "RoutedFabric",
    "RoutedGroups",
    "Shape",
    "Tables",
    "check",
    "new_progress",
    "run",
]

Progress = _core.RouteProgress


@dataclass(frozen=True, slots=True)
class Shape(Answer):
    """The shape of a CN/TN fat tree; `raddle.core.fabric.Tree` says what the letters are."""

    m: int
    q: int
    p: int
    k: int
    w: int
    cns: int


@dataclass(frozen=True, slots=True)
class RoutedFabric(Answer):
    """The fabric of a route file."""

    name: str
    hosts: int
    switches: int
    links: int
    cn_tn: Shape | None
    """None if it is no CN/TN fat tree."""


@dataclass(frozen=True, slots=True)
class RoutedGroups(Answer):
    """The groups of a route file."""

    pattern: str
    count: int
    layers: int
    memberships: int
    smallest: int
    """Members of the smallest group."""
    largest: int


@dataclass(frozen=True, slots=True)
class Tables(Answer):
    """The multicast tables of switches."""

    colours: int
    table: str
    """"per-port" or "per-switch"."""
    fault_tolerant: bool
    """Whether each group has two trees."""


@dataclass(frozen=True, slots=True)
class RouteCheck(Answer):
    """What a route file asks for; the fields stand in the order of `--dry-run --json`."""

    name: str
    engines: tuple[str, ...]
    fabric: RoutedFabric
    groups: RoutedGroups
    multicast: Tables
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RoutedEngine(Answer):
    """What an engine came to that could route the groups; `FailedEngine` has the same fields."""

    groups: int
    max_efi: int
    """Most groups whose trees use one link."""
    mean_efi: float
    max_tfi: int
    """Most groups that share one tree."""
    mean_tfi: float
    used_links: int
    trees_left: int
    """Trees (pairs with fault tolerance) after merging."""
    merges: int
    """Groups without a tree of their own."""
    table_entries_max: int
    """Most entries in use in one table."""
    table_entries: int
    route_s: float
    """How long the engine took."""
    process_growth_bytes: int | None
    """By how much the process grew; None where the system does not tell."""
    fault_tolerant: bool
    cut_off: int
    """Members that no tree reaches."""
    efi_distribution: tuple[tuple[int, int], ...]
    """EFI and the links that have it; the next are TFI and trees, entries and switches."""
    tfi_distribution: tuple[tuple[int, int], ...]
    entries_distribution: tuple[tuple[int, int], ...]
    credit_loop: str | None
    """The switches of a circle; None if there is none, or nobody looked."""
    credit_check_s: float | None
    """How long looking for circles took; None if nobody looked."""
    credit_check_error: str | None
    error: None


@dataclass(frozen=True, slots=True)
class FailedEngine(Answer):
    """An engine that could not route the groups."""

    groups: None
    max_efi: None
    mean_efi: None
    max_tfi: None
    mean_tfi: None
    used_links: None
    trees_left: None
    merges: None
    table_entries_max: None
    table_entries: None
    route_s: float | None
    process_growth_bytes: int | None
    fault_tolerant: None
    cut_off: None
    efi_distribution: tuple[tuple[int, int], ...]
    tfi_distribution: tuple[tuple[int, int], ...]
    entries_distribution: tuple[tuple[int, int], ...]
    credit_loop: None
    credit_check_s: None
    credit_check_error: None
    error: str
    """Why."""


@dataclass(frozen=True, slots=True)
class RouteSummary(Answer):
    """What `summary.json` of `raddle route` holds, in its order."""

    schema: int
    kind: str
    """"route"."""
    name: str
    fabric: RoutedFabric
    groups: RoutedGroups
    multicast: Tables
    engines: Mapping[str, RoutedEngine | FailedEngine]
    warnings: tuple[str, ...]
    file: str
    """The route file with all that it includes, as TOML."""

    @property
    def routed(self) -> dict[str, RoutedEngine]:
        """The engines that could route these groups."""
        return {n: row for n, row in self.engines.items() if isinstance(row, RoutedEngine)}

    @property
    def failed(self) -> dict[str, str]:
        """The engines that could not, and why."""
        return {n: row.error for n, row in self.engines.items() if isinstance(row, FailedEngine)}


def check(text: str, path: Path) -> RouteCheck:
    """Judge the text of a route file: its fabric, groups and engines, without routing.

    Raises
    ------
    ExperimentError
        The file is not valid; the message names the place and the cure.
    """
    return RouteCheck.from_json(_core.route_check(text, str(path)))


def new_progress() -> Progress:
    """What tells how far `run` is, and stops it, from another thread."""
    return _core.RouteProgress()


def run(text: str, path: Path, out: Path, progress: Progress) -> RouteSummary:
    """Route with all engines, write tables and `summary.json` to `out`.

    Every file is replaced whole, the summary last.
    """
    return RouteSummary.from_json(_core.route(text, str(path), str(out), progress))
