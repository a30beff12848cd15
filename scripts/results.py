"""Write the pages of docs/results that come from `raddle reproduce --keep`.

make generate                                    write the pages that differ
.venv/bin/python scripts/results.py --check    write nothing; exit 1 if a page differs
"""

import argparse
import sys
from pathlib import Path

from raddle.services.reproduce.markdown import kept, page_of
from raddle.services.reproduce.papers import PAPERS

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "docs" / "results"


def main() -> int:
    """Write or check."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    stale = False
    for paper in PAPERS.values():
        home = paper.home(ROOT)
        template = home / "page.md"
        if not template.is_file():
            continue
        text = page_of(template, kept(home / "results"))
        page = FOLDER / paper.page
        if page.is_file() and page.read_text() == text:
            continue
        stale = True
        if check:
            print(f"{page.relative_to(ROOT)} is not what `make generate` writes", file=sys.stderr)
        else:
            page.write_text(text)
            print(f"wrote {page.relative_to(ROOT)}")
    return int(check and stale)


if __name__ == "__main__":
    sys.exit(main())
