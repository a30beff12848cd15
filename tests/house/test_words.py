"""Counts in what Python says: one place knows the plural of a thing (`raddle.text.many`)."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "python" / "raddle"
THINGS = (
    "call|colour|column|communicator|core|entry|entries|error|figure|file|flow|group|host|job|key|"
    "lab|layer|line|link|member|merge|message|neighbour|node|parcel|pause|place|point|port|"
    "processor|process|processe|rail|rank|recording|round|row|run|sample|scheme|seed|socket|step|"
    "superstep|switch|switche|table|terminal|tree|value|warning|way"
)
KINDS = "(?:(?:further|more|new|other|shared|spanning|tested) )?"
COUNTED = re.compile(rf"^ {KINDS}(?:{THINGS})s?\b(?!-)")
TEMPLATE = re.compile(rf"\}}\}} {KINDS}(?:{THINGS})s\b")
# No counts; and more than one whatever the run: a drawing is in groups only where a map is large.
FINE = {
    "cut_off.backend runs", "multicast['table'] tables", "results.nodes.num_rows nodes",
    "len(drawing.x) groups", "nodes.num_rows nodes", "part.size nodes",
}  # fmt: skip


def counts(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Formatted numbers with a thing's name behind them."""
    for joined in (node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)):
        for value, text in zip(joined.values, joined.values[1:], strict=False):
            if not (isinstance(value, ast.FormattedValue) and isinstance(text, ast.Constant)):
                continue
            found = COUNTED.match(str(text.value))
            rounded = value.format_spec is not None and "f" in ast.unparse(value.format_spec)[2:]
            if not found or not found[0].endswith("s") or rounded:
                continue
            words = f"{ast.unparse(value.value)}{found[0]}"
            if words not in FINE:
                yield joined.lineno, words


@pytest.mark.parametrize("file", sorted(PACKAGE.rglob("*.py")), ids=lambda f: f.name)
def test_no_count_has_a_plural_of_its_own(file: Path) -> None:
    assert list(counts(ast.parse(file.read_text(encoding="utf-8")))) == []


@pytest.mark.parametrize("file", sorted(PACKAGE.rglob("*.j2")), ids=lambda f: f.name)
def test_no_count_in_a_page_has_a_plural_of_its_own(file: Path) -> None:
    assert TEMPLATE.findall(file.read_text(encoding="utf-8")) == []


def test_the_check_sees_what_it_is_for() -> None:
    bad = 'f"{n} hosts, {len(links):,} more links"'
    assert [words for _, words in counts(ast.parse(bad))] == ["n hosts", "len(links) more links"]
    assert list(counts(ast.parse("f'{many(n, word)} on {m} ms {rate} packet-hops/s'"))) == []
