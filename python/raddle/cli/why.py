"""`raddle why`: what the time of a job or a flow was spent on."""

from pathlib import Path
from typing import Annotated, Any

import typer

from raddle import report, services
from raddle.cli.options import AsJson, Jobs, Quiet, Threads
from raddle.cli.progress import shown_progress
from raddle.cli.talk import guarded, print_json, say
from raddle.statistics.blame import LEAST, Part, groups_of, split_small
from raddle.text import join_words, percent, span_us

__all__ = ["why"]

MOST = 7
"""Groups of parts that are told; `--json` has all parts."""


@guarded
def why(
    folder: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="A results folder of raddle run.", show_default=False),
    ],
    job: Annotated[
        str | None, typer.Option("--job", help="The job whose time it is.", show_default=False)
    ] = None,
    flow: Annotated[
        str | None,
        typer.Option(
            "--flow",
            help="Or the flow: SRC:DST or SRC:DST:SPORT, as flows.parquet numbers them.",
            show_default=False,
        ),
    ] = None,
    setup: Annotated[
        str | None,
        typer.Option("--setup", help="The setup or scheme.", show_default="the first one"),
    ] = None,
    prove: Annotated[
        bool,
        typer.Option("--prove", help="Run again without the culprit, and say what came of it."),
    ] = False,
    picture: Annotated[
        Path | None,
        typer.Option(
            "--picture",
            help="Where the picture goes (.svg, .png, .pdf).",
            show_default="DIR/why-NAME.svg",
        ),
    ] = None,
    jobs: Jobs = None,
    threads: Threads = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Say what a job's or a flow's time was spent on, and who stood in its way."""
    if (job is None) == (flow is None) or (prove and job is None):
        msg = "name a --job or a --flow; --prove is for jobs"
        raise typer.BadParameter(msg)
    told = (
        services.why.why_job(folder, job, setup)
        if job is not None
        else services.why.why_flow(folder, flow or "", setup)
    )
    name = job or f"flow-{(flow or '').replace(':', '-')}"
    file = picture or folder / f"why-{name}.svg"
    report.plots.save(report.parts.draw_parts(told), file)
    if prove:
        engine = services.engines.choice.Engine(jobs=jobs, threads=threads)
        with shown_progress(quiet=quiet) as watch:
            told["proof"] = services.why.prove(folder, told, engine=engine, watch=watch)
    if as_json:
        print_json(told)
        return
    _show(told)
    if not quiet:
        say(f"\npicture   {file}")


def _show(told: dict[str, Any]) -> None:
    own = told.get("job") or told["class"]
    who = own if "job" in told else f"flow {told['flow']} ({own})"
    alone = told.get("alone_us")
    times = f", {told['time_us'] / alone:.2f} times as long as alone" if alone else ""
    print(f"{who} under {told['setup']} takes {span_us(told['time_us'])}{times}:")
    groups = groups_of([Part.of_json(part) for part in told["parts"]])
    shown, rest = split_small(groups, MOST)
    for group in shown:
        print(f"{percent(group.share):>8}  {group.words(own)}")
    if rest:
        print(f"{percent(rest):>8}  everything else")
    culprits = [
        f"{name} {percent(share)}" for name, share in told["culprits"].items() if share >= LEAST
    ]
    if culprits:
        print(f"Others stood in its way: {join_words(culprits[:4])}.")
    else:
        print("Nobody else stood in its way.")
    if proof := told.get("proof"):
        change = proof["saved_frac"]
        words = f"{percent(abs(change))} {'less' if change >= 0 else 'more'}"
        print(
            f"Without {proof['without']} it takes {span_us(proof['time_us'])}: {words} "
            f"(blamed: {percent(proof['blamed_share'])})."
        )
