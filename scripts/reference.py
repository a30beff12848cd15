"""Write the generated pages of docs/reference from what the programs themselves say.

make generate                                      write the pages that differ
.venv/bin/python scripts/reference.py --check    write nothing; exit 1 if a page differs
"""

import argparse
import json
import re
import subprocess
import sys
import textwrap
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import typer.main

from raddle.cli.app import app
from raddle.cli.mpi_run import commands as mpi_commands
from raddle.errors import ExperimentError

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "reference"
PROGRAMS = {
    "raddle-switch": ([], ["status"], ["new-secret"], ["job-key"]),
    "raddle-perf": ([], ["serve"], ["run"]),
}
OPTIONS_OF_ALL = {"--help", "--install-completion", "--show-completion"}
TOP = 2
"""Depth of the heading of a table of a file itself."""
NOTE = "This page is written by `make generate` from {source}; a test compares the two."


def cell(text: object) -> str:
    """Make a text fit a cell of a table."""
    return " ".join(str(text).split()).replace("|", "\\|")


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    """Write a table of Markdown."""
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    return [*lines, *(f"| {' | '.join(map(cell, row))} |" for row in rows), ""]


def page(title: str, source: str, *parts: list[str]) -> str:
    """Join the parts of a page below its title."""
    lines = [f"# {title}", "", NOTE.format(source=source), ""]
    for part in parts:
        lines += part
    code = False
    for number, line in enumerate(lines):
        code ^= line.startswith("```")
        if not code and not line.startswith(("|", "#")):
            lines[number] = textwrap.fill(line, 112, break_on_hyphens=False)
    return "\n".join(lines).rstrip("\n") + "\n"


# --- keys of files, from their JSON Schema ---


