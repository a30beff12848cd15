/* Every kind of message and collective that the recorder knows, in a program that counts for itself what it sends. It
 * checks what comes. Rank 0 prints, for each pair with messages, "pair FROM TO MESSAGES BYTES"; for each collective
 * "collective NAME CALLS", all ranks together; and "wrong N". Exits 1 if N > 0.
 *
 * usage: messages [ROUNDS [--serialized]]   --serialized: one thread at a time calls MPI, and says so */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* MPICH's MPI_STATUSES_IGNORE is an address of nothing. */
#pragma GCC diagnostic ignored "-Wstringop-overflow"

enum { MOST = 16, LONGEST = 70000, KINDS = 11 };
static const char *const names[KINDS] = {"barrier",   "bcast",   "reduce",         "allreduce", "gather", "allgather",
                                         "scatter",   "reduce_scatter", "alltoall", "scan",      "exscan"};
enum { BARRIER, BCAST, REDUCE, ALLREDUCE, GATHER, ALLGATHER, SCATTER, REDUCE_SCATTER, ALLTOALL, SCAN, EXSCAN };

static int rank, size;
static long messages[MOST], bytes_to[MOST], calls[KINDS], wrong;
static unsigned char out[MOST][LONGEST], in[MOST][LONGEST];

static void check(int good, int line)
{
    if (!good) {
        fprintf(stderr, "rank %d: line %d\n", rank, line);
        wrong++;
    }
}
#define CHECK(what) check((what), __LINE__)

/* Counts a message to a rank of the world and gives its contents. */
static unsigned char *to(int world, int count, int tag)
{
    messages[world]++;
    bytes_to[world] += count;
    memset(out[world], 17 * rank + tag + 1, (size_t)count);
    return out[world];
}

static void came(const unsigned char *data, const MPI_Status *status, int world, int count, int tag)
{
    int found = -1;
    MPI_Get_count(status, MPI_BYTE, &found);
    CHECK(found == count && status->MPI_TAG == tag);
    for (int at = 0; at < count; at++)
        if (data[at] != (unsigned char)(17 * world + tag + 1)) {
            CHECK(0);
            break;
        }
}

static int length(int from, int to_rank, int step)
{
    static const int lengths[] = {0, 1, 8, 100, 1024, 5000, 20000, 70000};
    return lengths[(from + 3 * to_rank + step) % 8];
}

/* Blocking sends in every mode around the ring, whose receives are posted first. */
static void modes(int round)
{
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    for (int mode = 0; mode < 4; mode++) {
        int tag = 10 + mode, count = length(rank, next, round + mode), expected = length(before, rank, round + mode);
        MPI_Status status;
        MPI_Request request;
        MPI_Irecv(in[0], LONGEST, MPI_BYTE, mode % 2 ? MPI_ANY_SOURCE : before, mode < 2 ? tag : MPI_ANY_TAG, MPI_COMM_WORLD, &request);
        PMPI_Barrier(MPI_COMM_WORLD);
        unsigned char *data = to(next, count, tag);
        switch (mode) {
        case 0: MPI_Send(data, count, MPI_BYTE, next, tag, MPI_COMM_WORLD); break;
        case 1: MPI_Bsend(data, count, MPI_BYTE, next, tag, MPI_COMM_WORLD); break;
        case 2: MPI_Ssend(data, count, MPI_BYTE, next, tag, MPI_COMM_WORLD); break;
        default: MPI_Rsend(data, count, MPI_BYTE, next, tag, MPI_COMM_WORLD); break;
        }
        MPI_Wait(&request, &status);
        CHECK(request == MPI_REQUEST_NULL && status.MPI_SOURCE == before);
        came(in[0], &status, before, expected, tag);
        PMPI_Barrier(MPI_COMM_WORLD);
    }
}

enum { WAITALL, WAITALL_IGNORE, WAITANY, WAITSOME, WAIT, TESTALL, TESTANY, TESTSOME, TEST, WAYS };

