"""The site: the documents of this repository as pages with a search, and the Python API.

`make docs` builds it; every warning is an error. Sources are the Markdown files as they are, with
their links to each other; a link to a file that is no document becomes a download.
"""

import html
import re
import sys
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

from raddle.version import __version__  # noqa: E402

project = "Raddle"
author = "the Raddle developers"
copyright = "2026, the Raddle developers"
release = __version__
version = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
]
root_doc = "index"
include_patterns = [
    *("*.md", "docs/*.md", "docs/**/*.md", "gallery/*.md", "examples/*.md", "api/*.rst"),
    "tests/data/traces/README.md",
    "packaging/README.md",
]
exclude_patterns = ["docs/site"]
html_extra_path = ["../../target/site/extra"]

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4
myst_fence_as_directive = ["mermaid"]

autodoc_member_order = "bysource"
autodoc_typehints = "description"
autosummary_generate = True
napoleon_google_docstring = False

html_theme = "pydata_sphinx_theme"
html_title = "Raddle"
html_theme_options = {
    "navbar_align": "left",
    "show_toc_level": 2,
    "header_links_before_dropdown": 8,
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_context = {"default_mode": "auto"}
html_show_sourcelink = True
html_copy_source = True
html_static_path = ["../../target/site/static"]
html_js_files = ["mermaid.min.js"]
"""Draws diagrams in the page; without it they are their text."""


class Mermaid(Directive):
    """A diagram of Mermaid, drawn by its script in the page."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """The text for the script."""
        text = html.escape("\n".join(self.content))
        return [nodes.raw("", f'<pre class="mermaid">{text}</pre>', format="html")]


LINK = re.compile(r"\[([^\]\n]+)\]\((?![a-z]+:)([^)#\s]+)\)")


def plain_folders(app: Sphinx, name: str, source: list[str]) -> None:
    """Links to folders, which the repository shows and a site does not have, become their words."""
    home = (app.srcdir / f"{name}.md").parent

    def words(link: re.Match[str]) -> str:
        return link[1] if (home / link[2]).is_dir() else link[0]

    source[0] = LINK.sub(words, source[0])
    if name == "docs/README":
        # The list of documents for who reads the repository: the site has its own.
        source[0] = f"---\norphan: true\n---\n{source[0]}"


def setup(app: Sphinx) -> dict[str, bool]:
    """What Sphinx calls first."""
    app.connect("source-read", plain_folders)
    app.add_directive("mermaid", Mermaid)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
