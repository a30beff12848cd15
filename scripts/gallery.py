"""The gallery of the site: examples and experiments with their pictures, run anew."""

import hashlib
import io
import json
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure

from raddle.report.explorer import write_explorer
from raddle.results import Results
from raddle.results.digests import digests

ROOT = Path(__file__).resolve().parent.parent
LIST = ROOT / "docs" / "site" / "gallery.toml"
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#8a8f98")
BINS = 120


class Changed(Exception):
    """Results of an entry are not those that are pinned."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An experiment of the gallery."""

    file: str
    title: str
    sha256: str | None = None

    @property
    def name(self) -> str:
        """Of its page and its picture."""
        return self.file.removesuffix(".toml").replace("/", "-")

    def about(self) -> str:
        """The comment at the beginning of its file, without commands."""
        lines = []
        for line in (ROOT / self.file).read_text().splitlines():
            if not line.startswith("#"):
                break
            words = line.removeprefix("#").strip()
            if not words.startswith("raddle "):
                lines.append(words)
        return "\n".join(lines).strip()


def entries() -> list[Entry]:
    """What the gallery shows, in order."""
    listed = tomllib.loads(LIST.read_text())["entry"]
    return [Entry(**each) for each in listed]


def pin(found: Sequence[Entry]) -> None:
    """Write the list with the hashes of `found`."""
    comment = LIST.read_text().partition("[[entry]]")[0]
    tables = (
        f"[[entry]]\nfile = {json.dumps(it.file)}\ntitle = {json.dumps(it.title)}\n"
        f"sha256 = {json.dumps(it.sha256)}\n"
        for it in found
    )
    LIST.write_text(comment + "\n".join(tables))


def made(entry: Entry, work: Path, pages: Path, extra: Path) -> Entry:
    """Run an entry in `work`; its page and picture go into `pages`, all else into `extra`.

    Returns
    -------
    Entry
        With the hash that was found.
    """
    out = work / entry.name
    shutil.rmtree(out, ignore_errors=True)
    run = [sys.executable, "-m", "raddle", "run", entry.file, "--out", str(out), "--quiet"]
    done = subprocess.run(run, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{entry.file}: {done.stderr}")
    (pages / f"{entry.name}.svg").write_text(picture(Results(out)))
    (pages / f"{entry.name}.md").write_text(page(entry, done.stdout))
    shutil.copy(out / "report.html", extra / f"{entry.name}.html")
    shutil.move(write_explorer(out), extra / f"{entry.name}-explorer.html")
    return Entry(entry.file, entry.title, tables_hash(out))


def check(pinned: Entry, found: Entry) -> None:
    """Compare a hash with the pinned one.

    Raises
    ------
    Changed
        They differ.
    """
    if pinned.sha256 != found.sha256:
        msg = (
            f"{found.file}: its results are not those that docs/site/gallery.toml pins\n"
            "  hint: if that is what you meant, .venv/bin/python -m scripts.make_site --pin"
        )
        raise Changed(msg)


def tables_hash(out: Path) -> str:
    """SHA-256 over names and hashes of all tables."""
    rows = sorted((name, it["sha256"]) for name, it in digests(out).items())
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def page(entry: Entry, said: str) -> str:
    """The page of an entry."""
    return f"""# {entry.title}

{entry.about()}

```{{image}} {entry.name}.svg
:alt: {entry.title}
```

```
raddle run {entry.file}
```

```text
{said.strip()}
```

<a href="reports/{entry.name}.html">The whole report</a> ·
<a href="reports/{entry.name}-explorer.html">Look into the run</a>

```{{literalinclude}} ../{entry.file}
:language: toml
:caption: {entry.file}
```
"""


def index(found: Sequence[Entry]) -> str:
    """The first page: all pictures."""
    cards = "\n".join(
        f":::{{grid-item-card}} {it.title}\n:img-bottom: {it.name}.svg\n:link: {it.name}\n"
        f":link-type: doc\n{it.file}\n:::\n"
        for it in found
    )
    names = "\n".join(it.name for it in found)
    return f"""# Gallery

Every picture was drawn when this site was built, from a run of the file below it; its results are
those that the repository pins.

::::{{grid}} 1 2 2 2
:gutter: 3

{cards}
::::

```{{toctree}}
:hidden:

{names}
```
"""


def picture(results: Results) -> str:
    """What a run gave, as SVG: times of jobs by setup, or goodput over time by scheme."""
    figure = Figure(figsize=(6.4, 3.4), layout="constrained")
    if results.jobs is not None:
        _jobs(figure, results)
    else:
        _goodput(figure, results)
    out = io.StringIO()
    # The same picture has the same bytes.
    figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()


def _jobs(figure: Figure, results: Results) -> None:
    assert results.jobs is not None
    rows = [row for row in results.jobs.to_pylist() if row["time_ps"] is not None]
    jobs, setups = (list(dict.fromkeys(row[key] for row in rows)) for key in ("job", "scheme"))
    axis = figure.subplots()
    width = 0.8 / len(setups)
    for place, setup in enumerate(setups):
        own = {row["job"]: row["time_ps"] / 1e9 for row in rows if row["scheme"] == setup}
        places = [at - 0.4 + (place + 0.5) * width for at in range(len(jobs))]
        heights = [own.get(job, 0.0) for job in jobs]
        axis.bar(places, heights, width, color=PALETTE[place % len(PALETTE)], label=setup)
    axis.set_xticks(range(len(jobs)), jobs)
    axis.set_ylabel("time in ms")
    axis.legend(fontsize=7, ncols=3)


def _goodput(figure: Figure, results: Results) -> None:
    table = results.throughput
    seeds = table["seed"].to_numpy()
    table = table.filter(pa.array(seeds == seeds.min()))
    names = np.array(table["scheme"].to_pylist())
    schemes = list(dict.fromkeys(names.tolist()))
    times, delivered = table["time_ps"].to_numpy() / 1e6, table["delivered_bytes"].to_numpy()
    axis = figure.subplots()
    # Samples tell of the time since the one before, and come at equal distances but for the last.
    apart = np.diff(np.unique(times))
    step = float(np.median(apart)) if len(apart) else 1.0
    width = step * np.ceil(times.max() / step / BINS)
    edges = step / 2 + width * np.arange(np.ceil(times.max() / width) + 1)
    for place, scheme in enumerate(schemes):
        own = names == scheme
        sums, _ = np.histogram(times[own], edges, weights=delivered[own])
        gbps = sums * 8 / width / 1e3
        colour = PALETTE[place % len(PALETTE)]
        axis.step(
            edges[:-1] - step / 2, gbps, where="post", color=colour, label=scheme, linewidth=1
        )
    axis.set_xlabel("time in µs")
    axis.set_ylabel("goodput in Gbit/s")
    axis.legend(fontsize=7, ncols=4)