/* Completes requests one way; `done` learns which and how. */
static void complete(int way, int count, MPI_Request requests[], MPI_Status statuses[])
{
    int flag = 0, index, some, which[2 * MOST];
    MPI_Status few[2 * MOST];
    for (int left = count; left > 0;) {
        switch (way) {
        case WAITALL: MPI_Waitall(count, requests, statuses); return;
        case WAITALL_IGNORE: MPI_Waitall(count, requests, MPI_STATUSES_IGNORE); return;
        case WAITANY:
            MPI_Waitany(count, requests, &index, few);
            statuses[index] = few[0];
            left--;
            break;
        case WAITSOME:
        case TESTSOME:
            if (way == WAITSOME)
                MPI_Waitsome(count, requests, &some, which, few);
            else
                MPI_Testsome(count, requests, &some, which, few);
            for (int at = 0; at < some; at++)
                statuses[which[at]] = few[at];
            left -= some;
            break;
        case WAIT:
            left--;
            MPI_Wait(&requests[left], &statuses[left]);
            break;
        case TESTALL:
            MPI_Testall(count, requests, &flag, statuses);
            if (flag)
                return;
            break;
        case TESTANY:
            MPI_Testany(count, requests, &index, &flag, few);
            if (flag && index != MPI_UNDEFINED) {
                statuses[index] = few[0];
                left--;
            }
            break;
        default:
            MPI_Test(&requests[left - 1], &flag, &statuses[left - 1]);
            left -= flag;
        }
    }
    MPI_Waitany(count, requests, &index, few);
    CHECK(index == MPI_UNDEFINED);
}

/* Everybody to everybody, itself included, nonblocking in every mode, completed in every way. */
static void everybody(int round, int way, MPI_Comm comm, const int world[], int members, int me)
{
    MPI_Request requests[2 * MOST];
    MPI_Status statuses[2 * MOST];
    int tag = 100 + way;
    for (int at = 0; at < members; at++)
        MPI_Irecv(in[at], LONGEST, MPI_BYTE, way % 2 ? at : MPI_ANY_SOURCE, tag, comm, &requests[at]);
    PMPI_Barrier(comm);
    for (int at = 0; at < members; at++) {
        int peer = (me + at) % members, count = length(rank, world[peer], round);
        unsigned char *data = to(world[peer], count, tag);
        MPI_Request *request = &requests[members + at];
        switch ((round + at) % 4) {
        case 0: MPI_Isend(data, count, MPI_BYTE, peer, tag, comm, request); break;
        case 1: MPI_Ibsend(data, count, MPI_BYTE, peer, tag, comm, request); break;
        case 2: MPI_Issend(data, count, MPI_BYTE, peer, tag, comm, request); break;
        default: MPI_Irsend(data, count, MPI_BYTE, peer, tag, comm, request); break;
        }
    }
    complete(way, 2 * members, requests, statuses);
    for (int at = 0; at < members && way != WAITALL_IGNORE; at++) {
        int source = statuses[at].MPI_SOURCE;
        CHECK(source >= 0 && source < members && (way % 2 == 0 || source == at));
        came(in[at], &statuses[at], world[source], length(world[source], rank, round), tag);
    }
    PMPI_Barrier(comm);
}

