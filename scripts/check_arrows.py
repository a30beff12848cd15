#!/usr/bin/env python3
"""Check the floors of the house: which crate may use which, and what a core must not touch.

A crate stands on the floor that its folder names, `crates/FLOOR/NAME`. The rule: base <- core <-
sim, and base <- core <- real; sim and real never know each other. What stands on base and core is
pure: no clock, file, socket, thread or environment; those come from the driver, so that one core
runs in the simulator and on real hosts. Inside a crate the arrows between modules
(a file or folder of `src`) make no circle, nor do those between the folders of a C shim. Exit
status 0: fine, 1: an arrow, a core or a module breaks a rule.
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent

# The floors that a crate of each floor may use.
BELOW = {
    "base": ("base",),
    "core": ("base", "core"),
    "sim": ("base", "core", "sim"),
    "real": ("base", "core", "real"),
}
RULE = "the floors are base <- core <- sim and base <- core <- real"
PURE = ("base", "core")
# The one room of a pure floor that opens files, for the drivers alone.
DISK = "disk"

# Crates that bring the outside world into a core.
FOREIGN = frozenset(
    {"chrono", "crossbeam-channel", "getrandom", "rand", "rayon", "socket2", "tokio"}
)
BANNED_STD = ("env", "fs", "net", "process", "thread", "time::Instant", "time::SystemTime")


def floor(package: dict[str, Any]) -> str | None:
    """Give the floor of a package of this workspace; None where it stands on none."""
    parts = Path(package["manifest_path"]).parts
    return next((name for name in parts[-3:-2] if "crates" in parts[:-3] and name in BELOW), None)


def arrow_errors(metadata: dict[str, Any]) -> Iterator[str]:
    """Judge the dependencies in the output of `cargo metadata`; one message per bad arrow."""
    members = set(metadata["workspace_members"])
    packages = [package for package in metadata["packages"] if package["id"] in members]
    floors = {package["name"]: floor(package) for package in packages}
    for package in packages:
        user = package["name"]
        of = floors[user]
        if of is None:
            yield f"crate `{user}` stands on no floor: move it to crates/FLOOR/NAME; {RULE}"
            continue
        pure = of in PURE and not user.endswith(f"-{DISK}")
        for dependency in package["dependencies"]:
            kind = dependency["kind"] or "normal"
            used = dependency["name"]
            if used not in floors:
                if pure and kind != "dev" and used in FOREIGN:
                    yield (
                        f"forbidden arrow {user} -> {used}: a core has no clock, file, socket, "
                        "thread or random source; the driver hands them in"
                    )
            elif floors[used] not in BELOW[of]:
                yield (
                    f"forbidden arrow {user} -> {used} ({kind} dependency): "
                    f"{reason(of, floors[used])}"
                )
            elif of in PURE and used.endswith(f"-{DISK}"):
                yield (
                    f"forbidden arrow {user} -> {used} ({kind} dependency): only sim and real "
                    "open files; a core takes what was read"
                )


def reason(of: str, used: str | None) -> str:
    """Name the rule that an arrow between two floors breaks."""
    if {of, used} == {"sim", "real"}:
        return "sim and real do not know each other; what both need belongs on a floor below them"
    return RULE


def strip_tests_and_comments(source: str) -> str:
    """Blank out comments, strings and test modules, keeping line numbers.

    A test module is what follows `#[cfg(test)] mod name {` up to its closing brace.
    """
    blank = re.compile(
        r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"|r(#+)".*?"\1|'(?:\\.|[^'\\])'""", re.DOTALL
    )
    text = blank.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), source)
    for start in re.finditer(r"#\[cfg\(test\)\]\s*(?:pub(?:\([^)]*\))?\s+)?mod\s+\w+\s*\{", text):
        end, depth = start.end(), 1
        while depth and end < len(text):
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        inside = text[start.start() : end]
        text = text[: start.start()] + re.sub(r"[^\n]", " ", inside) + text[end:]
    return text


def paths_below_std(text: str) -> Iterator[tuple[int, str]]:
    """Yield (offset, path) of everything named below `std::`, with `{…}` groups spelled out."""
    for start in re.finditer(r"\bstd\s*::\s*", text):
        yield from spell_out(text, start.end(), "")


def spell_out(text: str, at: int, prefix: str) -> Iterator[tuple[int, str]]:
    """Read the use tree at offset `at`; yield its leaves as "time::Instant"."""
    if at < len(text) and text[at] == "{":
        depth, item = 1, at + 1
        for index in range(at + 1, len(text)):
            depth += {"{": 1, "}": -1}.get(text[index], 0)
            if depth == 0 or (depth == 1 and text[index] == ","):
                leaf = item + len(text[item:index]) - len(text[item:index].lstrip())
                if leaf < index:
                    yield from spell_out(text, leaf, prefix)
                item = index + 1
            if depth == 0:
                return
        return
    name = re.compile(r"\w+|\*").match(text, at)
    if name is None:
        return
    path = f"{prefix}{name.group()}"
    deeper = re.compile(r"\s*::\s*").match(text, name.end())
    if deeper is None or not re.match(r"[\w{*]", text[deeper.end() : deeper.end() + 1]):
        yield at, path
    else:
        yield from spell_out(text, deeper.end(), f"{path}::")


