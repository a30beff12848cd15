"""Man pages of all commands, from the command lines themselves.

    python -m scripts.dist.manuals FOLDER PROGRAM...   write them below FOLDER

It runs in a process of its own: `raddle` is imported from the wheel that they are made for.
"""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer.main
from docutils.core import publish_string
from docutils.writers import manpage

from raddle.cli.app import app
from raddle.cli.mpi_run import commands as mpi_commands
from raddle.errors import ExperimentError
from scripts.dist.common import ROOT, version
from scripts.reference import OPTIONS_OF_ALL, plain

__all__ = ["main"]

COMMANDS, FORMATS, ADMINISTRATION = 1, 7, 8
"""Sections of the manual."""

STATUSES = {
    "0": "done",
    "1": "the answer is no, or something that was asked for failed",
    "2": "a wrong command line or file",
    "70": "a defect of raddle",
    "130": "interrupted",
}


@dataclass(frozen=True)
class Page:
    """A man page: its name, its section, and its text as reStructuredText."""

    name: str
    section: int
    summary: str
    text: str

    def roff(self) -> str:
        """As `man` reads it."""
        summary = escaped(self.summary)
        head = [
            *("=" * len(self.name), self.name, "=" * len(self.name)),
            *("-" * len(summary), summary, "-" * len(summary)),
            "",
            f":Manual section: {self.section}",
            ":Manual group: Raddle",
            f":Version: raddle {version()}",
            "",
        ]
        settings = {"report_level": 2, "halt_level": 2, "datestamp": None, "generator": False}
        source = "\n".join(head) + self.text
        made: bytes = publish_string(source, writer=manpage.Writer(), settings_overrides=settings)
        return made.decode()


def escaped(text: str) -> str:
    """A text in which nothing is markup."""
    return re.sub(r"([\\*`|_<>\[\]])", r"\\\1", " ".join(text.split()))


def heading(title: str) -> list[str]:
    """A heading of the first level."""
    return ["", title, "=" * len(title), ""]


def literal(lines: list[str]) -> list[str]:
    """Lines as they are."""
    return ["::", "", *(f"    {line}" for line in lines), ""]


def entry(name: str, meaning: str) -> list[str]:
    """A name in bold and what it means, below it."""
    return [f"**{escaped(name)}**", f"    {escaped(meaning) or escaped('No more is said.')}", ""]


# --- commands in Python ---


def words_of(parameter: Any) -> str:  # noqa: ANN401 - typer names no type for both kinds
    """How a parameter is written."""
    value = parameter.metavar or str(parameter.name).upper()
    if not parameter.opts[0].startswith("-"):
        return str(value)
    names = ", ".join([*parameter.opts, *parameter.secondary_opts])
    return names if getattr(parameter, "is_flag", False) else f"{names} {value}"


def meaning_of(parameter: Any) -> str:  # noqa: ANN401 - as above
    """What a parameter is for, and what it is if not given."""
    told = plain(parameter.help or "")
    if parameter.required:
        return f"{told} Required."
    shown = parameter.show_default
    if not isinstance(shown, str):
        unset = parameter.default in (None, False) or getattr(parameter, "is_flag", False)
        shown = "" if unset else str(parameter.default)
    return f"{told} Default: {shown}." if shown else told


