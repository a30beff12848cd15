/* Many short messages between pairs of ranks, or from one to itself: what a recorder costs. Prints the calls of rank 0
 * and its processor time.
 *
 * usage: messages ROUNDS */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* MPICH's MPI_STATUSES_IGNORE is an address of nothing. */
#pragma GCC diagnostic ignored "-Wstringop-overflow"

enum { TOGETHER = 8, BYTES = 8 };

static double processor_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 100000;
    int rank, size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int peer = (rank ^ 1) < size ? rank ^ 1 : rank;
    char in[TOGETHER][BYTES], out[TOGETHER][BYTES] = {{0}};
    MPI_Request requests[2 * TOGETHER];
    double begun = 0;
    for (long round = -rounds / 10; round < rounds; round++) {
        if (round == 0) {
            PMPI_Barrier(MPI_COMM_WORLD);
            begun = processor_time();
        }
        for (int at = 0; at < TOGETHER; at++)
            MPI_Irecv(in[at], BYTES, MPI_BYTE, peer, at, MPI_COMM_WORLD, &requests[at]);
        for (int at = 0; at < TOGETHER; at++)
            MPI_Isend(out[at], BYTES, MPI_BYTE, peer, at, MPI_COMM_WORLD, &requests[TOGETHER + at]);
        MPI_Waitall(2 * TOGETHER, requests, MPI_STATUSES_IGNORE);
    }
    double seconds = processor_time() - begun;
    if (rank == 0)
        printf("calls %ld seconds %.9f\n", rounds * (2 * TOGETHER + 1), seconds);
    MPI_Finalize();
    return 0;
}
