/* Latency of MPI_Allreduce by message size, as osu_allreduce measures it: sums of floats, one after the other.
 *
 * allreduce [-w WARM_UP] [-n ITERATIONS] BYTES...
 *
 * Every size prints a line of JSON on rank 0: mean (all iterations together, the slowest rank's) and median (of rank 0's
 * single iterations), in microseconds. A wrong sum ends the program with status 1. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int usage(int rank)
{
    if (rank == 0)
        fprintf(stderr, "usage: allreduce [-w WARM_UP] [-n ITERATIONS] BYTES...\n");
    MPI_Finalize();
    return 2;
}

int main(int argc, char **argv)
{
    int rank, size, warm_up = 500, iterations = 2000, at = 1;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    for (; at + 1 < argc && argv[at][0] == '-'; at += 2) {
        int value = atoi(argv[at + 1]);
        if (value < 1)
            return usage(rank);
        if (strcmp(argv[at], "-w") == 0)
            warm_up = value;
        else if (strcmp(argv[at], "-n") == 0)
            iterations = value;
        else
            return usage(rank);
    }
    if (at == argc)
        return usage(rank);
    double *single = malloc(iterations * sizeof *single);
    for (; at < argc; at++) {
        int count = atoi(argv[at]) / (int)sizeof(float);
        if (count < 1 || single == NULL)
            return usage(rank);
        float *in = malloc(count * sizeof *in), *out = malloc(count * sizeof *out);
        /* Whole numbers below 2^24: any order of additions gives the same float. */
        for (int i = 0; i < count; i++)
            in[i] = (float)(rank + i % 7);
        for (int i = 0; i < warm_up; i++)
            MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
        MPI_Barrier(MPI_COMM_WORLD);
        double begun = MPI_Wtime();
        for (int i = 0; i < iterations; i++) {
            double start = MPI_Wtime();
            MPI_Allreduce(in, out, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
            single[i] = MPI_Wtime() - start;
        }
        double mine = MPI_Wtime() - begun, slowest;
        int wrong = 0, any;
        for (int i = 0; i < count; i++)
            wrong |= out[i] != (float)(size * (size - 1) / 2 + size * (i % 7));
        MPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
        if (any) {
            if (rank == 0)
                fprintf(stderr, "wrong sum of %d floats on %d ranks\n", count, size);
            MPI_Finalize();
            return 1;
        }
        qsort(single, iterations, sizeof *single, by_value);
        if (rank == 0)
            printf("{\"bytes\": %d, \"ranks\": %d, \"mean_us\": %.3f, \"median_us\": %.3f}\n",
                   count * (int)sizeof(float), size, slowest * 1e6 / iterations, single[iterations / 2] * 1e6);
        free(in);
        free(out);
    }
    free(single);
    MPI_Finalize();
    return 0;
}
