/* Latency of MPI_Allreduce by message size, as osu_allreduce measures it: sums of floats, one after the other.
 *
 * allreduce [-w WARM_UP] [-n ITERATIONS] [-t FIFO] BYTES...
 *
 * Sizes take turns in blocks of 25 calls, so that a disturbance hits all of them. Every size prints a line of JSON on
 * rank 0, microseconds for one call: mean (of all blocks, the slowest rank's), median (of the blocks' means, rank 0's),
 * cpu (processor time of all ranks together). A wrong sum ends the program with status 1.
 *
 * With -t, programs take turns too: each rank sleeps until it has read a byte from the named pipe, measures if that is a
 * dot, and ends otherwise. Whoever writes as many bytes as there are ranks gives the program a turn. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { BLOCK = 25, MOST_SIZES = 32, SETTLE = 10 };

struct size {
    int count;
    float *in, *out;
    double *blocks; /* seconds */
    double seconds, cpu;
};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int usage(int rank)
{
    if (rank == 0)
        fprintf(stderr, "usage: allreduce [-w WARM_UP] [-n ITERATIONS] [-t FIFO] BYTES...   (at most %d sizes)\n", MOST_SIZES);
    MPI_Finalize();
    return 2;
}

static double cpu_seconds(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return used.ru_utime.tv_sec + used.ru_stime.tv_sec + 1e-6 * (used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

static void call(const struct size *s, int times)
{
    for (int i = 0; i < times; i++)
        MPI_Allreduce(s->in, s->out, s->count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
}

/* A block: none of it begins before all ranks are there. */
static void measure(struct size *s, int block)
{
    MPI_Barrier(MPI_COMM_WORLD);
    double cpu = cpu_seconds(), begun = MPI_Wtime();
    call(s, BLOCK);
    s->blocks[block] = MPI_Wtime() - begun;
    s->seconds += s->blocks[block];
    s->cpu += cpu_seconds() - cpu;
}

static int report(struct size *s, int blocks, int rank, int ranks)
{
    double slowest, cpu;
    int wrong = 0, any;
    for (int i = 0; i < s->count; i++)
        wrong |= s->out[i] != (float)(ranks * (ranks - 1) / 2 + ranks * (i % 7));
    MPI_Allreduce(&s->seconds, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allreduce(&s->cpu, &cpu, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (any) {
        if (rank == 0)
            fprintf(stderr, "wrong sum of %d floats on %d ranks\n", s->count, ranks);
        return 1;
    }
    qsort(s->blocks, blocks, sizeof *s->blocks, by_value);
    double scale = 1e6 / BLOCK;
    if (rank == 0)
        printf("{\"bytes\": %d, \"ranks\": %d, \"mean_us\": %.3f, \"median_us\": %.3f, \"cpu_us\": %.3f}\n",
               s->count * (int)sizeof(float), ranks, slowest * scale / blocks, s->blocks[blocks / 2] * scale,
               cpu * scale / blocks);
    return 0;
}

/* All sizes, once. */
static int turn(struct size *all, int sizes, int blocks, int rank, int ranks)
{
    for (int i = 0; i < sizes; i++) {
        all[i].seconds = all[i].cpu = 0;
        call(&all[i], SETTLE);
    }
    for (int block = 0; block < blocks; block++)
        for (int i = 0; i < sizes; i++)
            measure(&all[i], block);
    int status = 0;
    for (int i = 0; i < sizes && status == 0; i++)
        status = report(&all[i], blocks, rank, ranks);
    fflush(stdout);
    return status;
}

static int has_turn(int fifo)
{
    char byte = 0;
    return read(fifo, &byte, 1) == 1 && byte == '.';
}

int main(int argc, char **argv)
{
    int rank, ranks, warm_up = 500, iterations = 2000, at = 1, sizes = 0, fifo = -1;
    struct size all[MOST_SIZES] = {0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (; at + 1 < argc && argv[at][0] == '-'; at += 2) {
        if (strcmp(argv[at], "-t") == 0) {
            fifo = open(argv[at + 1], O_RDONLY);
            if (fifo < 0) {
                perror(argv[at + 1]);
                MPI_Abort(MPI_COMM_WORLD, 2);
            }
            continue;
        }
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
    int blocks = (iterations + BLOCK - 1) / BLOCK;
    for (; at < argc; at++, sizes++) {
        int count = atoi(argv[at]) / (int)sizeof(float);
        if (count < 1 || sizes == MOST_SIZES)
            return usage(rank);
        struct size *s = &all[sizes];
        *s = (struct size){.count = count,
                           .in = malloc(count * sizeof(float)),
                           .out = malloc(count * sizeof(float)),
                           .blocks = malloc(blocks * sizeof(double))};
        if (s->in == NULL || s->out == NULL || s->blocks == NULL)
            return usage(rank);
        /* Whole numbers below 2^24: any order of additions gives the same float. */
        for (int i = 0; i < count; i++)
            s->in[i] = (float)(rank + i % 7);
    }
    if (sizes == 0)
        return usage(rank);
    int status = 0, warm = 0;
    while (status == 0 && (fifo < 0 || has_turn(fifo))) {
        for (int i = 0; i < sizes && !warm; i++)
            call(&all[i], warm_up);
        warm = 1;
        status = turn(all, sizes, blocks, rank, ranks);
        if (fifo < 0)
            break;
    }
    for (int i = 0; i < sizes; i++) {
        free(all[i].in);
        free(all[i].out);
        free(all[i].blocks);
    }
    MPI_Finalize();
    return status;
}
