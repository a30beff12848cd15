"""`raddle advise`: what to set for a recorded program on a fabric."""

import shlex
from pathlib import Path
from typing import Annotated, Any

import typer

from raddle import services, statistics
from raddle.cli.options import AsJson, Jobs, Quiet, Threads, results_folder, whole
from raddle.cli.progress import shown_progress
from raddle.cli.talk import guarded, print_json, print_table, say, terminate_like_interrupt
from raddle.files import write_json
from raddle.services.engines.choice import Engine
from raddle.text import count, many, percent, span_us

__all__ = ["advise"]

SHOWN = 5


@guarded
def advise(
    traces: Annotated[
        list[Path],
        typer.Argument(
            metavar="TRACE...",
            help="The programs, NAME.trace.parquet; several share the fabric.",
            show_default=False,
        ),
    ],
    fabric: Annotated[
        Path | None,
        typer.Option(
            "--fabric",
            help="The map, or an experiment with one.",
            show_default="the first trace's own",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        results_folder(
            "out/NAME-OF-TRACE-advice", help="Folder for summary.json, advice.toml and the runs."
        ),
    ] = None,
    seeds: Annotated[
        int, whole(most=1000, help="Seeds on which the best plans are compared with plain.")
    ] = 5,
    costs: Annotated[
        Path | None,
        typer.Option(
            "--costs", help="Costs of hosts, as of raddle replay (TOML).", show_default="none"
        ),
    ] = None,
    processors: Annotated[
        int | None,
        whole(
            "--processors",
            help="Processors that all hosts share, as in a lab.",
            show_default="one for each rank",
        ),
    ] = None,
    rails: Annotated[
        str | None,
        typer.Option(
            "--rails",
            metavar="RATE,...",
            help="Rate of each link of a host, as 100Gbps,100Gbps.",
            show_default="hosts have one link",
        ),
    ] = None,
    placement: Annotated[
        str,
        typer.Option(
            "--placement",
            metavar="RULE,...",
            help="Rules that give programs hosts: blocks, spread, random; the first is plain.",
        ),
    ] = "blocks,spread,random",
    systems: Annotated[
        str | None,
        typer.Option(
            "--systems",
            metavar="SYSTEM,...",
            help="What is searched: schemes, collectives, scheduling, rails, placement.",
            show_default="all; rails with --rails",
        ),
    ] = None,
    ranks_per_host: Annotated[
        int | None,
        whole(
            "--ranks-per-host",
            most=65_536,
            help="Ranks of each host, in order.",
            show_default="as recorded",
        ),
    ] = None,
    budget: Annotated[
        str | None,
        typer.Option(
            "--budget",
            metavar="RUNS|TIME",
            help="Most simulations, as 200, or about how long, as 10min.",
            show_default="as many as it takes",
        ),
    ] = None,
    verify: Annotated[
        str | None,
        typer.Option(
            "--verify",
            metavar="COMMAND",
            help="Then run this program in a lab, plain and with the advice, in turns.",
            show_default=False,
        ),
    ] = None,
    lab: Annotated[str, typer.Option("--lab", help="The lab of --verify.")] = "lab",
    ppn: Annotated[
        str, typer.Option("--ppn", metavar="P|P,...", help="Ranks of each host of --verify.")
    ] = "1",
    pairs: Annotated[int, whole(least=2, most=1000, help="Pairs of runs of --verify.")] = 5,
    jobs: Jobs = None,
    threads: Threads = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Say which of the five systems recorded programs should use on a fabric, and what it gives."""
    most_runs, most_s = services.advise.read_budget(budget)
    settings = services.combinations.Settings(
        fabric=fabric,
        seeds=seeds,
        costs=costs,
        processors=processors,
        rails=_words(rails),
        placements=_words(placement),
        systems=None if systems is None else _words(systems),
        ranks_per_host=ranks_per_host,
        most_runs=most_runs,
        most_s=most_s,
    )
    folder = out or Path("out") / services.advise.usual_name(traces)
    terminate_like_interrupt()
    with shown_progress(quiet=quiet or as_json) as watch:
        summary = services.advise.advise(
            traces, settings, folder, engine=Engine(jobs=jobs, threads=threads), watch=watch
        )
    if verify is not None:
        file = folder / services.advise.advice_names([summary["programs"][0]["job"]])[0]
        verified = _verified(file, verify, lab, ppn, pairs, quiet=quiet)
        summary = {**summary, "verified": verified}
        write_json(folder / "verified.json", {"schema": 1, **verified})
    if as_json:
        print_json(summary)
        return
    _show(summary)
    if verify is not None:
        _show_verified(summary["verified"])
    if not quiet:
        files = services.advise.advice_names([row["job"] for row in summary["programs"]])
        say(f"results   {folder}")
        say(f"advice    {', '.join(str(folder / name) for name in files)}")


def _verified(
    file: Path, command: str, name: str, ppn: str, pairs: int, *, quiet: bool
) -> dict[str, Any]:
    try:
        program = shlex.split(command)
    except ValueError as error:
        msg = f"{command!r}: {error}"
        raise typer.BadParameter(msg, param_hint="--verify") from None
    lab = services.lab.Lab.find(name, say=say)
    hosts = lab.topology.hosts
    found = services.lab.verify.verify(
        lab,
        program,
        file,
        hosts=hosts,
        ppn=services.lab.mpi.parse_ppn(ppn, len(hosts)),
        pairs=pairs,
        watch=(lambda _: None) if quiet else say,
    )
    return found.as_json()


def _show_verified(verified: dict[str, Any]) -> None:
    """Predicted beside measured."""
    rows = []
    for name, key in (("plain", "plain_s"), ("with the advice", "advised_s")):
        predicted, measured = (verified[key][kind] for kind in ("predicted", "measured"))
        rows.append((name, span_us(1e6 * predicted), span_us(1e6 * measured)))
    gain = verified["gain_frac"]
    ends = gain["ci95"]
    interval = "" if ends is None else f", {100 * ends[0]:+.1f} to {100 * ends[1]:+.1f}"
    measured = f"{100 * gain['measured']:+.1f} %{interval}"
    rows.append(("gain", f"{100 * gain['predicted']:+.1f} %", measured))
    say()
    print_table((f"{many(verified['pairs'], 'pair')} in a lab", "predicted", "measured"), rows)


def _words(text: str | None) -> list[str]:
    return [word.strip() for word in (text or "").split(",") if word.strip()]


def _show(summary: dict[str, Any]) -> None:
    plain = summary["plain"]
    rows = [("plain", span_us(1e6 * plain["predicted_s"]), "", "", "")]
    shown = summary["plans"][:SHOWN]
    for plan in shown:
        ends = plan["gain_ci95"]
        rows.append(
            (
                services.combinations.words(plan["settings"]),
                span_us(1e6 * plan["predicted_s"]),
                f"{100 * plan['gain_frac']:+.1f} %",
                "" if ends is None else f"{100 * ends[0]:+.1f} to {100 * ends[1]:+.1f}",
                _cost(plan["cost"]),
            )
        )
    print_table(("plan", "time", "gain", "95 %", "cost"), rows)
    say()
    for plan in shown:
        say(f"{services.combinations.words(plan['settings'])}: {plan['why']}")
    if len(summary["programs"]) > 1:
        say()
        for row in summary["programs"]:
            gain = "noise" if row["is_noise"] else f"{100 * row['gain_frac']:+.1f} %"
            say(f"{row['job']}: {span_us(1e6 * row['predicted_s'])}, {gain}")
    for settings, reason in summary["refused"].items():
        say(f"note: {settings} was left out: {reason}")
    runs = summary["runs"]
    share = percent(runs["saved"] / runs["full_product"]) if runs["full_product"] else "0 %"
    say(
        f"\n{many(runs['done'], 'run')}; every combination on every seed would be "
        f"{runs['full_product']:,} ({share} saved)"
    )
    say(f"host costs {statistics.calibration.told(summary['host_costs'])}")
    say(f"\n{summary['headline']}")


def _cost(cost: dict[str, int]) -> str:
    names = {
        "multicast_entries": "entry",
        "reduction_slots": "slot",
        "extra_links": "link",
    }
    parts = [
        many(cost[key], name) if cost[key] < 10_000 else f"{count(cost[key])} {name}s"
        for key, name in names.items()
        if cost[key]
    ]
    return ", ".join(parts) or "none"
