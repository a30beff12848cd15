"""Messages over rails in the simulator beside the figures of Zhang et al. (MNC), and predictions.

python3 -m experiments.rails.findings             print the tables of docs/results/rails.md
python3 -m experiments.rails.findings --fit       print the two fitted constants, from the paper
python3 -m experiments.rails.findings --measured FILE    only what a lab carries, beside FILE

Leaves cells.parquet, summary.json and pictures in --out. Nothing here is random: the same command
leaves the same bytes.
"""

import json
import math
import subprocess
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from matplotlib.figure import Figure

from experiments import command_line
from raddle.files import write_json
from raddle.report.plots import save
from raddle.statistics.samples import jain

HERE = Path(__file__).resolve().parent
MYRINET = HERE / "myrinet.toml"
LAB = HERE / "lab.toml"
MODERN = HERE / "400g.toml"
LONG = 1 << 20
"""Bytes of a long message: its goodput is a link's "highest" one."""

SIZES = tuple(1 << power for power in range(6, 21))
LATENCY_SIZES = tuple(1 << power for power in range(10, 21))
PROCESSES = range(1, 9)
POLICIES = ("static", "unidirectional", "dynamic")
WINDOW = 4
"""Messages under way of a process on Myrinet: GM's send tokens keep several. Assumed."""

LIMIT_PCT = 10.0


@dataclass(frozen=True, slots=True)
class Cell:
    """One measurement: what a row of a table or a point of a picture needs."""

    rails: tuple[str, ...]
    bytes: int
    policy: str = "dynamic"
    cut: str = "equal"
    forward: int = 0
    """Processes that send from the first host to the last; none at all: messages back and forth."""
    backward: int = 0
    window: int = WINDOW
    warm_up: str = "50ms"
    time: str = "2s"

    def request(self) -> dict[str, Any]:
        """The cell as the simulator reads it."""
        load: dict[str, Any] = {"kind": "ping-pong", "rounds": 10}
        if self.forward + self.backward:
            load = {
                "kind": "streams",
                "forward": self.forward,
                "backward": self.backward,
                "window": self.window,
                "warm_up": self.warm_up,
                "time": self.time,
            }
        return {
            "rails": self.rails,
            "bytes": self.bytes,
            "policy": self.policy,
            "cut": self.cut,
            "load": load,
        }


Found = dict[Cell, dict[str, Any]]


