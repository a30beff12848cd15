"""Beyond the paper: rails of today, and what a lab's rails carry, predicted and measured."""

import re
from collections.abc import Mapping
from typing import Any

from experiments.rails.machine import LAB, MODERN, Cell, mebibytes, rate_bps, read, simulate
from raddle.results.reproduction import Row, Table, cell, finding

Part = tuple[list[Row], dict[str, Table]]


def modern() -> Part:
    """Up to eight rails of up to 400 Gbit/s, with and without a limit of the host."""
    experiment = read(MODERN)
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
    names = [f"{rate}{what}" for rate in sweep["rates"] for what in ("", ", times one", ", bus")]
    lines = []
    for rails in sweep["rails"]:
        words = [str(rails)]
        for rate in sweep["rates"]:
            all_rails = free[of(rate, rails)].total_bps
            times = all_rails / free[of(rate, 1)].total_bps
            limited = bound[of(rate, rails)].total_bps
            words += [f"{all_rails / 1e9:.1f}", f"{times:.2f}", f"{limited / 1e9:.1f}"]
        lines.append(words)
    return [], {"modern": Table(("rails", *names), lines)}


MEASURED = "rails-lab"
"""The measurement of experiments/measurements.toml that has the lab's goodput."""


def lab(measured: Mapping[str, Any]) -> Part:
    """What the lab's rails carry by the simulator, beside what was measured there.

    The prediction comes first here: the lab's figure stands where others have the published one.
    """
    experiment = read(LAB)
    asked = experiment["prediction"]
    cells = [
        Cell(
            tuple(rails), mebibytes(asked["message"]), cut="weighted", forward=1,
            window=asked["window"], warm_up="500ms", time="2s",
        )
        for rails in asked["rails"]
    ]  # fmt: skip
    found = simulate(experiment["machine"], cells)
    known = lab_goodput(measured.get(MEASURED))
    lines, rows = [], []
    for one in cells:
        rates = tuple(round(rate_bps(rail)) for rail in one.rails)
        name = " + ".join(f"{rate // 1_000_000}" for rate in rates)
        ours = found[one].total_bps / 1e6
        lab_mbps = known.get(rates)
        setting, unit = f"rails of {name} Mbit/s", "Mbit/s"
        rows.append(
            finding(
                item="Lab",
                setting=setting,
                statement="",
                holds=None,
                ours=ours,
                unit=unit,
                note="simulated; not measured yet",
            )
            if lab_mbps is None
            else cell(
                item="Lab",
                setting=setting,
                published=lab_mbps,
                ours=ours,
                kind="predicted",
                unit=unit,
                note="measured in a lab, not by the paper; simulated",
            )
        )
        error = "" if lab_mbps is None else f"{100 * (ours / lab_mbps - 1):+.1f}"
        lines.append((name, f"{ours:.1f}", "" if lab_mbps is None else f"{lab_mbps:.1f}", error))
    columns = ("rails, Mbit/s", "predicted, Mbit/s", "measured", "error, %")
    return rows, {"lab": Table(columns, lines)}


def lab_goodput(document: Mapping[str, Any] | None) -> dict[tuple[int, ...], float]:
    """Mbit/s by the rates of the rails, from the medians of `bench.rails`; empty without any."""
    if document is None:
        return {}
    medians = document["result"]["medians"]
    found: dict[tuple[int, ...], float] = {}
    for what, sides in medians.items():
        if match := re.fullmatch(r"(\d+)M, 1MiB", what):
            rate = int(match[1]) * 1_000_000
            for side, figures in sides.items():
                if side.isdecimal():
                    found[(rate,) * int(side)] = figures["goodput_bps"] / 1e6
        elif what == "rails of 4:1, 1MiB":
            found[400_000_000, 100_000_000] = sides["e0,e1"]["goodput_bps"] / 1e6
    return found
