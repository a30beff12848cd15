"""Costs of hosts in words: the file they come from, and when it was measured.

A source is `{"file": ..., "measured": ISO 8601, "machine": ...}`, each None where it is not known.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from raddle.text import many

__all__ = ["named", "told"]

BUILT_IN = "built in, of a processor of 2014; not measured"


def told(source: Mapping[str, Any], now: datetime | None = None) -> str:
    """Where costs come from and how old they are.

    Examples
    --------
    >>> source = {"file": "costs.toml", "measured": "2026-11-20T08:00:00+00:00", "machine": None}
    >>> told(source, datetime(2026, 11, 23, 9, tzinfo=UTC))
    'costs.toml, measured 3 days ago'
    """
    if source["measured"] is None:
        return named(source)
    days = ((now or datetime.now(UTC)) - datetime.fromisoformat(source["measured"])).days
    age = "today" if days < 1 else f"{many(days, 'day')} ago"
    return f"{source['file']}, measured {age}{_where(source)}"


def named(source: Mapping[str, Any]) -> str:
    """The same with a date, which stays true.

    Examples
    --------
    >>> named({"file": "costs.toml", "measured": "2026-11-20T08:00:00+00:00", "machine": None})
    'costs.toml, measured on 2026-11-20'
    >>> named({"file": None, "measured": None, "machine": None})
    'built in, of a processor of 2014; not measured'
    """
    if source["file"] is None:
        return BUILT_IN
    if source["measured"] is None:
        return f"{source['file']}, which does not say when it was measured"
    day = datetime.fromisoformat(source["measured"]).date().isoformat()
    return f"{source['file']}, measured on {day}{_where(source)}"


def _where(source: Mapping[str, Any]) -> str:
    return f" ({source['machine']})" if source["machine"] else ""