def simulate(machine: dict[str, Any], cells: Iterable[Cell]) -> Found:
    """Simulate cells on a machine."""
    asked = list(dict.fromkeys(cells))
    request = {"machine": machine, "cells": [cell.request() for cell in asked]}
    done = subprocess.run(
        ("cargo", "run", "--quiet", "--locked", "-p", "raddle-engine", "--example", "rails"),
        cwd=HERE, input=json.dumps(request) + "\n", stdout=subprocess.PIPE,
        text=True, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        message = "the simulator ended; its error is above"
        raise SystemExit(message)
    return dict(zip(asked, json.loads(done.stdout), strict=True))


def read(path: Path) -> dict[str, Any]:
    """Read an experiment's file."""
    return tomllib.loads(path.read_text())


def total_bps(figures: dict[str, Any]) -> float:
    """Payload of all streams together."""
    return math.fsum(figures["goodput_bps"])


def megabytes(bps: float) -> float:
    """Bit/s as MB/s."""
    return bps / 8e6


def error_pct(ours: float, theirs: float) -> float:
    """How far ours is off."""
    return 100 * (ours / theirs - 1)


def verdict(error: float) -> str:
    """Whether it is close enough."""
    return "holds" if abs(error) <= LIMIT_PCT else "MISSED"


# What is fitted.


def rate_bps(text: str) -> float:
    """A rate of an experiment's file in bit/s."""
    for unit, size in (("Gbps", 1e9), ("Mbps", 1e6)):
        if text.endswith(unit):
            return float(text.removesuffix(unit)) * size
    message = f"{text!r} is no rate in Gbps or Mbps"
    raise ValueError(message)


PACKET_HEAD = 80
"""Bytes that our packets have before their payload."""


def fit(myrinet: dict[str, Any]) -> dict[str, float]:
    """Give the constants in ns that two published numbers decide, and no other.

    On one link a card needs segment / 202 MB/s for each packet; what the wire does not explain is
    the card's. In opposite directions a bus reads and writes a packet in segment / (80 % of
    202 MB/s); what its two rates do not explain is the cost of cutting.
    """
    published, bus = myrinet["published"], myrinet["machine"]["bus"]
    segment = 8 * myrinet["machine"]["protocol"]["segment"]
    alone = 8e6 * published["one_link_MBps"]
    wire = (segment + 8 * PACKET_HEAD) / rate_bps(RAIL)
    each = alone * published["opposite_directions_pct"] / 100
    crossing = segment / rate_bps(bus["read"]) + segment / rate_bps(bus["write"])
    return {"nic_gap": 1e9 * (segment / alone - wire), "cut": 1e9 * (segment / each - crossing)}


def other_cut(myrinet: dict[str, Any]) -> float:
    """Give the cost of cutting in ns if the bandwidth of two links decided it."""
    machine, published = myrinet["machine"], myrinet["published"]
    segment = 8 * machine["protocol"]["segment"]
    read = segment / rate_bps(machine["bus"]["read"])
    cut: float = 1e9 * (segment / (8e6 * published["two_links_MBps"]) - read)
    return cut


RAIL = "2Gbps"
ONE = Cell((RAIL,), LONG, "static", forward=1)
"""GM: one link and no choice."""
TWO = Cell((RAIL,) * 2, LONG, forward=1)
"""MNC: two links, dynamic, equal pieces."""


# The paper's figures.


def figure_2(myrinet: dict[str, Any]) -> tuple[Found, list[str]]:
    """Two streams on one link."""
    machine, published = myrinet["machine"], myrinet["published"]
    same, opposite = replace(ONE, forward=2), replace(ONE, backward=1)
    found = simulate(machine, (ONE, same, opposite))
    alone = total_bps(found[ONE])
    lines = [
        "| two streams | MB/s of each | of one alone, % | the paper's, % | error, % | |",
        "|---|--:|--:|--:|--:|---|",
    ]
    for name, cell, key, how in (
        ("same direction", same, "same_direction_pct", "predicted"),
        ("opposite directions", opposite, "opposite_directions_pct", "fitted"),
    ):
        streams = found[cell]["goodput_bps"]
        shares = [100 * bps / alone for bps in streams]
        errors = [error_pct(share, published[key]) for share in shares]
        worst = max(errors, key=abs)
        words = (
            " and ".join(f"{megabytes(bps):.1f}" for bps in streams),
            " and ".join(f"{share:.1f}" for share in shares),
            f"{published[key]:.0f}",
            f"{worst:+.1f}",
            f"{how}, {verdict(worst)}",
        )
        lines.append(f"| {name} | {' | '.join(words)} |")
    return found, lines


def figure_7(myrinet: dict[str, Any]) -> tuple[Found, list[str]]:
    """The highest bandwidths, and what each part of the model does to them."""
    machine, published = myrinet["machine"], myrinet["published"]
    found = simulate(machine, (ONE, TWO))
    one, two = (megabytes(total_bps(found[cell])) for cell in (ONE, TWO))
    lines = ["| | simulated | the paper's | error, % | |", "|---|--:|--:|--:|---|"]
    for name, ours, key, how in (
        ("one link, MB/s", one, "one_link_MBps", "fitted"),
        ("two links, MB/s", two, "two_links_MBps", "predicted"),
    ):
        error = error_pct(ours, published[key])
        words = f"{ours:.1f} | {published[key]:.0f} | {error:+.1f} | {how}, {verdict(error)}"
        lines.append(f"| {name} | {words} |")
    gain, theirs = 100 * (two / one - 1), published["gain_pct"]
    words = f"{gain:.1f} | {theirs:.0f} | {error_pct(gain, theirs):+.1f} | follows from both"
    lines.append(f"| gain of the second, % | {words} |")
    return found, lines


def parts(myrinet: dict[str, Any]) -> list[str]:
    """What each part of the model does, and what the other choice of a fitted cell would give."""
    machine, published = myrinet["machine"], myrinet["published"]
    bus, opposite = machine["bus"], replace(ONE, backward=1)
    other = f"{other_cut(myrinet):.0f}ns"
    lines = [
        "| | two links, MB/s | error, % | opposite directions, % | error, % |",
        "|---|--:|--:|--:|--:|",
    ]
    for name, changed in (
        (f"the model: cut {bus['cut']}, from 80 %", machine),
        (f"cut {other}, from 268 MB/s instead", machine | {"bus": bus | {"cut": other}}),
        ("no cost of cutting", machine | {"bus": bus | {"cut": "0ns"}}),
        ("no bus", {key: value for key, value in machine.items() if key != "bus"}),
    ):
        found = simulate(changed, (ONE, TWO, opposite))
        two = megabytes(total_bps(found[TWO]))
        share = 50 * total_bps(found[opposite]) / total_bps(found[ONE])
        errors = (
            error_pct(two, published["two_links_MBps"]),
            error_pct(share, published["opposite_directions_pct"]),
        )
        words = f"{two:.1f} | {errors[0]:+.1f} | {share:.1f} | {errors[1]:+.1f}"
        lines.append(f"| {name} | {words} |")
    return lines


def sweep_sizes(machine: dict[str, Any]) -> tuple[Found, Found, list[str]]:
    """Bandwidth and latency by size, on one link and on two."""
    streams = simulate(
        machine,
        (replace(cell, bytes=size, time="500ms") for cell in (ONE, TWO) for size in SIZES),
    )
    quiet = [replace(cell, forward=0) for cell in (ONE, TWO)]
    pings = simulate(
        machine, (replace(cell, bytes=size) for cell in quiet for size in LATENCY_SIZES)
    )
    lines = [
        "| bytes | MB/s on one | on two | gain, % | latency on one, us | on two | saved, % |",
        "|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for size in SIZES:
        one, two = (
            megabytes(total_bps(streams[replace(cell, bytes=size, time="500ms")]))
            for cell in (ONE, TWO)
        )
        words = [f"{one:.1f}", f"{two:.1f}", f"{100 * (two / one - 1):+.0f}"]
        if size in LATENCY_SIZES:
            slow, fast = (pings[replace(cell, bytes=size)]["latency_us"] for cell in quiet)
            words += [f"{slow:.1f}", f"{fast:.1f}", f"{100 * (1 - fast / slow):.0f}"]
        else:
            words += ["", "", ""]
        lines.append(f"| {size:,} | {' | '.join(words)} |")
    return streams, pings, lines


def processes(machine: dict[str, Any]) -> tuple[Found, list[str]]:
    """One to eight processes per host on two links, by policy."""

    def of(policy: str, count: int, *, both: bool) -> Cell:
        return replace(TWO, policy=policy, forward=count, backward=count if both else 0)

    cells = [of(p, n, both=b) for p in POLICIES for n in PROCESSES for b in (False, True)]
    found = simulate(machine, cells)
    names = [f"{policy}{way}" for policy in POLICIES for way in (", one way", ", both ways")]
    lines = [f"| processes | {' | '.join(names)} |", "|--:|" + "--:|" * len(names)]
    for count in PROCESSES:
        words = []
        for policy in POLICIES:
            for both in (False, True):
                figures = found[of(policy, count, both=both)]
                index = jain(figures["goodput_bps"]) or 0.0
                words.append(f"{megabytes(total_bps(figures)):.0f} ({index:.2f})")
        lines.append(f"| {count} | {' | '.join(words)} |")
    return found, lines


# Beyond the paper.


def modern(experiment: dict[str, Any]) -> tuple[Found, Found, list[str]]:
    """Up to eight rails of up to 400 Gbit/s, with and without a limit of the host."""
    sweep, machine = experiment["sweep"], experiment["machine"]

    def of(rate: str, rails: int) -> Cell:
        size = mebibytes(sweep["message"])
        return Cell(
            (rate,) * rails, size, cut="weighted", forward=1, window=sweep["window"],
            warm_up="2ms", time="2ms",
        )  # fmt: skip

    cells = [of(rate, rails) for rate in sweep["rates"] for rails in sweep["rails"]]
    free = simulate(machine, cells)
    bound = simulate(machine | {"bus": experiment["bus"]}, cells)
    names = [f"{rate}, {what}" for rate in sweep["rates"] for what in ("", "times one", "bus")]
    lines = [
        f"| rails | {' | '.join(name.removesuffix(', ') for name in names)} |",
        "|--:|" + "--:|" * len(names),
    ]
    for rails in sweep["rails"]:
        words = []
        for rate in sweep["rates"]:
            all_rails = total_bps(free[of(rate, rails)])
            times = all_rails / total_bps(free[of(rate, 1)])
            limited = total_bps(bound[of(rate, rails)])
            words += [f"{all_rails / 1e9:.1f}", f"{times:.2f}", f"{limited / 1e9:.1f}"]
        lines.append(f"| {rails} | {' | '.join(words)} |")
    return free, bound, lines


def mebibytes(text: str) -> int:
    """A size of an experiment's file in bytes."""
    return int(text.removesuffix("MiB")) << 20


def lab(experiment: dict[str, Any], measured: Path | None) -> tuple[Found, list[str]]:
    """What the lab's rails carry, beside what was measured there."""
    asked = experiment["prediction"]
    cells = [
        Cell(
            tuple(rails), mebibytes(asked["message"]), cut="weighted", forward=1,
            window=asked["window"], warm_up="500ms", time="2s",
        )
        for rails in asked["rails"]
    ]  # fmt: skip
    known = read_measured(measured) if measured else {}
    found = simulate(experiment["machine"], cells)
    lines = [
        "| rails, Mbit/s | goodput_bps predicted | measured | error, % | |",
        "|---|--:|--:|--:|---|",
    ]
    for cell in cells:
        bps = total_bps(found[cell])
        rates = tuple(round(rate_bps(rail)) for rail in cell.rails)
        words = ["", "", "not measured"]
        if rates in known:
            error = error_pct(bps, known[rates])
            words = [f"{known[rates]:,.0f}", f"{error:+.1f}", verdict(error)]
        name = " + ".join(f"{rate // 1_000_000}" for rate in rates)
        lines.append(f"| {name} | {round(bps, -5):,.0f} | {' | '.join(words)} |")
    return found, lines


def read_measured(path: Path) -> dict[tuple[int, ...], float]:
    """Goodput by the rates of the rails: a JSON object with "goodput", a list of objects.

    Each has "rails_bps", the rates of its rails in bit/s, and "goodput_bps".
    """
    try:
        rows = json.loads(path.read_text())["goodput"]
        return {tuple(row["rails_bps"]): float(row["goodput_bps"]) for row in rows}
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = (
            f"{path}: no measured goodput ({error!r}): expected "
            '{"goodput": [{"rails_bps": [400000000], "goodput_bps": 365000000}, ...]}'
        )
        raise SystemExit(message) from None


# What is left on disk.


def table(found: dict[str, Found]) -> pa.Table:
    """All cells, a row each."""
    rows = []
    for experiment, cells in found.items():
        for cell, figures in cells.items():
            streams = figures["goodput_bps"]
            row = {key: value for key, value in asdict(cell).items() if key != "rails"}
            row |= {
                "experiment": experiment,
                "rails_bps": [round(rate_bps(rail)) for rail in cell.rails],
                "stream_bps": streams,
                "goodput_bps": sum(streams) if streams else None,
                "latency_us": figures["latency_us"],
                "rail_bytes": figures["rail_bytes"],
                "resent": figures["resent"],
                "drops": figures["drops"],
            }
            rows.append(row)
    return pa.Table.from_pylist(rows)


def draw_lines(
    series: Mapping[str, tuple[Sequence[float], Sequence[float]]],
    axes: tuple[str, str],
    file: Path,
    *,
    wide: bool = False,
) -> None:
    """Draw curves over sizes or rails."""
    figure = Figure(figsize=(4.8, 3.4), layout="constrained")
    axis = figure.subplots()
    for name, (xs, ys) in series.items():
        axis.plot(xs, ys, marker="o", markersize=3, linewidth=1, label=name)
    if max(x for xs, _ in series.values() for x in xs) > max(PROCESSES):
        axis.set_xscale("log", base=2)
    if wide:
        axis.set_yscale("log")
    else:
        axis.set_ylim(bottom=0)
    axis.set_xlabel(axes[0])
    axis.set_ylabel(axes[1])
    axis.legend(fontsize=8, frameon=False)
    save(figure, file)


def draw_all(found: dict[str, Found], out: Path) -> None:
    """Draw Figures 7 and 8, and rails of today."""
    bandwidth, latency, rates = {}, {}, {}
    for name, rails in (("one link", 1), ("two links", 2)):
        streams = {c: f for c, f in found["bandwidth"].items() if len(c.rails) == rails}
        points = [megabytes(total_bps(figures)) for figures in streams.values()]
        bandwidth[name] = ([float(cell.bytes) for cell in streams], points)
        pings = {c: f for c, f in found["latency"].items() if len(c.rails) == rails}
        times = [figures["latency_us"] for figures in pings.values()]
        latency[name] = ([float(cell.bytes) for cell in pings], times)
    for rate in dict.fromkeys(cell.rails[0] for cell in found["modern"]):
        for name, of in (("", "modern"), (", host's limit", "modern, bus")):
            cells = {c: f for c, f in found[of].items() if c.rails[0] == rate}
            points = [total_bps(figures) / 1e9 for figures in cells.values()]
            rates[f"{rate}{name}"] = ([float(len(cell.rails)) for cell in cells], points)
    draw_lines(bandwidth, ("bytes of a message", "bandwidth [MB/s]"), out / "bandwidth.svg")
    draw_lines(
        latency, ("bytes of a message", "one-way latency [us]"), out / "latency.svg", wide=True
    )
    draw_lines(rates, ("rails", "goodput [Gbit/s]"), out / "rails.svg")


def main() -> None:
    """Simulate everything and print the tables."""
    parser = command_line(__file__, __doc__)
    parser.add_argument("--fit", action="store_true", help="print the fitted constants only")
    parser.add_argument("--measured", type=Path, help="JSON of what a lab measured")
    parser.add_argument("--out", type=Path, default=Path("out/multirail"), help="(%(default)s)")
    options = parser.parse_args()
    myrinet = read(MYRINET)
    if options.fit:
        for name, ns in fit(myrinet).items():
            print(f"{name} = {ns:.0f}ns")
        return
    if options.measured:
        print("\n".join(lab(read(LAB), options.measured)[1]))
        return
    found: dict[str, Found] = {}
    pages: dict[str, list[str]] = {}
    found["sharing"], pages["Figure 2: sharing a link"] = figure_2(myrinet)
    found["highest"], pages["Figure 7: bandwidth"] = figure_7(myrinet)
    pages["The parts of the model"] = parts(myrinet)
    machine = myrinet["machine"]
    found["bandwidth"], found["latency"], pages["Figures 7 and 8: by size"] = sweep_sizes(machine)
    found["processes"], pages["Processes on two links: MB/s in all (Jain)"] = processes(machine)
    free, bound, lines = modern(read(MODERN))
    found["modern"], found["modern, bus"] = free, bound
    pages["Two to eight rails of 100 to 400 Gbit/s: Gbit/s"] = lines
    found["lab"], pages["The lab"] = lab(read(LAB), None)
    for title, text in pages.items():
        print(f"\n## {title}\n")
        print("\n".join(text))
    options.out.mkdir(parents=True, exist_ok=True)
    pq.write_table(table(found), options.out / "cells.parquet")
    write_json(options.out / "summary.json", {"schema": 1, "tables": pages})
    draw_all(found, options.out)


if __name__ == "__main__":
    main()
