"""The explorer's page is the one that its sources give, and asks nobody for anything."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "python" / "raddle" / "report" / "explorer" / "explorer.html"


def test_the_page_is_built_from_what_is_there() -> None:
    check = [sys.executable, str(ROOT / "scripts" / "build_explorer.py"), "--check"]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_page_loads_nothing_from_elsewhere() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert "default-src 'none'" in text
    assert re.findall(r"<(?:script|link|img|iframe)[^>]*\b(?:src|href)=\"(?!data:,)", text) == []
    assert text.count("<script") == 2


def test_the_page_names_the_licences_of_its_libraries() -> None:
    notes = PAGE.read_text(encoding="utf-8").rpartition("<!-- Libraries in this page")[2]
    for name in ("fzstd", "hyparquet", "preact", "uplot"):
        assert re.search(rf"^{name} [\d.]+ \(MIT\)$", notes, re.MULTILINE), name
