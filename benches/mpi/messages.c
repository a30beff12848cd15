/* Many short messages between pairs of ranks: what a call of a recorder costs. Prints the calls of a rank and the
 * seconds they took.
 *
 * usage: messages ROUNDS */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { TOGETHER = 8, BYTES = 8 };

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 100000;
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int peer = rank ^ 1;
    if (peer >= size)
        peer = MPI_PROC_NULL;
    char in[TOGETHER][BYTES], out[TOGETHER][BYTES] = {{0}};
    MPI_Request requests[2 * TOGETHER];
    double begun = 0;
    for (long round = -rounds / 10; round < rounds; round++) {
        if (round == 0) {
            PMPI_Barrier(MPI_COMM_WORLD);
            begun = PMPI_Wtime();
        }
        for (int at = 0; at < TOGETHER; at++)
            MPI_Irecv(in[at], BYTES, MPI_BYTE, peer, at, MPI_COMM_WORLD, &requests[at]);
        for (int at = 0; at < TOGETHER; at++)
            MPI_Isend(out[at], BYTES, MPI_BYTE, peer, at, MPI_COMM_WORLD, &requests[TOGETHER + at]);
        MPI_Waitall(2 * TOGETHER, requests, MPI_STATUSES_IGNORE);
    }
    double seconds = PMPI_Wtime() - begun;
    if (rank == 0)
        printf("calls %ld seconds %.9f\n", rounds * (2 * TOGETHER + 1), seconds);
    MPI_Finalize();
    return 0;
}
