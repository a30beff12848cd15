"""Recipes for Spack, EasyBuild, conda and containers, with version and checksum filled in."""

import hashlib
import shutil
import tomllib
from pathlib import Path

from scripts.dist.common import ROOT, version

__all__ = ["FOLDERS", "write"]

PACKAGING = ROOT / "packaging"
FOLDERS = ("apptainer", "conda", "container", "easybuild", "spack")


def write(source: Path, out: Path) -> None:
    """Fill the recipes in.

    Parameters
    ----------
    source
        The source distribution that they build.
    out
        The folder for them.
    """
    values = {"@VERSION@": version(), "@SHA256@": hashlib.sha256(source.read_bytes()).hexdigest()}
    locked = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    crates = [crate for crate in locked if "source" in crate]
    values["@CRATES@"] = "\n".join(f"    ('{one['name']}', '{one['version']}')," for one in crates)
    values["@CRATE_CHECKSUMS@"] = "\n".join(
        # Names may be long, and EasyBuild's style has no line of more than 120 characters.
        f"    {{'{one['name']}-{one['version']}.tar.gz':\n     '{one['checksum']}'}},"
        for one in crates
    )
    for folder in FOLDERS:
        shutil.copytree(PACKAGING / folder, out / folder)
    for file in [file for file in out.rglob("*") if file.is_file()]:
        text = file.read_text()
        for key, value in values.items():
            text = text.replace(key, value)
        file.write_text(text)
        if "@VERSION@" in file.name:
            file.rename(file.with_name(file.name.replace("@VERSION@", version())))
