"""The licences of what is linked or copied into a package, in one text."""

from collections.abc import Iterable

from scripts.dist.crates import Part

__all__ = ["notices"]

RULE = "-" * 80


def notices(parts: Iterable[Part]) -> str:
    """List all parts, then every text of a licence once, below the names of those that it is of."""
    parts = sorted(parts)
    lines = [
        "Raddle is under the Apache License 2.0. Its programs and libraries hold works of others;",
        "their licences and notices follow. The Rust standard library is one: MIT OR Apache-2.0.",
        "",
        *(f"{part.name} {part.version}: {part.licence}" for part in parts),
    ]
    owners: dict[str, list[str]] = {}
    for part in parts:
        for text in part.texts:
            owners.setdefault(text, []).append(f"{part.name} {part.version}")
    for text, names in owners.items():
        lines += ["", RULE, ", ".join(dict.fromkeys(names)), RULE, "", text]
    return "\n".join(lines) + "\n"
