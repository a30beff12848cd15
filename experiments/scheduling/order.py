"""Where the order of messages gains something, and why not on a card that sends in turn.

Every node sends one message to every other, on one switch, where only hosts' links are shared.
Programs issue them by ascending target, so that all nodes begin with node 0, or each begins with
the node after its own.

No order can end before the busiest link has carried what it must: time >= bytes of a node / rate.
A card that sends the packets of its messages in turn gives every target the same share at all
times, so that each link is busy throughout whatever the order is, and program order is at that
bound already. A card that sends one message after the other has all nodes send to one target at a
time, in program order; there Algorithm 1 gains. Messages of one packet have no packets to send in
turn: for them the cards are the same.
"""

import tomllib
from itertools import product
from pathlib import Path
from statistics import fmean

from experiments.scheduling.cells import Case, Effort, Replayed, gains, run_trace
from raddle.files import write_text
from raddle.results.reproduction import Row, Table, finding
from raddle.results.trace import SUFFIX
from raddle.services.trace import import_goal
from raddle.statistics.samples import Interval, mean_interval
from raddle.text import many

__all__ = ["SWITCH", "bound_us", "goal", "reproduce"]

HERE = Path(__file__).resolve().parent
SWITCH = HERE / "one-switch.toml"
NODES = 16
BYTES = (4 << 10, 128 << 10, 1 << 20)
"""One packet; and messages that no processor copies, so that links are what counts."""
GAPS = ("20ns", "1us")
ORDERS = ("ascending", "after its own")
MTU, HEADER = 4096, 80
"""Payload of a full packet and what it has around it on the wire, in bytes."""


def goal(order: str, size: int, nodes: int = NODES) -> str:
    """A GOAL schedule of one exchange between all nodes."""
    lines = [f"num_ranks {nodes}"]
    for rank in range(nodes):
        others = [(rank + step) % nodes for step in range(1, nodes)]
        if order == "ascending":
            others.sort()
        lines.append(f"rank {rank} {{")
        lines += [f"r{other}: recv {size}b from {other} tag 0" for other in others]
        lines += [f"s{other}: send {size}b to {other} tag 0" for other in others]
        lines.append("}")
    return "\n".join(lines) + "\n"


def bound_us(size: int, gap: str, nodes: int = NODES) -> float:
    """The least time in which a node's link can carry what it sends, in microseconds."""
    rate = float(tomllib.loads(SWITCH.read_text())["fabric"]["host_rate"].removesuffix("Gbps"))
    packets = -(-size // MTU)
    gap_us = float(gap.removesuffix("ns")) / 1e3 if gap.endswith("ns") else float(gap[:-2])
    wire_us = (size + HEADER * packets) * 8 / rate / 1e3
    return (nodes - 1) * max(wire_us, packets * gap_us)


def _exchange(effort: Effort, case: Case, order: str, size: int) -> Replayed:
    name = f"exchange-{order.replace(' ', '-')}-{size}"
    trace = effort.out / f"{name}{SUFFIX}"
    if not trace.is_file():
        effort.out.mkdir(parents=True, exist_ok=True)
        text = effort.out / f"{name}.goal"
        write_text(text, goal(order, size))
        import_goal(text, trace, fabric=SWITCH)
    return run_trace(effort, case, ("none", "reorder"), trace, case.settings(effort.seeds))


def reproduce(effort: Effort) -> tuple[list[Row], dict[str, Table]]:
    """Cards, gaps, sizes and orders; and what the paper says of the order."""
    table = []
    found: dict[tuple[bool, bool], list[list[float]]] = {}
    possible = []
    for in_order, gap, size, order in product((False, True), GAPS, BYTES, ORDERS):
        case = Case(gap, in_order=in_order)
        summary = _exchange(effort, case, order, size)
        time_us = 1e6 * summary["schedules"]["none"]["time_s"]
        by_seed = gains(summary, "reorder")
        gain, bound = mean_interval(by_seed), bound_us(size, gap)
        most = 100 * (1 - bound / time_us)
        found.setdefault((in_order, size > MTU), []).append(by_seed)
        if not in_order and size > MTU:
            possible.append(most)
        table.append(
            (
                "one after the other" if in_order else "in turn",
                gap,
                f"{size >> 10} KiB",
                order,
                f"{time_us:,.0f}",
                f"{bound:,.0f}",
                f"{most:.1f}",
                f"{gain.mean:.1f} ± {gain.half_width or 0.0:.1f}",
            )
        )
    head = (
        "the card sends", "gap", "message", "program order", "time, us",
        "busiest link, us", "no order gains more than, %", "Algorithm 1 gains, %",
    )  # fmt: skip
    return [*_rows(found), _bound(max(possible))], {"orders": Table(head, table)}


EARLY = "what is sent earlier suffers less from congestion"


def _rows(found: dict[tuple[bool, bool], list[list[float]]]) -> list[Row]:
    rows = []
    for (in_order, long), cells in found.items():
        card = "one message after the other" if in_order else "in turn"
        size = "many packets" if long else "one packet"
        for name, choose in (("most", max), ("least", min)):
            best = mean_interval(choose(cells, key=fmean))
            rows.append(
                finding(
                    item="Section 2 (2)",
                    setting=f"{name} that the order gains, card {card}, messages of {size}",
                    statement=f"{EARLY}: order gains",
                    holds=_above(best),
                    ours=best.mean,
                    unit="%",
                    ci=_ends(best),
                    note=f"exchange between {NODES} nodes, {many(len(cells), 'cell')}",
                )
            )
    return rows


def _bound(most: float) -> Row:
    return finding(
        item="Section 2 (2)",
        setting="bound for every order, card in turn, messages of many packets",
        statement=f"{EARLY}: order gains",
        holds=most > 5.0,
        kind="exact",
        ours=most,
        unit="%",
        note="program order's time beyond that of its busiest link, in the worst cell: no order "
        "gains more; below 5 % counts as nothing",
    )


def _above(interval: Interval) -> bool | None:
    """Whether a gain is there: more than 1 %, with its whole interval."""
    ends = _ends(interval)
    if ends is None or ends[0] <= 1.0 <= ends[1]:
        return None
    return ends[0] > 1.0


def _ends(interval: Interval) -> tuple[float, float] | None:
    if interval.low is None or interval.high is None:
        return None
    return interval.low, interval.high
