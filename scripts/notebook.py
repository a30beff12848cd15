"""The tutorial of the site: a notebook, run anew, as a page with its pictures."""

import base64
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

LIMIT_S = 300


def page(notebook: Path, to: Path) -> Path:
    """Run a notebook and write it into the folder `to`, as Markdown beside its pictures.

    Raises
    ------
    nbclient.exceptions.CellExecutionError
        One of its cells fails.
    """
    book = nbformat.read(notebook, as_version=4)  # type: ignore[no-untyped-call]
    place = {"metadata": {"path": str(notebook.parent)}}
    NotebookClient(book, timeout=LIMIT_S, resources=place).execute()
    parts = []
    for cell in book.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        parts.append(f"```python\n{cell.source}\n```")
        for output in cell.outputs:
            parts.append(_shown(output, to, f"{notebook.stem}-{len(parts)}"))
    download = f"*[This page as a notebook]({notebook.name}).*"
    file = to / f"{notebook.stem}.md"
    file.write_text("\n\n".join([*parts, download]) + "\n")
    return file


def _shown(output: Any, to: Path, name: str) -> str:  # noqa: ANN401 - of nbformat, without types
    """What a cell printed, gave or drew."""
    data = output.get("data", {})
    if "image/png" in data:
        (to / f"{name}.png").write_bytes(base64.b64decode(data["image/png"]))
        return f"![Picture of the cell above]({name}.png)"
    text = output.get("text") or data.get("text/plain", "")
    return f"```text\n{text.rstrip()}\n```"
