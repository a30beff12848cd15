/* What the MPI library moves while a program calls nothing but collectives. Two ranks. Prints "wrong W"; exits 1 if W > 0.
 *
 * A message that was sent before a barrier is there behind it: one look is enough. And a long message, whose parts need
 * calls on both sides, arrives during Allreduces. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define BARRIERS 400
#define ALLREDUCES 20000
#define LONG (8 << 20)

static int behind_a_barrier(int rank)
{
    int wrong = 0;
    for (int round = 0; round < BARRIERS; round++) {
        int there, sent = round, got = -1;
        MPI_Send(&sent, 1, MPI_INT, 1 - rank, 1, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_Iprobe(1 - rank, 1, MPI_COMM_WORLD, &there, MPI_STATUS_IGNORE);
        MPI_Recv(&got, 1, MPI_INT, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        wrong += got != round || !there;
    }
    return wrong;
}

static int during_allreduces(int rank)
{
    int there, wrong = 0;
    char *bytes = calloc(LONG, 1);
    MPI_Request request;
    if (bytes == NULL)
        return 1;
    if (rank == 0)
        MPI_Isend(bytes, LONG, MPI_CHAR, 1, 2, MPI_COMM_WORLD, &request);
    else
        MPI_Irecv(bytes, LONG, MPI_CHAR, 0, 2, MPI_COMM_WORLD, &request);
    for (int round = 0; round < ALLREDUCES; round++) {
        double one = 1, sum = 0;
        MPI_Allreduce(&one, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        wrong += sum != 2;
    }
    MPI_Request_get_status(request, &there, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    free(bytes);
    return wrong + !there;
}

int main(int argc, char **argv)
{
    int rank, wrong, all = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    wrong = behind_a_barrier(rank) + during_allreduces(rank);
    MPI_Reduce(&wrong, &all, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("wrong %d\n", all);
    MPI_Finalize();
    return all > 0;
}
