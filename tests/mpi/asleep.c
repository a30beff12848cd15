/* A process of which nothing is ours any more, and what wakes it up: communicators that are made later, receives that wait
 * inside plain calls, messages that came while it slept. Runs plain too, with the same result. Rank 0 prints "wrong N"; exits 1
 * if N > 0.
 *
 * usage: asleep [MS]: rank 0 then keeps the others waiting so long in plain calls */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* MPICH's MPI_STATUSES_IGNORE is an address of nothing. */
#pragma GCC diagnostic ignored "-Wstringop-overflow"

enum { SETTLES = 40, JOINS = 12, MANY = 50, LARGE = 1 << 18 };

static int rank, size, next, before;
static long wrong;

static void check(int good, int line)
{
    if (!good) {
        fprintf(stderr, "rank %d: line %d\n", rank, line);
        wrong++;
    }
}
#define CHECK(what) check((what), __LINE__)

/* One message per superstep: nothing can be joined, so that the communicator becomes plain. */
static void single(MPI_Comm comm, int rounds)
{
    for (int round = 0; round < rounds; round++) {
        int in = -1;
        MPI_Sendrecv(&round, 1, MPI_INT, next, 1, &in, 1, MPI_INT, before, 1, comm, MPI_STATUS_IGNORE);
        CHECK(in == round);
        MPI_Barrier(comm);
    }
}

/* Many to each other rank. */
static void several(MPI_Comm comm)
{
    MPI_Request *requests = malloc(sizeof *requests * 2 * MANY * size);
    int *out = malloc(sizeof *out * MANY * size), *in = malloc(sizeof *in * MANY * size), pending = 0;
    memset(in, 0, sizeof *in * MANY * size);
    for (int at = 0; at < MANY * size; at++)
        MPI_Irecv(&in[at], 1, MPI_INT, at % size, at / size, comm, &requests[pending++]);
    for (int at = 0; at < MANY * size; at++) {
        out[at] = 10000 * rank + at;
        MPI_Isend(&out[at], 1, MPI_INT, at % size, at / size, comm, &requests[pending++]);
    }
    MPI_Waitall(pending, requests, MPI_STATUSES_IGNORE);
    for (int at = 0; at < MANY * size; at++)
        CHECK(in[at] == 10000 * (at % size) + at / size * size + rank);
    free(requests), free(out), free(in);
}

/* Nobody has asked for these messages while they come, and what is waited for are other communicators' and plain calls. */
static void unasked(MPI_Comm ours, MPI_Comm plain)
{
    static char out[LARGE], in[LARGE];
    int there = 0, small = rank;
    MPI_Request sent[2], received;
    MPI_Status status;
    memset(out, rank + 1, LARGE);
    MPI_Issend(out, LARGE, MPI_BYTE, next, 1, ours, &sent[0]);
    MPI_Isend(&small, 1, MPI_INT, next, 2, ours, &sent[1]);
    single(plain, 3);
    while (!there)
        MPI_Iprobe(MPI_ANY_SOURCE, 2, ours, &there, &status);
    CHECK(status.MPI_SOURCE == before);
    MPI_Recv(&small, 1, MPI_INT, before, 2, ours, MPI_STATUS_IGNORE);
    CHECK(small == before);
    /* It comes while we are in calls that nobody puts himself in front of. */
    MPI_Irecv(in, LARGE, MPI_BYTE, MPI_ANY_SOURCE, 1, ours, &received);
    PMPI_Waitall(2, sent, MPI_STATUSES_IGNORE);
    PMPI_Barrier(plain);
    MPI_Wait(&received, &status);
    CHECK(status.MPI_SOURCE == before && in[0] == before + 1 && in[LARGE - 1] == before + 1);
}

/* A message that nothing sends off but a plain call that nobody puts himself in front of. */
static void unsent(MPI_Comm ours, MPI_Comm plain)
{
    int in = -1;
    MPI_Request request = MPI_REQUEST_NULL;
    several(ours); /* so that the next one waits for others */
    if (rank % 2 == 0 && next != rank)
        MPI_Isend(&rank, 1, MPI_INT, next, 3, ours, &request);
    if (rank % 2 == 1) {
        MPI_Recv(&in, 1, MPI_INT, before, 3, ours, MPI_STATUS_IGNORE);
        CHECK(in == before);
    }
    PMPI_Barrier(plain);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    /* Around an odd ring, rank 0 has one from the last. */
    if (rank == 0 && size % 2 == 1 && size > 1) {
        MPI_Recv(&in, 1, MPI_INT, before, 3, ours, MPI_STATUS_IGNORE);
        CHECK(in == before);
    }
}

int main(int argc, char **argv)
{
    int patience = argc > 1 ? atoi(argv[1]) : 0, token = 0;
    MPI_Comm again;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    next = (rank + 1) % size, before = (rank + size - 1) % size;
    single(MPI_COMM_WORLD, SETTLES);
    if (rank == 0)
        usleep((useconds_t)patience * 1000);
    MPI_Bcast(&token, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (rank == 0)
        usleep((useconds_t)patience * 1000);
    single(MPI_COMM_WORLD, 1);
    for (int made = 0; patience == 0 && made < 3; made++) {
        MPI_Comm_dup(MPI_COMM_WORLD, &again);
        for (int round = 0; round < JOINS; round++) {
            several(again);
            MPI_Barrier(again);
        }
        unasked(again, MPI_COMM_WORLD);
        unsent(again, MPI_COMM_WORLD);
        MPI_Request left;
        int last = -1;
        MPI_Irecv(&last, 1, MPI_INT, before, 9, again, &left);
        MPI_Send(&rank, 1, MPI_INT, next, 9, again);
        if (made < 2)
            MPI_Comm_free(&again);
        MPI_Wait(&left, MPI_STATUS_IGNORE);
        CHECK(last == before);
    }
    long all = 0;
    MPI_Reduce(&wrong, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("wrong %ld\n", all);
    MPI_Finalize();
    return wrong > 0;
}
