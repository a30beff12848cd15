"""Plans and summaries as text."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raddle import services, statistics
from raddle.cli.talk import print_table, say
from raddle.plan import Plan
from raddle.text import (
    count,
    duration_s,
    first_few,
    fixed,
    join_words,
    many,
    map_words,
    memory,
    size,
    span_us,
    verb,
)

if TYPE_CHECKING:
    from raddle.services.run import Outcome
    from raddle.services.sweep import Point

__all__ = [
    "say_outcome",
    "say_sweep",
    "show_plan",
    "show_summary",
    "show_sweep",
    "show_sweep_plan",
]


def show_plan(plan: Plan, jobs: int | None) -> None:
    """What would run and what it would cost."""
    fabric, traffic = plan.fabric, plan.traffic
    print(f"{plan.name}: {many(len(plan.runs), 'run')}")
    if plan.jobs:
        print(f"jobs      {join_words(plan.jobs)}")
    print(f"fabric    {map_words(fabric.hosts, fabric.switches, fabric.links)}")
    if traffic.flows is not None:
        print(f"traffic   {many(traffic.flows, 'flow')}, {size(traffic.bytes or 0)}")
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
    _print_total(services.estimate.estimate_total([plan], jobs))
    parameters = [
        (scheme, row.key, row.value, row.source)
        for scheme, listed in plan.parameters.items()
        for row in listed
    ]
    parameters = [("", p.key, p.value, p.source) for p in plan.settings] + parameters
    if parameters:
        print()
        print_table(("scheme", "parameter", "value", "source"), parameters, left=4)


def _show_jobs(schemes: Mapping[str, Any]) -> None:
    """A row per job and setup."""
    names = dict.fromkeys(job for row in schemes.values() for job in row.get("jobs", {}))
    rows = []
    for job in names:
        for scheme, row in schemes.items():
            own = row.get("jobs", {}).get(job)
            if own is None:
                continue
            saved = own.get("saved_frac")
            rows.append(
                (
                    job,
                    scheme,
                    _or_dash(own["time_us"], span_us),
                    fixed(own.get("slowdown")),
                    "-" if saved is None else f"{100 * saved:+.1f} %",
                    *(str(own["calls"][carrier]) for carrier in ("host", "multicast", "offload")),
                )
            )
    if rows:
        heads = ("job", "setup", "time", "slowdown", "saved")
        print_table((*heads, "by hosts", "multicast", "offload"), rows, left=2)
        first = next(iter(schemes))
        print(f"\nslowdown  a job's time over that alone; saved: of its time under {first}")
        print("by hosts, multicast, offload: collectives that each carried\n")


def show_summary(summary: Mapping[str, Any]) -> None:
    """Jobs, where there are any; a row per scheme; then the verdict."""
    verdict = statistics.verdict.verdict_of(summary)
    _show_jobs(summary.get("schemes", {}))
    if "host_costs" in summary:
        print(f"host costs {statistics.calibration.told(summary['host_costs'])}\n")
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
    if rows:
        _show_words(summary, scored=verdict.scored)
    for name, row in summary.get("schemes", {}).items():
        _show_missed(name, row.get("multicast") or {})
    print(f"\n{verdict.headline}")
    if verdict.compared:
        print(verdict.compared)
    if any("jobs" in row for row in summary.get("schemes", {}).values()):
        for line in verdict.details:
            print(f"  {line}")


def _show_words(summary: Mapping[str, Any], *, scored: bool) -> None:
    """What the columns are, below the table."""
    rows = summary["schemes"].values()
    words = list(statistics.figures.SCORE_WORDS) if scored else []
    if any((row.get("score") or {}).get("lower_bound") for row in rows):
        words.append(("≥", "tested flows did not finish; they count to the end of the run"))
    lost = any(row["finished"] < row["flows"] for row in rows)
    of = "flows that finished" if lost else "all flows"
    words.append(("slowdown", f"completion time over that on an idle fabric, of {of}"))
    width = max(len(symbol) for symbol, _ in words)
    print()
    for symbol, meaning in words:
        print(f"{symbol.ljust(width)}  {meaning}")
    print("docs/reference/results.md says more of each")


def _show_missed(scheme: str, multicast: Mapping[str, Any]) -> None:
    """A line where members of groups did not get their messages."""
    missed, hosts = multicast.get("members_missed"), multicast.get("missed_hosts", [])
    if not missed:
        return
    total = missed + multicast["members_reached"]
    print(
        f"{scheme}: {missed:,} of {many(total, 'delivery')} to group members missed, at "
        f"{verb(len(hosts), 'host', 'hosts')} {first_few(hosts)}"
    )


def say_outcome(outcome: "Outcome", *, report: bool) -> None:
    """Where things are and how long it took."""
    fresh = [s for s in outcome.states if s.stats is not None and not s.reused]
    reused = sum(s.reused for s in outcome.states)
    hops = sum(s.stats.packet_hops for s in fresh if s.stats is not None)
    words = f"\n{many(len(fresh), 'run')} in {duration_s(outcome.wall_s)}"
    if outcome.cpu_s > 0 and hops and not outcome.interrupted:
        words += f", {count(hops / outcome.cpu_s)} packet-hops/s per core"
    if reused:
        words += f"; {reused} {verb(reused, 'was', 'were')} there already"
    say(words)
    if outcome.interrupted:
        left = sum(s.stats is None for s in outcome.states)
        say(f"interrupted with {many(left, 'run')} to do: the same command resumes")
    say(f"results   {outcome.out}")
    if report and outcome.summary.get("schemes"):
        say(f"report    {outcome.out / 'report.html'}")


def show_sweep_plan(points: Sequence["Point"], jobs: int | None) -> None:
    """The points and what they would cost."""
    rows = []
    for point in points:
        cost = services.estimate.estimate_total([point.plan], jobs)
        rows.append(
            (
                point.name,
                str(cost["runs"]),
                _or_dash(cost["packet_hops"], count),
                _or_dash(services.estimate.runs_s([point.plan]), duration_s),
            )
        )
    print_table(("point", "runs", "packet-hops", "CPU time"), rows)
    _print_total(services.estimate.estimate_total([point.plan for point in points], jobs))


def show_sweep(table: Mapping[str, Any]) -> None:
    """A row per point and scheme, then what is compared and who leads where."""
    keys = list(table["keys"])
    scored = any("s" in row for p in table["points"] for row in p["schemes"].values())
    rows = []
    for point in table["points"]:
        decides = (point["verdict"]["comparison"] or {}).get("figure")
        first = point["leaders"].get(decides, [])
        for name, row in point["schemes"].items():
            mark = "≥" if row["lower_bound"] else ""
            cells = [*point["set"].values(), name, f"{row['finished']:,}/{row['flows']:,}"]
            if scored:
                cells.append(f"{mark}{fixed(row.get('s'))}")
            cells += [
                fixed(row["slowdown_p99"]),
                fixed(row["long_flow_rate_gbps"], 1),
                span_us(row["pause_us"] or 0),
                _or_dash(row["max_port_queue_bytes"], size),
                "" if name not in first else "best" if len(first) == 1 else "tie",
            ]
            rows.append(cells)
    header = [*keys, "scheme", "flows", *(["S"] if scored else []), "slowdown p99", "long Gb/s"]
    print_table([*header, "paused", "longest queue", ""], rows, left=len(keys) + 1)
    if not rows:
        return
    if scored:
        symbol, meaning = statistics.figures.SCORE_WORDS[-1]
        print(f"\n{symbol}  {meaning} (docs/reference/results.md)")
    print(f"\n{statistics.sweep_verdict.sweep_headline(table)}")
    compared = {p["verdict"]["compared"] for p in table["points"]} - {"", None}
    if len(compared) == 1:
        print(compared.pop())
    elif compared:
        print("sweep.json says of each point which flows were compared")


def say_sweep(outcomes: Sequence["Outcome"], folder: Path, *, report: bool) -> None:
    """Where things are and how long it took."""
    states = [s for outcome in outcomes for s in outcome.states]
    done = sum(s.stats is not None and not s.reused for s in states)
    reused = sum(s.reused for s in states)
    words = f"\n{many(done, 'run')} in {duration_s(max(o.wall_s for o in outcomes))}"
    if reused:
        words += f"; {reused} {verb(reused, 'was', 'were')} there already"
    say(words)
    if outcomes[0].interrupted:
        left = sum(s.stats is None for s in states)
        say(f"interrupted with {many(left, 'run')} to do: the same command resumes")
    say(f"points    {folder}/KEY=VALUE/")
    say(f"table     {folder / 'sweep.json'}")
    if report:
        say(f"picture   {folder / 'sweep.html'}")


def _print_total(total: Mapping[str, Any]) -> None:
    print(
        f"\nabout {_or_dash(total['wall_s'], duration_s)} with "
        f"{many(total['jobs'], 'run')} at a time, each on one thread, "
        f"{_or_dash(total['packet_hops'], count)} packet-hops, "
        f"{memory(total['memory_bytes'])} of memory"
    )


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
