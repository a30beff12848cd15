"""Plans and summaries as text."""

from collections.abc import Mapping
from typing import Any

from raddle.cli.talk import print_table, say
from raddle.plan import Plan
from raddle.runner import Outcome, estimate_total
from raddle.text import count, duration_s, fixed, memory, size, span_us

__all__ = ["say_outcome", "show_plan", "show_summary"]


def show_plan(plan: Plan, jobs: int | None) -> None:
    """What would run and what it would cost."""
    fabric, traffic = plan.fabric, plan.traffic
    print(f"{plan.name}: {len(plan.runs)} runs")
    if fabric:
        hosts, switches = fabric.get("hosts", 0), fabric.get("switches", 0)
        print(f"fabric    {hosts:,} hosts, {switches:,} switches, {fabric.get('links', 0):,} links")
    if traffic.get("flows") is not None:
        print(f"traffic   {traffic['flows']:,} flows, {size(traffic.get('bytes') or 0)}")
    if plan.compat:
        print(f"semantics compatible with {plan.compat}")
    print()
    rows = [
        (
            run.name,
            _or_dash(run.estimate.packet_hops, count),
            _or_dash(run.estimate.seconds, duration_s),
            _or_dash(run.estimate.memory_bytes, memory),
        )
        for run in plan.runs
    ]
    print_table(("run", "packet-hops", "time", "memory"), rows)
    total = estimate_total(plan, jobs)
    print(
        f"\nabout {_or_dash(total['wall_s'], duration_s)} with {total['jobs']} runs at a time, "
        f"{_or_dash(total['packet_hops'], count)} packet-hops, "
        f"{memory(total['memory_bytes'])} of memory"
    )
    parameters = [
        (scheme, row.key, row.value, row.source)
        for scheme, listed in plan.parameters.items()
        for row in listed
    ]
    parameters = [("", p.key, p.value, p.source) for p in plan.settings] + parameters
    if parameters:
        print()
        print_table(("scheme", "parameter", "value", "source"), parameters, left=4)


def show_summary(summary: Mapping[str, Any]) -> None:
    """A row per scheme, then the verdict."""
    from raddle.verdict import verdict_of

    verdict = verdict_of(summary)
    rows = []
    for name, row in summary.get("schemes", {}).items():
        cells = [name, f"{row['finished']:,}/{row['flows']:,}"]
        if verdict.scored:
            cells += _score_cells(row.get("score"))
        slowdown = row.get("slowdown") or {}
        cells += [
            fixed(slowdown.get("p50")),
            fixed(slowdown.get("p99")),
            fixed(row.get("goodput_gbps"), 1),
            span_us(row.get("pause_us") or 0),
        ]
        rows.append(cells)
    header = ["scheme", "flows"]
    if verdict.scored:
        header += ["S_L", "S_S", "S_A", "W", "S"]
    header += ["slowdown p50", "p99", "goodput Gb/s", "paused"]
    print_table(header, rows)
    print(f"\n{verdict.headline}")


def say_outcome(outcome: Outcome, *, report: bool) -> None:
    """Where things are and how long it took."""
    fresh = [s for s in outcome.states if s.stats is not None and not s.reused]
    reused = sum(s.reused for s in outcome.states)
    hops = sum(s.stats.packet_hops for s in fresh if s.stats is not None)
    cpu = sum(s.cpu_s for s in fresh)
    words = f"\n{len(fresh)} run{'s' * (len(fresh) != 1)} in {duration_s(outcome.wall_s)}"
    if cpu > 0:
        words += f", {count(hops / cpu)} packet-hops/s per core"
    if reused:
        words += f"; {reused} {'was' if reused == 1 else 'were'} there already"
    say(words)
    if outcome.interrupted:
        left = sum(s.stats is None for s in outcome.states)
        say(f"interrupted with {left} runs to do: the same command resumes")
    say(f"results   {outcome.out}")
    if report and outcome.summary.get("schemes"):
        say(f"report    {outcome.out / 'report.html'}")


def _score_cells(score: Mapping[str, Any] | None) -> list[str]:
    if score is None:
        return ["–"] * 5
    parts = [score["parts"][role]["ratio"]["mean"] for role in ("long", "short", "allreduce")]
    mark = "≥" if score["lower_bound"] else ""
    total = score["s"][score["primary"]]
    text = f"{mark}{fixed(total['mean'])}"
    if total["ci95"] is not None:
        text += f"±{fixed(total['ci95'])}"
    return [*(fixed(p) for p in parts), fixed(score["w"]["mean"]), text]


def _or_dash(value: Any, form: Any) -> str:  # noqa: ANN401 - any quantity with its formatter
    return "–" if value is None else str(form(value))
