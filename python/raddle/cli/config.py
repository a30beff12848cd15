"""`raddle config`: every variable of the environment that a part of Raddle reads."""

import os
import tomllib
from typing import Any

from raddle.cli.options import AsJson
from raddle.cli.talk import guarded, print_json, print_table, say

__all__ = ["config", "settings"]

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
    """List every RADDLE_* variable: what it is now, its values, default and meaning."""
    rows = settings()
    if as_json:
        print_json({"settings": [_as_json(row) for row in rows]})
        return
    for user in dict.fromkeys(row["used_by"] for row in rows):
        print(f"{READERS.get(user, user)}\n")
        shown = [
            (
                row["name"],
                _value(row["name"], os.environ.get(row["name"]) or row["default"] or "–"),
                "set" if os.environ.get(row["name"]) else "",
                row["values"],
            )
            for row in rows
            if row["used_by"] == user
        ]
        print_table(("variable", "now", "", "values"), shown, left=4)
        print()
        for row in rows:
            if row["used_by"] == user:
                print(f"{row['name']}: {row['meaning']}")
        print()
    unknown = sorted({n for n in os.environ if n.startswith("RADDLE_")} - {r["name"] for r in rows})
    for name in unknown:
        say(f"{name} is set and means nothing")


def _as_json(row: dict[str, str]) -> dict[str, Any]:
    value = os.environ.get(row["name"])
    return {
        **row,
        "default": row["default"] or None,
        "value": _value(row["name"], value or row["default"]) or None,
        "set": bool(value),
    }


def _value(name: str, value: str) -> str:
    """A value as it may be shown: who sees a job's key can speak for the job."""
    return "(hidden)" if name.endswith("_KEY") and os.environ.get(name) else value
