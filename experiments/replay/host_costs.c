/* What a message costs between two ranks, measured by all pairs at once: the time of MPI_Send, and half of a ping-pong's round
 * trip. Before each ping both ranks walk through more memory than the caches near a processor hold, as a program does that
 * computes between its messages: without that a message costs half as much.
 *
 * host_costs STRIDE RANKS BLOCKS BYTES...      rank r works with rank r + STRIDE; those from RANKS on wait meanwhile
 *
 * Sizes take turns, a block each. Every size prints a line of JSON on rank 0: send_us and half_us, the median of the blocks'
 * means, averaged over the pairs. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUND_TRIPS = 50, WALK = 1 << 20, LINE = 64, MOST_SIZES = 32, MOST_BLOCKS = 10000 };

static int peer, leads;
static char *data, *memory;

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void send(int bytes)
{
    MPI_Send(data, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD);
}

static void receive(int bytes)
{
    MPI_Recv(data, bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void walk(void)
{
    for (int at = 0; at < WALK; at += LINE)
        ((volatile char *)memory)[at]++;
}

/* Means of a send and of half a round trip. The peer waits when the ping leaves. */
static void ping_pong(int bytes, double *sent, double *half)
{
    *sent = *half = 0;
    for (int i = 0; i < ROUND_TRIPS; i++) {
        if (!leads) {
            walk();
            send(0), receive(bytes), send(bytes);
            continue;
        }
        receive(0);
        walk();
        double begun = MPI_Wtime();
        send(bytes);
        double free = MPI_Wtime();
        receive(bytes);
        *sent += (free - begun) / ROUND_TRIPS;
        *half += (MPI_Wtime() - begun) / (2 * ROUND_TRIPS);
    }
}

static double mean_of_medians(double *blocks, int count, int pairs)
{
    double total = 0;
    qsort(blocks, count, sizeof *blocks, by_value);
    double own = leads ? blocks[count / 2] : 0;
    MPI_Reduce(&own, &total, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    return total / pairs;
}

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int stride = argc > 1 ? atoi(argv[1]) : 0, working = argc > 2 ? atoi(argv[2]) : 0, count = argc > 3 ? atoi(argv[3]) : 0;
    int sizes = argc - 4;
    if (stride < 1 || working < 1 || working > ranks || working % (2 * stride) || count < 1 || count > MOST_BLOCKS || sizes < 1 || sizes > MOST_SIZES) {
        if (rank == 0)
            fprintf(stderr, "usage: host_costs STRIDE RANKS BLOCKS BYTES...   (RANKS: a multiple of 2 STRIDE)\n");
        MPI_Finalize();
        return 2;
    }
    int works = rank < working;
    leads = works && rank / stride % 2 == 0;
    peer = leads ? rank + stride : rank - stride;
    static double *halves[MOST_SIZES], *sends[MOST_SIZES];
    data = calloc(1, 1 << 30);
    memory = calloc(1, WALK);
    for (int at = 0; at < sizes; at++) {
        halves[at] = calloc(count, sizeof(double));
        sends[at] = calloc(count, sizeof(double));
    }
    for (int block = -1; block < count; block++) {
        for (int at = 0; at < sizes; at++) {
            int bytes = atoi(argv[4 + at]);
            MPI_Barrier(MPI_COMM_WORLD);
            if (!works)
                continue;
            double half, sent;
            ping_pong(bytes, &sent, &half);
            if (block >= 0) {
                halves[at][block] = half;
                sends[at][block] = sent;
            }
        }
    }
    for (int at = 0; at < sizes; at++) {
        double sent = mean_of_medians(sends[at], count, working / 2);
        double half = mean_of_medians(halves[at], count, working / 2);
        if (rank == 0)
            printf("{\"bytes\": %d, \"send_us\": %.4f, \"half_us\": %.4f}\n", atoi(argv[4 + at]), 1e6 * sent, 1e6 * half);
    }
    MPI_Finalize();
    return 0;
}
