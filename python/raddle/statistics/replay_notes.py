"""What a reader should know of a replay: where its ranks are, and why its time is another one."""

from collections.abc import Mapping
from typing import Any

from raddle.statistics.verdict import label_of
from raddle.text import many, span_us

__all__ = ["notes"]

MUCH = 0.2
"""A replayed time that differs from the recorded one by more than this share is explained."""

MEANING = {
    "compute": "computing between calls",
    "send": "sending",
    "late": "waiting for messages that were not sent yet",
    "wire": "messages on their way",
    "collective late": "waiting in collectives for ranks that had not come",
    "collective wire": "collectives on their way",
}
"""The parts of a rank's time (`raddle.statistics.waits.PARTS`) in words."""


def notes(summary: Mapping[str, Any]) -> list[str]:
    """Sentences for what `raddle replay` found, or for what it would run."""
    return [*_of_placement(summary), *_of_time(summary)]


def _of_placement(summary: Mapping[str, Any]) -> list[str]:
    ranks, hosts = summary["ranks"], summary["hosts"]
    used, of_map = hosts["used"], hosts["of_map"]
    if ranks < 2 or used > 1 or of_map < 2:
        return []
    how = "as they were recorded" if summary["placement"] == "recorded" else "as placed"
    return [
        f"All {many(ranks, 'rank')} are on one of the map's {many(of_map, 'host')}, "
        f"{how}: no message crosses the network, and neither fabric, scheme nor scheduling "
        "matters. --placement blocks:N puts N ranks on a host."
    ]


def _of_time(summary: Mapping[str, Any]) -> list[str]:
    recorded = summary["recorded"]["time_s"]
    if "schedules" in summary or summary["recorded"]["mpi_s"] <= 0:
        return []  # a preview; a generated trace, whose calls take no time
    times = {name: row["schedules"]["none"]["time_s"] for name, row in summary["schemes"].items()}
    name, time = max(times.items(), key=lambda item: abs(item[1] - recorded))
    if abs(time / recorded - 1) <= MUCH:
        return []
    by = f"{abs(100 * (time / recorded - 1)):.0f} % {'shorter' if time < recorded else 'longer'}"
    said = [
        f"The replay under {label_of(name)} takes {span_us(1e6 * time)}, the recording took "
        f"{span_us(1e6 * recorded)}: {by}."
    ]
    parts = summary["recorded"].get("parts"), summary["schemes"][name].get("parts")
    if None not in parts:
        said.append(_largest(*parts))
    return [" ".join([*said, *_causes(summary, time < recorded, *parts)])]


def _largest(recorded: Mapping[str, float], replayed: Mapping[str, float]) -> str:
    """Name the part of the ranks' time that differs most."""
    part = max(MEANING, key=lambda each: abs(recorded[each] - replayed[each]))
    before, after = (span_us(1e6 * each[part]) for each in (recorded, replayed))
    return f"Most of it is {MEANING[part]}: {before} recorded, {after} replayed (mean of ranks)."


def _causes(
    summary: Mapping[str, Any],
    shorter: bool,
    recorded: Mapping[str, float] | None,
    replayed: Mapping[str, float] | None,
) -> list[str]:
    """What may be behind it, from the settings and the parts."""
    said = []
    hosts = summary["hosts"]
    if summary["fabric"] != "the trace's own":
        said.append(f"The fabric is another one ({summary['fabric']}).")
    if hosts["used"] != hosts["recorded"]:
        said.append(
            f"The ranks are on {many(hosts['used'], 'host')}, they were recorded on "
            f"{many(hosts['recorded'], 'host')}."
        )
    waiting = ("send", "late", "collective late", "collective wire")
    if (
        shorter
        and summary["processors"] is None
        and recorded is not None
        and replayed is not None
        and sum(recorded[each] - replayed[each] for each in waiting)
        > 0.5 * sum(recorded[each] - replayed[each] for each in MEANING)
    ):
        said.append(
            "In the replay every rank has a processor of its own: where the recording had fewer "
            "processors than ranks, ranks waited for others that did not run; --processors N "
            "replays that."
        )
    if not said:
        said.append("What hosts and links cost is an assumption: --costs and --fabric change it.")
    return said
