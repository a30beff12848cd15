"""What answers of the compiled core have in common: they are read from JSON and told as JSON.

A field has the name that it has in the JSON, and the fields of a class stand in its order, which is
that of `--json` and of `summary.json`. `Annotated[..., Field(alias=...)]` names what Python
cannot, and `LEFT_OUT` keeps None out of the JSON.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from raddle.errors import RaddleError

__all__ = ["LEFT_OUT", "Answer"]

LEFT_OUT = Field(exclude_if=lambda value: value is None)
"""Of a field that the JSON leaves out where it is None; others are then null."""


class Answer:
    """An answer of the compiled core, a frozen dataclass."""

    __slots__ = ()
    __pydantic_config__: ClassVar = ConfigDict(extra="forbid")

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read an answer.

        Raises
        ------
        RaddleError
            It is another one: the core and this package do not come from one build.
        """
        try:
            found: Self = _adapter(cls).validate_json(text)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            msg = (
                f"the compiled core gives another {cls.__name__} than this package reads "
                f"({place}: {first['msg']}): reinstall raddle so that both come from one build"
            )
            raise RaddleError(msg) from error
        return found

    def to_json(self) -> str:
        """The answer as JSON that the core reads."""
        text: bytes = _adapter(type(self)).dump_json(self, by_alias=True)
        return text.decode()

    def as_json(self) -> Mapping[str, object]:
        """The answer as the core gave it."""
        told: Mapping[str, object] = _adapter(type(self)).dump_python(self, by_alias=True)
        return told


_ADAPTERS: dict[type[Any], TypeAdapter[Any]] = {}


def _adapter(kind: type[Answer]) -> TypeAdapter[Any]:
    found = _ADAPTERS.get(kind)
    if found is None:
        found = _ADAPTERS[kind] = TypeAdapter(kind)
    return found
