"""Published figures beside ours: a row for each, and the one rule for what is said of it."""

import csv
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal, cast, get_args

import pyarrow as pa
import pyarrow.parquet as pq

from raddle.errors import ResultsError
from raddle.files import read_text, replacing
from raddle.text import many

__all__ = [
    "CLOSE",
    "Kind",
    "Outcome",
    "Row",
    "Table",
    "Verdict",
    "cell",
    "count_rows",
    "finding",
    "lost",
    "of_paper",
    "read_rows",
    "read_table",
    "write_parquet",
    "write_rows",
    "write_table",
]

Kind = Literal["exact", "chosen", "fitted", "predicted"]
"""How our figure came about: it must be equal by a closed form or a count; we chose a lost input so
that it comes out; the published figure was used to fit a constant; nothing of it was used."""

Verdict = Literal["holds", "misses", "not_shown", "lost"]
"""What a row says; `not_shown`: our runs cannot tell; `lost`: the paper's text lost
the figure."""

CLOSE = 0.10
"""A figure holds when it is within this share of the published one."""


@dataclass(frozen=True, slots=True)
class Row:
    """A published figure, or a sentence with a number or an order, and what Raddle has for it."""

    item: str
    """Table, figure or section of the paper."""
    setting: str
    """Which cell of it."""
    kind: Kind
    verdict: Verdict
    paper: str = ""
    statement: str = ""
    """The paper's sentence, where the row is no figure."""
    unit: str = ""
    published: float | None = None
    ours: float | None = None
    ci_low: float | None = None
    """95 % interval of ours."""
    ci_high: float | None = None
    deviation_frac: float | None = None
    """ours / published - 1."""
    null_deviation_frac: float | None = None
    """The same of a model that knows nothing: named on the paper's page."""
    variant: str = ""
    """Which of our models, where several predict the same; the first has no name."""
    note: str = ""

    @property
    def place(self) -> str:
        """The item, and the model that predicts it."""
        return f"{self.item}, {self.variant}" if self.variant else self.item

    def __post_init__(self) -> None:
        """Refuse what no reader could make sense of."""
        for name in ("kind", "verdict"):
            allowed = get_args(Kind if name == "kind" else Verdict)
            if getattr(self, name) not in allowed:
                msg = f"{self.item}, {self.setting}: {name} is {getattr(self, name)!r}"
                raise ResultsError(msg)
        for name in FIGURES:
            value = getattr(self, name)
            if value is not None and not math.isfinite(value):
                msg = f"{self.item}, {self.setting}: {name} is {value}"
                raise ResultsError(msg)


FIGURES = (
    "published",
    "ours",
    "ci_low",
    "ci_high",
    "deviation_frac",
    "null_deviation_frac",
)
ORDER = (
    "paper",
    "item",
    "setting",
    "statement",
    "unit",
    "published",
    "ours",
    "ci_low",
    "ci_high",
    "deviation_frac",
    "kind",
    "null_deviation_frac",
    "verdict",
    "variant",
    "note",
)
"""Columns of the files."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a page that is no comparison with published figures."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the reproduction of a paper gives."""

    rows: Sequence[Row]
    tables: Mapping[str, Table] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What `summary.json` says beside the counts."""


def cell(
    *,
    item: str,
    setting: str,
    published: float,
    ours: float,
    kind: Kind,
    unit: str = "",
    null: float | None = None,
    ci: tuple[float, float] | None = None,
    decide_by_ci: bool = False,
    variant: str = "",
    note: str = "",
) -> Row:
    """A row for a published figure.

    It holds within `CLOSE` of the published one; `exact`: to the digits that were printed. With
    `decide_by_ci` the whole interval must lie within, or the whole of it beyond, else nothing is
    shown.

    Parameters
    ----------
    null
        What a model that knows nothing says.
    ci
        The 95 % interval of ours.

    Examples
    --------
    >>> cell(item="T", setting="a", published=8.6, ours=9.0, kind="predicted").verdict
    'holds'
    >>> cell(item="T", setting="a", published=8.6, ours=8.64, kind="exact").verdict
    'holds'
    >>> cell(item="T", setting="a", published=7, ours=6, kind="exact").verdict
    'misses'
    >>> wide = cell(item="T", setting="a", published=10, ours=10, kind="predicted", ci=(8, 12),
    ...             decide_by_ci=True)
    >>> wide.verdict
    'not_shown'
    """
    low, high = ci if ci is not None else (None, None)
    return Row(
        item=item,
        setting=setting,
        kind=kind,
        verdict=_verdict(published, ours, kind, ci if decide_by_ci else None),
        unit=unit,
        published=published,
        ours=ours,
        ci_low=low,
        ci_high=high,
        deviation_frac=_deviation(ours, published),
        null_deviation_frac=None if null is None else _deviation(null, published),
        variant=variant,
        note=note,
    )


def _verdict(published: float, ours: float, kind: Kind, ci: tuple[float, float] | None) -> Verdict:
    if kind == "exact":
        _, _, decimals = repr(published).partition(".")
        digits = 0 if decimals == "0" else len(decimals)
        equal = abs(ours - published) <= 0.5 * 10.0**-digits if digits else ours == published
        return "holds" if equal else "misses"
    room = CLOSE * abs(published) + 1e-12
    if ci is None:
        return "holds" if abs(ours - published) <= room else "misses"
    low, high = ci
    if published - room <= low and high <= published + room:
        return "holds"
    return "misses" if high < published - room or published + room < low else "not_shown"


def _deviation(value: float, published: float) -> float | None:
    return value / published - 1 if published else None


def finding(
    *,
    item: str,
    setting: str,
    statement: str,
    holds: bool | None,
    kind: Kind = "predicted",
    published: float | None = None,
    ours: float | None = None,
    unit: str = "",
    null: float | None = None,
    ci: tuple[float, float] | None = None,
    variant: str = "",
    note: str = "",
) -> Row:
    """A row for a sentence of the paper; `holds` is None where our runs cannot tell (say why)."""
    low, high = ci if ci is not None else (None, None)
    both = published is not None and ours is not None
    return Row(
        item=item,
        setting=setting,
        statement=statement,
        kind=kind,
        verdict="not_shown" if holds is None else "holds" if holds else "misses",
        unit=unit,
        published=published,
        ours=ours,
        ci_low=low,
        ci_high=high,
        deviation_frac=_deviation(cast("float", ours), cast("float", published)) if both else None,
        null_deviation_frac=_deviation(null, published)
        if null is not None and published is not None
        else None,
        variant=variant,
        note=note,
    )


def lost(item: str, setting: str, note: str = "", *, ours: float | None = None) -> Row:
    """A row for a figure that the paper's text has lost."""
    return Row(item=item, setting=setting, kind="predicted", verdict="lost", ours=ours, note=note)