class Keys:
    """The tables and keys of a file, by its JSON Schema."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self.schema = schema

    def target(self, node: dict[str, Any]) -> dict[str, Any]:
        """Follow a reference, also one that allows nothing (`null`) instead."""
        choices = [one for one in node.get("anyOf", []) if one.get("type") != "null"]
        if len(choices) == 1:
            node = choices[0]
        if "$ref" in node:
            found: dict[str, Any] = self.schema["$defs"][node["$ref"].rpartition("/")[2]]
            return found
        return node

    def kind(self, node: dict[str, Any]) -> str:
        """Say in a word or two what a value is."""
        target = self.target(node)
        if "x-quantity" in target:
            quantity: str = target["x-quantity"]
            return {"BitRate": "rate", "Span": "time", "Bytes": "size"}.get(quantity, quantity)
        choices = target.get("oneOf", [])
        words = [f'`"{one["const"]}"`' for one in choices if "const" in one]
        if choices and len(words) == len(choices):
            return ", ".join(words)
        if "enum" in target:
            return ", ".join(f'`"{word}"`' for word in target["enum"] if word is not None)
        if "const" in target:
            return f"`{json.dumps(target['const'])}`"
        if "anyOf" in target:
            return " or ".join(dict.fromkeys(self.kind(one) for one in target["anyOf"]))
        if choices:
            return " or ".join(dict.fromkeys(self.kind(one) for one in choices))
        named = target.get("type", "value")
        named = (
            next((one for one in named if one != "null"), "value")
            if isinstance(named, list)
            else named
        )
        if named == "array":
            return f"list of {self.kind(target.get('items', {}))}"
        return {"object": "table", "boolean": "true, false", "integer": "whole number"}.get(
            named, named
        )

    def rows(self, properties: dict[str, Any], required: list[str]) -> list[tuple[str, ...]]:
        """List keys: name, kind, default, meaning."""
        found: list[tuple[str, ...]] = []
        for key, node in properties.items():
            meaning = node.get("description") or self.target(node).get("description", "")
            default = node.get("default")
            if key in required:
                shown = "*required*"
            elif default is None or isinstance(default, dict):
                shown = ""
            else:
                shown = f"`{json.dumps(default, ensure_ascii=False)}`"
            found.append((f"`{key}`", self.kind(node), shown, meaning))
        return found

    def section(self, name: str, node: dict[str, Any], depth: int = TOP) -> Iterator[str]:
        """Describe a table, the kinds that it comes in, and the tables below it."""
        target = self.target(node)
        yield from (f"{'#' * depth} `{name}`", "")
        yield from (cell(node.get("description") or target.get("description", "")), "")
        variants = [self.target(one) for one in target.get("oneOf", target.get("anyOf", []))]
        tables = [one for one in variants if self.has_keys(one)]
        for variant in [target, *variants]:
            # A kind with kinds of its own, such as a map that is described or read from a file.
            inner = [self.target(one) for one in variant.get("oneOf", [])]
            for one in [variant, *inner] if variant is not target else [variant]:
                titled = one is not target and len(tables) > 1
                yield from self.properties(name, one, depth, titled=titled)

    def properties(
        self, name: str, node: dict[str, Any], depth: int, *, titled: bool
    ) -> Iterator[str]:
        """Describe the keys of one kind of a table."""
        properties = dict(node.get("properties", {}))
        if not properties:
            return
        named = [
            (key, value["const"])
            for key, value in properties.items()
            if isinstance(value.get("const"), str)
        ]
        if titled:
            key, word = named[0] if named else (next(iter(properties)), "…")
            yield from (f'{"#" * (depth + 1)} `{key} = "{word}"`', "")
            yield from (cell(node.get("description", "")), "")
        for key, _ in named:
            del properties[key]
        if properties:
            head = ("key", "value", "default", "meaning")
            yield from table(head, self.rows(properties, node.get("required", [])))
        for key, value in properties.items():
            yield from self.table_of(f"{name.strip('[]')}.{key}", value, depth + 1)

    def table_of(self, path: str, node: dict[str, Any], depth: int) -> Iterator[str]:
        """Describe a key whose values are tables, or lists of them."""
        target = self.target(node)
        is_list = target.get("type") == "array"
        entry = self.target(target.get("items", {})) if is_list else target
        if self.has_keys(entry):
            # A key of the file itself says what it is for; below it the key's row does.
            told = node if depth == TOP and not is_list else entry
            yield from self.section(f"[[{path}]]" if is_list else f"[{path}]", told, depth)

    def has_keys(self, target: dict[str, Any]) -> bool:
        """Whether a value may be a table whose keys are known."""
        choices = [*target.get("oneOf", []), *target.get("anyOf", [])]
        return "properties" in target or any(self.has_keys(self.target(one)) for one in choices)


def keys_page(kind: str, title: str) -> str:
    """Describe every key of a file."""
    schema = json.loads((FOLDER / f"{kind}.schema.json").read_text())
    keys = Keys(schema)
    given = schema["properties"]
    tables = {key: list(keys.table_of(key, node, TOP)) for key, node in given.items()}
    top = {key: node for key, node in given.items() if not tables[key]}
    required = schema.get("required", [])
    parts = [
        [
            "A size has its unit (`B`, `kB`, `KiB`, ...), so have a rate (`bps`, `Gbps`, ...) and"
            " a time (`ns`, `us`, ...).",
            "",
        ],
        table(("key", "value", "default", "meaning"), keys.rows(top, required)),
    ]
    parts += [lines for lines in tables.values() if lines]
    return page(title, f"[{kind}.schema.json]({kind}.schema.json)", *parts)


# --- the environment, from its table ---


def environment_page() -> str:
    """List every RADDLE_* variable by who reads it."""
    source = "crates/base/text/environment.toml"
    settings = tomllib.loads((ROOT / source).read_text())["setting"]
    readers: dict[str, list[tuple[str, ...]]] = {}
    for setting in settings:
        row = (f"`{setting['name']}`", setting["values"], setting["default"], setting["meaning"])
        readers.setdefault(setting["used_by"], []).append(row)
    titles = {
        "mpi": "Read by `libraddle_mpi.so`, under an MPI program",
        "opensm": "Read by `libraddle.so`, in OpenSM",
    }
    parts = [["`raddle config` lists them with the values that they have now.", ""]]
    for reader, rows in readers.items():
        title = titles.get(reader, f"Read by `{reader}`")
        parts.append([f"## {title}", ""])
        parts.append(table(("variable", "values", "default", "meaning"), rows))
    return page("Environment variables", f"[environment.toml](../../{source})", *parts)


# --- the command line, from itself ---


def plain(text: str) -> str:
    """Take rich's markup out of a text."""
    return re.sub(r"\[/?[a-z ]+\]", "", text)


def default_of(parameter: Any) -> str:  # noqa: ANN401 - typer names no type for both kinds
    """Say what an option is when it is not given."""
    if parameter.required:
        return "*required*"
    shown = parameter.show_default
    if isinstance(shown, str):
        return shown
    if parameter.default in (None, False) or getattr(parameter, "is_flag", False):
        return ""
    return f"`{parameter.default}`"


