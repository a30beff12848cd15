"""Allreduces of an mpi4py program, against the library's own and against the order of the switches.

usage: sums.py RANKS LOCAL TORS [ROUNDS]: ranks of a leader, leaders below a TOR, TORs. Prints
"calls N differences D" and ends with 1 if D > 0.
"""

from __future__ import annotations

import random
import struct
import sys
from array import array
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

from mpi4py import MPI

LONG = 520
"""Bytes of a call that stays plain: the library's own result, for comparison."""

SETTLE = 4
"""Calls until a communicator may be offloaded."""

WHOLE = {"i": MPI.INT, "l": MPI.LONG, "H": MPI.UNSIGNED_SHORT, "Q": MPI.UINT64_T}
REAL = {"d": MPI.DOUBLE, "f": MPI.FLOAT}
Number = int | float
Combine = Callable[[Any, Any], Any]

OPERATIONS: dict[str, tuple[MPI.Op, Combine]] = {
    "SUM": (MPI.SUM, lambda a, b: a + b),
    "PROD": (MPI.PROD, lambda a, b: a * b),
    "MAX": (MPI.MAX, max),
    "MIN": (MPI.MIN, min),
    "BXOR": (MPI.BXOR, lambda a, b: a ^ b),
}
LEFT_OUT = {("d", "BXOR"), ("f", "BXOR"), ("H", "PROD")}
"""Not defined; and products of many ranks are no 16-bit numbers."""


def doubled(values: Sequence[Number], combine: Combine) -> Number:
    """Recursive doubling: the first ones in pairs until a power of two is left."""
    blocks = list(values)
    extra = len(blocks) - (1 << (len(blocks).bit_length() - 1))
    pairs = [combine(blocks[2 * i], blocks[2 * i + 1]) for i in range(extra)]
    blocks = pairs + blocks[2 * extra :]
    while len(blocks) > 1:
        blocks = [combine(a, b) for a, b in zip(blocks[::2], blocks[1::2], strict=True)]
    return blocks[0]


def switched(values: Sequence[Number], combine: Combine, ranks: int, local: int) -> Number:
    """As a leader adds up its ranks, a TOR its leaders, and the SPINE its TORs."""
    for size, how in ((ranks, reduce), (local, None), (len(values) // ranks // local, None)):
        parts = [values[at : at + size] for at in range(0, len(values), size)]
        values = [how(combine, part) if how else doubled(part, combine) for part in parts]
    return values[0]


def single(combine: Combine) -> Combine:
    """The same with results of C's float."""
    return lambda a, b: struct.unpack("f", struct.pack("f", combine(a, b)))[0]


def main() -> int:
    """Call, compare, say."""
    ranks, local, tors, rounds = (*map(int, sys.argv[1:5]), 3)[:4]
    comm = MPI.COMM_WORLD
    assert comm.size == ranks * local * tors, comm.size
    calls = differences = 0

    def allreduce(code: str, values: list[Number], op: MPI.Op) -> array[Any]:
        send, receive = array(code, values), array(code, [0] * len(values))
        kind = {**WHOLE, **REAL}[code]
        comm.Allreduce([send, kind], [receive, kind], op)
        return receive

    for _ in range(SETTLE):
        allreduce("d", [1.0], MPI.SUM)
    draw = random.Random(comm.rank)
    for number in range(rounds):
        for code in (*WHOLE, *REAL):
            size = array(code).itemsize
            for name, (op, combine) in OPERATIONS.items():
                if (code, name) in LEFT_OUT:
                    continue
                count = (1, 3, 256 // size)[(number + size) % 3]
                mine: list[Number] = [
                    draw.uniform(0.5, 2.0) if code in REAL else draw.randrange(1, 4)
                    for _ in range(count)
                ]
                ours = allreduce(code, mine, op)
                plain = allreduce(code, mine + [1] * (LONG // size - count), op)[:count]
                calls += 1
                if code in WHOLE:
                    differences += ours != plain
                    continue
                # As floats, which the type may have rounded.
                everybody = comm.allgather(list(array(code, mine)))
                combine = combine if code == "d" else single(combine)
                expected = array(
                    code,
                    [
                        switched(column, combine, ranks, local)
                        for column in zip(*everybody, strict=True)
                    ],
                )
                differences += ours not in (expected, plain)
                near = 1e-12 if code == "d" else 1e-4
                differences += any(abs(a - b) > near * b for a, b in zip(ours, plain, strict=True))
    total = comm.allreduce(differences)
    if comm.rank == 0:
        print(f"calls {calls} differences {total}", flush=True)
    return int(total > 0)


sys.exit(main())
