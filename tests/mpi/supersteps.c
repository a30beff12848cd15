/* Supersteps without collectives: each rank sends COUNT messages of BYTES to each of the PEERS ranks after it, in turn, then waits
 * for those and for what comes. Rank 0 prints "wrong N"; exits 1 if N > 0.
 *
 * usage: supersteps ROUNDS COUNT BYTES PEERS */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* MPICH's MPI_STATUSES_IGNORE is an address of nothing. */
#pragma GCC diagnostic ignored "-Wstringop-overflow"

int main(int argc, char **argv)
{
    int rank, size, wrong = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (argc != 5) {
        fprintf(stderr, "usage: supersteps ROUNDS COUNT BYTES PEERS\n");
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    int rounds = atoi(argv[1]), count = atoi(argv[2]), bytes = atoi(argv[3]), peers = atoi(argv[4]);
    int all = count * peers;
    unsigned char *out = malloc((size_t)all * bytes), *in = malloc((size_t)all * bytes);
    MPI_Request *requests = malloc(sizeof(MPI_Request) * 2 * all);
    for (int round = 0; round < rounds; round++) {
        for (int at = 0; at < all; at++) {
            int from = (rank + size - 1 - at % peers) % size;
            MPI_Irecv(in + (size_t)at * bytes, bytes, MPI_BYTE, from, at, MPI_COMM_WORLD, &requests[at]);
        }
        for (int at = 0; at < all; at++) {
            unsigned char *data = out + (size_t)at * bytes;
            for (int byte = 0; byte < bytes; byte++)
                data[byte] = (unsigned char)(rank + at + round + byte);
            MPI_Isend(data, bytes, MPI_BYTE, (rank + 1 + at % peers) % size, at, MPI_COMM_WORLD, &requests[all + at]);
        }
        MPI_Waitall(2 * all, requests, MPI_STATUSES_IGNORE);
        for (int at = 0; at < all; at++) {
            int from = (rank + size - 1 - at % peers) % size;
            for (int byte = 0; byte < bytes; byte++)
                wrong += in[(size_t)at * bytes + byte] != (unsigned char)(from + at + round + byte);
        }
    }
    if (wrong)
        fprintf(stderr, "rank %d: %d bytes are wrong\n", rank, wrong);
    if (rank == 0)
        printf("wrong %d\n", wrong);
    free(out), free(in), free(requests);
    MPI_Finalize();
    return wrong != 0;
}
