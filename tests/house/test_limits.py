"""No key of the published schemas takes an impossible value: it is named, with its place."""

import itertools
import json
import multiprocessing
import os
import re
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import pytest
import tomli_w

from raddle import _core

Json = dict[str, Any]
Path = tuple[str | int, ...]

HUGE = 2**62
NUMBERS = {"negative": -1, "huge": HUGE, "nan": float("nan"), "inf": float("inf"), "1e300": 1e300,
           "text": "abc", "list": [], "table": {}, "empty": "", "yes": True}  # fmt: skip
QUANTITIES = {
    "Span": {"negative": "-1us", "huge": "200000s", "unit": "5GB"},
    "Bytes": {"negative": "-1B", "unit": "5us"},
    "BitRate": {"negative": "-1bps", "unit": "5us"},
}
UNITS = {"Span": "ps", "Bytes": "B", "BitRate": "bps"}
ROUND_TRIPS = {"t_low", "t_high", "min_rtt", "base_rtt", "base_target", "flow_scaling_range"}
"""Delays of schemes: their defaults are multiples of a round trip, days where links are slow."""
EVERY_QUANTITY = {"no unit": 5, "empty": "", "nan": "nan", "over": "9" * 30 + "s", "list": [],
                  "table": {}, "yes": True}  # fmt: skip
OTHERS = {
    "boolean": {"number": 0, "text": "yes", "list": [], "table": {}},
    "string": {"number": 5, "list": [], "table": {}, "yes": True},
    "array": {"number": 5, "text": "abc", "table": {}},
    "object": {"number": 5, "text": "abc", "list": [], "unknown": {"zzz": 1}},
}
PROGRAMMERS = re.compile(
    r"\b[uif](8|16|32|64)\b|struct |enum |variant|Option|invalid (type|value)|serde|sequence|panick"
)
"""Words that a user cannot know."""

FABRICS: dict[str, Json] = {
    "dumbbell": {"hosts_per_side": 2},
    "small-20": {},
    "leaf-spine": {"leaves": 2, "spines": 2, "hosts_per_leaf": 2},
    "rail-optimised": {"servers": 2, "gpus_per_server": 2, "servers_per_group": 1, "spines": 1},
    "fat-tree": {"pods": 2, "tors_per_pod": 2, "hosts_per_tor": 2, "aggregations_per_pod": 2,
                 "cores_per_aggregation": 1},
    "fat-tree-320": {},
    "k-ary-fat-tree": {"k": 4},
    "xgft": {"children": [2, 2], "parents": [1, 2]},
    "cn-tn": {"m": 2, "q": 2, "p": 1, "k": 1, "w": 1},
    "graph": {"host": [{"count": 2}], "switch": [{}],
              "link": [{"a": 0, "b": 2}, {"a": 1, "b": 2}]},
}  # fmt: skip
TRAFFIC: dict[str, Json] = {
    "hpc-mix": {"long_flows": 2},
    "gpcnet": {},
    "poisson": {"load": 0.3, "flows": 20},
    "permutation": {},
    "incast": {"sources": 1},
    "all-to-all": {},
    "multicast": {"dims": [2, 2]},
    "flows": {"flow": [{"src": 0, "dst": 1, "size": "10kB"}]},
}
EXPERIMENT: Json = {
    "schema": 1,
    "fabric": {"kind": "dumbbell", "hosts_per_side": 2},
    "traffic": {"generator": "incast", "sources": 1},
    "simulation": {"schemes": ["none"]},
}
ROUTES: Json = {
    "schema": 1,
    "fabric": {"kind": "cn-tn", "m": 2, "q": 2, "p": 1, "k": 1, "w": 1},
    "groups": {"pattern": "grid", "dims": [2, 2]},
}


class Schema:
    """A published schema, of which every key is met once."""

    def __init__(self, text: str) -> None:
        self.root: Json = json.loads(text)

    def meant(self, schema: Json) -> Json:
        """What a value must be, without references and without "or nothing"."""
        while True:
            if "$ref" in schema:
                target = self.root["$defs"][schema["$ref"].rpartition("/")[2]]
                schema = {**target, **{k: v for k, v in schema.items() if k != "$ref"}}
            elif any(one.get("type") == "null" for one in schema.get("anyOf", ())):
                one = next(one for one in schema["anyOf"] if one.get("type") != "null")
                schema = {**one, **{k: v for k, v in schema.items() if k != "anyOf"}}
            else:
                return schema

    def variant(self, of: str, tag: str, name: str) -> Json:
        """The alternative whose tag has a name."""
        every = map(self.meant, self.root["$defs"][of]["oneOf"])
        return next(one for one in every if one["properties"][tag].get("const") == name)

    def keys(self, schema: Json, path: Path = ()) -> Iterator[tuple[Path, Json]]:
        """Path and schema of every key, also in tables and in lists of tables."""
        for key, own in self.meant(schema).get("properties", {}).items():
            if key in ("kind", "generator"):
                continue
            meant = self.meant(own)
            yield (*path, key), meant
            if "properties" in meant:
                yield from self.keys(own, (*path, key))
            elif "items" in meant and "properties" in self.meant(meant["items"]):
                yield from self.keys(meant["items"], (*path, key, 0))


