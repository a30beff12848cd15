"""Which choices of what Peng et al. do not say make all of their findings hold together."""

from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Any

from experiments.scheduling.cells import Case, Effort, gains, mean_gain, run
from raddle.results.reproduction import CLOSE
from raddle.services.reproduce.search import Search
from raddle.services.trace import APPLICATIONS

PUBLISHED = {4: 12.59, 16: 11.27}
MOST = 41.0

SETS = {"short": ("small",), "long": ("large",), "both": ("small", "large")}

INPUTS: dict[str, list[Any]] = {
    "card's gap": ["100ns", "200ns", "300ns", "400ns", "600ns"],
    "window": ["published", "both"],
    "joined": ["rank-to-node", "rank-to-rank"],
    "leaders": [1, 2, 4, 8],
    "the card sends": ["in turn", "in order"],
    "messages": list(SETS),
}
QUICK: dict[str, list[Any]] = {
    **INPUTS,
    "card's gap": ["200ns", "300ns"],
    "joined": ["rank-to-node"],
    "leaders": [1, 4],
    "the card sends": ["in turn"],
    "messages": ["short"],
}

FINDINGS = (
    "mean gain on 4 nodes within 10 % of 12.59",
    "mean gain on 16 nodes within 10 % of 11.27",
    "most within 10 % of 41",
    "16 nodes gain less than 4",
    "no program loses more than 1 %",
)


def evaluate(point: dict[str, Any], _quick: bool, _out: Path) -> dict[str, bool | None]:
    """Which findings hold at a point."""
    case = Case(
        point["card's gap"],
        scope=point["joined"],
        leaders=point["leaders"],
        in_order=point["the card sends"] == "in order",
    )
    schedule = point["window"]
    with TemporaryDirectory(prefix="raddle-search-") as temporary:
        effort = Effort(Path(temporary), seeds=1, exchanges=1, threads=1)
        found = {
            (nodes, sizes, application): run(
                effort,
                case,
                ("none", schedule),
                nodes=nodes,
                sizes=sizes,
                application=application,
            )
            for nodes in PUBLISHED
            for sizes in SETS[point["messages"]]
            for application in APPLICATIONS
        }
    means = {
        nodes: mean_gain((s for (n, _, _), s in found.items() if n == nodes), schedule).mean
        for nodes in PUBLISHED
    }
    single = [fmean(gains(summary, schedule)) for summary in found.values()]
    close = {n: abs(means[n] - gain) <= CLOSE * gain for n, gain in PUBLISHED.items()}
    return dict(
        zip(
            FINDINGS,
            (
                close[4],
                close[16],
                abs(max(single) - MOST) <= CLOSE * MOST,
                means[16] < means[4],
                min(single) >= -1.0,
            ),
            strict=True,
        )
    )


SEARCH = Search(inputs=INPUTS, findings=FINDINGS, evaluate=evaluate, quick_inputs=QUICK)
