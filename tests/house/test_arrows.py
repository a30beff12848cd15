"""The arrow check fails when it should, and says which arrow and which rule."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from scripts import check_arrows

ROOT = Path(__file__).resolve().parents[2]


def workspace(*crates: tuple[str, list[tuple[str, str | None]]]) -> dict[str, Any]:
    """Metadata of a workspace; every crate, FLOOR/NAME, with its (dependency, kind) pairs."""

    def package(crate: str) -> str:
        return "raddle-" + crate.rpartition("/")[2] if "/" in crate else crate

    return {
        "workspace_members": [crate for crate, _ in crates],
        "packages": [
            {
                "id": crate,
                "name": package(crate),
                "manifest_path": f"/house/crates/{crate}/Cargo.toml",
                "dependencies": [{"name": package(used), "kind": kind} for used, kind in uses],
            }
            for crate, uses in crates
        ],
    }


def test_this_workspace_keeps_the_rules() -> None:
    script = ROOT / "scripts" / "check_arrows.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("user", "used", "rule"),
    [
        ("core/fabric", "sim/engine", "the floors are"),
        ("base/units", "core/fabric", "the floors are"),
        ("core/offload", "real/host", "the floors are"),
        ("sim/engine", "real/switch", "sim and real do not know each other"),
        ("real/mpi", "sim/tables", "sim and real do not know each other"),
        ("core/fabric", "base/disk", "only sim and real open files"),
        ("base/text", "base/disk", "only sim and real open files"),
    ],
)
@pytest.mark.parametrize("kind", [None, "dev", "build"])
def test_a_bad_arrow_is_named_with_its_rule(
    tmp_path: Path, user: str, used: str, rule: str, kind: str | None
) -> None:
    metadata = tmp_path / "metadata.json"
    bad = workspace((user, [("serde", None), (used, kind)]), (used, []))
    metadata.write_text(json.dumps(bad))
    script = ROOT / "scripts" / "check_arrows.py"
    done = subprocess.run(
        [sys.executable, script, "--metadata", metadata],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    arrow = " -> ".join(f"raddle-{crate.rpartition('/')[2]}" for crate in (user, used))
    assert f"forbidden arrow {arrow}" in done.stderr
    assert rule in done.stderr


def test_arrows_down_are_fine() -> None:
    good = workspace(
        ("base/units", [("serde", None)]),
        ("base/disk", [("base/units", None)]),
        ("core/fabric", [("base/units", None), ("rand", "dev")]),
        ("core/offload", [("core/fabric", None)]),
        ("sim/engine", [("core/fabric", None), ("base/disk", None), ("rayon", None)]),
        ("sim/python", [("sim/engine", None)]),
        ("real/host", [("core/offload", None), ("base/disk", None), ("socket2", None)]),
    )
    assert list(check_arrows.arrow_errors(good)) == []


def test_a_crate_on_no_floor_is_refused() -> None:
    (error,) = check_arrows.arrow_errors(workspace(("attic/helpers", [])))
    assert "`raddle-helpers` stands on no floor" in error


def test_a_core_that_brings_threads_or_entropy_is_refused() -> None:
    (error,) = check_arrows.arrow_errors(workspace(("core/unicast", [("rayon", None)])))
    assert "forbidden arrow raddle-unicast -> rayon" in error


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("use std::time::Instant;", "std::time::Instant"),
        ("use std::{\n    fmt,\n    time::{Duration, SystemTime},\n};", "std::time::SystemTime"),
        ('fn f() { let _ = std::fs::read("x"); }', "std::fs::read"),
        ("use std::{collections::BTreeMap, env};", "std::env"),
        ("use std::net::{IpAddr, UdpSocket};", "std::net::IpAddr"),
        ("use std::thread;", "std::thread"),
        ("use std::time;", "std::time"),
    ],
)
def test_a_core_with_a_clock_a_file_or_a_thread_is_refused(
    tmp_path: Path, source: str, found: str
) -> None:
    folder = tmp_path / "crates" / "core" / "unicast" / "src"
    folder.mkdir(parents=True)
    (folder / "lib.rs").write_text(f"//! Routes.\n\n{source}\n")
    errors = list(check_arrows.core_errors(tmp_path / "crates"))
    assert errors
    assert errors[0].startswith("crates/core/unicast/src/lib.rs:")
    assert found in errors[0]


@pytest.mark.parametrize(
    "source",
    [
        "use std::time::Duration;",
        "// std::time::Instant is not for us",
        'const NAME: &str = "std::fs";',
        "use std::{fmt, io::Read, path::Path};",
        "#[cfg(test)]\nmod tests {\n    use std::fs;\n    fn f() {}\n}",
    ],
)
def test_what_a_core_may_use_passes(tmp_path: Path, source: str) -> None:
    folder = tmp_path / "crates" / "core" / "unicast" / "src"
    folder.mkdir(parents=True)
    (folder / "lib.rs").write_text(source)
    assert list(check_arrows.core_errors(tmp_path / "crates")) == []


def test_drivers_may_open_files(tmp_path: Path) -> None:
    folder = tmp_path / "crates" / "sim" / "engine" / "src"
    folder.mkdir(parents=True)
    (folder / "lib.rs").write_text("use std::fs;\n")
    assert list(check_arrows.core_errors(tmp_path / "crates")) == []


def crate(folder: Path, **files: str) -> Path:
    """A crate whose modules have these texts; the folder of all crates."""
    src = folder / "crates" / "core" / "unicast" / "src"
    src.mkdir(parents=True)
    for name, text in files.items():
        (src / f"{name}.rs").write_text(text)
    return folder / "crates"


def test_modules_that_know_each_other_are_named(tmp_path: Path) -> None:
    crates = crate(
        tmp_path,
        lib="mod a;\nmod b;\nmod c;\npub use b::Thing;\n",
        a="use crate::{c::f, Thing};\n",
        b="fn g() {\n    super::c::f();\n}\n",
        c="use crate::a;\n",
    )
    (error,) = check_arrows.module_errors(crates)
    assert "core/unicast: the modules a, b, c know each other in a circle" in error


def test_modules_that_know_what_is_below_are_fine(tmp_path: Path) -> None:
    crates = crate(
        tmp_path,
        lib="mod a;\nmod b;\n",
        a="use crate::b::f;\n#[cfg(test)]\nmod tests {\n    use super::*;\n}\n",
        b="// use crate::a\npub(crate) fn f() {}\n",
    )
    assert list(check_arrows.module_errors(crates)) == []


def shim(folder: Path, files: dict[str, str]) -> list[str]:
    for name, text in files.items():
        file = folder / "real" / "mpi" / "shim" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return list(check_arrows.shim_errors(folder))


def function(name: str, value: str) -> str:
    return f"{name}(void)\n{{\n    return {value};\n}}\n"


LOW = '#include "low/low.h"\nint low_state;\n'
HEADER = "int low(void);\nextern int low_state;\n"


def test_parts_of_a_shim_that_call_each_other_are_a_circle(tmp_path: Path) -> None:
    files = {
        "low/low.h": HEADER,
        "low/low.c": LOW + function("int low", "high()"),
        "high/high.c": '#include "low/low.h"\n' + function("int high", "low()"),
    }
    (error,) = shim(tmp_path, files)
    assert "the parts high, low know each other in a circle" in error


def test_variables_of_a_shim_count_and_comments_and_tags_do_not(tmp_path: Path) -> None:
    files = {
        "low/low.h": HEADER,
        "low/low.c": LOW + "/* high() */ struct high;\n" + function("static int own", "0"),
        "high/high.c": function("int high", "low_state"),
    }
    assert shim(tmp_path, files) == []
    parts = check_arrows.shim_parts(tmp_path / "real" / "mpi" / "shim")
    assert parts == {"low": set(), "high": {"low"}}


def test_a_shim_without_folders_is_one_part(tmp_path: Path) -> None:
    assert shim(tmp_path, {"a.c": function("int a", "b()"), "b.c": function("int b", "a()")}) == []


def test_parts_of_the_mpi_shim_know_what_is_below() -> None:
    parts = check_arrows.shim_parts(check_arrows.ROOT / "crates" / "real" / "mpi" / "shim")
    assert parts["library"] == {"border"}
    assert "messages" not in parts["channel"] | parts["rails"] | parts["collectives"]
    assert "record" in parts["attach"]
