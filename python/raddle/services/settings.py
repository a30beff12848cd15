"""What can be set: RADDLE_* variables, keys of files, and quantities with their units."""

import os
import re
from dataclasses import asdict
from typing import Any, Literal

from raddle import core
from raddle.core.build import Variable, parse_quantity, variables
from raddle.text import suggest

__all__ = ["parse_quantity", "problem", "schema", "state", "variables"]


def schema(of: Literal["experiment", "route"]) -> str:
    """The JSON Schema of a kind of file."""
    return core.build.route_schema() if of == "route" else core.build.experiment_schema()


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


def state(variable: Variable) -> dict[str, Any]:
    """A variable and what the environment says to it."""
    given = os.environ.get(variable.name)
    # Who sees a job's key can speak for the job.
    shown = "(hidden)" if given and variable.name.endswith("_KEY") else given
    return {
        **asdict(variable),
        "default": variable.default or None,
        "value": shown or variable.default or None,
        "set": bool(given),
        "problem": problem(variable.values, given) if given else None,
    }
