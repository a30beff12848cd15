"""`raddle lab`: a virtual cluster on this machine."""

import dataclasses
import os
import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from raddle import services
from raddle.cli.options import AsJson, Quiet
from raddle.cli.record import say_recorded
from raddle.cli.talk import (
    answer_no,
    examples,
    guarded,
    guarded_launcher,
    print_json,
    print_table,
    progress_wanted,
    say,
    terminate_like_interrupt,
)
from raddle.cli.view import NoBrowser, Port, serve
from raddle.errors import LabError
from raddle.files import write_text
from raddle.text import duration_s, many

if TYPE_CHECKING:
    from raddle.services.advice import Advice
    from raddle.services.lab import Backend, Lab
    from raddle.services.lab.calibrate import Calibrated
    from raddle.services.lab.mpi import MpiRun
    from raddle.services.lab.topology import Host

__all__ = ["app"]


app = typer.Typer(
    help="A virtual cluster on this Linux machine: hosts, switches, links with rates, and mpirun.",
    epilog=examples(
        "raddle lab up --hosts 16                     16 hosts, 4 TORs, a SPINE",
        "raddle lab mpirun --hosts 9 -- ./solver      plain MPI between nine of them",
        "raddle lab exec h1 -- ping -c1 h16           any command on a host",
        "raddle lab down                              nothing is left",
    ),
    no_args_is_help=True,
    rich_markup_mode="rich",
)

Name = Annotated[str, typer.Option("--name", help="Which lab; several may be up at once.")]


class Offload(StrEnum):
    """What is inside the switches."""

    OFF = "off"
    SOCKETS = "sockets"
    XDP = "xdp"


class LeaderMode(StrEnum):
    """Who speaks to the switch."""

    NODE = "node"
    SOCKET = "socket"


class Protocol(StrEnum):
    """How leaders and switches speak."""

    NATIVE = "native"
    PUBLISHED = "published"


class MpiLibrary(StrEnum):
    """Whose mpirun."""

    OPENMPI = "openmpi"
    MPICH = "mpich"


class SwitchAction(StrEnum):
    """What to do to a switch."""

    START = "start"
    STOP = "stop"
    KILL = "kill"
    RESTART = "restart"


