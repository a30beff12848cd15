"""Pages and pictures of results: each is one file that works offline."""

from typing import TYPE_CHECKING

from raddle.lazy import attach

__all__ = [
    "explorer",
    "gains",
    "parts",
    "plots",
    "trace",
    "write_page",
    "write_replay_report",
    "write_report",
    "write_route_report",
    "write_sweep",
]

if TYPE_CHECKING:
    from raddle.report import explorer, gains, parts, plots, trace
    from raddle.report.write import (
        write_page,
        write_replay_report,
        write_report,
        write_route_report,
        write_sweep,
    )
else:
    __getattr__, __dir__ = attach(
        __name__,
        modules=("explorer", "gains", "parts", "plots", "trace"),
        names={name: "raddle.report.write" for name in __all__ if name.startswith("write_")},
    )
