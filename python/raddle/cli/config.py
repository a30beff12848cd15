"""`raddle config`: every variable of the environment that a part of Raddle reads."""

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from raddle.cli.options import AsJson
from raddle.cli.talk import answer_no, guarded, print_json, print_table, say
from raddle.text import suggest

__all__ = ["config", "problem", "settings"]

READERS = {
    "mpi": "libraddle_mpi.so, under an MPI program",
    "opensm": "libraddle.so, in OpenSM",
    "raddle": "the command line",
}


def settings() -> list[dict[str, str]]:
    """The table of settings: name, used_by, values, default, meaning."""
    from raddle import _core

    table: list[dict[str, str]] = tomllib.loads(_core.settings())["setting"]
    return table


@guarded
def config(
    as_json: AsJson = False,
) -> None:
    """List every RADDLE_* variable: what it is now, its values, default and meaning.

    Exit 1 if one has an invalid value.
    """
    rows = [_now(row) for row in settings()]
    if as_json:
        print_json({"settings": rows})
    else:
        _show(rows)
    wrong = [row for row in rows if row["problem"]]
    for row in wrong:
        say(f"error: {row['name']}={row['value']}: {row['problem']}")
    if wrong:
        answer_no()


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


def _now(row: Mapping[str, str]) -> dict[str, Any]:
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


def _show(rows: Sequence[Mapping[str, Any]]) -> None:
    for user in dict.fromkeys(row["used_by"] for row in rows):
        print(f"{READERS.get(user, user)}\n")
        mine = [row for row in rows if row["used_by"] == user]
        shown = [
            (
                row["name"],
                row["value"] or "–",
                "INVALID" if row["problem"] else "set" if row["set"] else "",
                row["values"],
            )
            for row in mine
        ]
        print_table(("variable", "now", "", "values"), shown, left=4)
        print()
        for row in mine:
            print(f"{row['name']}: {row['meaning']}")
        print()
