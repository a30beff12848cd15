"""Host costs, measured between hosts of a lab: what a replay needs to know of this machine.

What a send costs, and a message inside a host, follows in closed form from times of messages. The
others are fitted: with these costs the simulator comes nearest to measured sums and exchanges in a
ring of hosts, some of which share processors. Then loops are measured that no cost was fitted to.
"""

import os
import platform
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import tomli_w

from raddle.errors import LabError
from raddle.services.lab.bench import BLOCKS, PROGRAMS, Bench, Loop, compiled
from raddle.services.lab.predict import as_costs, predicted
from raddle.services.lab.tools import check_machine, mpi_library, switch_program
from raddle.services.lab.topology import Backend, LabSpec
from raddle.services.lab.virtual import Lab
from raddle.statistics.host_costs import Row, fit, of_messages
from raddle.text import many

__all__ = ["Calibrated", "calibrate", "machine"]

LOCAL_EAGER_LIMIT = "4KiB"
"""Open MPI's for shared memory (`ompi_info --param btl vader --level 9`). Its limit between hosts
is the usual one, 64 KiB."""
PROCESSORS = 2
"""So many are needed, and measured on."""
HOSTS = 8
SHAPES = ((2, 2), (2, 1), (4, 1), (8, 1), (4, 2), (8, 2))
"""Hosts and processors of sums that costs are fitted to."""
LARGE, LONG = (4096, 32768), (131072, 1048576)
"""Bytes of exchanges that copying is fitted to: below the eager limit, and above."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Costs that are fitted to loops, and where the search for them begins, in us."""

    start: Mapping[str, float]
    loops: Sequence[Loop]


STAGES = (
    Stage(
        {"receive_overhead": 1.0, "switch_overhead": 3.0, "look_overhead": 4.0},
        [Loop("sums", "host", 8, *shape) for shape in SHAPES],
    ),
    Stage(
        {"copy_per_byte": 1e-4},
        [Loop("ring", "host", size, hosts, PROCESSORS) for hosts in (4, 8) for size in LARGE],
    ),
    Stage(
        {"long_copy_per_byte": 1e-4}, [Loop("ring", "host", size, 4, PROCESSORS) for size in LONG]
    ),
)
OFFLOAD = Stage(
    {"offload_overhead": 3.0, "offload_look_overhead": 1.0},
    [Loop("sums", "offload", 8, *shape) for shape in SHAPES],
)
CHECKS = (
    Loop("ring", "host", 512, 4, PROCESSORS),
    Loop("ring", "host", 2048, 8, PROCESSORS),
    Loop("ring", "host", 16384, 8, PROCESSORS),
    Loop("ring", "host", 524288, 4, PROCESSORS),
    Loop("sums", "host", 4096, 4, PROCESSORS),
)
"""What is predicted with the costs, and then measured."""


@dataclass(frozen=True, slots=True)
class Calibrated:
    """Costs, and what they were made of."""

    costs: Mapping[str, str]
    messages: Mapping[str, Sequence[Row]]
    """What was measured of messages: between hosts, inside one, and scheduled."""
    fitted: Sequence[Mapping[str, Any]]
    """What costs were fitted to, and what comes out with them."""
    checked: Sequence[Mapping[str, Any]]
    """The same, of what no cost was fitted to."""
    left_out: Sequence[str]
    """What could not be measured here, and why."""
    machine: str
    when: datetime

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        calibration = {**self._calibration(), "measured": self.when.isoformat()}
        return {"costs": dict(self.costs), "calibration": calibration}

    def toml(self) -> str:
        """The file that `--costs` takes."""
        return tomli_w.dumps({**self.costs, "calibration": self._calibration()})

    def _calibration(self) -> dict[str, Any]:
        return {
            "measured": self.when,
            "machine": self.machine,
            "programs": PROGRAMS,
            "blocks": BLOCKS,
            "left_out": list(self.left_out),
            "messages": {place: list(rows) for place, rows in self.messages.items() if rows},
            "fitted": list(self.fitted),
            "checked": list(self.checked),
        }