static void exchanges(int round)
{
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    int count = length(rank, next, round), expected = length(before, rank, round);
    MPI_Status status;
    MPI_Sendrecv(to(next, count, 20), count, MPI_BYTE, next, 20, in[0], LONGEST, MPI_BYTE, MPI_ANY_SOURCE, 20, MPI_COMM_WORLD, &status);
    came(in[0], &status, before, expected, 20);
    /* The ends of a line talk to nobody. */
    int right = rank + 1 < size ? rank + 1 : MPI_PROC_NULL, left = rank > 0 ? rank - 1 : MPI_PROC_NULL;
    memset(in[0], 17 * rank + 21 + 1, 64);
    if (right != MPI_PROC_NULL)
        to(right, 64, 21);
    MPI_Sendrecv_replace(in[0], 64, MPI_BYTE, right, 21, left, 21, MPI_COMM_WORLD, &status);
    if (left != MPI_PROC_NULL)
        came(in[0], &status, left, 64, 21);
    MPI_Send(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 1, MPI_COMM_WORLD);
    MPI_Recv(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Request nobody[2];
    MPI_Isend(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &nobody[0]);
    MPI_Irecv(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 1, MPI_COMM_WORLD, &nobody[1]);
    MPI_Waitall(2, nobody, MPI_STATUSES_IGNORE);
}

static void persistent(void)
{
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    MPI_Request requests[5];
    MPI_Status statuses[5];
    MPI_Recv_init(in[0], LONGEST, MPI_BYTE, MPI_ANY_SOURCE, 30, MPI_COMM_WORLD, &requests[0]);
    MPI_Send_init(out[next], 300, MPI_BYTE, next, 30, MPI_COMM_WORLD, &requests[1]);
    MPI_Recv_init(in[1], LONGEST, MPI_BYTE, before, MPI_ANY_TAG, MPI_COMM_WORLD, &requests[2]);
    MPI_Ssend_init(out[next], 200, MPI_BYTE, next, 31, MPI_COMM_WORLD, &requests[3]);
    MPI_Bsend_init(out[next], 300, MPI_BYTE, next, 30, MPI_COMM_WORLD, &requests[4]);
    for (int round = 0; round < 3; round++) {
        to(next, 300, 30);
        MPI_Start(&requests[0]);
        MPI_Start(&requests[round % 2 ? 4 : 1]);
        MPI_Wait(&requests[0], &statuses[0]);
        MPI_Wait(&requests[round % 2 ? 4 : 1], MPI_STATUS_IGNORE);
        CHECK(requests[0] != MPI_REQUEST_NULL);
        came(in[0], &statuses[0], before, 300, 30);
        to(next, 200, 31);
        MPI_Startall(2, &requests[2]);
        MPI_Waitall(2, &requests[2], statuses);
        came(in[1], &statuses[0], before, 200, 31);
        /* What is not active is complete at once. */
        MPI_Waitall(5, requests, statuses);
    }
    for (int at = 0; at < 5; at++)
        MPI_Request_free(&requests[at]);
}

static void probes(int round)
{
    int next = (rank + 1) % size, before = (rank + size - 1) % size, flag = 0, count = length(rank, next, round);
    int expected = length(before, rank, round);
    MPI_Request request, receive;
    MPI_Status status;
    MPI_Message message;
    for (int tag = 40; tag < 44; tag++) {
        MPI_Isend(to(next, count, tag), count, MPI_BYTE, next, tag, MPI_COMM_WORLD, &request);
        switch (tag) {
        case 40:
            MPI_Probe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &status);
            MPI_Recv(in[0], LONGEST, MPI_BYTE, status.MPI_SOURCE, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
            break;
        case 41:
            while (!flag)
                MPI_Iprobe(before, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, &status);
            MPI_Recv(in[0], LONGEST, MPI_BYTE, MPI_ANY_SOURCE, status.MPI_TAG, MPI_COMM_WORLD, &status);
            break;
        case 42:
            MPI_Mprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &message, MPI_STATUS_IGNORE);
            MPI_Mrecv(in[0], LONGEST, MPI_BYTE, &message, &status);
            break;
        default:
            for (flag = 0; !flag;)
                MPI_Improbe(before, tag, MPI_COMM_WORLD, &flag, &message, MPI_STATUS_IGNORE);
            MPI_Imrecv(in[0], LONGEST, MPI_BYTE, &message, &receive);
            MPI_Wait(&receive, &status);
        }
        came(in[0], &status, before, expected, tag);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        PMPI_Barrier(MPI_COMM_WORLD);
    }
}