def core_errors(crates: Path) -> Iterator[str]:
    """Look through the sources of the pure floors below `crates`; one message per banned path."""
    for room in sorted(room for of in PURE for room in (crates / of).glob("*")):
        if room.name == DISK:
            continue
        for file in sorted((room / "src").rglob("*.rs")):
            if file.stem == "tests" or "tests" in file.relative_to(room).parts:
                continue
            text = strip_tests_and_comments(file.read_text(encoding="utf-8"))
            for offset, path in paths_below_std(text):
                banned = next((b for b in BANNED_STD if f"{path}::".startswith(f"{b}::")), None)
                if banned is None and path not in ("time", "time::*", "*"):
                    continue
                line = text.count("\n", 0, offset) + 1
                yield (
                    f"{file.relative_to(crates.parent)}:{line}: core crate `{room.name}` uses "
                    f"std::{path}; a core has no clock, file, socket, thread or environment: "
                    "take the value as an argument and let a crate of sim or real fetch it"
                )


def modules(src: Path) -> dict[str, set[str]]:
    """Give the modules of a crate and which others each one uses, by its paths from the root."""
    names = {entry.stem for entry in src.iterdir()} - {"lib", "main"}
    root = {name: name for name in names}
    if (lib := src / "lib.rs").exists():
        text = strip_tests_and_comments(lib.read_text(encoding="utf-8"))
        for start in re.finditer(r"\bpub(?:\([^)]*\))? use\s+", text):
            for _, path in spell_out(text, start.end(), ""):
                parts = path.split("::")
                if parts[0] in names:
                    root.setdefault(parts[-1], parts[0])
    uses: dict[str, set[str]] = {name: set() for name in names}
    for file in sorted(src.rglob("*.rs")):
        place = file.relative_to(src).parts
        name = Path(place[0]).stem
        if name not in names or "tests" in file.stem:
            continue
        text = strip_tests_and_comments(file.read_text(encoding="utf-8"))
        # In a file of `src` itself, `super` is the root.
        upwards = r"\b(?:crate|super)\s*::\s*" if len(place) == 1 else r"\bcrate\s*::\s*"
        for start in re.finditer(upwards, text):
            for _, path in spell_out(text, start.end(), ""):
                used = root.get(path.split("::")[0], name)
                uses[name] |= {used} - {name}
    return uses


def circles(uses: dict[str, set[str]]) -> list[list[str]]:
    """Give the groups of modules that reach each other, each in order of names."""
    reached: dict[str, set[str]] = {}
    for name in uses:
        found: set[str] = set()
        waiting = list(uses[name])
        while waiting:
            if (other := waiting.pop()) not in found:
                found.add(other)
                waiting += uses[other]
        reached[name] = found
    groups = {
        tuple(sorted(other for other in reached[name] if name in reached[other]))
        for name in uses
        if name in reached[name]
    }
    return sorted(map(list, groups))


def module_errors(crates: Path) -> Iterator[str]:
    """Look for circles between modules; one message per circle."""
    for src in sorted(crates.glob("*/*/src")):
        for circle in circles(modules(src)):
            yield (
                f"crates/{src.parent.relative_to(crates)}: the modules {', '.join(circle)} "
                "know each other in a circle; move what several need into one below them"
            )


def shim_parts(shim: Path) -> dict[str, set[str]]:
    """Give the parts of a shim (folders with C files) and which others each one includes or calls.

    A part calls another where it names a function or variable with external linkage that a C file
    of the other defines.
    """
    texts = {
        file: COMMENT.sub(" ", file.read_text(encoding="utf-8"))
        for file in sorted(shim.rglob("*.[ch]"))
    }
    parts = {file: file.relative_to(shim).parts[0].partition(".")[0] for file in texts}
    defined: dict[str, str] = {}
    for file, text in texts.items():
        if file.suffix == ".c":
            defined |= dict.fromkeys(EXTERNAL.findall(text), parts[file])
    uses: dict[str, set[str]] = {part: set() for part in parts.values()}
    for file, text in texts.items():
        included = {name for name in INCLUDED.findall(text) if name in uses}
        named = {defined[word] for word in NAMED.findall(text) if word in defined}
        uses[parts[file]] |= (included | named) - {parts[file]}
    return uses


# What a C file defines for others: from the first column, not `static`, `extern` or `typedef`.
EXTERNAL = re.compile(
    r"^(?!static|extern|typedef|return|else|#)(?:[A-Za-z_][\w()]*[\s*]+)+?\**(\w+)"
    r"(?:\([^;{}]*\)\s*\{|(?:\s*=[^;]*|,[^;]*)?;)",
    re.MULTILINE,
)
NAMED = re.compile(r"(?<!struct )(?<!enum )\b\w+")
INCLUDED = re.compile(r'#include "(\w+)[/.][^"]*"')
COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


def shim_errors(crates: Path) -> Iterator[str]:
    """Look for circles between the parts of a shim; one message per circle."""
    for shim in sorted(crates.glob("*/*/shim")):
        if not any(entry.is_dir() for entry in shim.iterdir()):
            continue
        for circle in circles(shim_parts(shim)):
            yield (
                f"crates/{shim.relative_to(crates)}: the parts {', '.join(circle)} know each other "
                "in a circle; move what several need into one below them"
            )


def main() -> int:
    """Run both checks on the workspace, or the arrows of a saved `cargo metadata` on its own."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--metadata", type=Path, help="judge this `cargo metadata` output instead")
    options = parser.parse_args()
    if options.metadata:
        errors = list(arrow_errors(json.loads(options.metadata.read_text(encoding="utf-8"))))
    else:
        command = ["cargo", "metadata", "--format-version", "1", "--no-deps"]
        output = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout
        crates = ROOT / "crates"
        errors = [
            *arrow_errors(json.loads(output)),
            *core_errors(crates),
            *module_errors(crates),
            *shim_errors(crates),
        ]
    for error in errors:
        print(f"error: {error}", file=sys.stderr)
    if not errors:
        print("arrows: all point down, cores are pure, no circle of modules")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
