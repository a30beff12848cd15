"""What can be set: RADDLE_* variables, keys of files, and quantities with their units."""

import os
import re
import tomllib
from collections.abc import Mapping
from typing import Any, Literal

from raddle import _core
from raddle.text import suggest

__all__ = ["parse_quantity", "problem", "schema", "state", "variables"]


def variables() -> list[dict[str, str]]:
    """Every RADDLE_* variable: name, used_by, values, default, meaning."""
    table: list[dict[str, str]] = tomllib.loads(_core.settings())["setting"]
    return table


def schema(of: Literal["experiment", "route"]) -> str:
    """The JSON Schema of a kind of file."""
    return _core.route_schema() if of == "route" else _core.experiment_schema()


def parse_quantity(kind: Literal["time", "size", "rate"], text: str) -> int:
    """A quantity with its unit in ps, bytes or bit/s.

    Raises
    ------
    ValueError
        It is none; the message says what is wrong.
    """
    return _core.parse_quantity(kind, text)


def problem(values: str, value: str) -> str | None:
    """Why a variable whose `values` the table describes must not be `value`; None if it may."""
    text = value.strip()
    if " | " in values:
        choices = values.split(" | ")
        return None if text in choices else suggest(text, choices)
    if span := re.fullmatch(r"(\d+)\.\.(\d*)", values):
        least, most = span.groups()
        number = int(text) if re.fullmatch(r"\+?[0-9]{1,20}", text) else -1
        fits = int(least) <= number <= int(most or number)
        return None if fits else f"it must be a whole number, {values}"
    if digits := re.fullmatch(r"(\d+) hexadecimal digits", values):
        fits = re.fullmatch(rf"[0-9a-fA-F]{{{digits[1]}}}", text) is not None
        return None if fits else f"it must be {values}"
    return None


def state(row: Mapping[str, str]) -> dict[str, Any]:
    """A row of the table and what the environment says to it."""
    given = os.environ.get(row["name"])
    # Who sees a job's key can speak for the job.
    shown = "(hidden)" if given and row["name"].endswith("_KEY") else given
    return {
        **row,
        "default": row["default"] or None,
        "value": shown or row["default"] or None,
        "set": bool(given),
        "problem": problem(row["values"], given) if given else None,
    }
