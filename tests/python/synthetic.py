"""A stand-in for the compiled core: made-up but plausible results, the same for every call.

It speaks the whole interface of `raddle._core`, so that the Python side is tested without
simulating. Figures here mean nothing; only their shape does.
"""

import hashlib
import importlib
import json
import shutil
import sys
import threading
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from raddle import _core as REAL
from raddle.errors import ExperimentError, RunCancelled
from raddle.results import TABLES

# Scheme: slowdown of long, short and Allreduce flows under load, queue MB, share of time paused.
CHARACTER: Mapping[str, tuple[float, float, float, float, float]] = {
    "none": (2.4, 9.0, 11.0, 14.0, 0.30),
    "dctcp": (1.8, 4.2, 5.5, 6.0, 0.04),
    "dcqcn": (1.9, 5.0, 6.4, 8.0, 0.12),
    "timely": (1.7, 5.4, 7.0, 9.0, 0.15),
    "hpcc": (1.75, 2.1, 2.6, 1.2, 0.0),
    "pint": (1.65, 2.3, 2.9, 1.5, 0.005),
}
CLASSES = ("T_long", "T_short", "T_allreduce", "B_incast", "B_broadcast", "B_a2a")
SIZES = {"T_long": 10_000_000, "B_a2a": 5_520_000}
RATE_BPS = 100_000_000_000
END_PS = 6_000_000_000


