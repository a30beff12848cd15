"""What is said of multicast engines side by side."""

from raddle.core.route import RouteSummary
from raddle.text import join_words, many, verb

__all__ = ["headline"]


def headline(summary: RouteSummary) -> str:
    """Which engine loads its busiest link least, and who merges."""
    routed = summary.routed
    if not routed:
        return "No engine could route these groups."
    least = min(row.max_efi for row in routed.values())
    best = [name for name, row in routed.items() if row.max_efi == least]
    words = (
        f"{join_words(best)} {verb(len(best), 'puts', 'put')} at most {many(least, 'group')} on a "
        "link"
    )
    apart = [name for name, row in routed.items() if row.merges == 0]
    if len(apart) == len(routed):
        return f"{words}; no engine merges groups."
    if apart:
        return f"{words}; {join_words(apart)} {verb(len(apart), 'merges', 'merge')} nothing."
    fewest = min(routed, key=lambda name: routed[name].merges)
    return f"{words}; fewest merges: {fewest} ({routed[fewest].merges:,})."
