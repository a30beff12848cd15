"""The page of a paper: a template of Markdown, filled with rows and tables and nothing else."""

import re
import shutil
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, StrictUndefined, TemplateError

from raddle.errors import ResultsError
from raddle.files import read_text
from raddle.results.reproduction import (
    CLOSE,
    Outcome,
    Row,
    Table,
    count_rows,
    read_rows,
    read_table,
    write_rows,
    write_table,
)
from raddle.text import many, significant

__all__ = ["FIGURES", "keep", "keep_figures", "kept", "page_of"]

WIDTH = 116
FIGURES = "figures"
"""The folder of pictures: in a paper's own folder, and below docs/results."""
ROWS = "rows"
"""The file of the rows among those that are kept; the others are tables."""


MADE = "made-by"
"""The table that has the command which made the others."""


def keep(outcome: Outcome, folder: Path, command: str) -> None:
    """Keep what a page is made of in the repository, a CSV file for the rows and one per table."""
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.csv"):
        old.unlink()
    write_rows(folder / f"{ROWS}.csv", outcome.rows)
    made = Table(("command",), [(command,)])
    for name, table in {**outcome.tables, MADE: made}.items():
        write_table(folder / f"{name}.csv", table)


def keep_figures(drawn: Path, folder: Path) -> None:
    """Keep the pictures that a paper's program drew, if it did, where the pages are."""
    for figure in sorted(drawn.glob("*.*")):
        folder.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(figure, folder / figure.name)


def kept(folder: Path) -> Outcome:
    """What `keep` kept.

    Raises
    ------
    ResultsError
        A file is not as it was written.
    """
    tables = {
        file.stem: read_table(file) for file in sorted(folder.glob("*.csv")) if file.stem != ROWS
    }
    return Outcome(read_rows(folder / f"{ROWS}.csv"), tables)


def page_of(template: Path, outcome: Outcome) -> str:
    """Fill a paper's template.

    Raises
    ------
    ResultsError
        The template asks for what is not there.
    """
    # What is made is Markdown, of our own numbers and names: nothing of it is HTML to be escaped.
    environment = Environment(undefined=StrictUndefined, autoescape=False, trim_blocks=True)
    content = _Content(outcome)
    environment.globals.update(
        rows=content.rows,
        table=content.table,
        value=content.value,
        counts=content.counts,
        command=content.command,
        search=content.search,
    )
    try:
        text = environment.from_string(read_text(template)).render()
    except TemplateError as error:
        msg = f"{template}: {error}"
        raise ResultsError(msg) from error
    return _wrapped(text)


class _Content:
    """What a template may ask for."""

    def __init__(self, outcome: Outcome) -> None:
        self._rows = outcome.rows
        self._tables: Mapping[str, Table] = outcome.tables

    def rows(self, item: str, *, setting: str = "", variant: str = "") -> str:
        """All rows of an item by a model (with `setting`: whose setting has it) as a table."""
        of_item = [row for row in self._rows if (row.item, row.variant) == (item, variant)]
        rows = [row for row in of_item if setting in row.setting]
        if not rows:
            model = f", {variant}," if variant else ""
            msg = f"no row of {item!r}{model} has {setting!r} in its setting"
            raise ResultsError(msg)
        return _row_table(rows)

    def table(self, name: str) -> str:
        """One of the other tables."""
        if name not in self._tables:
            msg = f"no table {name!r}; there are {', '.join(self._tables)}"
            raise ResultsError(msg)
        table = self._tables[name]
        return _markdown(table.columns, table.rows)

    def value(
        self, item: str, setting: str, field: str = "ours", digits: int = 3, *, variant: str = ""
    ) -> str:
        """A value of one row; a share (`_frac`) comes in per cent."""
        wanted = (item, setting, variant)
        rows = [row for row in self._rows if (row.item, row.setting, row.variant) == wanted]
        if len(rows) != 1:
            msg = f"no one row of {item!r} has the setting {setting!r}: {many(len(rows), 'row')}"
            raise ResultsError(msg)
        value = getattr(rows[0], field)
        if field.endswith("_frac") and value is not None:
            return f"{value * 100:+.1f} %"
        return _number(value, digits) if not isinstance(value, str) else value.replace("_", " ")

    def counts(self) -> str:
        """How many rows there are of each kind and verdict, and how many cells are close."""
        found = count_rows(self._rows)
        rows = [
            (kind, *(verdicts[name] for name in ("holds", "misses", "not_shown", "lost")))
            for kind, verdicts in found["kinds"].items()
            if any(verdicts.values())
        ]
        lines = [_markdown(("figure or sentence", "holds", "misses", "not shown", "lost"), rows)]
        if found["predicted_cells"]:
            lines += ["", f"Of {_closeness(found)}."]
        for variant, own in found.get("variants", {}).items():
            sentences = sum(own["findings"].values())
            told = f"; of {many(sentences, 'sentence')} {own['findings']['holds']} hold"
            lines += ["", f"The same {variant}: of {_closeness(own)}{told if sentences else ''}."]
        return "\n".join(lines)

    def command(self) -> str:
        """The command that made what is kept."""
        table = self._tables.get(MADE)
        return str(table.rows[0][0]) if table is not None else "raddle reproduce"

    def search(self) -> str:
        """What the search over lost inputs found."""
        inputs, found = self.table("search-inputs"), self.table("search-findings")
        counts = self._tables["search-points"]
        points, findings, most, of_all, predicted = map(int, counts.rows[0])
        together = (
            f"All {findings} findings hold together at {of_all} of them"
            if of_all
            else f"At no point do all {findings} findings hold; at most {most} do"
        )
        words = (
            f"{many(points, 'point')} were searched: every combination of these values. {together}."
        )
        elsewhere = (
            "What the search predicts: the points are chosen by all findings but one, and that one "
            f"is looked up there. {predicted} of {findings} hold wherever most of the others do."
        )
        return "\n\n".join((words, inputs, elsewhere, found))


