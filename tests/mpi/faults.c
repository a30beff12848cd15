/* Sums of known value, and a gate: at one round all ranks wait, without MPI, for a file, so that something can be broken
 * just then. Who has the sum of that round sleeps, again without MPI, or goes on to MPI_Finalize if it was the last
 * round. Every rank prints "rank R wrong N" by itself.
 *
 * usage: faults ROUNDS GATE FILE SLEEP_S */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int rank, size;
    long wrong = 0;
    if (argc != 5)
        return 2;
    const long rounds = atol(argv[1]), gate = atol(argv[2]);
    const unsigned nap = (unsigned)atoi(argv[4]);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (long round = 0; round < rounds; round++) {
        double values[2] = {(double)(round + rank), 1.0}, sums[2] = {0, 0};
        if (round == gate) {
            printf("rank %d at the gate\n", rank);
            fflush(stdout);
            while (access(argv[3], F_OK) != 0)
                usleep(1000);
        }
        MPI_Allreduce(values, sums, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        if (sums[0] != (double)size * (double)round + (double)size * (size - 1) / 2 || sums[1] != size)
            wrong++;
        if (round == gate && nap > 0) {
            printf("rank %d has its sum\n", rank);
            fflush(stdout);
            sleep(nap);
        }
    }
    printf("rank %d wrong %ld\n", rank, wrong);
    fflush(stdout);
    MPI_Finalize();
    return wrong > 0;
}
