"""The end of a page: why, in three sentences made of what was measured, and nothing beyond."""

from dataclasses import dataclass

__all__ = ["Part", "Why"]


@dataclass(frozen=True, slots=True)
class Part:
    """A sentence and what it is about, in a word or two."""

    name: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Why:
    """`lead` says what is explained, `verdict` what the parts do and do not explain.

    `source` names the tables that the parts come from. An empty lead or verdict is left out.
    """

    title: str
    lead: str
    parts: tuple[Part, ...]
    verdict: str
    source: str