def calibrate(
    name: str = "calibrate", *, check: bool = True, tell: Callable[[str], None] = lambda _: None
) -> Calibrated:
    """Build a lab of the name `name`, measure what hosts cost there, and remove it again.

    Parameters
    ----------
    check
        Also predict what no cost was fitted to, and measure it.
    tell
        Is told what is done.

    Raises
    ------
    LabError
        This machine has one processor, no compiler, or cannot have a lab.
    """
    check_machine("mpirun.openmpi", "taskset")
    if (os.cpu_count() or 1) < PROCESSORS:
        msg = (
            "this machine has one processor: what two hosts cost that do not share one cannot be "
            f"measured; {PROCESSORS} are needed"
        )
        raise LabError(msg)
    backend, is_scheduled, left_out = _what_is_built()
    stages = STAGES if backend is None else (*STAGES, OFFLOAD)
    with TemporaryDirectory(prefix="raddle-calibrate-") as scratch:
        folder = Path(scratch)
        program = compiled(folder)
        lab = Lab.up(LabSpec(name, hosts=HOSTS), replace=True, tell=tell)
        try:
            bench = Bench(lab, program, folder, tell)
            messages = {
                "between": bench.messages(),
                "inside": bench.messages(ppn=2),
                "scheduled": bench.messages(scheduled=True) if is_scheduled else [],
            }
            rows = {loop: _measured(bench, loop, backend) for it in stages for loop in it.loops}
            checks = {loop: _measured(bench, loop, backend) for loop in CHECKS} if check else {}
        finally:
            Lab.down(name)
        known = of_messages(messages["between"], messages["inside"], messages["scheduled"])
        for stage in stages:
            tell(f"fitting {', '.join(stage.start)}")
            known |= _fitted(stage, rows, known, folder)
        costs = as_costs(known)
        beside = [
            [_beside(loop, row, costs, folder) for loop, row in own.items()]
            for own in (rows, checks)
        ]
    return Calibrated(
        {**costs, "local_eager_limit": LOCAL_EAGER_LIMIT},
        messages,
        beside[0],
        beside[1],
        left_out,
        machine(),
        datetime.now(UTC).replace(microsecond=0),
    )


def machine() -> str:
    """Say what machine it is: processors, kernel and MPI library; not its name."""
    try:
        known = Path("/proc/cpuinfo").read_text()
    except OSError:
        known = ""
    found = re.search(r"^model name\s*:\s*(.+)$", known, re.MULTILINE)
    model = found[1].strip() if found else platform.machine()
    words = ["mpirun.openmpi", "--version"]
    said = subprocess.run(words, capture_output=True, text=True, check=False).stdout
    version = re.search(r"\d+(\.\d+)+", said)
    mpi = f"Open MPI {version[0]}" if version else "Open MPI"
    return f"{many(os.cpu_count() or 1, 'processor')} {model}, Linux {platform.release()}, {mpi}"


def _what_is_built() -> tuple[Backend | None, bool, list[str]]:
    """The back-end whose sums are measured, whether scheduling is, and what is not and why."""
    try:
        mpi_library()
    except LabError as error:
        reason = str(error).splitlines()[0]
        return None, False, [f"scheduled messages and sums in switches: {reason}"]
    try:
        switch_program()
    except LabError as error:
        return None, True, [f"sums in switches: {str(error).splitlines()[0]}"]
    return Backend.XDP, True, []


def _measured(bench: Bench, loop: Loop, backend: Backend | None) -> Row:
    if loop.carrier == "host" or backend is None:
        return bench.loop(loop)
    return bench.loop(loop, backend)


def _fitted(
    stage: Stage, rows: Mapping[Loop, Row], known: Mapping[str, float], folder: Path
) -> dict[str, float]:
    """The costs of a stage, those before it given."""

    def predict(own: Mapping[str, float]) -> list[float]:
        costs = as_costs({**known, **own})
        return [predicted(loop, rows[loop]["walk_us"], costs, folder) for loop in stage.loops]

    return fit(predict, [rows[loop]["loop_us"] for loop in stage.loops], stage.start)


def _beside(loop: Loop, row: Row, costs: Mapping[str, str], folder: Path) -> dict[str, Any]:
    """What is predicted of a loop beside what was measured."""
    told = predicted(loop, row["walk_us"], costs, folder)
    return {
        "what": loop.what,
        "carrier": loop.carrier,
        "bytes": loop.size,
        "hosts": loop.hosts,
        "processors": loop.processors,
        "predicted_us": round(told, 2),
        "measured_us": round(row["loop_us"], 2),
        "error_pct": round(100 * (told / row["loop_us"] - 1), 1),
    }
