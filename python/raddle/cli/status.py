"""`raddle status`: how far the runs of all shards are."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from raddle import services
from raddle.cli.options import AsJson
from raddle.cli.talk import EXIT_INTERRUPTED, guarded, print_json, print_table, say
from raddle.text import count, duration_s, join_words, many

if TYPE_CHECKING:
    from collections.abc import Sequence

    from raddle.services.run import Outcome
    from raddle.services.status import RunStatus, Status

__all__ = ["show_shared", "status"]

MOST_WAITING = 10
"""So many runs that wait are named; `--json` has all."""
NO_BEAT_S = 30.0
"""A sign of life that is older is shown."""


@guarded
def status(
    folders: Annotated[
        list[Path],
        typer.Argument(
            metavar="DIR...",
            help="A results folder that shards share, or the folders of all.",
            show_default=False,
        ),
    ],
    as_json: AsJson = False,
) -> None:
    """Show how far the runs of all shards are: done, running where and since when, waiting."""
    found = services.status.status(folders)
    if as_json:
        print_json(found.as_json())
        return
    _show(found)


def show_shared(outcomes: "Sequence[Outcome]", folder: Path, *, quiet: bool, as_json: bool) -> None:
    """What stands when a process that shares a folder has nothing left to do in it."""
    found = services.status.status([folder])
    states = [state for outcome in outcomes for state in outcome.states]
    mine = sum(state.stats is not None and not state.reused for state in states)
    if as_json:
        print_json(found.as_json())
    else:
        print(_counted(found))
    if not quiet:
        say(f"\n{many(mine, 'run')} in {duration_s(outcomes[0].wall_s)} by this process")
        say(f"results   {folder}")
        if found.counts["done"] < len(found.runs):
            say(
                f"status    raddle status {folder}\n"
                "The process that ends last joins them; `raddle merge` joins shards' folders."
            )
    if outcomes[0].interrupted:
        if not quiet:
            say("interrupted: the same command resumes")
        raise typer.Exit(EXIT_INTERRUPTED)


def _show(found: "Status") -> None:
    print(_counted(found))
    running = [run for run in found.runs if run.state == "running"]
    if running:
        print()
        rows = [
            (
                run.key,
                f"{run.host}:{run.pid}",
                run.shard or "",
                "" if run.since_s is None else duration_s(max(run.since_s, 0)),
                f"{min(run.share, 0.99):.0%}",
                count(run.packet_hops),
                _remark(run),
            )
            for run in running
        ]
        head = ("run", "where", "shard", "for", "done", "packet-hops", "")
        print_table(head, rows, left=3)
    died = [run for run in found.runs if run.state == "waiting" and run.taken_over_from]
    for run in died[:MOST_WAITING]:
        print(f"{run.key}: its process on {run.taken_over_from[-1]} died; it waits for another")
    hosts: dict[str, int] = {}
    for run in found.runs:
        if run.state == "done":
            hosts[run.host or "?"] = hosts.get(run.host or "?", 0) + 1
    if len(hosts) > 1:
        print(f"done by   {', '.join(f'{host} {number:,}' for host, number in hosts.items())}")
    taken = [run for run in found.runs if run.state != "waiting" and run.taken_over_from]
    if taken:
        print(f"taken over from processes that died: {many(len(taken), 'run')}")


def _counted(found: "Status") -> str:
    counts = found.counts
    words = [f"{counts['done']:,} done"]
    words += [f"{counts[s]:,} {s}" for s in ("running", "waiting") if counts[s]]
    text = f"{many(len(found.runs), 'run')}: {join_words(words)}"
    if found.joining:
        return f"{text}; {found.joining} joins them"
    if counts["done"] == len(found.runs):
        text += "; joined" if found.joined else "; not joined yet: `raddle merge` does it"
    return text


def _remark(run: "RunStatus") -> str:
    words = []
    if run.taken_over_from:
        words.append(f"taken over from {run.taken_over_from[-1]}")
    if run.beat_s is not None and run.beat_s > NO_BEAT_S:
        words.append(f"no sign of life for {duration_s(run.beat_s)}")
    return ", ".join(words)
