/* Large messages in every way in which MPI moves them, with every byte looked at. Runs plain too, with the same result. Rank 0
 * prints "wrong N"; exits 1 if N > 0.
 *
 * usage: rails [ROUNDS]             rounds of everything
 *        rails last SECONDS         messages both ways for so long; rank 0 prints "longest MS"
 *        rails scarce               long messages for short receives, without memory for the rest of them
 *        rails bandwidth BYTES TIMES   windows of 16 from rank 0 to rank 1; rank 0 prints "mbps X" */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* MPICH's MPI_STATUSES_IGNORE is an address of nothing. */
#pragma GCC diagnostic ignored "-Wstringop-overflow"

enum { MOST = 9 << 20, WINDOW = 16 };

static int rank, size;
static long wrong;
static unsigned number;

static void check(int good, int line)
{
    if (!good) {
        fprintf(stderr, "rank %d: line %d\n", rank, line);
        wrong++;
    }
}
#define CHECK(what) check((what), __LINE__)

/* Bytes that no other message has. */
static void fill(char *bytes, int length, unsigned seed)
{
    for (int at = 0; at < length; at++)
        bytes[at] = (char)((seed * 2654435761u + (unsigned)at * 40503u) >> 13);
}

static int is_filled(const char *bytes, int length, unsigned seed)
{
    for (int at = 0; at < length; at++)
        if (bytes[at] != (char)((seed * 2654435761u + (unsigned)at * 40503u) >> 13))
            return 0;
    return 1;
}

static char *memory(size_t bytes)
{
    char *made = malloc(bytes);
    if (made == NULL)
        MPI_Abort(MPI_COMM_WORLD, 2);
    return made;
}

static unsigned seed_of(int source, int at)
{
    return number * 1000 + (unsigned)source * 100 + (unsigned)at;
}

/* A window of messages each way; receives before or after, with or without wildcards. */
static void window(int length, int other, int kind)
{
    char *out[4], *in[4];
    MPI_Request requests[8];
    MPI_Status statuses[8];
    for (int at = 0; at < 4; at++) {
        out[at] = memory(length), in[at] = memory(length);
        fill(out[at], length - at, seed_of(rank, at));
    }
    for (int pass = 0; pass < 2; pass++)
        for (int at = 0; at < 4; at++)
            if (pass == kind % 2)
                MPI_Irecv(in[at], length, MPI_BYTE, kind & 2 ? MPI_ANY_SOURCE : other, kind & 4 ? MPI_ANY_TAG : 7, MPI_COMM_WORLD,
                          &requests[at]);
            else
                MPI_Isend(out[at], length - at, MPI_BYTE, other, 7, MPI_COMM_WORLD, &requests[4 + at]);
    if (kind & 1)
        usleep(2000);
    MPI_Waitall(8, requests, statuses);
    for (int at = 0; at < 4; at++) {
        int count = -1;
        MPI_Get_count(&statuses[at], MPI_BYTE, &count);
        CHECK(count == length - at && statuses[at].MPI_SOURCE == other && statuses[at].MPI_TAG == 7);
        CHECK(is_filled(in[at], length - at, seed_of(other, at)));
        free(out[at]), free(in[at]);
    }
    number++;
}

