/* What a message costs between two ranks, measured by all pairs at once: the mean time of MPI_Send when several follow one
 * another, and half of a ping-pong's round trip.
 *
 * host_costs STRIDE BLOCKS BYTES...      rank r works with rank r + STRIDE
 *
 * Sizes take turns, a block each. Every size prints a line of JSON on rank 0: send_us and half_us, the median of the blocks'
 * means, averaged over the pairs. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROUND_TRIPS = 100, TOGETHER = 8, BURSTS = 20, MOST_SIZES = 32, MOST_BLOCKS = 10000 };

static int peer, leads;
static char *data;

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

static double half_round_trip(int bytes)
{
    double begun = MPI_Wtime();
    for (int i = 0; i < ROUND_TRIPS; i++) {
        if (leads)
            send(bytes), receive(bytes);
        else
            receive(bytes), send(bytes);
    }
    return (MPI_Wtime() - begun) / (2 * ROUND_TRIPS);
}

/* The receiver answers a burst when it has all of it, so that no burst finds the buffers of the one before full. */
static double time_of_send(int bytes)
{
    double spent = 0;
    for (int burst = 0; burst < BURSTS; burst++) {
        double begun = MPI_Wtime();
        for (int i = 0; i < TOGETHER; i++) {
            if (leads)
                send(bytes);
            else
                receive(bytes);
        }
        spent += MPI_Wtime() - begun;
        if (leads)
            receive(0);
        else
            send(0);
    }
    return spent / (BURSTS * TOGETHER);
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
    int stride = argc > 1 ? atoi(argv[1]) : 0, count = argc > 2 ? atoi(argv[2]) : 0, sizes = argc - 3;
    if (stride < 1 || ranks % (2 * stride) || count < 1 || count > MOST_BLOCKS || sizes < 1 || sizes > MOST_SIZES) {
        if (rank == 0)
            fprintf(stderr, "usage: host_costs STRIDE BLOCKS BYTES...   (ranks: a multiple of 2 STRIDE)\n");
        MPI_Finalize();
        return 2;
    }
    leads = rank / stride % 2 == 0;
    peer = leads ? rank + stride : rank - stride;
    static double *halves[MOST_SIZES], *sends[MOST_SIZES];
    data = calloc(1, 1 << 30);
    for (int at = 0; at < sizes; at++) {
        halves[at] = calloc(count, sizeof(double));
        sends[at] = calloc(count, sizeof(double));
    }
    for (int block = -1; block < count; block++) {
        for (int at = 0; at < sizes; at++) {
            int bytes = atoi(argv[3 + at]);
            MPI_Barrier(MPI_COMM_WORLD);
            double half = half_round_trip(bytes), sent = time_of_send(bytes);
            if (block >= 0) {
                halves[at][block] = half;
                sends[at][block] = sent;
            }
        }
    }
    for (int at = 0; at < sizes; at++) {
        double sent = mean_of_medians(sends[at], count, ranks / 2);
        double half = mean_of_medians(halves[at], count, ranks / 2);
        if (rank == 0)
            printf("{\"bytes\": %d, \"send_us\": %.4f, \"half_us\": %.4f}\n", atoi(argv[3 + at]), 1e6 * sent, 1e6 * half);
    }
    MPI_Finalize();
    return 0;
}
