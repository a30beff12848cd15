/* A program that sends around a ring and then ends as it is told: "abort" (MPI_Abort by rank 0), "exit" (without
 * MPI_Finalize), "child" (a process that MPI does not know ends meanwhile), or as it should.
 *
 * usage: ends [HOW] */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank, size, got;
    const char *how = argc > 1 ? argv[1] : "";
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &got, 1, MPI_INT, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (strcmp(how, "child") == 0) {
        pid_t child = fork();
        if (child == 0)
            exit(0);
        waitpid(child, NULL, 0);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    if (strcmp(how, "abort") == 0 && rank == 0)
        MPI_Abort(MPI_COMM_WORLD, 3);
    if (strcmp(how, "exit") == 0)
        exit(4);
    MPI_Finalize();
    return 0;
}
