"""`raddle config`: every variable of the environment that a part of Raddle reads."""

from collections.abc import Mapping, Sequence
from typing import Any

from raddle import services
from raddle.cli.options import AsJson
from raddle.cli.talk import answer_no, guarded, print_json, print_table, say

__all__ = ["config"]

READERS = {
    "mpi": "libraddle_mpi.so, under an MPI program",
    "opensm": "libraddle.so, in OpenSM",
    "raddle": "the command line",
}


@guarded
def config(
    as_json: AsJson = False,
) -> None:
    """List every RADDLE_* variable: its value now, what it may be, default and meaning.

    Exit 1 if one has an invalid value.
    """
    rows = [services.settings.state(each) for each in services.settings.variables()]
    if as_json:
        print_json({"settings": rows})
    else:
        _show(rows)
    wrong = [row for row in rows if row["problem"]]
    for row in wrong:
        say(f"error: {row['name']}={row['value']}: {row['problem']}")
    if wrong:
        answer_no()


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
