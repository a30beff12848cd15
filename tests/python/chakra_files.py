"""Chakra files, written by the wire format of protobuf and the field numbers of et_def.proto."""

from collections.abc import Sequence
from pathlib import Path

__all__ = ["COLL", "COMP", "RECV", "SEND", "node", "write"]

COMP, SEND, RECV, COLL = 4, 5, 6, 7
"""Types of nodes."""


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*out, number])


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, value: bytes) -> bytes:
    return _varint(field << 3 | 2) + _varint(len(value)) + value


def node(
    number: int, kind: int, deps: Sequence[int] = (), *, micros: int = 0, **attributes: int | str
) -> bytes:
    """A node; whole attributes are 64-bit ones, the others texts."""
    body = _number(1, number) + _bytes(2, f"node {number}".encode()) + _number(3, kind)
    body += _bytes(5, b"".join(map(_varint, deps))) if deps else b""
    body += _number(7, micros) if micros else b""
    for name, value in attributes.items():
        told = _number(9, value) if isinstance(value, int) else _bytes(29, value.encode())
        body += _bytes(10, _bytes(1, name.encode()) + told)
    return _varint(len(body)) + body


def write(folder: Path, ranks: Sequence[Sequence[bytes]], name: str = "step") -> Path:
    """A file for each rank: `NAME.RANK.et`; the folder."""
    head = _bytes(1, b"0.0.4")
    for rank, nodes in enumerate(ranks):
        content = _varint(len(head)) + head + b"".join(nodes)
        (folder / f"{name}.{rank}.et").write_bytes(content)
    return folder
