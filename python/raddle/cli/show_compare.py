"""What `raddle compare` prints."""

from typing import TYPE_CHECKING, Any

from raddle import results, statistics
from raddle.cli.talk import print_table, say
from raddle.results.differences import list_differences
from raddle.text import first_few, join_words, many, significant

if TYPE_CHECKING:
    from raddle.services.compare import Comparison, Row, Unfinished

__all__ = ["comparison_json", "show_comparison"]


def show_comparison(found: "Comparison", tolerance: float | None) -> None:
    """What the experiments differ in, then the figures that differ, then how many do not."""
    for side, folder in (("A", found.a), ("B", found.b)):
        for fault in results.faults.faults_of(folder):
            kept = "its figures are those of summary.json" if folder.summary else fault.cost
            state = fault.words.partition(":")[0]
            say(f"warning: {side}, {folder.path}/{state}: {kept}")
    if found.differences:
        print("The experiments differ:")
        print(list_differences(found.differences, "in A", "in B"))
        if found.seeds and found.a.seeds != found.b.seeds:
            print(f"Figures are over the seeds that both have: {first_few(found.seeds, 8)}.")
        print()
    if not found.schemes:
        print("No scheme is in both folders, so there is nothing to compare.")
        return
    if found.unfinished:
        print(f"Unfinished flows: {'; '.join(_lost(one) for one in found.unfinished)}.")
        print(
            "Their schemes' completion times, rates and scores are of other flows, so not judged."
        )
        print()
    if found.differing:
        header = ("scheme", "figure", "A", "B", "B against A", "")
        print_table(header, [_cells(row, tolerance) for row in found.differing], left=2)
        print()
    for side in ("A", "B"):
        for figures, schemes in found.only_in(side).items():
            labels = [
                statistics.figures.label_of_figure(figure).partition(", µs")[0]
                for figure in figures
            ]
            more = f"; {len(labels) - 5:,} more" if len(labels) > 5 else ""
            print(f"only in {side}, of {join_words(schemes)}: {'; '.join(labels[:5])}{more}")
    _show_end(found)


def _show_end(found: "Comparison") -> None:
    rows = many(len(found.rows), "row")
    if found.same == len(found.rows):
        print(f"the same figures in all {rows}")
        return
    if found.same:
        print(f"the same figures in {found.same:,} of {rows}")
    ties = sum(bool(row.tie) for row in found.differing)
    if ties:
        print(
            f"{many(ties, 'tie')} among those that differ; "
            f"{statistics.rule.tie_words(max(1, len(found.seeds)))}"
        )
    a, b = found.verdicts
    if a.leaders != b.leaders:
        print(f"leads in A: {a.leaders_words}; in B: {b.leaders_words}")


def _cells(row: "Row", tolerance: float | None) -> tuple[str, ...]:
    marks = [
        "tie" if row.tie else "",
        "" if row.comparable else "unfinished",
        "!" if tolerance is not None and row.exceeds(tolerance) else "",
    ]
    change = row.change_percent
    return (
        row.scheme,
        statistics.figures.label_of_figure(row.figure),
        "–" if row.a is None else significant(row.a, 4),
        "–" if row.b is None else significant(row.b, 4),
        "–" if change is None else f"{change:+.1f} %",
        " ".join(mark for mark in marks if mark),
    )


def _lost(one: "Unfinished") -> str:
    return (
        f"under {statistics.verdict.label_of(one.scheme)} {one.a:,} of {one.of_a:,} in A and "
        f"{one.b:,} of {one.of_b:,} in B"
    )


def comparison_json(found: "Comparison", tolerance: float | None) -> dict[str, Any]:
    """All of it for `--json`."""
    over = [r for r in found.rows if tolerance is not None and r.exceeds(tolerance)]
    return {
        "a": str(found.a.path),
        "b": str(found.b.path),
        "alike": not found.differences,
        "unlike": [one.as_json() for one in found.differences],
        "seeds": list(found.seeds),
        "faults": {
            "a": [one.as_json() for one in results.faults.faults_of(found.a)],
            "b": [one.as_json() for one in results.faults.faults_of(found.b)],
        },
        "unfinished": [one.as_json() for one in found.unfinished],
        "tolerance_percent": tolerance,
        "agree": not over,
        "same": found.same,
        "leaders": {"a": list(found.verdicts[0].leaders), "b": list(found.verdicts[1].leaders)},
        "figures": [row.as_json() for row in found.rows],
    }