@app.command(
    epilog=examples(
        "raddle lab up --hosts 16",
        "raddle lab up --hosts 8 --hosts-per-tor 2 --offload sockets",
        "raddle lab up --hosts 9 --hosts-per-tor 3 --sockets 2 --protocol published",
        "raddle lab up --hosts 2 --rails 2 --rates 400Mbps,100Mbps --name rails",
    )
)
@guarded
def up(
    hosts: Annotated[int, typer.Option("--hosts", "-n", help="Number of hosts: h1, h2, ...")] = 4,
    hosts_per_tor: Annotated[
        int,
        typer.Option("--hosts-per-tor", help="Hosts below each TOR; a SPINE joins several TORs."),
    ] = 4,
    sockets: Annotated[
        int, typer.Option("--sockets", help="CPU sockets that each host claims to have.")
    ] = 1,
    rails: Annotated[
        int,
        typer.Option(
            "--rails", help="Networks of each host (e0, e1, ...), each with its own switches."
        ),
    ] = 1,
    rates: Annotated[
        str | None,
        typer.Option(
            "--rates",
            metavar="RATE,...",
            help="Rate of each rail; the sending host keeps to it.",
            show_default="not shaped",
        ),
    ] = None,
    offload: Annotated[
        Offload | None,
        typer.Option(
            "--offload",
            help="The switches: off, the kernel's bridge; else raddle-switch.",
            show_default="off; sockets with --protocol published",
        ),
    ] = None,
    protocol: Annotated[
        Protocol,
        typer.Option(
            "--protocol",
            help="How MPI programs speak to the switches: by our protocol, or by that of the "
            "paper. Switches of --offload sockets compute by both.",
        ),
    ] = Protocol.NATIVE,
    name: Name = "lab",
    replace: Annotated[
        bool, typer.Option("--replace", help="Take down a lab of that name first.")
    ] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Build a lab; return when all hosts reach each other and all switches answer."""
    spec = services.lab.LabSpec(
        name=name,
        hosts=hosts,
        hosts_per_tor=hosts_per_tor,
        sockets=sockets,
        rails=rails,
        rates=_rates(rates),
        protocol=services.lab.Protocol(protocol.value),
    )
    default = Offload.OFF if protocol is Protocol.NATIVE else Offload.SOCKETS
    backend = services.lab.Backend((offload or default).value)
    terminate_like_interrupt()
    begun = time.monotonic()
    with _progress(shown=progress_wanted(quiet=quiet or as_json)) as tell:
        lab = services.lab.Lab.up(spec, backend, replace=replace, tell=tell)
    if as_json:
        print_json(lab.status())
    elif not quiet:
        tors = sum(s.tier == 1 for s in lab.topology.switches)
        spines = len(lab.topology.switches) - tors
        say(
            f"lab `{name}` is up after {time.monotonic() - begun:.1f} s: {many(hosts, 'host')}, "
            f"{many(tors, 'TOR')}, {many(spines, 'SPINE')}, offload {backend}"
            + ("" if protocol is Protocol.NATIVE else f", protocol {protocol}")
        )


def _rates(text: str | None) -> tuple[int, ...]:
    """What --rates says, in bit/s."""
    try:
        return tuple(map(services.lab.topology.parse_rate, text.split(","))) if text else ()
    except LabError as error:
        msg = f"--rates {error}"
        raise LabError(msg) from None


@app.command(
    epilog=examples(
        "raddle lab exec h3 -- hostname",
        "raddle lab exec h1 -- ping -c 3 h4",
        "raddle lab exec tor1 -- tcpdump -ni h1",
        "raddle lab exec h1                           a shell on the host",
    ),
    context_settings={"allow_interspersed_args": False},
)
@guarded
def exec(
    host: Annotated[str, typer.Argument(help="A host or switch.", show_default=False)],
    command: Annotated[
        list[str] | None, typer.Argument(help="A command; a shell if left out.")
    ] = None,
    name: Name = "lab",
) -> None:
    """Run a command on a host or switch; exit with its status."""
    words = list(command or ())
    if words and words[0] == "--":
        del words[0]
    lab = services.lab.Lab.find(name, say=say)
    inside = lab.command(host, words or [os.environ.get("SHELL", "/bin/sh")])
    os.execvpe(inside[0], inside, lab.environment())


@app.command(
    epilog=examples(
        "raddle lab mpirun --hosts 4 -- ./solver input.txt",
        "raddle lab mpirun --hosts 9 --ppn 2 --offload xdp --mode node -- ./solver",
        "raddle lab mpirun --hosts h2,h5,h7 --ppn 1,3,2 -- ./uneven",
        "raddle lab mpirun --mpi-args '--mca coll_tuned_use_dynamic_rules 1' -- ./solver",
    ),
    context_settings={"allow_interspersed_args": False},
)
@guarded_launcher
def mpirun(
    program: Annotated[
        list[str], typer.Argument(help="The program and its arguments.", show_default=False)
    ],
    hosts: Annotated[
        str | None,
        typer.Option(
            "--hosts",
            "-n",
            metavar="N|H,...",
            help="Number of hosts, or their names.",
            show_default="all",
        ),
    ] = None,
    ppn: Annotated[
        str | None,
        typer.Option(
            "--ppn",
            metavar="P|P,...",
            help="Ranks of a host, or of each host.",
            show_default="1",
        ),
    ] = None,
    offload: Annotated[
        Offload | None,
        typer.Option(
            "--offload",
            help="off: plain MPI over the kernel's bridge. Else Raddle's library is preloaded "
            "under the program; switches that run something else change in place.",
            show_default="what the lab runs",
        ),
    ] = None,
    mode: Annotated[
        LeaderMode | None,
        typer.Option(
            "--mode",
            help="Who speaks to the switch: one rank of each node, or of each socket.",
            show_default="RADDLE_MODE, or as the hosts are",
        ),
    ] = None,
    protocol: Annotated[
        Protocol | None,
        typer.Option(
            "--protocol",
            help="How leaders and switches speak: by our protocol, or by that of the paper.",
            show_default="RADDLE_PROTOCOL, or the lab's",
        ),
    ] = None,
    mpi: Annotated[
        MpiLibrary, typer.Option("--mpi", help="Which MPI library's mpirun.")
    ] = MpiLibrary.OPENMPI,
    mpi_args: Annotated[
        str,
        typer.Option(
            "--mpi-args", metavar="WORDS", help="More arguments for mpirun, as one string."
        ),
    ] = "",
    profile: Annotated[
        Path | None,
        typer.Option(
            "--profile",
            metavar="advice.toml",
            help="Set what raddle advise found; options and variables that are given win.",
            show_default=False,
        ),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(
            "--record",
            metavar="NAME.trace.parquet",
            help="Record the program: a trace with the lab as its fabric.",
            show_default=False,
        ),
    ] = None,
    name: Name = "lab",
) -> None:
    """Run an MPI program on hosts of a lab; exit with its status."""
    lab = services.lab.Lab.find(name, say=say)
    try:
        more = tuple(shlex.split(mpi_args))
    except ValueError as error:
        msg = f"{mpi_args!r}: {error}"
        raise typer.BadParameter(msg, param_hint="--mpi-args") from None
    backend = lab.backend if offload is None else services.lab.Backend(offload.value)
    advice = None if profile is None else services.advice.read_advice(profile)
    if advice is not None:
        _check_lab(lab, advice, backend)
    chosen, ranks = _places(lab, advice, hosts, ppn)
    run = services.lab.mpi.MpiRun(
        hosts=chosen,
        ppn=ranks,
        backend=backend,
        profile=profile,
        takes_messages=advice is not None and advice.takes_messages,
        has_protocol=advice is not None and advice.has_protocol,
        mode=None if mode is None else services.lab.Mode(mode.value),
        protocol=None if protocol is None else services.lab.Protocol(protocol.value),
        mpi=services.lab.mpi.Mpi(mpi.value),
        program=tuple(program),
        mpi_args=more,
    )
    terminate_like_interrupt()
    _prepare_switches(lab, run.backend)
    status = services.lab.mpi.execute(lab, run) if record is None else _record(lab, run, record)
    if status:
        raise typer.Exit(status)


def _check_lab(lab: "Lab", advice: "Advice", backend: "Backend") -> None:
    """Refuse an advice that a lab cannot follow; name what is not for a lab."""
    if advice.offloads and backend is services.lab.Backend.OFF:
        msg = (
            f"the advice has switches compute, and those of lab `{lab.name}` forward only\n"
            "  hint: add --offload xdp, or --offload sockets"
        )
        raise LabError(msg)
    rails = lab.topology.spec.rails
    if advice.rails > rails:
        msg = (
            f"the advice uses {many(advice.rails, 'link')} of each host, and lab `{lab.name}` has "
            f"{rails}\n"
            f"  hint: make a lab with `raddle lab up --rails {advice.rails}`"
        )
        raise LabError(msg)
    if "scheme" in advice.settings:
        say("note: a lab has no congestion control of its own: `scheme` of the advice is left out")


def _places(
    lab: "Lab", advice: "Advice | None", hosts: str | None, ppn: str | None
) -> tuple[tuple["Host", ...], tuple[int, ...]]:
    """Hosts of a run and the ranks of each: as it is said, else as an advice has them."""
    if advice is not None and hosts is None and ppn is None:
        places = services.lab.mpi.advised_hosts(lab, advice)
        if places is not None:
            return places
        if advice.hosts:
            first = advice.hosts[0][0]
            say(f"note: the advice is for {first} and others, not for this lab's hosts")
    chosen = services.lab.mpi.parse_hosts(lab, hosts)
    return chosen, services.lab.mpi.parse_ppn(ppn or "1", len(chosen))


def _prepare_switches(lab: "Lab", backend: "Backend") -> None:
    """Change what the switches run if need be; name those that stand still."""
    before = lab.backend
    with _progress(shown=progress_wanted(quiet=False)) as tell:
        try:
            lab.use(backend, tell=tell)
        except KeyboardInterrupt:
            if before is not backend:
                say(f"the switches of lab `{lab.name}` run {lab.backend} again")
            raise
    for switch in lab.idle_switches():
        again = f"`raddle lab switch --name {lab.name} {switch} start` starts it"
        say(f"warning: {switch} does not run, and forwards nothing: {again}")


def _record(lab: "Lab", run: "MpiRun", out: Path) -> int:
    """Run a program of a lab, leave its trace in `out`."""
    recorded = services.record.assembled(
        out,
        lambda folder: services.lab.mpi.execute(lab, dataclasses.replace(run, recordings=folder)),
        fabric=lab.topology.spec.fabric(),
        processors=os.cpu_count(),
    )
    say_recorded(recorded.trace, out, quiet=False)
    return recorded.status


@app.command(epilog=examples("raddle lab status", "raddle lab status --json | jq .switches"))
@guarded
def status(name: Name = "lab", as_json: AsJson = False) -> None:
    """Show a lab: hosts, switches, addresses, what runs; exit 1 if a switch does not work."""
    found = services.lab.Lab.find(name, say=say).status()
    if as_json:
        print_json(found)
    else:
        _show(found)
    if not all(switch["works"] for switch in found["switches"]):
        answer_no()


@app.command(
    epilog=examples(
        "raddle lab view",
        "raddle lab view --name rails --port 8080 --no-browser",
        "The page shows the lab until Ctrl-C, or until it is down.",
    )
)
@guarded
def view(name: Name = "lab", port: Port = 0, no_browser: NoBrowser = False) -> None:
    """Watch a lab in a browser: links, hosts, switches and jobs, second by second."""
    serve(services.view.LiveLab(name, port), no_browser=no_browser)


@app.command(name="list", epilog=examples("raddle lab list", "raddle lab list --json"))
@guarded
def list_labs(as_json: AsJson = False) -> None:
    """Show all labs of this machine, and what is left of broken ones."""
    labs: list[dict[str, Any]] = []
    for name in services.lab.Lab.known():
        try:
            found = services.lab.Lab.find(name, say=say).status()
        except LabError:
            labs.append({"name": name, "complete": False})
            continue
        keys = ("offload", "up_s", "processes")
        counted = {what: len(found[what]) for what in ("hosts", "switches")}
        labs.append({"name": name, "complete": True, **counted, **{k: found[k] for k in keys}})
    if as_json:
        print_json({"labs": labs})
        return
    rows = [
        (
            lab["name"],
            *(str(lab.get(k, "")) for k in ("hosts", "switches", "offload", "processes")),
            "" if lab["complete"] else "not complete: raddle lab down",
        )
        for lab in labs
    ]
    print_table(("lab", "hosts", "switches", "offload", "processes", ""), rows)
    if not rows:
        say("no lab is up")


@app.command(
    epilog=examples(
        "raddle lab calibrate --out costs.toml",
        "raddle replay md.trace.parquet --costs costs.toml --processors 2",
        "raddle advise md.trace.parquet --costs costs.toml --processors 2",
    )
)
@guarded
def calibrate(
    out: Annotated[
        Path, typer.Option("--out", help="File for the costs; --costs of other commands takes it.")
    ] = Path("costs.toml"),
    name: Annotated[
        str, typer.Option("--name", help="The lab that is built for it, and removed again.")
    ] = "calibrate",
    check: Annotated[
        bool,
        typer.Option(
            help="Also predict what no cost was fitted to, and print it beside what is measured."
        ),
    ] = True,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Measure what messages, sums in switches and shared processors cost hosts of a lab here.

    It takes half a minute, in which nothing else should run on the machine.
    """
    terminate_like_interrupt()
    with _progress(shown=progress_wanted(quiet=quiet or as_json)) as tell:
        found = services.lab.calibrate.calibrate(name, check=check, tell=tell)
    write_text(out, found.toml())
    if as_json:
        print_json(found.as_json())
    elif not quiet:
        _show_calibrated(found)
        say(f"\ncosts     {out}")


def _show_calibrated(found: "Calibrated") -> None:
    """Costs, and predictions with them beside what was measured."""
    print_table(("cost", ""), list(found.costs.items()), left=1)
    say()
    rows = [
        (
            f"{row['what']}, {row['bytes']} B, by {row['carrier']}",
            f"{many(row['hosts'], 'host')} on {many(row['processors'], 'processor')}",
            fitted,
            f"{row['predicted_us']:.1f} µs",
            f"{row['measured_us']:.1f} µs",
            f"{row['error_pct']:+.1f} %",
        )
        for fitted, rows in (("yes", found.fitted), ("no", found.checked))
        for row in rows
    ]
    print_table(("", "", "fitted", "predicted", "measured", "error"), rows, left=3)
    for reason in found.left_out:
        say(f"note: not measured: {reason}")


@app.command(
    epilog=examples(
        "raddle lab switch tor1 kill       as if its power failed",
        "raddle lab switch tor1 start",
        "raddle lab switch spine1 restart",
    )
)
@guarded
def switch(
    switch: Annotated[str, typer.Argument(help="A switch, as in status.", show_default=False)],
    action: Annotated[
        SwitchAction, typer.Argument(help="stop asks the switch to end, kill ends it at once.")
    ],
    name: Name = "lab",
    as_json: AsJson = False,
) -> None:
    """Stop, kill or start a raddle-switch of a lab, to see what programs do then."""
    lab = services.lab.Lab.find(name, say=say)
    with _progress(shown=progress_wanted(quiet=as_json)) as tell:
        if action is not SwitchAction.START:
            tell(f"{switch} ends")
            lab.end_switch(switch, at_once=action is not SwitchAction.STOP)
        if action in (SwitchAction.START, SwitchAction.RESTART):
            tell(f"{switch} starts")
            lab.start_switch(switch)
    if as_json:
        (found,) = (s for s in lab.status()["switches"] if s["name"] == switch)
        print_json(found)


@app.command(epilog=examples("raddle lab down", "raddle lab down --all"))
@guarded
def down(
    name: Name = "lab",
    every: Annotated[bool, typer.Option("--all", help="All labs of this machine.")] = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """End all that runs in a lab and remove it, also what is left of a broken one."""
    with _progress(shown=progress_wanted(quiet=quiet or as_json)) as tell:
        gone = []
        for lab in services.lab.Lab.known() if every else [name]:
            tell(f"taking down lab `{lab}`")
            gone += [lab] if services.lab.Lab.down(lab) else []
    if as_json:
        print_json({"down": gone})
    elif not quiet:
        say(f"{many(len(gone), 'lab')} down: {', '.join(gone)}" if gone else "no lab was up")


@contextmanager
def _progress(*, shown: bool) -> Iterator[Callable[[str], None]]:
    """A line that says what is being done, for people who watch."""
    if not shown:
        yield lambda step: None
        return
    with Console(stderr=True).status("looking at the lab") as line:
        yield line.update


def _show(found: dict[str, Any]) -> None:
    rates = found["rates_bps"]
    shaped = "not shaped" if rates is None else ", ".join(f"{r / 1e6:g} Mbit/s" for r in rates)
    to = found["changing_to"]
    offload = found["offload"] + ("" if to is None else f" (changing to {to})")
    print(
        f"lab {found['name']}: offload {offload}, links {shaped}, up for "
        f"{duration_s(found['up_s'])}, {_processes(found['processes'])}"
    )
    print()
    print_table(
        ("host", "addresses", "TOR"),
        [(h["name"], " ".join(h["addresses"]), h["tor"]) for h in found["hosts"]],
        left=3,
    )
    print()
    rows = [
        (
            s["name"],
            s["address"],
            "TOR" if s["tier"] == 1 else "SPINE",
            "bridge" if found["offload"] == "off" else f"process {s['process']}",
            "works" if s["works"] else "DEAD",
            " ".join(s["ports"]),
        )
        for s in found["switches"]
    ]
    print_table(("switch", "address", "tier", "runs", "", "ports"), rows, left=6)


def _processes(count: int) -> str:
    return many(count, "process") if count else "nothing runs"