def _closeness(found: Mapping[str, Any]) -> str:
    """How many predicted cells are close, of how many, and for how many the null model is."""
    words = (
        f"{found['predicted_cells']} predicted cells {found['predicted_within']} are "
        f"within {CLOSE * 100:.0f} % of the published figure"
    )
    if found["null_cells"]:
        words += f"; the null model is for {found['null_within']} of {found['null_cells']}"
    return words


def _row_table(rows: Sequence[Row]) -> str:
    """Rows as a table that leaves out what none of them has."""
    columns: list[tuple[str, list[str]]] = [("", [row.setting for row in rows])]
    unit = {row.unit for row in rows if row.published is not None or row.ours is not None}
    same = next(iter(unit)) if len(unit) == 1 else None
    words = f", {same}" if same else ""

    def add(name: str, values: Iterable[str]) -> None:
        column = list(values)
        if any(column):
            columns.append((name, column))

    add("the paper's words", (row.statement for row in rows))
    if same is None:
        add("unit", (row.unit for row in rows))
    add(f"published{words}", (_number(row.published) for row in rows))
    add(f"ours{words}", map(_ours, rows))
    add("deviation, %", (_percent(row.deviation_frac) for row in rows))
    add("null model, %", (_percent(row.null_deviation_frac) for row in rows))
    add("kind", (row.kind for row in rows))
    add("verdict", (row.verdict.replace("_", " ") for row in rows))
    add("note", (row.note for row in rows))
    return _markdown(
        [name for name, _ in columns], list(zip(*(column for _, column in columns), strict=True))
    )


def _ours(row: Row) -> str:
    text = _number(row.ours)
    if row.ci_low is not None and row.ci_high is not None:
        text += f" [{_number(row.ci_low)}, {_number(row.ci_high)}]"
    return text


def _number(value: float | None, digits: int = 4) -> str:
    if value is None:
        return ""
    if float(value).is_integer() and abs(value) < 1e15:
        return f"{int(value):,}"
    return significant(value, digits)


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share * 100:+.1f}"


def _markdown(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """A table of Markdown; columns of figures stand to the right."""
    body = [["" if v is None else str(v).replace("|", "\\|") for v in row] for row in rows]
    marks = [
        "--:" if any(row[i] for row in body) and all(_is_figure(row[i]) for row in body) else "---"
        for i in range(len(columns))
    ]
    lines = [f"| {' | '.join(columns)} |", f"|{'|'.join(marks)}|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in body)])


def _is_figure(text: str) -> bool:
    return (
        not text or re.fullmatch(r"[-+]?[\d,.]+(e[-+]?\d+)?( %)?( \[.*\]| ± .*)?", text) is not None
    )


def _wrapped(text: str) -> str:
    """Lines of prose that filling made too long are broken; nothing else changes."""
    lines: list[str] = []
    code = False
    for line in text.rstrip("\n").split("\n"):
        code ^= line.lstrip().startswith("```")
        if len(line) <= WIDTH + 2 or code or line.startswith(("|", "#", "    ")):
            lines.append(line)
            continue
        indent = re.match(r"\s*(?:[-*] |\d+\. )?", line)
        lines += textwrap.wrap(
            line,
            WIDTH,
            subsequent_indent=" " * (indent.end() if indent else 0),
            break_on_hyphens=False,
            break_long_words=False,
        )
    return "\n".join(lines) + "\n"
