"""Files of a results folder that are missing or not as the run wrote them, and what that costs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from raddle.errors import ResultsError
from raddle.results.digests import as_written
from raddle.results.folder import AGAIN, Results

__all__ = ["Fault", "faults_of", "refuse_changed"]

USES: Mapping[str, str] = {
    "summary.json": "figures are computed anew; parameters and packet-hops are left out",
    "manifest.json": "parameters, versions and the list of runs are left out",
    "experiment.toml": "the experiment's text is left out",
    "ports.parquet": "loads of links and the busiest ones are left out",
    "queues.parquet": "queues over time are left out",
    "pauses.parquet": "who silenced whom is left out",
    "throughput.parquet": "throughput over time is left out",
    "flow_throughput.parquet": "long flows one by one are left out",
    "nodes.parquet": "the map and names of nodes are left out",
    "links.parquet": "the map and who silenced whom are left out",
    "members.parquet": "members of groups are left out",
    "jobs.parquet": "times of jobs are left out",
    "blame.parquet": "what the time of jobs was spent on is left out",
    "delays.parquet": "what the time of flows was spent on is left out",
    "ranks.parquet": "what ranks did when is left out",
    "acks.parquet": "acknowledgements are left out",
    "isolated/": "the tested flows alone are left out",
    "isolated/flows.parquet": "the tested flows alone are left out",
}
"""What a report does without a file, where it can do without."""
ALWAYS = ("pauses", "ports", "throughput", "flow_throughput", "queues", "nodes", "links")
"""Tables beside the flows that every results folder has."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A file that is missing or changed; `cost` says what is left out because of it."""

    file: str
    state: Literal["missing", "changed"]
    cost: str

    @property
    def words(self) -> str:
        """The fault in one line, without the folder."""
        state = "is missing" if self.state == "missing" else "is not as the run wrote it"
        return f"{self.file} {state}{': ' if self.cost else ''}{self.cost}"

    def as_json(self) -> Mapping[str, Any]:
        """The fault as JSON."""
        return {"file": self.file, "state": self.state, "cost": self.cost}


def faults_of(results: Results) -> list[Fault]:
    """What is wrong with the files of a results folder."""
    found = [
        Fault(name, "missing", USES[name])
        for name in ("manifest.json", "summary.json", "experiment.toml")
        if not (results.path / name).is_file()
    ]
    listed: Mapping[str, Any] = results.manifest.get("files") or {}
    return [*found, *(_of_tables(results, listed))]


def refuse_changed(results: Results) -> None:
    """Refuse tables that the run did not write so.

    Raises
    ------
    ResultsError
        There are some; the message names them.
    """
    changed = [fault for fault in faults_of(results) if fault.state == "changed"]
    if changed:
        listed = "".join(f"\n  {fault.words}" for fault in changed)
        msg = f"{results.path} holds tables of other results{listed}\n  hint: {AGAIN}"
        raise ResultsError(msg)


def _of_tables(results: Results, listed: Mapping[str, Any]) -> Iterator[Fault]:
    twin = any(
        run.get("done") and run.get("variant") == "isolated"
        for run in results.manifest.get("runs", [])
    )
    expected = dict.fromkeys([*listed, *(f"{name}.parquet" for name in ALWAYS)])
    if twin and not (results.path / "isolated").is_dir():
        yield Fault("isolated/", "missing", USES["isolated/"])
        expected = {name: None for name in expected if not name.startswith("isolated/")}
    elif twin:
        expected |= {"isolated/flows.parquet": None}
    for name in expected:
        file = results.path / name
        written = listed.get(name)
        if not file.is_file():
            yield Fault(name, "missing", USES.get(name, ""))
        elif written and not as_written(file, written):
            yield Fault(name, "changed", "")