@dataclass(frozen=True)
class Shape:
    """A made-up fabric: a three-level fat tree of hosts, ToR, aggregation and core switches."""

    hosts: int = 32
    tors: int = 4
    aggs: int = 4
    cores: int = 2

    def nodes(self) -> pa.Table:
        kinds = ["host"] * self.hosts + ["switch"] * (self.tors + self.aggs + self.cores)
        levels = [0] * self.hosts + [1] * self.tors + [2] * self.aggs + [3] * self.cores
        names = [f"{k[0]}{i}" for i, k in enumerate(kinds)]
        ids = list(range(len(kinds)))
        return pa.table(
            {"node": ids, "kind": kinds, "level": levels, "name": names}, schema=TABLES["nodes"]
        )

    def pairs(self) -> list[tuple[int, int]]:
        tor, agg, core = self.hosts, self.hosts + self.tors, self.hosts + self.tors + self.aggs
        pairs = [(h, tor + h * self.tors // self.hosts) for h in range(self.hosts)]
        pod = max(1, self.tors // 4)
        for t in range(self.tors):
            group = t // pod * pod
            pairs += [(tor + t, agg + a) for a in range(group, min(group + pod, self.aggs))]
        pairs += [(agg + a, core + c) for a in range(self.aggs) for c in range(self.cores)]
        return pairs

    def links(self) -> pa.Table:
        used: dict[int, int] = {}
        rows: dict[str, list[int]] = {name: [] for name in TABLES["links"].names}
        for link, (a, b) in enumerate(self.pairs()):
            used[a] = used.get(a, 0) + 1
            used[b] = used.get(b, 0) + 1
            values = (link, a, used[a], b, used[b], RATE_BPS, 1_000_000)
            for name, value in zip(rows, values, strict=True):
                rows[name].append(value)
        return pa.table(rows, schema=TABLES["links"])


def _rng(*key: object) -> np.random.Generator:
    digest = hashlib.sha256(repr(key).encode()).digest()
    return np.random.Generator(np.random.PCG64(int.from_bytes(digest[:8], "little")))


def make_run(
    shape: Shape, scheme: str, seed: int, *, isolated: bool, flows: int, tested: bool = True
) -> dict[str, pa.Table]:
    """The tables of one run."""
    character = CHARACTER.get(scheme, (1.8, 3.0, 4.0, 4.0, 0.02))
    traffic = _traffic(shape, seed, flows, tested=tested)
    if isolated:
        keep = np.char.startswith(traffic["class"], "T_")
        traffic = {k: v[keep] for k, v in traffic.items()}
    count = len(traffic["src"])
    rng = _rng("fct", scheme, seed, isolated)
    ideal = traffic["size_bytes"] * 8e12 / RATE_BPS + 6e6
    factor = np.ones(count)
    for name, base in zip(("long", "short", "allreduce"), character, strict=False):
        mask = np.char.endswith(traffic["class"], name)
        factor[mask] = 1.05 if isolated else base
    background = np.char.startswith(traffic["class"], "B_")
    factor[background] = character[1] * 1.5
    if not tested:
        factor[:] = character[1]
    fct = ideal * (1 + (factor - 1) * rng.gamma(2.0, 0.5, count) + 0.02)
    end = (traffic["start_ps"] + fct).max() if count else END_PS
    missing = np.zeros(count, dtype=bool)
    if scheme == "none" and not isolated and count > 50:
        missing[np.flatnonzero(background)[:2]] = True
    run: dict[str, Any] = {"scheme": [scheme] * count, "seed": [seed] * count}
    columns: dict[str, Any] = {
        k: traffic[k] for k in ("src", "dst", "sport", "size_bytes", "start_ps", "class")
    }
    columns["ideal_fct_ps"] = ideal.astype(np.uint64)
    columns["fct_ps"] = pa.array(fct.astype(np.uint64), mask=missing)
    tables = {
        "flows": pa.table(
            {**run, **columns},
            schema=TABLES["flows"],
        )
    }
    quiet = 0.02 if isolated else 1.0
    tables["throughput"] = _throughput(scheme, seed, traffic, fct)
    tables["flow_throughput"] = _watched(scheme, seed, traffic, fct)
    tables["queues"] = _queues(scheme, seed, character[3] * quiet, character[4] * quiet, end)
    tables["pauses"] = _pauses(shape, scheme, seed, character[4] * quiet)
    tables["ports"] = _ports(shape, scheme, seed, tables["pauses"], quiet, character)
    return tables


def _traffic(shape: Shape, seed: int, flows: int, *, tested: bool) -> dict[str, NDArray[Any]]:
    rng = _rng("traffic", seed)
    names = np.array(CLASSES if tested else ("flow",))
    share = np.array([0.02, 0.1, 0.1, 0.38, 0.38, 0.02]) if tested else np.array([1.0])
    label = names[rng.choice(len(names), flows, p=share)]
    label[: len(names)] = names  # each class at least once
    src = rng.integers(0, shape.hosts, flows)
    dst = (src + rng.integers(1, shape.hosts, flows)) % shape.hosts
    sizes = np.array([SIZES.get(str(name), 65536) for name in label])
    if not tested:
        sizes = (10 ** rng.uniform(3, 7, flows)).astype(np.int64)
    return {
        "src": src,
        "dst": dst,
        "sport": 10000 + np.arange(flows) % 50000,
        "size_bytes": sizes,
        "start_ps": np.sort(rng.integers(0, END_PS // 2, flows)),
        "class": label,
    }


def _throughput(
    scheme: str, seed: int, traffic: Mapping[str, NDArray[Any]], fct: NDArray[Any]
) -> pa.Table:
    step = 50_000_000
    times = np.arange(step, END_PS + 1, step)
    rows: dict[str, list[Any]] = {"time_ps": [], "class": [], "delivered_bytes": []}
    for name in sorted(set(traffic["class"].tolist())):
        mask = traffic["class"] == name
        start, stop = traffic["start_ps"][mask], (traffic["start_ps"] + fct)[mask]
        rate = traffic["size_bytes"][mask] / np.maximum(stop - start, 1)
        for time in times.tolist():
            inside = np.clip(np.minimum(stop, time) - np.maximum(start, time - step), 0, None)
            rows["time_ps"].append(time)
            rows["class"].append(name)
            rows["delivered_bytes"].append(int((inside * rate).sum()))
    count = len(rows["time_ps"])
    data: dict[str, Any] = {"scheme": [scheme] * count, "seed": [seed] * count, **rows}
    return pa.table(data, schema=TABLES["throughput"])


def _watched(
    scheme: str, seed: int, traffic: Mapping[str, NDArray[Any]], fct: NDArray[Any]
) -> pa.Table:
    step = 50_000_000
    rows: dict[str, list[int]] = {
        k: [] for k in ("time_ps", "src", "dst", "sport", "delivered_bytes")
    }
    rng = _rng("watched", scheme, seed)
    for index in np.flatnonzero(traffic["size_bytes"] >= 1_000_000)[:6].tolist():
        start, stop = int(traffic["start_ps"][index]), int(traffic["start_ps"][index] + fct[index])
        for time in range((start // step + 1) * step, min(stop, END_PS) + step, step):
            share = min(time, stop) - max(start, time - step)
            size = traffic["size_bytes"][index] * share / (stop - start) * rng.uniform(0.8, 1.2)
            rows["time_ps"].append(time)
            for key in ("src", "dst", "sport"):
                rows[key].append(int(traffic[key][index]))
            rows["delivered_bytes"].append(int(size))
    count = len(rows["time_ps"])
    data: dict[str, Any] = {"scheme": [scheme] * count, "seed": [seed] * count, **rows}
    return pa.table(data, schema=TABLES["flow_throughput"])


def _queues(scheme: str, seed: int, depth_mb: float, paused: float, end: float) -> pa.Table:
    times = np.arange(10_000_000, int(end), 10_000_000)
    rng = _rng("queues", scheme, seed)
    hump = np.exp(-(((times - END_PS / 3) / (END_PS / 5)) ** 2))
    level = depth_mb * 1e6 * hump * rng.uniform(0.7, 1.1, times.size)
    data: dict[str, Any] = {
        "scheme": [scheme] * times.size,
        "seed": [seed] * times.size,
        "time_ps": times,
        "buffered_bytes": (level * 4).astype(np.uint64),
        "max_port_bytes": level.astype(np.uint64),
        "paused_ports": (hump * paused * 60).astype(np.uint64),
    }
    return pa.table(data, schema=TABLES["queues"])


def _pauses(shape: Shape, scheme: str, seed: int, share: float) -> pa.Table:
    """A ToR pauses its aggregation switches, and those pause theirs, a little later."""
    rows: dict[str, list[int]] = {k: [] for k in ("node", "port", "start_ps", "end_ps")}
    rng = _rng("pauses", scheme, seed)
    if share >= 0.004:
        links = shape.links().to_pylist()
        tor = shape.hosts
        first = [li for li in links if li["node_a"] == tor and li["node_b"] > tor]
        uppers = {li["node_b"] for li in first}
        second = [li for li in links if li["node_a"] in uppers]
        hosts = [li for li in links if li["node_b"] == tor][:5]
        ends = [(li["node_b"], li["port_b"], 0) for li in first]
        ends += [(li["node_a"], li["port_a"], 0) for li in hosts]
        ends += [(li["node_b"], li["port_b"], 1) for li in second]
        for node, port, depth in ends:
            time = int(END_PS * 0.2) + depth * 3_000_000
            while time < END_PS * 0.5:
                length = int(rng.exponential(share * 1e8)) + 1_000_000
                for key, value in zip(rows, (node, port, time, time + length), strict=True):
                    rows[key].append(value)
                time += length + int(rng.exponential(8e7)) + 1
    count = len(rows["node"])
    data: dict[str, Any] = {"scheme": [scheme] * count, "seed": [seed] * count, **rows}
    return pa.table(data, schema=TABLES["pauses"])


def _ports(
    shape: Shape,
    scheme: str,
    seed: int,
    pauses: pa.Table,
    quiet: float,
    character: tuple[float, ...],
) -> pa.Table:
    rng = _rng("ports", scheme, seed)
    paused: dict[tuple[int, int], int] = {}
    for row in pauses.to_pylist():
        key = (row["node"], row["port"])
        paused[key] = paused.get(key, 0) + row["end_ps"] - row["start_ps"]
    rows: dict[str, list[Any]] = {name: [] for name in TABLES["ports"].names}
    for link in shape.links().to_pylist():
        for here, there in (("a", "b"), ("b", "a")):
            node, port = link[f"node_{here}"], link[f"port_{here}"]
            sent = int(rng.beta(2, 4) * RATE_BPS / 8 * END_PS / 1e12 * quiet)
            values = (
                scheme, seed, node, port, link[f"node_{there}"], RATE_BPS, sent, sent // 1048,
                int(sent / 1e5) if scheme not in ("none", "hpcc", "pint") else 0,
                int(rng.uniform(0.1, 1) * character[3] * 1e6 * quiet),
                paused.get((node, port), 0), 0,
            )  # fmt: skip
            for name, value in zip(rows, values, strict=True):
                rows[name].append(value)
    return pa.table(rows, schema=TABLES["ports"])


class Progress:
    """The stand-in's counters."""

    def __init__(self) -> None:
        self.simulated_ps = 0
        self.packet_hops = 0
        self.flows_done = 0
        self.flows_total = 100
        self.cancelled = threading.Event()

    def cancel(self) -> None:
        self.cancelled.set()


Counters = Progress


class SyntheticCore(ModuleType):
    """Takes the place of `raddle._core`. `on_run` is called at the start of each run."""

    Progress = Progress

    def __init__(self, shape: Shape | None = None, flows: int = 600) -> None:
        super().__init__("raddle._core")
        self.shape = shape or Shape()
        self.flows = flows
        self.simulated: list[str] = []
        self.on_run: Callable[[str, Counters], None] | None = None

    def __getattr__(self, name: str) -> Any:
        """What has no stand-in is the real one: classes of replays and routes, formats, units."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(REAL, name)

    def version(self) -> str:
        return "0.0.0"

    def settings(self) -> str:
        return (Path(__file__).parents[2] / "crates/base/text/environment.toml").read_text()

    def experiment_schema(self) -> str:
        return json.dumps({"$schema": "https://json-schema.org/draft/2020-12/schema"})

    def validate(self, text: str, path: str, set_up: object = None) -> str:
        try:
            raw = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            msg = f"{path}: {error}"
            raise ExperimentError(msg) from error
        for key in raw:
            if key not in ("schema", "name", "fabric", "traffic", "simulation", "schemes"):
                msg = f"{path}: unknown key `{key}`\n  hint: did you mean `traffic`?"
                raise ExperimentError(msg)
        simulation = raw.get("simulation", {})
        schemes = simulation.get("schemes", list(CHARACTER))
        seeds = simulation.get("seeds", [1])
        tested = raw.get("traffic", {}).get("generator", "hpc-mix") == "hpc-mix"
        runs = [
            {
                "name": f"{scheme}-seed{seed}-{variant}",
                "scheme": scheme,
                "seed": seed,
                "variant": variant,
                "stamp": hashlib.sha256(
                    repr((scheme, seed, variant, raw.get("fabric"))).encode()
                ).hexdigest()[:16],
                "estimate": {
                    "packet_hops": 33_100_000, "seconds": 6.6, "memory_bytes": 48 << 20,
                },
            }
            for scheme in schemes
            for seed in seeds
            for variant in (["loaded", "isolated"] if tested else ["loaded"])
        ]  # fmt: skip
        shape = self.shape
        parameters = {
            scheme: [
                {"key": "min_rate", "value": "1 Gb/s", "source": "HPCC simulator, run.py",
                 "warning": None},
                {"key": "additive_increase", "value": "50 Mb/s", "source": "the experiment",
                 "warning": "outside the range that its paper used (10 to 40 Mb/s)"
                 if scheme == "hpcc" else None},
            ]
            for scheme in schemes
        }  # fmt: skip
        return json.dumps(
            {
                "schema": 1,
                "name": raw.get("name", Path(path).stem),
                "experiment": text,
                "compat": simulation.get("compat"),
                "tested": tested,
                "fabric": {
                    "name": "synthetic",
                    "hosts": shape.hosts,
                    "switches": shape.tors + shape.aggs + shape.cores,
                    "links": len(shape.pairs()),
                    "memory_bytes": 0,
                },
                "traffic": {
                    "flows": self.flows,
                    "bytes": self.flows * 300_000,
                    "classes": list(CLASSES),
                },
                "runs": runs,
                "parameters": parameters,
                "settings": [
                    {"key": "simulation.buffer", "value": "32 MiB", "source": "the default"}
                ],
                "warnings": [],
            }
        )

    def run(
        self, plan_json: str, index: int, out_dir: str, threads: int, progress: Counters
    ) -> str:
        plan = json.loads(plan_json)
        run = plan["runs"][index]
        if self.on_run is not None:
            self.on_run(run["name"], progress)
        if progress.cancelled.is_set():
            msg = "cancelled"
            raise RunCancelled(msg)
        tables = make_run(
            self.shape,
            run["scheme"],
            run["seed"],
            isolated=run["variant"] == "isolated",
            flows=self.flows,
            tested=plan["tested"],
        )
        flows = tables["flows"]
        stats = {
            "name": run["name"], "stamp": run["stamp"], "packet_hops": 33_100_000,
            "simulated_ps": END_PS, "flows": flows.num_rows,
            "finished": flows.num_rows - flows["fct_ps"].null_count,
        }  # fmt: skip
        final = Path(out_dir, ".runs", run["name"])
        part = final.with_name(f".{run['name']}.part")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        for name, table in tables.items():
            pq.write_table(table, part / f"{name}.parquet")
        (part / "stats.json").write_text(json.dumps(stats))
        shutil.rmtree(final, ignore_errors=True)
        part.rename(final)
        self.simulated.append(run["name"])
        return json.dumps(stats)

    def measure(self, plan_json: str, seconds: float) -> str:
        """Say of a machine that is twice as slow as the plan has it."""
        estimates = [run["estimate"] for run in json.loads(plan_json)["runs"]]
        return json.dumps([{**e, "seconds": 2 * e["seconds"]} for e in estimates])

    def merge(self, plan_json: str, out_dir: str) -> None:
        out = Path(out_dir)
        for variant, folder in (("loaded", out), ("isolated", out / "isolated")):
            names = [r["name"] for r in json.loads(plan_json)["runs"] if r["variant"] == variant]
            parts = [p for n in names if (p := out / ".runs" / n).is_dir()]
            if not parts:
                continue
            folder.mkdir(exist_ok=True)
            for table in TABLES:
                if table not in ("nodes", "links"):
                    joined = pa.concat_tables(
                        [pq.read_table(p / f"{table}.parquet") for p in parts]
                    )
                    pq.write_table(joined, folder / f"{table}.parquet")
            pq.write_table(self.shape.nodes(), folder / "nodes.parquet")
            pq.write_table(self.shape.links(), folder / "links.parquet")

    def fabric_build(self, spec_text: str, path: str, format: str) -> str:
        return f"# {format}\n{spec_text}"

    def fabric_check(self, text: str, path: str, format: str, graph: bool) -> str:
        if "broken" in path:
            msg = f"{path}:3: node 7 is not connected\n  hint: add a link to node 7"
            raise ExperimentError(msg)
        raw: dict[str, Any] = {
            "name": Path(path).stem, "hosts": self.shape.hosts,
            "switches": self.shape.tors + self.shape.aggs + self.shape.cores,
            "links": len(self.shape.pairs()),
            "levels": [{"level": 0, "nodes": self.shape.hosts, "ports": self.shape.hosts},
                       {"level": 1, "nodes": self.shape.tors, "ports": 36}],
            "link_kinds": [{"rate": "100 Gb/s", "delay": "1 us", "links": len(self.shape.pairs())}],
        }  # fmt: skip
        if graph:
            nodes, links = self.shape.nodes(), self.shape.links()
            raw["graph"] = {
                "nodes": {**nodes.to_pydict(), "x": [0.0] * nodes.num_rows},
                "links": links.select(["node_a", "node_b", "rate_bps", "delay_ps"]).to_pydict(),
            }
        return json.dumps(raw)

    def traffic_write(
        self,
        path: str,
        format: str,
        seed: int,
        isolated: bool,
        out: str,
        out_format: str,
    ) -> int:
        traffic = _traffic(self.shape, seed, self.flows, tested=True)
        keep = np.char.startswith(traffic["class"], "T_") | (not isolated)
        names = ("start_ps", "src", "dst", "size_bytes", "class")
        columns: dict[str, Any] = {k: traffic[k][keep] for k in names}
        pq.write_table(pa.table(columns), out)
        return int(keep.sum())

    def traffic_describe(self, path: str, format: str, seed: int) -> str:
        return json.dumps(
            {
                "flows": 600, "bytes": 123456789, "first_start_ps": 0,
                "last_start_ps": 3_000_000_000, "large_share_of_flows": 0.02,
                "large_share_of_bytes": 0.97, "load": 0.4, "complete": True, "closed_loop": False,
                "classes": [{"class": "T_long", "tested": True, "flows": 12, "bytes": 120_000_000,
                             "share_of_flows": 0.02, "share_of_bytes": 0.97,
                             "min_size_bytes": 10_000_000, "mean_size_bytes": 1e7,
                             "max_size_bytes": 10_000_000, "first_start_ps": 0,
                             "last_start_ps": 3_000_000_000}],
            }
        )  # fmt: skip


PAPER = Shape(hosts=320, tors=20, aggs=20, cores=16)
"""As large as the paper's fabric: 376 nodes."""


def write_results(
    out: Path,
    *,
    schemes: tuple[str, ...] = tuple(CHARACTER),
    seeds: tuple[int, ...] = (1,),
    shape: Shape | None = None,
    flows: int = 600,
    tested: bool = True,
) -> None:
    """A whole results folder, without the report."""
    import tomli_w

    from raddle.plan import Plan
    from raddle.results.planned import Planned
    from raddle.services.join import join
    from raddle.services.run import states_of

    core = SyntheticCore(shape, flows)
    text = tomli_w.dumps(
        {
            "schema": 1,
            "name": "synthetic",
            "traffic": {"generator": "hpc-mix" if tested else "poisson"},
            "simulation": {"schemes": list(schemes), "seeds": list(seeds)},
        }
    )
    plan = Plan.from_json(core.validate(text, "synthetic.toml"))
    for run in plan.runs:
        core.run(plan.text, run.index, str(out), 1, core.Progress())
    with installed(core):
        join(plan, out, states_of(Planned(plan, out), out))


class installed:
    """`raddle._core` is `core` while the block runs, for every module of the package."""

    def __init__(self, core: SyntheticCore) -> None:
        self.core = core

    def __enter__(self) -> SyntheticCore:
        self.before = importlib.import_module("raddle._core")
        _exchange(self.before, self.core)
        return self.core

    def __exit__(self, *_: object) -> None:
        _exchange(self.core, self.before)


def _exchange(old: ModuleType, new: ModuleType) -> None:
    """Put `new` wherever a module of the package has `old`."""
    sys.modules["raddle._core"] = new
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == "raddle" and vars(module).get("_core") is old:
            vars(module)["_core"] = new
