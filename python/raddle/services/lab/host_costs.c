/* What messages and sums cost their ranks.
 *
 * host_costs pairs STRIDE RANKS BLOCKS BYTES...   rank r works with rank r + STRIDE; those from RANKS on wait meanwhile
 * host_costs sums BLOCKS BYTES...                 all ranks call MPI_Allreduce
 * host_costs ring BLOCKS BYTES...                 all ranks exchange messages with the next one and the one before
 *
 * pairs measures all pairs at once: the time of MPI_Send, and half of a ping-pong's round trip. Before each ping, sum or
 * exchange ranks walk through more memory than the caches near a processor hold, as a program does that computes between its
 * messages: without that a message costs half as much.
 *
 * Sizes take turns, a block each. Every size prints a line of JSON on rank 0, medians of the blocks' means, averaged over the
 * ranks that measure: of pairs send_us and half_us; of the others walk_us, call_us, and both together, loop_us. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUND_TRIPS = 50, WALK = 1 << 20, LINE = 64, MOST_SIZES = 32, MOST_BLOCKS = 10000 };

static int peer, leads, neighbours[2];
static char *data, *memory;
static double *sums;

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
static void ping_pong(int bytes, double *sent, double *half, double *unused)
{
    *sent = *half = *unused = 0;
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

/* Means of a walk, of a sum after it, and of both. */
static void sum(int bytes, double *walked, double *called, double *both)
{
    *walked = *called = *both = 0;
    for (int i = 0; i < ROUND_TRIPS; i++) {
        double begun = MPI_Wtime();
        walk();
        double ready = MPI_Wtime();
        MPI_Allreduce(MPI_IN_PLACE, sums, bytes / (int)sizeof(double), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
        *walked += (ready - begun) / ROUND_TRIPS;
        *called += (MPI_Wtime() - ready) / ROUND_TRIPS;
    }
    *both = *walked + *called;
}

/* Means of a walk, of an exchange with both neighbours in a ring after it, and of both. */
static void ring(int bytes, double *walked, double *called, double *both)
{
    MPI_Request requests[4];
    *walked = *called = *both = 0;
    for (int i = 0; i < ROUND_TRIPS; i++) {
        double begun = MPI_Wtime();
        walk();
        double ready = MPI_Wtime();
        for (int to = 0; to < 2; to++) {
            MPI_Irecv(data + (2 + to) * bytes, bytes, MPI_BYTE, neighbours[to], 0, MPI_COMM_WORLD, &requests[to]);
            MPI_Isend(data + to * bytes, bytes, MPI_BYTE, neighbours[to], 0, MPI_COMM_WORLD, &requests[2 + to]);
        }
        MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
        *walked += (ready - begun) / ROUND_TRIPS;
        *called += (MPI_Wtime() - ready) / ROUND_TRIPS;
    }
    *both = *walked + *called;
}

static double mean_of_medians(double *blocks, int count, int measuring)
{
    double total = 0;
    qsort(blocks, count, sizeof *blocks, by_value);
    double own = leads ? blocks[count / 2] : 0;
    MPI_Reduce(&own, &total, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    return total / measuring;
}

static int usage(int rank)
{
    if (rank == 0)
        fprintf(stderr, "usage: host_costs pairs STRIDE RANKS BLOCKS BYTES...   (RANKS: a multiple of 2 STRIDE)\n"
                        "       host_costs sums|ring BLOCKS BYTES...            (BYTES of sums: multiples of 8)\n");
    MPI_Finalize();
    return 2;
}

int main(int argc, char **argv)
{
    int rank, ranks;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    const char *what = argc > 1 ? argv[1] : "";
    int is_pairs = !strcmp(what, "pairs"), is_ring = !strcmp(what, "ring");
    int first = is_pairs ? 5 : 3, sizes = argc - first;
    if ((!is_pairs && !is_ring && strcmp(what, "sums")) || sizes < 1 || sizes > MOST_SIZES)
        return usage(rank);
    int stride = is_pairs ? atoi(argv[2]) : 1, working = is_pairs ? atoi(argv[3]) : ranks, count = atoi(argv[first - 1]);
    if (stride < 1 || working < 1 || working > ranks || count < 1 || count > MOST_BLOCKS || (is_pairs && working % (2 * stride)))
        return usage(rank);
    int works = rank < working;
    leads = works && (!is_pairs || rank / stride % 2 == 0);
    peer = leads ? rank + stride : rank - stride;
    neighbours[0] = (rank + 1) % ranks, neighbours[1] = (rank + ranks - 1) % ranks;
    int measuring = is_pairs ? working / 2 : ranks;
    static double *first_of[MOST_SIZES], *second_of[MOST_SIZES], *third_of[MOST_SIZES];
    data = calloc(1, 1 << 30);
    sums = (double *)data;
    memory = calloc(1, WALK);
    for (int at = 0; at < sizes; at++) {
        first_of[at] = calloc(count, sizeof(double));
        second_of[at] = calloc(count, sizeof(double));
        third_of[at] = calloc(count, sizeof(double));
    }
    for (int block = -1; block < count; block++) {
        for (int at = 0; at < sizes; at++) {
            int bytes = atoi(argv[first + at]);
            MPI_Barrier(MPI_COMM_WORLD);
            if (!works)
                continue;
            double one, two, three;
            (is_pairs ? ping_pong : is_ring ? ring : sum)(bytes, &one, &two, &three);
            if (block >= 0) {
                first_of[at][block] = one;
                second_of[at][block] = two;
                third_of[at][block] = three;
            }
        }
    }
    const char *names = is_pairs ? "{\"bytes\": %d, \"send_us\": %.4f, \"half_us\": %.4f}\n"
                                 : "{\"bytes\": %d, \"walk_us\": %.4f, \"call_us\": %.4f, \"loop_us\": %.4f}\n";
    for (int at = 0; at < sizes; at++) {
        double one = 1e6 * mean_of_medians(first_of[at], count, measuring);
        double two = 1e6 * mean_of_medians(second_of[at], count, measuring);
        double all = 1e6 * mean_of_medians(third_of[at], count, measuring);
        if (rank == 0)
            printf(names, atoi(argv[first + at]), one, two, all);
    }
    MPI_Finalize();
    return 0;
}
