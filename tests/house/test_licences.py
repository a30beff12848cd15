"""Every crate has a licence that deny.toml allows. `make audit` checks more, with cargo-deny."""

import json
import subprocess
import tomllib
from pathlib import Path

import pytest
from boolean import Expression
from license_expression import AND, OR, get_spdx_licensing

ROOT = Path(__file__).resolve().parents[2]
ALLOWED = frozenset(
    tomllib.loads((ROOT / "deny.toml").read_text(encoding="utf-8"))["licenses"]["allow"]
)
SPDX = get_spdx_licensing()


def allowed(licence: str) -> bool:
    """Whether an SPDX expression can be met by allowed licences; old crates write `/` for OR."""
    return met(SPDX.parse(licence.replace("/", " OR "), validate=True))


def met(expression: Expression) -> bool:
    """Whether a parsed expression can be met."""
    if isinstance(expression, OR):
        return any(map(met, expression.args))
    if isinstance(expression, AND):
        return all(map(met, expression.args))
    return str(expression) in ALLOWED


def test_every_crate_has_an_allowed_licence() -> None:
    words = ["cargo", "metadata", "--locked", "--format-version", "1"]
    words += ["--filter-platform", "x86_64-unknown-linux-gnu"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    document = json.loads(done.stdout)
    linked = {node["id"] for node in document["resolve"]["nodes"]}
    crates = [crate for crate in document["packages"] if crate["id"] in linked]
    assert len(crates) > 100
    refused = {
        f"{crate['name']} {crate['version']}": crate["license"]
        for crate in crates
        if not crate["license"] or not allowed(crate["license"])
    }
    assert refused == {}


@pytest.mark.parametrize(
    ("licence", "kept"),
    [
        ("MIT", True),
        ("MIT/GPL-3.0-only", True),
        ("GPL-3.0-only", False),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", True),
        ("MIT AND GPL-2.0-only", False),
        ("Apache-2.0 WITH LLVM-exception OR GPL-2.0-only", True),
    ],
)
def test_expressions_are_read(licence: str, kept: bool) -> None:
    assert allowed(licence) is kept
