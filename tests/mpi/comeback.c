/* Collectives on two communicators, while switches die and return and ranks are stopped. Every result is held to the bits
 * of the PMPI call; sums of wild magnitudes show another order of additions. Goes on until the file END exists; now and
 * then a communicator that lives for a few calls only. Rank 0 prints "begun" after the first rounds, "did 64 more" after
 * each 64, and at the end "rounds N wrong W"; exits 1 if W > 0.
 *
 * usage: comeback END [MICROSECONDS_BETWEEN] */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 24, EVERY = 16 };

static uint64_t state;

static uint64_t draw(void)
{
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Magnitudes far apart, either sign. */
static double wild(void)
{
    uint64_t bits = draw(), exponent = 1023 - 20 + draw() % 41;
    double value;
    bits = (bits & ((UINT64_C(1) << 63) | ((UINT64_C(1) << 52) - 1))) | exponent << 52;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* A call of each kind; how many results differ from the PMPI call's. */
static long round_of(MPI_Comm comm, long number)
{
    double mine[MOST], ours[MOST] = {0}, plain[MOST] = {0};
    int rank, size, count = (int)(1 + number % MOST);
    long wrong = 0;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    int root = (int)(number % size);
    for (int at = 0; at < count; at++)
        mine[at] = wild();
    MPI_Allreduce(mine, ours, count, MPI_DOUBLE, MPI_SUM, comm);
    PMPI_Allreduce(mine, plain, count, MPI_DOUBLE, MPI_SUM, comm);
    wrong += memcmp(ours, plain, sizeof *ours * (size_t)count) != 0;
    MPI_Reduce(mine, ours, count, MPI_DOUBLE, MPI_SUM, root, comm);
    PMPI_Reduce(mine, plain, count, MPI_DOUBLE, MPI_SUM, root, comm);
    wrong += rank == root && memcmp(ours, plain, sizeof *ours * (size_t)count) != 0;
    memcpy(ours, mine, sizeof ours);
    memcpy(plain, mine, sizeof plain);
    MPI_Bcast(ours, count, MPI_DOUBLE, root, comm);
    PMPI_Bcast(plain, count, MPI_DOUBLE, root, comm);
    wrong += memcmp(ours, plain, sizeof *ours * (size_t)count) != 0;
    MPI_Barrier(comm);
    return wrong;
}

int main(int argc, char **argv)
{
    int rank, size, over = 0;
    long wrong = 0, all = 0, rounds = 0;
    if (argc < 2)
        return 2;
    useconds_t between = argc > 2 ? (useconds_t)atol(argv[2]) : 0;
    MPI_Comm other;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    /* The same ranks in another order. */
    MPI_Comm_split(MPI_COMM_WORLD, 0, size - rank, &other);
    MPI_Comm_set_name(other, "reversed");
    state = (uint64_t)rank << 32 | 7;
    for (; !over; rounds++) {
        wrong += round_of(MPI_COMM_WORLD, rounds);
        wrong += round_of(other, rounds);
        if (rounds % 256 == 255) {
            MPI_Comm brief;
            MPI_Comm_dup(MPI_COMM_WORLD, &brief);
            for (int call = 0; call < 6; call++)
                wrong += round_of(brief, call);
            MPI_Comm_free(&brief);
        }
        if (rank == 0 && (rounds == 20 || rounds % 64 == 63)) {
            printf(rounds == 20 ? "begun\n" : "did 64 more\n");
            fflush(stdout);
        }
        if (rounds % EVERY == 0) {
            over = rank == 0 && access(argv[1], F_OK) == 0;
            PMPI_Bcast(&over, 1, MPI_INT, 0, MPI_COMM_WORLD);
        }
        if (between > 0)
            usleep(between);
    }
    PMPI_Reduce(&wrong, &all, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0)
        printf("rounds %ld wrong %ld\n", rounds, all);
    MPI_Finalize();
    return wrong > 0;
}