/* A receive that is cancelled, a send that is given up, and a type with gaps. */
static void odds_and_ends(void)
{
    int next = (rank + 1) % size, before = (rank + size - 1) % size, cancelled = 0;
    MPI_Request request;
    MPI_Status status;
    MPI_Irecv(in[0], 8, MPI_BYTE, before, 999, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    CHECK(cancelled);
    MPI_Isend(to(next, 4, 50), 4, MPI_BYTE, next, 50, MPI_COMM_WORLD, &request);
    MPI_Request_free(&request);
    MPI_Recv(in[0], 8, MPI_BYTE, before, 50, MPI_COMM_WORLD, &status);
    came(in[0], &status, before, 4, 50);
    PMPI_Barrier(MPI_COMM_WORLD);
    /* Complete, as its status says, and given up then. */
    int there = 0;
    MPI_Irecv(in[0], 8, MPI_BYTE, before, 53, MPI_COMM_WORLD, &request);
    MPI_Send(to(next, 5, 53), 5, MPI_BYTE, next, 53, MPI_COMM_WORLD);
    while (!there)
        MPI_Request_get_status(request, &there, &status);
    came(in[0], &status, before, 5, 53);
    MPI_Request_free(&request);
    /* MPICH takes a send to the same rank back, as only the status says; Open MPI does not. */
    unsigned char one = 1;
    MPI_Issend(&one, 1, MPI_BYTE, rank, 54, MPI_COMM_WORLD, &request);
    MPI_Cancel(&request);
    MPI_Request_get_status(request, &there, &status);
    cancelled = 0;
    if (there)
        MPI_Test_cancelled(&status, &cancelled);
    if (cancelled) {
        MPI_Request_free(&request);
    } else {
        messages[rank]++, bytes_to[rank]++;
        MPI_Recv(&one, 1, MPI_BYTE, rank, 54, MPI_COMM_WORLD, &status);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    MPI_Datatype gaps;
    MPI_Type_vector(10, 1, 2, MPI_INT, &gaps);
    MPI_Type_commit(&gaps);
    int sent[20], received[20];
    for (int at = 0; at < 20; at++)
        sent[at] = 100 * rank + at, received[at] = -1;
    messages[next]++, bytes_to[next] += 40;
    MPI_Sendrecv(sent, 1, gaps, next, 51, received, 1, gaps, before, 51, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int at = 0; at < 20; at++)
        CHECK(received[at] == (at % 2 || at == 19 ? -1 : 100 * before + at));
    MPI_Type_free(&gaps);
#if defined(MPICH_VERSION) && MPI_VERSION >= 4
    MPI_Isend_c(to(next, 77, 52), 77, MPI_BYTE, next, 52, MPI_COMM_WORLD, &request);
    MPI_Recv_c(in[0], 77, MPI_BYTE, before, 52, MPI_COMM_WORLD, &status);
    came(in[0], &status, before, 77, 52);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
#endif
}

/* Other communicators, those with the members of another one too. */
static void communicators(int round)
{
    MPI_Comm twin, again, half, other, merged;
    int world[MOST], members, me, parity = rank % 2;
    for (int at = 0; at < size; at++)
        world[at] = at;
    MPI_Comm_dup(MPI_COMM_WORLD, &twin);
    MPI_Comm_dup(MPI_COMM_WORLD, &again);
    /* First used in another order than that in which they were made, and not in the same one everywhere. */
    MPI_Comm both[] = {rank % 2 ? twin : again, rank % 2 ? again : twin};
    for (int at = 0; at < 2; at++) {
        MPI_Request request;
        MPI_Isend(to(rank, 3, 60), 3, MPI_BYTE, rank, 60, both[at], &request);
        MPI_Recv(in[0], 3, MPI_BYTE, rank, 60, both[at], MPI_STATUS_IGNORE);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
    }
    everybody(round, WAITSOME, twin, world, size, rank);
    everybody(round, WAITANY, again, world, size, rank);
    MPI_Comm_free(&twin);
    /* Backwards, so that ranks differ from those of the world. */
    MPI_Comm_split(again, parity, -rank, &half);
    MPI_Comm_size(half, &members);
    MPI_Comm_rank(half, &me);
    for (int at = 0; at < members; at++)
        world[at] = 2 * (members - 1 - at) + parity;
    everybody(round, WAITALL, half, world, members, me);
    if (size > 1) {
        MPI_Intercomm_create(half, 0, again, parity ? (size - 1) / 2 * 2 : size / 2 * 2 - 1, 61, &other);
        int remote;
        MPI_Comm_remote_size(other, &remote);
        int lowest = parity ? 2 * (remote - 1) : 2 * (remote - 1) + 1;
        MPI_Request request;
        MPI_Status status;
        MPI_Isend(to(lowest, 9, 62), 9, MPI_BYTE, 0, 62, other, &request);
        if (me == 0)
            for (int at = 0; at < remote; at++) {
                MPI_Recv(in[0], 9, MPI_BYTE, MPI_ANY_SOURCE, 62, other, &status);
                came(in[0], &status, 2 * (remote - 1 - status.MPI_SOURCE) + !parity, 9, 62);
            }
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Intercomm_merge(other, parity, &merged);
        int sum = 0, one = 1;
        MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, merged), calls[ALLREDUCE]++;
        CHECK(sum == size);
        MPI_Comm_free(&merged);
        MPI_Comm_free(&other);
    }
    MPI_Comm_free(&half);
    MPI_Comm_free(&again);
}

/* A ring with both neighbours: each gets four bytes of everybody beside it. */
static void neighbours(void)
{
    int periodic = 1, sent[2] = {rank, rank}, received[2] = {-1, -1}, ones[2] = {1, 1}, places[2] = {0, 1};
    int next = (rank + 1) % size, before = (rank + size - 1) % size;
    MPI_Comm ring;
    MPI_Request request;
    MPI_Cart_create(MPI_COMM_WORLD, 1, &size, &periodic, 0, &ring);
    for (int kind = 0; kind < 4; kind++) {
        switch (kind) {
        case 0: MPI_Neighbor_allgather(sent, 1, MPI_INT, received, 1, MPI_INT, ring); break;
        case 1: MPI_Neighbor_alltoall(sent, 1, MPI_INT, received, 1, MPI_INT, ring); break;
        case 2: MPI_Neighbor_alltoallv(sent, ones, places, MPI_INT, received, ones, places, MPI_INT, ring); break;
        default:
            MPI_Ineighbor_alltoall(sent, 1, MPI_INT, received, 1, MPI_INT, ring, &request);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
        }
        CHECK(received[0] == before && received[1] == next);
        messages[before]++, messages[next]++;
        bytes_to[before] += 4, bytes_to[next] += 4;
    }
    MPI_Comm_free(&ring);
}

static void collectives(int root)
{
    int one[MOST], many[MOST * MOST], counts[MOST], places[MOST], got[MOST * MOST], sum = size * (size - 1) / 2;
    MPI_Request requests[4];
    for (int at = 0; at < size; at++)
        one[at] = rank, counts[at] = 1, places[at] = at;
    for (int at = 0; at < size * size; at++)
        many[at] = at;
    MPI_Comm comm = MPI_COMM_WORLD;
    MPI_Barrier(comm), calls[BARRIER]++;
    got[0] = rank == root ? 5 : 0;
    MPI_Bcast(got, 1, MPI_INT, root, comm), calls[BCAST]++;
    CHECK(got[0] == 5);
    MPI_Reduce(&rank, got, 1, MPI_INT, MPI_SUM, root, comm), calls[REDUCE]++;
    CHECK(rank != root || got[0] == sum);
    MPI_Allreduce(&rank, got, 1, MPI_INT, MPI_SUM, comm), calls[ALLREDUCE]++;
    CHECK(got[0] == sum);
    MPI_Gather(&rank, 1, MPI_INT, got, 1, MPI_INT, root, comm), calls[GATHER]++;
    CHECK(rank != root || got[size - 1] == size - 1);
    MPI_Gatherv(rank == root ? MPI_IN_PLACE : &rank, 1, MPI_INT, got, counts, places, MPI_INT, root, comm), calls[GATHER]++;
    MPI_Allgather(&rank, 1, MPI_INT, got, 1, MPI_INT, comm), calls[ALLGATHER]++;
    MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, got, counts, places, MPI_INT, comm), calls[ALLGATHER]++;
    CHECK(got[size - 1] == size - 1);
    MPI_Scatter(many, 1, MPI_INT, got, 1, MPI_INT, root, comm), calls[SCATTER]++;
    MPI_Scatterv(many, counts, places, MPI_INT, got, 1, MPI_INT, root, comm), calls[SCATTER]++;
    CHECK(got[0] == rank);
    MPI_Reduce_scatter_block(one, got, 1, MPI_INT, MPI_SUM, comm), calls[REDUCE_SCATTER]++;
    MPI_Reduce_scatter(one, got, counts, MPI_INT, MPI_SUM, comm), calls[REDUCE_SCATTER]++;
    CHECK(got[0] == sum);
    MPI_Alltoall(one, 1, MPI_INT, got, 1, MPI_INT, comm), calls[ALLTOALL]++;
    MPI_Alltoallv(one, counts, places, MPI_INT, got, counts, places, MPI_INT, comm), calls[ALLTOALL]++;
    CHECK(got[size - 1] == size - 1);
    MPI_Datatype types[MOST];
    for (int at = 0; at < size; at++)
        types[at] = MPI_INT, places[at] = 4 * at;
    MPI_Alltoallw(one, counts, places, types, got, counts, places, types, comm), calls[ALLTOALL]++;
    CHECK(got[size - 1] == size - 1);
    MPI_Scan(&rank, got, 1, MPI_INT, MPI_SUM, comm), calls[SCAN]++;
    CHECK(got[0] == rank * (rank + 1) / 2);
    MPI_Exscan(&rank, got, 1, MPI_INT, MPI_SUM, comm), calls[EXSCAN]++;
    CHECK(rank == 0 || got[0] == rank * (rank - 1) / 2);
    MPI_Ibarrier(comm, &requests[0]), calls[BARRIER]++;
    MPI_Iallreduce(&rank, got, 1, MPI_INT, MPI_SUM, comm, &requests[1]), calls[ALLREDUCE]++;
    MPI_Ibcast(many, 4, MPI_INT, root, comm, &requests[2]), calls[BCAST]++;
    MPI_Ialltoall(one, 1, MPI_INT, got + MOST, 1, MPI_INT, comm, &requests[3]), calls[ALLTOALL]++;
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    CHECK(got[0] == sum && got[MOST + size - 1] == size - 1);
}

