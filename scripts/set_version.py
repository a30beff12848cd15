#!/usr/bin/env python3
"""Write the version of Cargo.toml, its one place, where programs cannot read it from there.

    python3 scripts/set_version.py            write it
    python3 scripts/set_version.py --check    only compare; exit 1 if one differs

`make generate` calls it. Everything else takes the version from Cargo.toml itself, or from these.
"""

import argparse
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
COPIES = {
    ROOT / "python" / "raddle" / "version.py": r'^(__version__ = ")[^"]*(")$',
    ROOT / "CITATION.cff": r"^(version: )\S*()$",
}
"""Each file, and what stands before and after the version there."""


def main() -> None:
    """Write or compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    for file, pattern in COPIES.items():
        old = file.read_text()
        new, found = re.subn(pattern, rf"\g<1>{version}\g<2>", old, flags=re.MULTILINE)
        if found != 1:
            sys.exit(f"{file} has {found} lines with a version where one was expected")
        if new != old and check:
            sys.exit(f"{file} has another version than Cargo.toml: make generate")
        if new != old:
            file.write_text(new)


if __name__ == "__main__":
    main()
