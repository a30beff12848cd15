"""How two experiments differ: keys of their resolved files, schemes, seeds, versions."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from raddle.text import join_words

if TYPE_CHECKING:
    from raddle.results.folder import Results

__all__ = [
    "Difference",
    "experiment_differences",
    "folder_differences",
    "list_differences",
    "read_experiment",
]

Json = Mapping[str, Any]
LONGEST = 40
MOST_KEYS = 8
ABSENT = "absent"
LISTS = ("schemes", "seeds")


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that differs; None on the side that lacks it."""

    what: str
    a: Any
    b: Any

    def words(self, here: str, there: str) -> str:
        """Both sides of it."""
        if isinstance(self.a, list) and isinstance(self.b, list):
            return _lists(self.a, self.b, here, there)
        return f"{_short(self.a)} {here}, {_short(self.b)} {there}"

    def as_json(self) -> Json:
        """It as JSON."""
        return {"what": self.what, "a": self.a, "b": self.b}


def list_differences(found: Sequence[Difference], here: str, there: str) -> str:
    """A line for each of the first ones, and how many more there are."""
    width = max((len(one.what) for one in found[:MOST_KEYS]), default=0)
    lines = [f"  {one.what.ljust(width)}  {one.words(here, there)}" for one in found[:MOST_KEYS]]
    if len(found) > MOST_KEYS:
        lines.append(f"  and {len(found) - MOST_KEYS:,} more")
    return "\n".join(lines)


def read_experiment(folder: Path) -> Json | None:
    """The resolved experiment of a results folder; None if it cannot be read."""
    try:
        return tomllib.loads((folder / "experiment.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def experiment_differences(a: Json, b: Json) -> list[Difference]:
    """Keys whose values differ; schemes, seeds and names apart."""
    first, second = _decisive(a, b), _decisive(b, a)
    keys = dict.fromkeys([*first, *second])
    return [
        Difference(key, first.get(key), second.get(key))
        for key in keys
        if first.get(key) != second.get(key)
    ]


def folder_differences(a: "Results", b: "Results") -> list[Difference]:
    """All that differs between the experiments of two results folders."""
    left, right = _about(a), _about(b)
    found = [
        Difference(key, left[key], right[key])
        for key in left
        if (sorted(left[key]) != sorted(right[key]) if key in LISTS else left[key] != right[key])
    ]
    texts = [read_experiment(one.path) for one in (a, b)]
    if None not in texts:
        keys = experiment_differences(texts[0] or {}, texts[1] or {})
        # Equal stamps: runs do not differ, whatever the files are called.
        return found + [k for k in keys if not _same_stamps(a, b) or k.what.startswith("score.")]
    if texts != [None, None]:
        known = ["known" if text is not None else None for text in texts]
        found.append(Difference("experiment.toml", *known))
    return found + experiment_differences(_described(a.manifest), _described(b.manifest))


def _about(results: "Results") -> dict[str, Any]:
    manifest = results.manifest
    versions = manifest.get("versions") or {}
    return {
        "results schema": manifest.get("schema"),
        "raddle": versions.get("raddle"),
        "compiled core": versions.get("core"),
        "all runs done": manifest.get("complete"),
        "schemes": list(results.schemes),
        "seeds": list(results.seeds),
    }


def _same_stamps(a: "Results", b: "Results") -> bool:
    first, second = (
        {run["name"]: run["stamp"] for run in one.manifest.get("runs", [])} for one in (a, b)
    )
    shared = set(first) & set(second)
    return bool(shared) and all(first[name] == second[name] for name in shared)


def _decisive(raw: Json, other: Json) -> dict[str, Any]:
    """Keys that decide the outcome of runs that both may have."""
    shared = set(raw.get("schemes") or {}) & set(other.get("schemes") or {})
    flat: dict[str, Any] = {}
    for table, value in raw.items():
        if table in ("name", "schema"):
            continue
        if table == "schemes" and isinstance(value, Mapping):
            own = {scheme: value[scheme] for scheme in value if scheme in shared}
            flat |= dict(_flat(own, "schemes."))
        elif isinstance(value, Mapping):
            flat |= dict(_flat(value, f"{table}."))
        else:
            flat[table] = value
    for key in ("simulation.schemes", "simulation.seeds"):
        flat.pop(key, None)
    return flat


def _described(manifest: Json) -> Json:
    """What a manifest says of its experiment, as tables."""
    return {
        "fabric": manifest.get("fabric") or {},
        "traffic": manifest.get("traffic") or {},
        "simulation": {p["key"]: p["value"] for p in manifest.get("settings") or []},
        "score": manifest.get("score") or {},
        "schemes": {
            scheme: {p["key"]: p["value"] for p in rows}
            for scheme, rows in (manifest.get("parameters") or {}).items()
        },
    }


def _flat(table: Json, prefix: str) -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _lists(a: list[Any], b: list[Any], here: str, there: str) -> str:
    left = [str(v) for v in a if v not in b]
    right = [str(v) for v in b if v not in a]
    shown = [f"{_few(own)} only {where}" for own, where in ((left, here), (right, there)) if own]
    return "; ".join(shown) if shown else f"in another order {there}"


def _few(values: Sequence[str]) -> str:
    short = [_short(value) for value in values[:5]]
    if len(values) > 5:
        short.append(f"{len(values) - 5:,} more")
    return join_words(short)


def _short(value: Any) -> str:  # noqa: ANN401 - any TOML value
    if value is None:
        return ABSENT
    text = f'"{value}"' if isinstance(value, str) and not value else str(value)
    if isinstance(value, bool):
        text = text.lower()
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
