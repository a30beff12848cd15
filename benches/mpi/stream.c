/* Messages from rank 0 to rank 1, some on their way at once: goodput of an MPI library. Prints a line of JSON.
 *
 * usage: stream BYTES SECONDS */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { TOGETHER = 16, GO_ON = 1, STOP = 2 };

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: stream BYTES SECONDS\n");
        return 2;
    }
    long bytes = atol(argv[1]);
    double seconds = atof(argv[2]);
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char *memory = calloc(TOGETHER, (size_t)bytes);
    if (memory == NULL || bytes < 1)
        MPI_Abort(MPI_COMM_WORLD, 2);
    MPI_Request requests[TOGETHER];
    long rounds = 0;
    double begun = 0;
    /* The first round is a warm-up. Rank 1 says after each whether it has taken long enough. */
    for (int state = GO_ON; state == GO_ON; rounds++) {
        for (int at = 0; at < TOGETHER; at++) {
            char *message = memory + at * bytes;
            if (rank == 0)
                MPI_Isend(message, (int)bytes, MPI_BYTE, 1, at, MPI_COMM_WORLD, &requests[at]);
            else
                MPI_Irecv(message, (int)bytes, MPI_BYTE, 0, at, MPI_COMM_WORLD, &requests[at]);
        }
        MPI_Waitall(TOGETHER, requests, MPI_STATUSES_IGNORE);
        if (rounds == 0)
            begun = MPI_Wtime();
        state = MPI_Wtime() - begun < seconds ? GO_ON : STOP;
        MPI_Bcast(&state, 1, MPI_INT, 1, MPI_COMM_WORLD);
    }
    if (rank == 1) {
        double took = MPI_Wtime() - begun;
        printf("{\"bps\": %.0f}\n", 8.0 * (double)bytes * TOGETHER * (double)(rounds - 1) / took);
    }
    free(memory);
    MPI_Finalize();
    return 0;
}