static void report(void)
{
    long all[2 * MOST * MOST], mine[2 * MOST], sums[KINDS], wrongs = 0;
    memcpy(mine, messages, sizeof messages);
    memcpy(mine + MOST, bytes_to, sizeof bytes_to);
    PMPI_Gather(mine, 2 * MOST, MPI_LONG, all, 2 * MOST, MPI_LONG, 0, MPI_COMM_WORLD);
    PMPI_Reduce(calls, sums, KINDS, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    PMPI_Allreduce(&wrong, &wrongs, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    wrong = wrongs;
    if (rank != 0)
        return;
    for (int from = 0; from < size; from++)
        for (int at = 0; at < size; at++)
            if (all[2 * MOST * from + at] > 0)
                printf("pair %d %d %ld %ld\n", from, at, all[2 * MOST * from + at], all[2 * MOST * from + MOST + at]);
    for (int kind = 0; kind < KINDS; kind++)
        printf("collective %s %ld\n", names[kind], sums[kind]);
    printf("wrong %ld\n", wrongs);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 2, provided, world[MOST];
    MPI_Init_thread(&argc, &argv, argc > 2 ? MPI_THREAD_SERIALIZED : MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size > MOST)
        MPI_Abort(MPI_COMM_WORLD, 2);
    for (int at = 0; at < size; at++)
        world[at] = at;
    int room = 4 * MOST * (LONGEST + MPI_BSEND_OVERHEAD);
    void *buffer = malloc((size_t)room);
    MPI_Buffer_attach(buffer, room);
    for (int round = 0; round < rounds; round++) {
        modes(round);
        for (int way = 0; way < WAYS; way++)
            everybody(round, way, MPI_COMM_WORLD, world, size, rank);
        exchanges(round);
        persistent();
        probes(round);
        odds_and_ends();
        communicators(round);
        neighbours();
        collectives(round % size);
    }
    MPI_Buffer_detach(&buffer, &room);
    report();
    MPI_Finalize();
    return wrong > 0;
}
