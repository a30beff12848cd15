"""Build the site into target/site/html: documents, gallery and Python API; warnings are errors.

make docs                                           all of it
.venv/bin/python -m scripts.make_site --pin         and keep the hashes of the gallery
.venv/bin/python -m scripts.make_site --only FILE   of the gallery this file alone
"""

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Sequence
from pathlib import Path

from scripts import gallery, notebook

ROOT = Path(__file__).resolve().parent.parent
SITE = ROOT / "target" / "site"
SOURCE = SITE / "source"
"""What Sphinx reads: the repository's files, and what is made for the site."""
PAGES = ROOT / "docs" / "site"
MERMAID = "mermaid@11.12.1"
LEFT_OUT = (
    ".git",
    ".venv",
    "target",
    "out",
    "demo",
    "node_modules",
    "*_cache",
    "__pycache__",
    "*.so",
)


def staged() -> None:
    """All that documents link to; the site's own pages stand at the top."""
    shutil.rmtree(SITE, ignore_errors=True)
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
    pack = [npm, "pack", "--silent", MERMAID]
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


def built() -> int:
    """The pages."""
    words = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-c", str(PAGES)]
    return subprocess.run([*words, str(SOURCE), str(SITE / "html")], check=False).returncode


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
    notebook.page(ROOT / "examples" / "tutorial.ipynb", SOURCE / "examples")
    try:
        drawn(options.only or [], keep=options.pin)
    except gallery.Changed as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    status = built()
    if not status:
        print(f"open {(SITE / 'html' / 'index.html').relative_to(ROOT)}")
    return status


if __name__ == "__main__":
    sys.exit(main())
