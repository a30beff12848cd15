"""Host costs, measured between hosts of a lab: what a replay needs to know of this machine.

What a send costs, and a message inside a host, follows in closed form from times of messages. What
receiving costs, sums in switches, and that ranks share processors is fitted: with these costs the
simulator comes nearest to measured sums. Then exchanges in a ring and sums of another size are
measured, which no cost was fitted to.
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
from raddle.services.lab.bench import BLOCKS, PROGRAMS, Bench, compiled
from raddle.services.lab.predict import Loop, as_costs, predicted
from raddle.services.lab.tools import check_machine, mpi_library, switch_program
from raddle.services.lab.topology import UNSHAPED_BPS, Backend, LabSpec
from raddle.services.lab.virtual import Lab
from raddle.statistics.host_costs import PLACES, Measured, Row, fit, of_messages
from raddle.text import many

__all__ = ["Calibrated", "calibrate", "machine"]

LOCAL_EAGER_LIMIT = "4KiB"
"""Open MPI's for shared memory (`ompi_info --param btl vader --level 9`). Its limit between hosts
is the usual one, 64 KiB."""
PROCESSORS = 2
"""So many are needed, and measured on."""
HOSTS = 8
SUMS = ((2, 2), (2, 1), (4, 1), (8, 1), (4, 2), (8, 2))
"""Hosts and processors of sums that costs are fitted to."""
SUM_BYTES = 8
NS_PER_BYTE = 8e9 / UNSHAPED_BPS
"""On the wire of a lab."""
START = {"receive_overhead": 1.0, "switch_overhead": 3.0, "look_overhead": 4.0}
START_OFFLOAD = {"offload_overhead": 3.0, "offload_look_overhead": 1.0}
"""Where fits begin, in us."""
CHECKS = (("ring", 512, 4), ("ring", 8192, 4), ("ring", 8192, 8), ("sums", 4096, 4))
"""What is predicted with the costs and measured: what it is, bytes, and hosts."""


@dataclass(frozen=True, slots=True)
class Calibrated:
    """Costs, and what they were made of."""

    costs: Mapping[str, str]
    measured: Measured
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
        return {
            "costs": dict(self.costs),
            "calibration": {**self._calibration(), "measured": self.when.isoformat()},
            "rows": self.measured.as_json(),
        }

    def toml(self) -> str:
        """The file that `--costs` takes."""
        calibration = {**self._calibration(), "rows": self.measured.as_json()}
        return tomli_w.dumps({**self.costs, "calibration": calibration})

    def _calibration(self) -> dict[str, Any]:
        return {
            "measured": self.when,
            "machine": self.machine,
            "programs": PROGRAMS,
            "blocks": BLOCKS,
            "left_out": list(self.left_out),
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
    with TemporaryDirectory(prefix="raddle-calibrate-") as scratch:
        folder = Path(scratch)
        program = compiled(folder)
        lab = Lab.up(LabSpec(name, hosts=HOSTS), replace=True, tell=tell)
        try:
            bench = Bench(lab, program, folder, tell)
            measured = Measured(
                {place: bench.messages(ppn) for ppn, place in enumerate(PLACES, start=1)},
                bench.messages(scheduled=True) if is_scheduled else (),
                {shape: bench.loops("sums", SUM_BYTES, *shape) for shape in SUMS},
                {}
                if backend is None
                else {shape: bench.loops("sums", SUM_BYTES, *shape, backend) for shape in SUMS},
            )
            checks = [_checked(bench, *one) for one in CHECKS] if check else []
        finally:
            Lab.down(name)
        tell("fitting")
        costs, fitted = _fitted(measured, folder)
        checked = [_beside(loop, row, costs, folder) for loop, row in checks]
    return Calibrated(
        {**costs, "local_eager_limit": LOCAL_EAGER_LIMIT},
        measured,
        fitted,
        checked,
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


def _fitted(measured: Measured, folder: Path) -> tuple[dict[str, str], list[Mapping[str, Any]]]:
    """Costs, and the sums that some were fitted to beside what comes out with them."""
    known = of_messages(measured, NS_PER_BYTE)
    beside: list[Mapping[str, Any]] = []
    for carrier, rows, start in (
        ("host", measured.sums, START),
        ("offload", measured.offloaded, START_OFFLOAD),
    ):
        if not rows:
            continue
        loops = [
            Loop("sums", carrier, SUM_BYTES, hosts, processors, row["walk_us"])
            for (hosts, processors), row in rows.items()
        ]

        def predict(
            own: Mapping[str, float], known: Mapping[str, float] = known, loops: list[Loop] = loops
        ) -> list[float]:
            costs = as_costs({**known, **own})
            return [predicted(loop, costs, folder) for loop in loops]

        known |= fit(predict, [row["loop_us"] for row in rows.values()], start)
        costs = as_costs(known)
        beside += (
            _beside(loop, row, costs, folder)
            for loop, row in zip(loops, rows.values(), strict=True)
        )
    return as_costs(known), beside


def _checked(bench: Bench, what: str, size: int, hosts: int) -> tuple[Loop, Row]:
    """A loop and what it takes."""
    row = bench.loops(what, size, hosts, PROCESSORS)
    return Loop(what, "host", size, hosts, PROCESSORS, row["walk_us"]), row


def _beside(loop: Loop, row: Row, costs: Mapping[str, str], folder: Path) -> dict[str, Any]:
    """What is predicted of a loop beside what was measured."""
    told = predicted(loop, costs, folder)
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
