#!/usr/bin/env python3
"""Build the explorer's page where its sources have changed.

    python3 scripts/build_explorer.py            build it, if it is not built from what is there
    python3 scripts/build_explorer.py --check    only say whether it is; exit 1 if not

The page, python/raddle/report/explorer/explorer.html, stands in the repository, so that nobody who
does not change it needs Node. It ends with the digest of what it was built from.
"""

import argparse
import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "explorer"
PAGE = ROOT / "python" / "raddle" / "report" / "explorer" / "explorer.html"


def digest() -> str:
    """Of the sources, the builder, and the versions of the libraries."""
    files = [SOURCES / "build.mjs", SOURCES / "package-lock.json", SOURCES / "tsconfig.json"]
    files += [file for file in (SOURCES / "src").rglob("*") if file.is_file()]
    told = hashlib.sha256()
    for file in sorted(files):
        told.update(f"{file.relative_to(SOURCES)}\n".encode())
        told.update(file.read_bytes())
    return told.hexdigest()


def is_built() -> bool:
    """Whether the page is that of the sources."""
    return PAGE.is_file() and PAGE.read_text().endswith(f"<!-- sources {digest()} -->\n")


def main() -> None:
    """Build, or check."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="build nothing")
    if is_built():
        parser.parse_args()
        return
    if parser.parse_args().check:
        sys.exit(f"{PAGE} is not built from explorer/: python3 scripts/build_explorer.py")
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        sys.exit("explorer/ has changed, and building its page needs Node 20 or newer with npm")
    for command in (
        [npm, "ci", "--no-audit", "--no-fund", "--loglevel=error"],
        [npm, "run", "--silent", "check"],
        [node, "build.mjs", digest()],
    ):
        done = subprocess.run(command, cwd=SOURCES, check=False)
        if done.returncode:
            sys.exit(f"{' '.join(command)} failed")
    print(f"built {PAGE.relative_to(ROOT)}, {PAGE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
