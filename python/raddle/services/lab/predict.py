"""What a lab's simulated fabric and hosts with such costs make of what `bench` measures."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomli_w

from raddle import core
from raddle.results.folder import Results
from raddle.results.planned import Planned
from raddle.results.trace import SUFFIX
from raddle.services.lab.bench import Loop
from raddle.services.lab.topology import LabSpec
from raddle.services.run import execute_all, plan_text

__all__ = ["as_costs", "predicted"]

REPEAT = 40
PS_PER_US = 1e6


def as_costs(values_us: Mapping[str, float]) -> dict[str, str]:
    """Costs in us as a replay takes them.

    Examples
    --------
    >>> as_costs({"send_overhead": 4.5, "offload_overhead": 2.0})
    {'send_overhead': '4500000ps', 'offload_send_overhead': '2000000ps', \
'offload_receive_overhead': '2000000ps'}
    """
    found = {}
    for name, value in values_us.items():
        ends = ("offload_send_overhead", "offload_receive_overhead")
        for own in ends if name == "offload_overhead" else (name,):
            found[own] = f"{round(PS_PER_US * value)}ps"
    return found


def predicted(loop: Loop, walk_us: float, costs: Mapping[str, str], folder: Path) -> float:
    """Time of one round of a loop whose walks take so long, in us."""
    file = folder / "costs.toml"
    file.write_text(tomli_w.dumps(dict(costs)))
    walk_ns = round(1e3 * walk_us)
    own: dict[str, Any] = {"name": "loop", "collectives": loop.carrier}
    if loop.what == "ring":
        own["program"] = str(_ring(folder, loop, walk_ns))
    else:
        own["ranks"] = loop.hosts
        own["program"] = {
            "generator": "collective",
            "collective": "allreduce",
            "size": f"{loop.size}B",
            "repeat": REPEAT,
            "compute": f"{walk_ns}ns",
        }
    document = {
        "schema": 1,
        "simulation": {"seeds": [1], "schemes": ["none"]},
        "record": {"blame": False},
        "hosts": {
            "costs": str(file),
            "sockets": 1,
            "processors": loop.processors,
            "gap_share": 0.0,
            "start_skew": "0ns",
        },
        "job": [own],
    }
    text = tomli_w.dumps(document) + LabSpec(hosts=loop.hosts).fabric()
    plan = plan_text(text, folder / "loop.toml")
    execute_all([Planned(plan, folder / "loop")], folder, replace=True)
    table = Results(folder / "loop").jobs
    (row,) = [] if table is None else table.to_pylist()
    return float(row["time_ps"]) / PS_PER_US / REPEAT


def _ring(folder: Path, loop: Loop, walk_ns: int) -> Path:
    """A trace of exchanges with both neighbours."""
    ranks = []
    for rank in range(loop.hosts):
        to = ((rank + 1) % loop.hosts, (rank - 1) % loop.hosts)
        lines = []
        for turn in range(REPEAT):
            begin = f"c{turn}"
            lines.append(f"{begin}: calc {walk_ns}")
            ends = []
            for side, peer in enumerate(to):
                for word, verb in (
                    ("r", f"recv {loop.size}b from"),
                    ("s", f"send {loop.size}b to"),
                ):
                    name = f"{word}{turn}x{side}"
                    lines += [f"{name}: {verb} {peer}", f"{name} requires {begin}"]
                    ends.append(name)
            if turn + 1 < REPEAT:
                lines += [f"c{turn + 1} requires {name}" for name in ends]
        ranks.append(f"rank {rank} {{\n" + "\n".join(lines) + "\n}\n")
    return _trace(folder, f"num_ranks {loop.hosts}\n" + "".join(ranks), loop.hosts)


def _trace(folder: Path, goal: str, hosts: int) -> Path:
    """A GOAL schedule as a trace on the lab's fabric."""
    file, trace = folder / "loop.goal", folder / f"goal{SUFFIX}"
    file.write_text(goal)
    core.trace.import_goal(file, trace, LabSpec(hosts=hosts).fabric())
    return trace
