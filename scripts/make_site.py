"""Build the site: documents, gallery, Python API and crates; warnings are errors.

It goes into a folder of its version below target/site/html, which any server of files can serve;
other versions that are there stay, and versions.html lists them.

make docs                                           all of it
.venv/bin/python -m scripts.make_site --pin         and keep the hashes of the gallery
.venv/bin/python -m scripts.make_site --only FILE   of the gallery this file alone
"""

import argparse
import html
import itertools
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
from collections.abc import Sequence
from pathlib import Path

from raddle.version import __version__
from scripts import gallery, notebook

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "target" / "site"
SOURCE = SITE / "source"
"""What Sphinx reads: the repository's files, and what is made for the site."""
HTML = SITE / "html" / __version__
RUSTDOC = ROOT / "target" / "doc"
"""What `cargo doc` made, if it was called before."""
PAGES = ROOT / "docs" / "site"
MERMAID = "mermaid@11.12.1"
LEFT_OUT = (
    ".git",
    ".venv",
    "target",
    "dist",
    "out",
    "demo",
    "node_modules",
    "*_cache",
    "__pycache__",
    "*.so",
)


def staged() -> None:
    """All that documents link to; the site's own pages stand at the top."""
    for old in (SOURCE, HTML, *(SITE / name for name in ("static", "extra", "runs"))):
        shutil.rmtree(old, ignore_errors=True)
    # Hard links: symbolic ones would be followed out of Sphinx's folder.
    shutil.copytree(ROOT, SOURCE, copy_function=os.link, ignore=shutil.ignore_patterns(*LEFT_OUT))
    for page in PAGES.glob("*.md"):
        os.link(page, SOURCE / page.name)


def scripted() -> None:
    """The script that draws diagrams, from npm; without npm they stay text."""
    static = SITE / "static"
    static.mkdir()
    npm = shutil.which("npm")
    if npm is None:
        print("note: diagrams stay text: npm is not installed", file=sys.stderr)
        (static / "mermaid.min.js").touch()
        return
    # From its cache where it has been fetched before: without a network too.
    pack = [npm, "pack", "--silent", "--prefer-offline", MERMAID]
    done = subprocess.run(pack, cwd=SITE, check=True, capture_output=True, text=True)
    with tarfile.open(SITE / done.stdout.strip()) as packed:
        script = packed.extractfile("package/dist/mermaid.min.js")
        assert script is not None
        (static / "mermaid.min.js").write_bytes(script.read())


def drawn(only: Sequence[str], *, keep: bool) -> None:
    """Run what the gallery shows, or what of it is named."""
    pages, extra, work = SOURCE / "gallery", SITE / "extra" / "gallery" / "reports", SITE / "runs"
    for folder in (pages, extra, work):
        folder.mkdir(parents=True)
    listed = [entry for entry in gallery.entries() if not only or entry.file in only]
    found = []
    for entry in listed:
        print(f"gallery: {entry.file}", flush=True)
        found.append(gallery.made(entry, work, pages, extra))
        if not keep:
            gallery.check(entry, found[-1])
    (pages / "index.md").write_text(gallery.index(found))
    if keep:
        gallery.pin(found)


def crates() -> None:
    """The list of all crates, floor by floor, with links to their pages where these were made."""
    lines = ["# Crates", "", "The Rust of the project, floor by floor: what a crate is for."]
    lines += ["[ARCHITECTURE.md](ARCHITECTURE.md) says how they stand on each other.", ""]
    for floor in ("base", "core", "sim", "real"):
        lines += [f"## {floor}", ""]
        for library in sorted((ROOT / "crates" / floor).glob("*/src/lib.rs")):
            manifest = tomllib.loads((library.parents[1] / "Cargo.toml").read_text())
            name = manifest["package"]["name"]
            page = f"rust/{manifest.get('lib', {}).get('name', name).replace('-', '_')}/index.html"
            told = itertools.takewhile(lambda line: len(line) > 4, library.read_text().splitlines())
            words = " ".join(line.removeprefix("//! ") for line in told).replace("[`", "`")
            named = f"<code>{name}</code>"
            if (RUSTDOC / page.removeprefix("rust/")).is_file():
                named = f'<a href="{page}">{named}</a>'
            lines += [f"- {named}: {html.escape(words.replace('`]', '`'), quote=False)}"]
        lines += [""]
    (SOURCE / "crates.md").write_text("\n".join(lines))


def built() -> int:
    """The pages."""
    words = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-c", str(PAGES)]
    status = subprocess.run([*words, str(SOURCE), str(HTML)], check=False).returncode
    if not status and RUSTDOC.is_dir():
        shutil.copytree(RUSTDOC, HTML / "rust")
    return status


def listed() -> None:
    """The list of all versions that are there, and the way to the newest."""
    above = HTML.parent

    def age(name: str) -> list[int]:
        return [int(part) for part in name.split(".") if part.isdecimal()]

    names = sorted((page.parent.name for page in above.glob("*/index.html")), key=age, reverse=True)
    head = '<!doctype html><html lang="en"><meta charset="utf-8"><title>Raddle</title>'
    rows = "".join(f'<li><a href="{name}/index.html">{name}</a></li>' for name in names)
    (above / "versions.html").write_text(f"{head}<h1>Raddle: versions</h1><ul>{rows}</ul></html>\n")
    newest = f"{names[0]}/index.html"
    way = f'<meta http-equiv="refresh" content="0; url={newest}"><a href="{newest}">Raddle</a>'
    (above / "index.html").write_text(f"{head}{way}</html>\n")


def main() -> int:
    """Build it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pin", action="store_true", help="keep the hashes of the gallery")
    parser.add_argument("--only", action="append", metavar="FILE", help="of the gallery, this")
    options = parser.parse_args()
    if options.pin and options.only:
        parser.error("--pin keeps the hashes of all: leave --only out")
    staged()
    scripted()
    crates()
    notebook.page(ROOT / "examples" / "tutorial.ipynb", SOURCE / "examples")
    try:
        drawn(options.only or [], keep=options.pin)
    except gallery.Changed as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    status = built()
    if not status:
        listed()
        print(f"open {(HTML / 'index.html').relative_to(ROOT)}")
    return status


if __name__ == "__main__":
    sys.exit(main())
