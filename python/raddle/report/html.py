"""Pages from templates: everything in one file, nothing asked of the network."""

import re
from functools import cache
from importlib import resources
from typing import Any

from raddle.statistics.verdict import label_of
from raddle.text import count, duration_s, fixed, many, memory, significant, size, span_us

__all__ = ["render_page"]


UNIT = re.compile(r"(\d) ((?:[num]?s|µs|[kMGT]?B|[KMGT]iB|[kMG]?b/s|×)\b|×)")


def render_page(template: str, **content: Any) -> str:  # noqa: ANN401 - what the template names
    """Fill a template of `page/`; style, script and plotly.js stand in the page itself."""
    from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

    environment = Environment(
        loader=PackageLoader("raddle.report", "page"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        {
            "count": count,
            "duration": duration_s,
            "fixed": fixed,
            "kept": _kept,
            "label": label_of,
            "many": many,
            "memory": memory,
            "sig": significant,
            "size": size,
            "span": span_us,
        }
    )
    return environment.get_template(template).render(
        script=_asset("report.js"), style=_asset("report.css"), plotly=_plotly(), **content
    )


def _kept(text: str) -> str:
    """Keep figures and their units on one line."""
    for mark in ("±", "%", "=", "≥", "→"):
        text = text.replace(f" {mark} ", f"\u00a0{mark}\u00a0").replace(f" {mark}", f"\u00a0{mark}")
    return UNIT.sub("\\1\u00a0\\2", text.replace("≥ ", "≥\u00a0"))


@cache
def _asset(name: str) -> str:
    return resources.files("raddle.report").joinpath("page", name).read_text(encoding="utf-8")


@cache
def _plotly() -> str:
    """plotly.js from the installed package, safe inside a script element."""
    from plotly.offline import get_plotlyjs

    text: str = get_plotlyjs()
    return text.replace("</script", "<\\/script")
