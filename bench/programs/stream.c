/* Messages from rank 0 to rank 1, some on their way at once: goodput of an MPI library. Prints a line of JSON. A window is 16 MiB, but
 * at least 4 and at most 16 messages. There are no collectives.
 *
 * usage: stream BYTES SECONDS [WARM_UP]   SECONDS begin after WARM_UP windows (1) */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { WINDOW = 16 << 20, FEWEST = 4, MOST = 16, GO_ON = 1, STOP = 2 };

int main(int argc, char **argv)
{
    if (argc != 3 && argc != 4) {
        fprintf(stderr, "usage: stream BYTES SECONDS [WARM_UP]\n");
        return 2;
    }
    long bytes = atol(argv[1]), warm_up = argc == 4 ? atol(argv[3]) : 1;
    double seconds = atof(argv[2]);
    int rank;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    char *memory = calloc(MOST, (size_t)bytes);
    if (memory == NULL || bytes < 1)
        MPI_Abort(MPI_COMM_WORLD, 2);
    int together = bytes * MOST <= WINDOW ? MOST : bytes * FEWEST >= WINDOW ? FEWEST : (int)(WINDOW / bytes);
    MPI_Request requests[MOST];
    long rounds = 0;
    double begun = 0;
    /* Rank 1 says after each window whether it has taken long enough. */
    for (int state = GO_ON; state == GO_ON; rounds++) {
        if (rounds == warm_up)
            begun = MPI_Wtime();
        for (int at = 0; at < together; at++) {
            char *message = memory + at * bytes;
            if (rank == 0)
                MPI_Isend(message, (int)bytes, MPI_BYTE, 1, at, MPI_COMM_WORLD, &requests[at]);
            else
                MPI_Irecv(message, (int)bytes, MPI_BYTE, 0, at, MPI_COMM_WORLD, &requests[at]);
        }
        MPI_Waitall(together, requests, MPI_STATUSES_IGNORE);
        if (rank == 0) {
            MPI_Recv(&state, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        } else {
            state = rounds < warm_up || MPI_Wtime() - begun < seconds ? GO_ON : STOP;
            MPI_Send(&state, 1, MPI_INT, 0, 0, MPI_COMM_WORLD);
        }
    }
    if (rank == 1) {
        double took = MPI_Wtime() - begun;
        printf("{\"bps\": %.0f}\n", 8.0 * (double)bytes * together * (double)(rounds - warm_up) / took);
    }
    free(memory);
    MPI_Finalize();
    return 0;
}
