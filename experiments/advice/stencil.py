"""Heat in a square: rows on ranks, edges exchanged, the change summed after each step.

Run as `mpirun ... python3 stencil.py SIZE STEPS`, with mpi4py and numpy.
"""

import sys

import numpy as np
from mpi4py import MPI


def main() -> None:
    """Go the steps."""
    size, steps = map(int, sys.argv[1:3])
    world = MPI.COMM_WORLD
    rank, ranks = world.rank, world.size
    rows = size * (rank + 1) // ranks - size * rank // ranks
    heat = np.zeros((rows + 2, size))
    if rank == 0:
        heat[0] = 1.0
    above = rank - 1 if rank > 0 else MPI.PROC_NULL
    below = rank + 1 if rank + 1 < ranks else MPI.PROC_NULL
    change = np.zeros(1)
    for _ in range(steps):
        requests = [
            world.Irecv(heat[-1], below, 0),
            world.Irecv(heat[0], above, 1),
            world.Isend(heat[1], above, 0),
            world.Isend(heat[-2], below, 1),
        ]
        MPI.Request.Waitall(requests)
        next_heat = heat.copy()
        next_heat[1:-1, 1:-1] = 0.25 * (
            heat[:-2, 1:-1] + heat[2:, 1:-1] + heat[1:-1, :-2] + heat[1:-1, 2:]
        )
        change[0] = np.abs(next_heat - heat).sum()
        world.Allreduce(MPI.IN_PLACE, change)
        heat = next_heat


main()