def impossible(schema: Json) -> Json:
    """Values that the schema of a key excludes, by what is wrong with them."""
    if "x-quantity" in schema:
        unit = UNITS[schema["x-quantity"]]
        limits = {"x-minimum": f"0{unit}", "x-maximum": f"{HUGE}{unit}"}
        beyond = {limit: value for limit, value in limits.items() if limit in schema}
        return {**EVERY_QUANTITY, **QUANTITIES[schema["x-quantity"]], **beyond}
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if "integer" in kinds and "string" in kinds:
        return {"list": [], "table": {}, "yes": True}
    if "integer" in kinds or "number" in kinds:
        bad: Json = dict(NUMBERS)
        for limit, step in (
            ("minimum", -1), ("maximum", 1), ("exclusiveMinimum", 0), ("exclusiveMaximum", 0)
        ):  # fmt: skip
            if limit in schema:
                bad[limit] = schema[limit] + step
        if "integer" in kinds:
            bad["half"] = 0.5
        unlimited = "maximum" not in schema and schema.get("format") != "uint32"
        if unlimited and "exclusiveMaximum" not in schema:
            for large in {"huge", "1e300"} - ({"1e300"} if "integer" in kinds else set()):
                del bad[large]
        return bad
    for kind, values in OTHERS.items():
        if kind in kinds:
            empty: Json = {"empty": []} if schema.get("minItems") else {}
            return {**values, **empty}
    return {"number": 5, "list": []} if schema.get("oneOf") else {}


def put(document: Json, path: Path, value: object) -> Json:
    """The document with one value replaced."""
    made = deepcopy(document)
    at: Any = made
    for step, following in itertools.pairwise(path):
        if isinstance(at, dict) and not isinstance(at.get(str(step)), dict | list):
            at[str(step)] = [{}] if isinstance(following, int) else {}
        at = at[step]
    at[path[-1]] = value
    return made


def documents(of: str) -> Iterator[tuple[Json, Path, Json]]:
    """A good document, the path to one of its keys, and the key's schema."""
    if of == "route":
        schema = Schema(_core.route_schema())
        yield from (
            (ROUTES, path, own)
            for path, own in schema.keys(schema.root)
            if path[0] != "fabric" or len(path) == 1
        )
        return
    schema = Schema(_core.experiment_schema())
    for path, own in schema.keys(schema.root):
        base = EXPERIMENT
        if path[0] == "rails":
            base = {**base, "rails": {"rates": ["100Gbps"]}, "simulation": {}}
        if path[:2] == ("simulation", "faults") and len(path) > 2:
            base = put(base, ("simulation", "faults"), [{"link": [0, 4], "down": "10us"}])
        if path[:2] == ("score", "weights") and len(path) > 2:
            weights = {"long": 0.5, "short": 0.25, "allreduce": 0.25}
            base = {**base, "score": {"weights": weights}}
        yield base, path, own
    for name, fabric in FABRICS.items():
        base = {**EXPERIMENT, "fabric": {"kind": name, **fabric}}
        for path, own in schema.keys(schema.variant("FabricSpec", "kind", name)):
            yield base, ("fabric", *path), own
    for name, traffic in TRAFFIC.items():
        kind = "cn-tn" if name == "multicast" else "leaf-spine"
        fabric = {"kind": kind, **FABRICS[kind], **({} if name == "multicast" else {"leaves": 8})}
        base = {**EXPERIMENT, "fabric": fabric, "traffic": {"generator": name, **traffic}}
        for path, own in schema.keys(schema.variant("TrafficSpec", "generator", name)):
            yield base, ("traffic", *path), own


def judge(of: str) -> list[str]:
    """What is not refused as it should be, in a process of its own: a panic or a hang is seen."""
    said = _core.validate if of == "experiment" else _core.route_check
    bad: list[str] = []
    tried = 0
    good: list[Json] = []
    for base, path, own in documents(of):
        if base not in good:
            said(tomli_w.dumps(base), "file.toml")
            good.append(base)
        for what, value in impossible(own).items():
            if what == "huge" and path[-1] in ROUND_TRIPS:
                continue
            label = f"{'.'.join(map(str, path))} {what}: "
            tried += 1
            try:
                said(tomli_w.dumps(put(base, path, value)), "file.toml")
            except BaseException as error:
                message = str(error)
                key = next(step for step in reversed(path) if isinstance(step, str))
                lines = message.splitlines()
                if type(error).__name__ != "ExperimentError" or len(lines) > 24:
                    bad.append(label + message)
                elif not re.match(r"file\.toml:\d+:\d+: ", message):
                    bad.append(f"{label}no place: {message}")
                elif f"`{key}`" not in message and "zzz" not in message and len(lines) < 3:
                    bad.append(f"{label}not named: {message}")
                elif PROGRAMMERS.search(re.sub(r"\n.*\|.*", "", message)):
                    bad.append(f"{label}words: {message}")
            else:
                bad.append(f"{label}accepted")
    assert tried > (2000 if of == "experiment" else 100), tried
    return bad


def _judged(of: str, queue: "multiprocessing.Queue[list[str]]") -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # panics that are caught write there
    queue.put(judge(of))


@pytest.mark.parametrize("of", ["experiment", "route"])
def test_no_key_takes_an_impossible_value(of: str) -> None:
    context = multiprocessing.get_context("spawn")
    queue: multiprocessing.Queue[list[str]] = context.Queue()
    process = context.Process(target=_judged, args=(of, queue))
    process.start()
    try:
        bad = queue.get(timeout=300)
    finally:
        process.kill()
    assert bad == [], "\n".join(bad[:40])