def command_page(path: list[str], command: Any, others: list[str]) -> Page:  # noqa: ANN401
    """The page of one command."""
    told = plain(command.help or "").strip().split("\n\n")
    shown = [p for p in command.params if not p.hidden and not OPTIONS_OF_ALL & set(p.opts)]
    below = getattr(command, "commands", {})
    arguments = [words_of(p) for p in shown if not p.opts[0].startswith("-")]
    synopsis = " ".join([*path, "[OPTIONS]", *arguments, *(["COMMAND"] if below else [])])
    lines = [*heading("SYNOPSIS"), *literal([synopsis]), *heading("DESCRIPTION")]
    for paragraph in told:
        lines += [escaped(paragraph), ""]
    if shown:
        lines += heading("OPTIONS")
        for parameter in shown:
            lines += entry(words_of(parameter), meaning_of(parameter))
    if below:
        lines += heading("COMMANDS")
        for name, one in below.items():
            first = plain(one.help or "").strip().split("\n\n")[0]
            lines += entry(f"{'-'.join([*path, name])}(1)", first)
    examples = [line for line in plain(command.epilog or "").splitlines() if line.strip()]
    calls = [line for line in examples if line.strip() != "Examples" and not line.endswith(".")]
    if calls:
        lines += [*heading("EXAMPLES"), *literal(calls)]
    for line in examples:
        if line.endswith("."):
            lines += [escaped(line), ""]
    lines += heading("EXIT STATUS")
    for status, meaning in STATUSES.items():
        lines += entry(status, meaning)
    lines += [*heading("SEE ALSO"), ", ".join(f"**{name}**" for name in others), ""]
    return Page("-".join(path), COMMANDS, told[0].rstrip("."), "\n".join(lines))


def command_pages(path: list[str], command: Any) -> Iterator[Page]:  # noqa: ANN401
    """The page of a command, and those of the commands below it."""
    above = ["-".join(path[:-1]) + "(1)"] if len(path) > 1 else []
    yield command_page(path, command, [*above, "raddle-environment(7)"])
    for name, below in getattr(command, "commands", {}).items():
        yield from command_pages([*path, name], below)


# --- programs in Rust ---


def program_page(program: Path, section: int, calls: list[list[str]]) -> Page:
    """The page of a program: what it says of itself and of its commands."""
    lines: list[str] = []
    summary = ""
    for words in calls:
        call: list[str | Path] = [program, *words, "--help"]
        said = subprocess.run(call, capture_output=True, text=True, check=True).stdout.strip()
        first, _, rest = said.partition("\n")
        summary = summary or first
        title = " ".join([program.name, *words]).upper() if words else "DESCRIPTION"
        lines += [*heading(title), escaped(first), ""]
        lines += literal([line.rstrip() for line in rest.strip().splitlines()])
    return Page(program.name, section, summary.rstrip("."), "\n".join(lines))


# --- the environment ---


def environment_page() -> Page:
    """The page of all variables."""
    table = ROOT / "crates" / "base" / "text" / "environment.toml"
    lines: list[str] = []
    readers: dict[str, list[dict[str, str]]] = {}
    for setting in tomllib.loads(table.read_text())["setting"]:
        readers.setdefault(setting["used_by"], []).append(setting)
    named = {"mpi": "libraddle_mpi.so, under MPI programs", "opensm": "libraddle.so, in OpenSM"}
    for reader, settings in readers.items():
        lines += heading(f"READ BY {named.get(reader, reader)}")
        for one in settings:
            told = f"{one['meaning']} Values: {one['values']}. Default: {one['default']}."
            lines += entry(one["name"], told.replace("`", ""))
    lines += [*heading("SEE ALSO"), "**raddle-config(1)**", ""]
    return Page("raddle-environment", FORMATS, "Variables that Raddle reads", "\n".join(lines))


def pages(programs: dict[str, Path]) -> Iterator[Page]:
    """All pages; `programs` are raddle-switch and raddle-perf, which can be called here."""
    yield from command_pages(["raddle"], typer.main.get_command(app))
    no_mpi = ExperimentError("there is no MPI")
    yield from command_pages(["raddle-mpi-run"], typer.main.get_command(mpi_commands(no_mpi)))
    switch = [[], ["status"], ["new-secret"], ["job-key"]]
    yield program_page(programs["raddle-switch"], ADMINISTRATION, switch)
    yield program_page(programs["raddle-perf"], COMMANDS, [[], ["serve"], ["run"]])
    yield environment_page()


def main() -> None:
    """Write all pages: `man1` and so on below the folder."""
    out, *programs = map(Path, sys.argv[1:])
    for page in pages({program.name: program for program in programs}):
        file = out / f"man{page.section}" / f"{page.name}.{page.section}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(page.roff())


if __name__ == "__main__":
    main()
