"""Values on top of a file: ``--set KEY=VALUE,...`` as texts that include the file.

A text that includes the file and replaces a few keys is judged as any other is. No file holds it:
errors name the setting in place of its lines.
"""

import itertools
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raddle.errors import ExperimentError
from raddle.files import read_text
from raddle.services.run import plan_file
from raddle.text import many

__all__ = ["Setting", "naming_the_setting", "overlays", "parse_setting"]

MOST_POINTS = 1000
_KEY = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
_LINE_AND_COLUMN = re.compile(r"^(:\d+)+")
_QUOTED_LINE = re.compile(r" +(\d+ )?\| ")


@dataclass(frozen=True, slots=True)
class Setting:
    """A key of the experiment and its values, each as the user wrote it."""

    key: str
    values: tuple[str, ...]


def parse_setting(text: str) -> Setting:
    """Read ``KEY=VALUE,VALUE,...``; commas inside brackets, braces and quotes do not part values.

    Examples
    --------
    >>> parse_setting("simulation.buffer=4MiB,8MiB")
    Setting(key='simulation.buffer', values=('4MiB', '8MiB'))
    >>> parse_setting("simulation.seeds=[1, 2],[3]").values
    ('[1, 2]', '[3]')
    """
    key, equals, rest = text.partition("=")
    key = key.strip()
    if not equals or not _KEY.fullmatch(key):
        msg = f"--set {text}: expected KEY=VALUE,VALUE,... as in simulation.buffer=4MiB,8MiB"
        raise ExperimentError(msg)
    values = tuple(_split(rest))
    if not all(values):
        msg = f"--set {text}: a value is missing"
        raise ExperimentError(msg)
    if len(set(values)) < len(values):
        msg = f"--set {text}: the same value stands there twice"
        raise ExperimentError(msg)
    return Setting(key, values)


def overlays(
    file: Path, settings: Sequence[Setting], *, beside: bool = True
) -> list[tuple[Mapping[str, str], str]]:
    """Each combination of values and the experiment text that puts them on top of `file`.

    The text stands `beside` the file or anywhere.
    """
    keys = [setting.key for setting in settings]
    for key in keys:
        if keys.count(key) > 1:
            msg = f"--set {key} is given twice: put all of its values into one"
            raise ExperimentError(msg)
        above = next((k for k in keys if key.startswith(f"{k}.")), None)
        if above is not None:
            msg = f"--set {key} lies inside --set {above}: the two contradict each other"
            raise ExperimentError(msg)
    count = 1
    for setting in settings:
        count *= len(setting.values)
    if count > MOST_POINTS:
        msg = f"{many(count, 'point')} are too many (limit {MOST_POINTS:,}): make several sweeps"
        raise ExperimentError(msg)
    base = _read(file)
    included = file.name if beside else str(file.resolve())
    found: list[tuple[Mapping[str, str], str]] = []
    for values in itertools.product(*(setting.values for setting in settings)):
        chosen = dict(zip(keys, values, strict=True))
        found.append((chosen, _overlay(included, str(base.get("name", file.stem)), chosen)))
    return found


@contextmanager
def naming_the_setting(path: Path, chosen: Mapping[str, str]) -> Iterator[None]:
    """Say ``--set KEY=VALUE`` where an error has a place in a text of `overlays`, judged as `path`.

    Raises
    ------
    ExperimentError
        The error, without line and column of a text that the user never sees.
    """
    try:
        yield
    except ExperimentError as error:
        told = str(error)
        if not chosen or not told.startswith(f"{path}:"):
            raise
        setting = " ".join(f"--set {key}={value}" for key, value in chosen.items())
        lines = _LINE_AND_COLUMN.sub("", told.removeprefix(str(path))).splitlines()
        kept = [line for line in lines if not _QUOTED_LINE.match(line)]
        raise ExperimentError(setting + "\n".join(kept)) from error


def _split(text: str) -> list[str]:
    parts, depth, quote, current = [], 0, "", ""
    for letter in text:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        elif letter in "[{":
            depth += 1
        elif letter in "]}":
            depth -= 1
        if letter == "," and depth <= 0 and not quote:
            parts.append(current.strip())
            current = ""
        else:
            current += letter
    return [*parts, current.strip()]


def _read(file: Path) -> Mapping[str, Any]:
    try:
        return tomllib.loads(read_text(file))
    except tomllib.TOMLDecodeError:
        plan_file(file)  # says what is wrong with it, and where
        return {}


def _overlay(included: str, name: str, chosen: Mapping[str, str]) -> str:
    """An experiment that includes another one and puts the point's values on top."""
    lines = [f"include = [{_literal(included)}]", f"name = {_literal(name)}"]
    lines += [f"{key} = {_value(value)}" for key, value in chosen.items() if key != "name"]
    return "\n".join(lines) + "\n"


def _value(text: str) -> str:
    """A value as TOML: numbers, truth values, lists, tables and quoted text as they are."""
    try:
        tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return _literal(text)
    return text


def _literal(text: object) -> str:
    return json.dumps(str(text), ensure_ascii=True)
