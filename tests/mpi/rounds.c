/* Rounds of MPI_Allreduce whose sums are known, for tests in which something dies meanwhile. One rank may compute for
 * long without an MPI call. Invalid floating-point operations end it, as in OpenFOAM: the library's own must not. Prints
 * "begun" after the first rounds and "rounds N wrong W" at the end; exits 1 if W > 0.
 *
 * usage: rounds ROUNDS [MICROSECONDS_BETWEEN [NAPPING_RANK NAP_AT NAP_SECONDS]] */
#define _GNU_SOURCE
#include <fenv.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    long rounds = argc > 1 ? atol(argv[1]) : 1000, wrong = 0, all = 0;
    useconds_t between = argc > 2 ? (useconds_t)atol(argv[2]) : 0;
    int napping = argc > 5 ? atoi(argv[3]) : -1, rank, size;
    long nap_at = argc > 5 ? atol(argv[4]) : -1;
    unsigned nap = argc > 5 ? (unsigned)atoi(argv[5]) : 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW);
    for (long round = 0; round < rounds; round++) {
        double values[2] = {(double)(round + rank), 1.0}, sums[2] = {0, 0};
        int64_t bits = INT64_C(1) << (rank % 62), together = 0;
        MPI_Allreduce(values, sums, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        if (sums[0] != (double)size * (double)round + (double)size * (size - 1) / 2 || sums[1] != size)
            wrong++;
        MPI_Allreduce(&bits, &together, 1, MPI_INT64_T, MPI_BOR, MPI_COMM_WORLD);
        if (together != (size >= 62 ? (INT64_C(1) << 62) - 1 : (INT64_C(1) << size) - 1))
            wrong++;
        if (rank == 0 && round == 20) {
            printf("begun\n");
            fflush(stdout);
        }
        if (rank == napping && round == nap_at)
            sleep(nap);
        if (between > 0)
            usleep(between);
    }
    PMPI_Reduce(&wrong, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    PMPI_Bcast(&all, 1, MPI_LONG, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("rounds %ld wrong %ld\n", rounds, all);
    MPI_Finalize();
    return all > 0;
}