def count_rows(rows: Iterable[Row]) -> dict[str, Any]:
    """How many rows have which verdict: of all, by kind; and of cells how many are close.

    `null_within` counts the cells that have a null model and for which it is close. What other
    models than the first predict is counted by itself, below `variants`.
    """
    rows = list(rows)
    names = dict.fromkeys(row.variant for row in rows if row.variant)
    found = _count_model([row for row in rows if not row.variant])
    variants = {name: _count_model([r for r in rows if r.variant == name]) for name in names}
    return {**found, "variants": variants} if variants else found


def _count_model(rows: Sequence[Row]) -> dict[str, Any]:
    verdicts = dict.fromkeys(get_args(Verdict), 0)
    kinds: dict[str, dict[str, int]] = {name: dict(verdicts) for name in get_args(Kind)}
    for row in rows:
        kinds[row.kind][row.verdict] += 1
    cells = [r for r in rows if not r.statement and r.verdict != "lost"]
    predicted = [r for r in cells if r.kind == "predicted"]
    nulls = [r.null_deviation_frac for r in predicted if r.null_deviation_frac is not None]
    findings = Counter(r.verdict for r in rows if r.statement)
    return {
        "rows": len(rows),
        "verdicts": verdicts | Counter(r.verdict for r in rows),
        "kinds": kinds,
        "predicted_cells": len(predicted),
        "predicted_within": sum(_is_close(r.deviation_frac) for r in predicted),
        "null_cells": len(nulls),
        "null_within": sum(map(_is_close, nulls)),
        "findings": verdicts | findings,
    }


def _is_close(deviation: float | None) -> bool:
    return deviation is not None and abs(deviation) <= CLOSE + 1e-12


def write_parquet(path: Path, rows: Sequence[Row]) -> None:
    """Write `results.parquet`, whole or not at all."""
    types = [(name, pa.float64() if name in FIGURES else pa.string()) for name in ORDER]
    table = pa.Table.from_pylist([asdict(row) for row in rows], schema=pa.schema(types))
    with replacing(path) as part:
        pq.write_table(table, part)


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """Write the rows of a paper as CSV."""
    write_table(path, Table(ORDER, [[getattr(row, name) for name in ORDER] for row in rows]))


def read_rows(path: Path) -> list[Row]:
    """Read what `write_rows` wrote.

    Raises
    ------
    ResultsError
        A column is missing, or a value is none of those that it may have.
    """
    table = read_table(path)
    known = {f.name for f in fields(Row)}
    missing = sorted(known - set(table.columns))
    if missing:
        msg = f"{path}: no column `{missing[0]}`"
        raise ResultsError(msg)
    rows = []
    for line, values in enumerate(table.rows, 2):
        named: dict[str, Any] = dict(zip(table.columns, values, strict=True))
        try:
            for name in FIGURES:
                named[name] = float(named[name]) if named[name] else None
            rows.append(Row(**named))
        except (ValueError, TypeError, ResultsError) as error:
            msg = f"{path}, line {line}: {error}"
            raise ResultsError(msg) from error
    return rows


def write_table(path: Path, table: Table) -> None:
    """Write a table as CSV, whole or not at all."""
    with replacing(path) as part, part.open("w", newline="", encoding="utf-8") as file:
        out = csv.writer(file, lineterminator="\n")
        out.writerow(table.columns)
        out.writerows([["" if v is None else _text(v) for v in row] for row in table.rows])


def _text(value: object) -> str:
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def read_table(path: Path) -> Table:
    """Read a table; every value is a text.

    Raises
    ------
    ResultsError
        The file has no header, or a row of another length.
    """
    lines = list(csv.reader(read_text(path).splitlines()))
    if not lines:
        msg = f"{path} is empty"
        raise ResultsError(msg)
    head, *rows = lines
    for number, row in enumerate(rows, 2):
        if len(row) != len(head):
            msg = (
                f"{path}, line {number}: {many(len(row), 'value')}, where the head has {len(head)}"
            )
            raise ResultsError(msg)
    return Table(head, rows)


def of_paper(paper: str, rows: Iterable[Row]) -> list[Row]:
    """The rows with the name of their paper."""
    return [replace(row, paper=paper) for row in rows]
