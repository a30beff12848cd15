"""Results that are done, joined: tables of all runs, manifest, summary."""

import platform
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from raddle import core, results, statistics
from raddle.files import write_json, write_text
from raddle.machine import cores, cpu_name
from raddle.plan import Plan
from raddle.results.digests import digests
from raddle.results.parts import how_it_went, remove_leftovers
from raddle.services import costs
from raddle.services.engines.work import RunState
from raddle.version import __version__

__all__ = ["join"]


def join(plan: Plan, out: Path, states: Sequence[RunState]) -> Mapping[str, Any]:
    """Leave the results folder `out` in order, with the runs that are done; gives the summary.

    All files but `manifest.json` are the same whoever simulated the runs, and where.
    """
    complete = all(s.stats is not None for s in states)
    if complete:
        remove_leftovers(out)
    _drop_stale(out, states)
    write_text(out / "experiment.toml", plan.experiment)
    core.runs.merge(plan, out)
    parameters = {name: [asdict(p) for p in rows] for name, rows in plan.parameters.items()}
    manifest = _manifest(plan, states, parameters, complete=complete)
    write_json(out / "manifest.json", {**manifest, "files": digests(out)})
    done = [
        (s.run.scheme, s.run.seed, s.run.variant, s.stats) for s in states if s.stats is not None
    ]
    if not any(variant == "loaded" for _, _, variant, _ in done):
        summary: dict[str, Any] = {
            "schema": 1,
            "name": plan.name,
            "complete": complete,
            "schemes": {},
        }
    else:
        summary = statistics.summary.summarise(
            results.Results(out),
            name=plan.name,
            complete=complete,
            parameters=parameters,
            stats=done,
        )
    if any("jobs" in row for row in summary["schemes"].values()):
        summary = {**summary, "host_costs": costs.of_experiment(plan.experiment)}
    if write_json(out / "summary.json", summary):
        (out / "report.html").unlink(missing_ok=True)  # it shows other figures
    return summary


def _drop_stale(out: Path, states: Sequence[RunState]) -> None:
    """Remove what an earlier experiment left in `out` and this one does not write anew."""
    if all(s.reused for s in states):
        return
    done = {s.run.variant for s in states if s.stats is not None}
    for variant, folder in (("loaded", out), ("isolated", out / "isolated")):
        if variant not in done and folder.is_dir():
            for file in folder.glob("*.parquet"):
                file.unlink()


def _manifest(
    plan: Plan,
    states: Sequence[RunState],
    parameters: Mapping[str, Sequence[Mapping[str, Any]]],
    *,
    complete: bool,
) -> Mapping[str, Any]:
    return {
        "schema": 1,
        "name": plan.name,
        "complete": complete,
        "compat": plan.compat,
        "schemes": list(plan.schemes),
        "seeds": list(plan.seeds),
        "fabric": asdict(plan.fabric),
        "traffic": asdict(plan.traffic),
        "score": dict(plan.score),
        "settings": [asdict(p) for p in plan.settings],
        "parameters": parameters,
        "warnings": list(plan.warnings),
        "runs": [
            {
                "name": s.run.name,
                "scheme": s.run.scheme,
                "seed": s.run.seed,
                "variant": s.run.variant,
                "stamp": s.run.stamp,
                "done": s.stats is not None,
                **(
                    {}
                    if s.stats is None
                    else {
                        **_went(s),
                        "packet_hops": s.stats.packet_hops,
                        "simulated_ps": s.stats.simulated_ps,
                        "flows": s.stats.flows,
                        "finished": s.stats.finished,
                    }
                ),
            }
            for s in states
        ],
        "versions": {
            "raddle": __version__,
            "core": core.build.version(),
            "python": platform.python_version(),
        },
        "machine": {
            "system": f"{platform.system()} {platform.release()}",
            "architecture": platform.machine(),
            "cpu": cpu_name(),
            "cores": cores(),
        },
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "written": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


def _went(state: RunState) -> Mapping[str, Any]:
    """Where a run was simulated, on how many threads, and for how long."""
    said = how_it_went(state.out, state.run.name)
    return {key: said.get(key) for key in ("host", "threads", "wall_s")}
