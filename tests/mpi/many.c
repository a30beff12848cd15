/* Many communicators of one rank each, with two calls each; five calls of all ranks.
 *
 * usage: many COMMUNICATORS */
#include <mpi.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    int one = 1, sum = 0;
    MPI_Init(&argc, &argv);
    for (int number = 0; argc > 1 && number < atoi(argv[1]); number++) {
        MPI_Comm own;
        MPI_Comm_dup(MPI_COMM_SELF, &own);
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, own);
        MPI_Barrier(own);
        MPI_Comm_free(&own);
    }
    for (int call = 0; call < 5; call++)
        MPI_Barrier(MPI_COMM_WORLD);
    MPI_Finalize();
    return sum > 1;
}