def command_section(path: str, command: Any) -> Iterator[str]:  # noqa: ANN401 - a group or not
    """Describe one command and those below it."""
    yield from (f"## {path}", "", *plain(command.help or "").splitlines(), "")
    rows: list[tuple[str, ...]] = []
    for parameter in command.params:
        if parameter.hidden or OPTIONS_OF_ALL & set(parameter.opts):
            continue
        names = [*parameter.opts, *parameter.secondary_opts]
        flag = getattr(parameter, "is_flag", False)
        value = "" if flag else parameter.metavar or str(parameter.name).upper()
        if parameter.opts[0].startswith("-"):
            name = " ".join([", ".join(f"`{name}`" for name in names), value]).strip()
        else:
            name = parameter.metavar or parameter.name.upper()
        rows.append((name, default_of(parameter), plain(parameter.help or "")))
    if rows:
        yield from table(("argument", "default", "meaning"), rows)
    examples = [line for line in plain(command.epilog or "").splitlines() if line.strip()]
    commands = [line for line in examples[1:] if not line.endswith(".")]
    if commands:
        yield from ("```", *commands, "```", "")
    for line in examples:
        if line not in commands and line.strip() != "Examples":
            yield from (line, "")
    for name, below in getattr(command, "commands", {}).items():
        yield from command_section(f"{path} {name}", below)


def commands_page() -> str:
    """Describe every command of every program."""
    no_mpi = ExperimentError("there is no MPI")
    parts = [
        [
            "Every command has `--help`. Exit status of `raddle`: 0 done, 1 the answer is no,"
            " 2 a wrong command line or file, 70 a defect of raddle, 130 interrupted.",
            "",
        ],
        list(command_section("raddle", typer.main.get_command(app))),
        list(command_section("raddle-mpi-run", typer.main.get_command(mpi_commands(no_mpi)))),
    ]
    for program, calls in PROGRAMS.items():
        for words in calls:
            call = [str(ROOT / "target" / "release" / program), *words, "--help"]
            said = subprocess.run(call, capture_output=True, text=True, check=True).stdout
            lines = [line.rstrip() for line in said.strip().splitlines()]
            parts.append([f"## {' '.join([program, *words])}", "", "```", *lines, "```", ""])
    return page("Command line", "the programs' own help", *parts)


# --- the metrics of raddle-switch, from its source ---


def metrics_page() -> str:
    """List the metrics of raddle-switch."""
    source = "crates/real/switch/src/metrics.rs"
    text = (ROOT / source).read_text()
    family = re.compile(r'\(\s*"(\w+)",\s*"([^"]+)",\s*(true|false),')
    rows: list[tuple[str, ...]] = []
    for name, meaning, grows in family.findall(text):
        label = next((one for one in ("port", "job") if name.startswith(f"{one}_")), "")
        rows.append((name, "counter" if grows == "true" else "gauge", label, meaning))
    drops = re.search(r'let help = "([^"]+)";\s*family\(&mut encoder, "drops"', text)
    info = re.search(r'"raddle_switch_info",\s*"([^"]+)"', text)
    if drops is None or info is None:
        sys.exit(f"error: {source} has no metric `drops` or `info` where this script looks for it")
    rows.append(("drops", "counter", "reason", drops[1]))
    rows.append(("info", "gauge", "name, address, backend, state", f"{info[1]}; its value is 1"))
    shown = [
        (f"`raddle_switch_{name}{'_total' if kind == 'counter' else ''}`", kind, label, meaning)
        for name, kind, label, meaning in rows
    ]
    parts = [
        [
            "`raddle-switch` serves them as OpenMetrics text where its file names an address"
            " (`metrics`, [raddle-switch](switch.md#its-file)).",
            "",
        ],
        table(("metric", "type", "labels", "meaning"), shown),
    ]
    return page("Metrics of raddle-switch", f"[metrics.rs](../../{source})", *parts)


def main() -> int:
    """Write or compare the pages."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare only")
    check = parser.parse_args().check
    pages = {
        "experiment-keys.md": keys_page("experiment", "Keys of an experiment"),
        "route-keys.md": keys_page("route", "Keys of a route file"),
        "environment.md": environment_page(),
        "commands.md": commands_page(),
        "metrics.md": metrics_page(),
    }
    old = [
        name
        for name, text in pages.items()
        if not (FOLDER / name).exists() or (FOLDER / name).read_text() != text
    ]
    for name in old:
        if check:
            print(f"docs/reference/{name} is old: run `make generate`, commit", file=sys.stderr)
        else:
            (FOLDER / name).write_text(pages[name])
            print(f"wrote docs/reference/{name}")
    return 1 if check and old else 0


if __name__ == "__main__":
    sys.exit(main())
