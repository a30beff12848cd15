"""What plans will cost: counted by the core, and measured on this machine where that is wanted."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from raddle import core
from raddle.machine import cores
from raddle.plan import Estimate, Plan

__all__ = ["estimate_total", "measured", "plan_as_json", "runs_s"]

PROCESS_BYTES = 40 << 20
"""Python and the core while runs are under way; networks and runs come on top."""
AFTER_BYTES = 195 << 20
"""Python, numpy, Arrow, summary and page when they are over; what follows comes on top."""
ROW_BYTES = 330
"""What a row of the table of flows adds then."""
MOST_ROWS = 1 << 20
"""Rows that are in memory together: `results.flows.AT_ONCE`, whose module takes a while to import.
"""
SAMPLE_BYTES = 180
"""What a sample adds then."""
LINK_BYTES = 700
"""What a link of the largest fabric adds then."""
LEFT = 0.1
"""Share of the runs' memory that has not gone back to the system by then."""

START_S = 0.1
"""Processor time of Python's start."""
AFTER_S = 0.7
"""Processor time of summary and page."""
PLAN_AFTER_S = 0.1
"""What each plan adds to it."""
ROW_AFTER_S = 1e-6
"""What each row of the table of flows adds to it."""
LINK_AFTER_S = 1.5e-6
"""What each link of the largest fabric adds to it."""

MEASURE_S = 1.0
"""Processor time that the core may measure for."""
KEPT_NETWORKS = 4
"""Networks that the core keeps: of more plans the last are measured, or it built theirs again."""


def plan_as_json(plan: Plan, jobs: int | None = None) -> dict[str, Any]:
    """The plan for `--dry-run --json`."""
    return {**plan.as_json(), "estimate": estimate_total([plan], jobs)}


def measured(plans: Sequence[Plan]) -> list[Plan]:
    """The plans with estimates of this machine as it is now: parts of their runs are simulated.

    Of many plans the last are measured, and the others scaled by what was found.
    """
    others, few = plans[:-KEPT_NETWORKS], plans[-KEPT_NETWORKS:]
    found = [_with_estimates(plan, core.runs.measure(plan, MEASURE_S / len(few))) for plan in few]
    before, after = runs_s(few), runs_s(found)
    slower = after / before if before and after else 1.0
    return [_scaled(plan, slower) for plan in others] + found


def _with_estimates(plan: Plan, estimates: Sequence[Estimate]) -> Plan:
    runs = zip(plan.runs, estimates, strict=True)
    return replace(plan, runs=tuple(replace(run, estimate=estimate) for run, estimate in runs))


def _scaled(plan: Plan, slower: float) -> Plan:
    def scaled(estimate: Estimate) -> Estimate:
        seconds = None if estimate.seconds is None else estimate.seconds * slower
        return replace(estimate, seconds=seconds)

    return _with_estimates(plan, [scaled(run.estimate) for run in plan.runs])


def runs_s(plans: Sequence[Plan]) -> float | None:
    """Processor time of all runs; None where that of one is unknown."""
    seconds = [run.estimate.seconds for plan in plans for run in plan.runs]
    known = [s for s in seconds if s is not None]
    return sum(known) if len(known) == len(seconds) else None


def estimate_total(plans: Sequence[Plan], jobs: int | None = None) -> dict[str, Any]:
    """Packet-hops and CPU seconds of all runs; peak memory with `jobs` of them; wall time.

    Seconds and memory are those of the whole command, with its page.
    """
    jobs = jobs or cores()
    runs = [run for plan in plans for run in plan.runs]
    rows = sum(run.flows or 0 for run in runs)
    hops = [r.estimate.packet_hops for r in runs]
    cpu = runs_s(plans)
    longest = max((r.estimate.seconds or 0.0 for r in runs), default=0.0)
    links = max((plan.fabric.links for plan in plans), default=0)
    alone = START_S + AFTER_S + len(plans) * PLAN_AFTER_S
    alone += rows * ROW_AFTER_S + links * LINK_AFTER_S
    alone += sum(plan.set_up_s for plan in plans)
    memory = sorted((r.estimate.memory_bytes or 0 for r in runs), reverse=True)
    networks = sorted((plan.fabric.memory_bytes for plan in plans), reverse=True)
    at_once = sum(networks[:KEPT_NETWORKS]) + sum(memory[:jobs])
    samples = sum(run.estimate.samples for run in runs)
    after = AFTER_BYTES + samples * SAMPLE_BYTES + links * LINK_BYTES
    after += min(rows, MOST_ROWS) * ROW_BYTES
    after += int(LEFT * at_once)
    return {
        "runs": len(runs),
        "jobs": jobs,
        "packet_hops": sum(h for h in hops if h is not None) if None not in hops else None,
        "cpu_s": None if cpu is None else alone + cpu,
        "wall_s": None if cpu is None else alone + max(cpu / jobs, longest),
        "memory_bytes": max(PROCESS_BYTES + at_once, after),
    }
