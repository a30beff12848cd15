"""Traces of MPI programs: read from and written for other programs, and generated."""

from collections.abc import Sequence
from pathlib import Path

from raddle import core
from raddle.core.trace import Trace, describe, export_goal
from raddle.errors import TraceError
from raddle.files import read_text, source_name
from raddle.results.trace import check_name
from raddle.text import suggest

__all__ = [
    "APPLICATIONS",
    "TRAINING",
    "describe",
    "export_goal",
    "generate",
    "generate_training",
    "import_files",
    "import_goal",
]

APPLICATIONS = (
    "particle-in-cell",
    "electromagnetics",
    "transport",
    "laser-fusion",
    "radiation-hydrodynamics",
    "molecular-dynamics",
)
"""Kinds of programs that `generate` knows."""

TRAINING = "training"
"""The kind that `generate_training` makes from a file."""


CHAKRA = ".et"
"""How names of Chakra files end: `NAME.RANK.et`."""


def import_files(paths: Sequence[Path], out: Path, *, fabric: Path | None = None) -> Trace:
    """Read a GOAL schedule, or the Chakra files of all ranks, into the trace `out`; describe it.

    `paths` is a schedule, a folder of Chakra files, or the files.

    Raises
    ------
    TraceError
        What is there is not valid, ranks are missing, or `out` is no name of a trace.
    """
    first = paths[0]
    if len(paths) == 1 and first.is_dir():
        paths = sorted(first.glob(f"*{CHAKRA}"))
        if not paths:
            msg = (
                f"{first}: it is a folder, and only files are read here, or folders with Chakra "
                f"files: NAME.RANK{CHAKRA}"
            )
            raise TraceError(msg)
    elif len(paths) == 1 and first.suffix != CHAKRA:
        return import_goal(first, out, fabric=fabric)
    check_name(out)
    return core.trace.import_chakra(_by_rank(paths), out, _map_text(fabric))


def _by_rank(paths: Sequence[Path]) -> list[Path]:
    """Chakra files in the order of the ranks in their names."""
    ranks: dict[int, Path] = {}
    for path in paths:
        number = path.name.removesuffix(CHAKRA).rpartition(".")[2]
        if not (path.name.endswith(CHAKRA) and number.isdecimal()):
            msg = f"{path}: a Chakra file is called NAME.RANK{CHAKRA}, as gpt.0{CHAKRA}"
            raise TraceError(msg)
        if int(number) in ranks:
            msg = f"{path}: rank {number} is in {ranks[int(number)]} too"
            raise TraceError(msg)
        ranks[int(number)] = path
    missing = [rank for rank in range(len(ranks)) if rank not in ranks]
    if missing:
        msg = f"{paths[0].parent}: the file of rank {missing[0]} is missing"
        raise TraceError(msg)
    return [ranks[rank] for rank in range(len(ranks))]


def import_goal(goal: Path, out: Path, *, fabric: Path | None = None) -> Trace:
    """Read a GOAL schedule into the trace `out`, with the map `fabric` as its own; describe it.

    Raises
    ------
    TraceError
        The schedule is not valid, or `out` is no name of a trace.
    """
    check_name(out)
    return core.trace.import_goal(goal, out, _map_text(fabric))


def generate(
    application: str,
    out: Path,
    *,
    sizes: str = "small",
    ranks: int = 96,
    per_host: int = 24,
    exchanges: int = 10,
    gap: str = "10us",
    seed: int = 1,
    fabric: Path | None = None,
) -> Trace:
    """Write a trace of a known kind of program to `out`, with the map `fabric`; describe it.

    Parameters
    ----------
    application
        One of `APPLICATIONS`.
    sizes
        Whether most messages are "small" or "large".
    per_host
        Ranks of a host, in order.
    exchanges
        Exchanges, or sweeps.
    gap
        Computing before each superstep, with its unit.

    Raises
    ------
    TraceError
        An argument is out of range, or `out` is no name of a trace.
    """
    check_name(out)
    if application not in APPLICATIONS:
        msg = f"`{application}` is unknown: {suggest(application, (*APPLICATIONS, TRAINING))}"
        raise TraceError(msg)
    return core.trace.generate(
        application,
        out,
        sizes=sizes,
        ranks=ranks,
        per_host=per_host,
        exchanges=exchanges,
        gap=gap,
        seed=seed,
        fabric=_map_text(fabric),
    )


def generate_training(settings: Path, out: Path, *, fabric: Path | None = None) -> Trace:
    """Write a trace of steps of training to `out`, with the map `fabric`; describe it.

    Parameters
    ----------
    settings
        TOML with the model, how it is shared out, and times (docs/concepts/training.md).

    Raises
    ------
    TraceError
        The settings are not valid (the message names the place), or `out` is no name of a trace.
    """
    check_name(out)
    text = read_text(settings, stream=True)
    return core.trace.generate_training(text, source_name(settings), out, _map_text(fabric))


def _map_text(fabric: Path | None) -> str:
    return "" if fabric is None else read_text(fabric, stream=True)
