/* Time of a superstep in which every rank sends many messages to every other: MPI_Irecv and MPI_Isend for each, MPI_Waitall.
 *
 * superstep [-w WARM_UP] [-n ITERATIONS] [-m MESSAGES] [-p] [-t FIFO] BYTES...
 *
 * -m: messages for each peer (32). -p: the program packs those for a peer into one message by hand, and unpacks it. Sizes take
 * turns in blocks of 5 supersteps. Every size prints a line of JSON on rank 0: median_us, the median of the blocks' means of one
 * superstep, the slowest rank's. A message with wrong bytes ends the program with status 1. -t: as in allreduce.c. */
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 5, MOST_SIZES = 32 };

static int rank, ranks, messages = 32, packs;
static char *out, *in, *packed_out, *packed_in; /* by peer, then by message */
static MPI_Request *requests;

struct size {
    int bytes;
    double *blocks; /* seconds */
};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int usage(void)
{
    if (rank == 0)
        fprintf(stderr, "usage: superstep [-w WARM_UP] [-n ITERATIONS] [-m MESSAGES] [-p] [-t FIFO] BYTES...   (at most %d sizes)\n",
                MOST_SIZES);
    MPI_Finalize();
    return 2;
}

/* What the bytes of a message say: who sent which. */
static char mark(int from, int to, int message)
{
    return (char)(from * 31 + to * 7 + message * 3 + 1);
}

static size_t place(int peer, int message, int bytes)
{
    return ((size_t)peer * messages + message) * bytes;
}

static void superstep(int bytes)
{
    int pending = 0;
    for (int step = 1; step < ranks; step++) {
        int peer = (rank + step) % ranks;
        if (packs)
            MPI_Irecv(packed_in + place(peer, 0, bytes), messages * bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD, &requests[pending++]);
        for (int i = 0; i < messages && !packs; i++)
            MPI_Irecv(in + place(peer, i, bytes), bytes, MPI_BYTE, peer, i, MPI_COMM_WORLD, &requests[pending++]);
    }
    for (int step = 1; step < ranks; step++) {
        int peer = (rank + step) % ranks;
        for (int i = 0; i < messages; i++) {
            if (packs)
                memcpy(packed_out + place(peer, i, bytes), out + place(peer, i, bytes), bytes);
            else
                MPI_Isend(out + place(peer, i, bytes), bytes, MPI_BYTE, peer, i, MPI_COMM_WORLD, &requests[pending++]);
        }
        if (packs)
            MPI_Isend(packed_out + place(peer, 0, bytes), messages * bytes, MPI_BYTE, peer, 0, MPI_COMM_WORLD, &requests[pending++]);
    }
    MPI_Waitall(pending, requests, MPI_STATUSES_IGNORE);
    for (int peer = 0; packs && peer < ranks; peer++)
        for (int i = 0; i < messages && peer != rank; i++)
            memcpy(in + place(peer, i, bytes), packed_in + place(peer, i, bytes), bytes);
}

/* Fills what is sent, and forgets what was received. */
static void fill(int bytes)
{
    size_t all = (size_t)ranks * messages * bytes;
    memset(in, 0, all);
    memset(packed_in, 0, all);
    for (int peer = 0; peer < ranks; peer++)
        for (int i = 0; i < messages; i++)
            memset(out + place(peer, i, bytes), mark(rank, peer, i), bytes);
}

static int is_right(int bytes)
{
    int wrong = 0, any;
    for (int peer = 0; peer < ranks; peer++)
        for (int i = 0; i < messages && peer != rank; i++)
            for (int at = 0; at < bytes; at++)
                wrong |= in[place(peer, i, bytes) + at] != mark(peer, rank, i);
    MPI_Allreduce(&wrong, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    if (any && rank == 0)
        fprintf(stderr, "a message of %d bytes has wrong bytes\n", bytes);
    return !any;
}

/* All sizes, once. */
static int turn(struct size *all, int sizes, int blocks)
{
    for (int block = 0; block < blocks; block++)
        for (int i = 0; i < sizes; i++) {
            fill(all[i].bytes);
            superstep(all[i].bytes);
            if (!is_right(all[i].bytes))
                return 1;
            MPI_Barrier(MPI_COMM_WORLD);
            double begun = MPI_Wtime();
            for (int n = 0; n < BLOCK; n++)
                superstep(all[i].bytes);
            double mine = (MPI_Wtime() - begun) / BLOCK;
            MPI_Allreduce(&mine, &all[i].blocks[block], 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        }
    for (int i = 0; i < sizes; i++) {
        qsort(all[i].blocks, blocks, sizeof(double), by_value);
        if (rank == 0)
            printf("{\"bytes\": %d, \"ranks\": %d, \"messages\": %d, \"median_us\": %.3f}\n", all[i].bytes, ranks, messages,
                   all[i].blocks[blocks / 2] * 1e6);
    }
    fflush(stdout);
    return 0;
}

static int has_turn(int fifo)
{
    char byte = 0;
    return read(fifo, &byte, 1) == 1 && byte == '.';
}

int main(int argc, char **argv)
{
    int warm_up = 60, iterations = 200, sizes = 0, fifo = -1, option, most = 0;
    struct size all[MOST_SIZES] = {0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    while ((option = getopt(argc, argv, "w:n:m:t:p")) != -1) {
        if (option == 'w')
            warm_up = atoi(optarg);
        else if (option == 'n')
            iterations = atoi(optarg);
        else if (option == 'm')
            messages = atoi(optarg);
        else if (option == 'p')
            packs = 1;
        else if (option == 't')
            fifo = open(optarg, O_RDONLY);
        if (option == '?' || (option == 't' && fifo < 0))
            return usage();
    }
    int blocks = (iterations + BLOCK - 1) / BLOCK;
    for (; optind < argc; optind++, sizes++) {
        if (sizes == MOST_SIZES || atoi(argv[optind]) < 1)
            return usage();
        all[sizes].bytes = atoi(argv[optind]);
        most = all[sizes].bytes > most ? all[sizes].bytes : most;
    }
    if (sizes == 0 || warm_up < 0 || blocks < 1 || messages < 1)
        return usage();
    size_t room = (size_t)ranks * messages * most;
    out = malloc(room), in = malloc(room), packed_out = malloc(room), packed_in = malloc(room);
    requests = malloc(2 * (size_t)ranks * messages * sizeof *requests);
    double *figures = malloc((size_t)sizes * blocks * sizeof(double));
    if (out == NULL || in == NULL || packed_out == NULL || packed_in == NULL || requests == NULL || figures == NULL) {
        fprintf(stderr, "not enough memory for %zu bytes of messages\n", room);
        MPI_Abort(MPI_COMM_WORLD, 2);
    }
    for (int i = 0; i < sizes; i++)
        all[i].blocks = figures + (size_t)i * blocks;
    int status = 0, warm = 0;
    while (status == 0 && (fifo < 0 || has_turn(fifo))) {
        for (int n = 0; n < warm_up && !warm; n++)
            superstep(all[n % sizes].bytes);
        warm = 1;
        status = turn(all, sizes, blocks);
        if (fifo < 0)
            break;
    }
    MPI_Finalize();
    return status;
}