static void calls(int length, int other)
{
    char *out = memory(length), *in = memory(length);
    MPI_Status status;
    MPI_Message message;
    MPI_Request requests[2];
    int count = -1, flag = 0;
    fill(out, length, seed_of(rank, 0));
    MPI_Sendrecv(out, length, MPI_BYTE, other, 1, in, length, MPI_BYTE, other, 1, MPI_COMM_WORLD, &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    CHECK(count == length && is_filled(in, length, seed_of(other, 0)));
    memset(in, 0, length);
    if (rank < other) {
        MPI_Ssend(out, length, MPI_BYTE, other, 2, MPI_COMM_WORLD);
        MPI_Send(out, length, MPI_BYTE, other, 3, MPI_COMM_WORLD);
        MPI_Send(out, length, MPI_BYTE, other, 4, MPI_COMM_WORLD);
        MPI_Issend(out, length, MPI_BYTE, other, 5, MPI_COMM_WORLD, &requests[0]);
        while (!flag)
            MPI_Test(&requests[0], &flag, &status);
    } else {
        MPI_Recv(in, length, MPI_BYTE, other, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(is_filled(in, length, seed_of(other, 0)));
        memset(in, 0, length);
        MPI_Probe(MPI_ANY_SOURCE, 3, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_BYTE, &count);
        CHECK(count == length && status.MPI_SOURCE == other);
        MPI_Recv(in, length, MPI_BYTE, status.MPI_SOURCE, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(is_filled(in, length, seed_of(other, 0)));
        memset(in, 0, length);
        MPI_Mprobe(other, 4, MPI_COMM_WORLD, &message, &status);
        MPI_Mrecv(in, length, MPI_BYTE, &message, &status);
        CHECK(is_filled(in, length, seed_of(other, 0)));
        memset(in, 0, length);
        usleep(1000);
        MPI_Recv(in, length, MPI_BYTE, other, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
        CHECK(status.MPI_TAG == 5 && is_filled(in, length, seed_of(other, 0)));
    }
    MPI_Send_init(out, length, MPI_BYTE, other, 6, MPI_COMM_WORLD, &requests[0]);
    MPI_Recv_init(in, length, MPI_BYTE, other, 6, MPI_COMM_WORLD, &requests[1]);
    for (int at = 0; at < 3; at++) {
        fill(out, length, seed_of(rank, at));
        memset(in, 0, length);
        MPI_Startall(2, requests);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        CHECK(is_filled(in, length, seed_of(other, at)));
    }
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    free(out), free(in);
    number++;
}

/* Types with gaps at either end, and messages that are too long. */
static void types(int length, int other)
{
    char *out = memory(length), *in = memory(2 * (size_t)length), *half = memory(length);
    MPI_Datatype gaps;
    MPI_Request requests[2];
    MPI_Status status;
    int class = 0, blocks = length / 64;
    MPI_Type_vector(blocks, 64, 128, MPI_BYTE, &gaps);
    MPI_Type_commit(&gaps);
    fill(out, 64 * blocks, seed_of(rank, 0));
    MPI_Irecv(in, 1, gaps, other, 1, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(out, 64 * blocks, MPI_BYTE, other, 1, MPI_COMM_WORLD, &requests[1]);
    MPI_Type_free(&gaps);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    for (int at = 0; at < blocks; at++)
        memcpy(half + 64 * at, in + 128 * at, 64);
    CHECK(is_filled(half, 64 * blocks, seed_of(other, 0)));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    memset(in, 0, length);
    MPI_Isend(out, 64 * blocks, MPI_BYTE, other, 2, MPI_COMM_WORLD, &requests[1]);
    int error = MPI_Recv(in, length / 2 - 5, MPI_BYTE, other, 2, MPI_COMM_WORLD, &status);
    MPI_Error_class(error, &class);
    /* Open MPI 4.1 itself writes past the end of a long receive that is cut off, so what lies there says nothing. */
    CHECK(class == MPI_ERR_TRUNCATE);
    MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    free(out), free(in), free(half);
    number++;
}

static void last(double seconds, int other)
{
    int length = 1 << 20, goes_on = 1;
    char *out = memory(length), *in = memory(length);
    double begun = MPI_Wtime(), longest = 0;
    while (goes_on) {
        double since = MPI_Wtime();
        fill(out, length, seed_of(rank, 0));
        memset(in, 0, length);
        MPI_Sendrecv(out, length, MPI_BYTE, other, 1, in, length, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        CHECK(is_filled(in, length, seed_of(other, 0)));
        number++;
        if (MPI_Wtime() - since > longest)
            longest = MPI_Wtime() - since;
        goes_on = MPI_Wtime() - begun < seconds;
        MPI_Bcast(&goes_on, 1, MPI_INT, 0, MPI_COMM_WORLD);
    }
    if (rank == 0)
        printf("longest %.0f\nmessages %u\n", longest * 1e3, number);
    free(out), free(in);
}

/* Lets this process have so many bytes of memory more than it has; gives the limit before. */
static struct rlimit limit_memory(size_t more)
{
    struct rlimit before, now;
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    CHECK(file != NULL && fscanf(file, "%lu", &pages) == 1);
    if (file != NULL)
        fclose(file);
    getrlimit(RLIMIT_AS, &before);
    now = before;
    now.rlim_cur = pages * (size_t)sysconf(_SC_PAGESIZE) + more;
    CHECK(setrlimit(RLIMIT_AS, &now) == 0);
    return before;
}

static void scarce(int other)
{
    enum { LENGTH = 64 << 20, PART = 1000, TIMES = 3 };
    char *out = memory(LENGTH), *in = memory(LENGTH);
    MPI_Request request;
    /* Rails are open after these. */
    for (int at = 0; at < 20; at++)
        window(65536, other, 1);
    fill(out, LENGTH, seed_of(rank, 0));
    struct rlimit before = limit_memory(LENGTH / 2);
    void *more = malloc(LENGTH);
    CHECK(more == NULL);
    free(more);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    for (int at = 0; at < TIMES; at++) {
        int class = 0;
        MPI_Isend(out, LENGTH, MPI_BYTE, other, 1, MPI_COMM_WORLD, &request);
        MPI_Error_class(MPI_Recv(in, PART, MPI_BYTE, other, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE), &class);
        CHECK(class == MPI_ERR_TRUNCATE && is_filled(in, PART, seed_of(other, 0)));
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
    setrlimit(RLIMIT_AS, &before);
    for (int at = 0; at < TIMES; at++)
        window(1 << 20, other, at);
    free(out), free(in);
}

static void bandwidth(int length, int times)
{
    char *buffers = memory((size_t)WINDOW * length);
    MPI_Request requests[WINDOW];
    double begun = 0, best = 0;
    memset(buffers, 1, (size_t)WINDOW * length);
    for (int time = 0; time < times; time++) {
        MPI_Barrier(MPI_COMM_WORLD);
        begun = MPI_Wtime();
        for (int at = 0; at < WINDOW && rank < 2; at++)
            if (rank == 0)
                MPI_Isend(buffers + (size_t)at * length, length, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &requests[at]);
            else
                MPI_Irecv(buffers + (size_t)at * length, length, MPI_BYTE, 0, 1, MPI_COMM_WORLD, &requests[at]);
        if (rank < 2)
            MPI_Waitall(WINDOW, requests, MPI_STATUSES_IGNORE);
        if (rank == 0)
            MPI_Recv(NULL, 0, MPI_BYTE, 1, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        else if (rank == 1)
            MPI_Send(NULL, 0, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
        double mbps = 8e-6 * WINDOW * length / (MPI_Wtime() - begun);
        /* The first ones are those in which ways are measured. */
        if (rank == 0 && time >= times / 2)
            best += mbps / (times - times / 2);
    }
    if (rank == 0)
        printf("mbps %.1f\n", best);
    free(buffers);
}

int main(int argc, char **argv)
{
    static const int lengths[] = {65535, 65536, 100001, 1 << 20, (1 << 20) + 13, 3 << 20, MOST};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    int other = rank ^ 1, rounds = argc > 1 ? atoi(argv[1]) : 1;
    if (argc > 2 && strcmp(argv[1], "last") == 0)
        last(atof(argv[2]), other);
    else if (argc > 1 && strcmp(argv[1], "scarce") == 0)
        scarce(other);
    else if (argc > 3 && strcmp(argv[1], "bandwidth") == 0)
        bandwidth(atoi(argv[2]), atoi(argv[3]));
    else
        for (int round = 0; round < rounds; round++)
            for (int at = 0; at < 7; at++) {
                window(lengths[at], other, (round + at) % 8);
                calls(lengths[at], other);
                types(lengths[at], other);
            }
    long all = 0;
    MPI_Reduce(&wrong, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("wrong %ld\n", all);
    MPI_Finalize();
    return rank == 0 && all > 0;
}
