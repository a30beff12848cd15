/* What message scheduling must keep, beside what messages.c does: order with wildcards, errors, progress inside plain calls,
 * types, room. Runs plain too, with the same result. Rank 0 prints "wrong N"; exits 1 if N > 0.
 *
 * usage: matching [ROUNDS] */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* MPICH's MPI_STATUSES_IGNORE is an address of nothing. */
#pragma GCC diagnostic ignored "-Wstringop-overflow"

enum { MANY = 200, LARGE = 1 << 20 };

static int rank, size, next, before;
static long wrong;
static MPI_Comm comm;

static void check(int good, int line)
{
    if (!good) {
        fprintf(stderr, "rank %d: line %d\n", rank, line);
        wrong++;
    }
}
#define CHECK(what) check((what), __LINE__)

static int count_of(const MPI_Status *status, MPI_Datatype type)
{
    int count = -1;
    MPI_Get_count(status, type, &count);
    return count;
}

/* Many small messages between all pairs: nobody waits in between, so that they can be joined. Some come before their receive. */
static void supersteps(int round)
{
    int *out = malloc(sizeof(int) * MANY * size), *in = malloc(sizeof(int) * MANY * size);
    MPI_Request *requests = malloc(sizeof(MPI_Request) * 2 * MANY * size);
    int pending = 0, late = round % 2;
    for (int pass = 0; pass < 2; pass++) {
        for (int at = 0; at < MANY * size && pass == late; at++)
            MPI_Irecv(&in[at], 1, MPI_INT, at % size, at / size, comm, &requests[pending++]);
        for (int at = 0; at < MANY * size && pass != late; at++) {
            out[at] = 1000000 * rank + 1000 * (at % size) + at / size;
            MPI_Isend(&out[at], 1, MPI_INT, at % size, at / size, comm, &requests[pending++]);
        }
        if (round % 3 == 0)
            MPI_Barrier(comm);
    }
    MPI_Waitall(pending, requests, MPI_STATUSES_IGNORE);
    for (int at = 0; at < MANY * size; at++)
        CHECK(in[at] == 1000000 * (at % size) + 1000 * rank + at / size);
    free(out), free(in), free(requests);
}

/* Messages of a pair overtake each other in no way, whatever their sizes, and whatever receives leave open. */
static void order(int round)
{
    static const int lengths[] = {1, 5000, 3, 20, 1};
    int numbers[16] = {0}, *large = malloc(sizeof(int) * 5000), *in = malloc(sizeof(int) * 5000);
    MPI_Request requests[16];
    MPI_Status status;
    memset(large, 0, sizeof(int) * 5000);
    if (rank != 0)
        for (int at = 0; at < 15; at++) {
            int count = lengths[(at + round) % 5];
            int *data = count > 1000 ? large : &numbers[at];
            /* The large buffer is used once at a time. */
            if (count > 1000) {
                *data = at;
                MPI_Send(data, count, MPI_INT, 0, at % 3, comm);
                requests[at] = MPI_REQUEST_NULL;
            } else {
                *data = at;
                MPI_Isend(data, 1, MPI_INT, 0, at % 3, comm, &requests[at]);
            }
        }
    if (rank == 0) {
        int *heard = calloc((size_t)size * 4, sizeof(int));
        for (int at = 0; at < 15 * (size - 1); at++) {
            int tag = round % 2 ? MPI_ANY_TAG : at % 3;
            MPI_Recv(in, 5000, MPI_INT, MPI_ANY_SOURCE, tag, comm, &status);
            int *last = &heard[4 * status.MPI_SOURCE + (round % 2 ? 3 : status.MPI_TAG)];
            CHECK(in[0] % 3 == status.MPI_TAG && (*last == 0 || in[0] > *last - 1));
            *last = in[0] + 1;
        }
        free(heard);
    } else {
        MPI_Waitall(15, requests, MPI_STATUSES_IGNORE);
    }
    free(large), free(in);
    MPI_Barrier(comm);
}

static int handled;

static void handler(MPI_Comm *of, int *error, ...)
{
    int class = 0;
    MPI_Error_class(*error, &class);
    handled += *of == comm && class == MPI_ERR_TRUNCATE;
}

static int class_of(int error)
{
    int class = 0;
    MPI_Error_class(error, &class);
    return class;
}

/* Messages that are too long: what fits is stored, and the communicator's error handler is called. */
static void truncation(void)
{
    int out[10000], in[10000], flag = 0, error;
    MPI_Request requests[3], one;
    MPI_Status status, statuses[3];
    MPI_Errhandler errors;
    MPI_Comm_create_errhandler(handler, &errors);
    MPI_Comm_set_errhandler(comm, errors);
    for (int at = 0; at < 10000; at++)
        out[at] = 10 * rank + at;
    for (int count = 5; count <= 10000; count += 9995) {
        memset(in, 0, sizeof in);
        handled = 0;
        MPI_Isend(out, count, MPI_INT, next, 1, comm, &one);
        error = MPI_Recv(in, 3, MPI_INT, before, 1, comm, &status);
        CHECK(class_of(error) == MPI_ERR_TRUNCATE && handled == 1);
        /* Open MPI itself writes on where it takes a long message out of the sender's memory. */
        CHECK(count > 5 || in[3] == 0);
        MPI_Wait(&one, MPI_STATUS_IGNORE);

        MPI_Irecv(in, 3, MPI_INT, before, 2, comm, &requests[0]);
        MPI_Isend(out, count, MPI_INT, next, 2, comm, &one);
        error = MPI_Wait(&requests[0], &status);
        CHECK(class_of(error) == MPI_ERR_TRUNCATE && handled == 2 && status.MPI_SOURCE == before);
        MPI_Wait(&one, MPI_STATUS_IGNORE);

        MPI_Irecv(in, 3, MPI_INT, before, 3, comm, &requests[0]);
        MPI_Irecv(&in[5000], 1, MPI_INT, before, 4, comm, &requests[1]);
        MPI_Isend(out, count, MPI_INT, next, 3, comm, &one);
        MPI_Isend(out, 1, MPI_INT, next, 4, comm, &requests[2]);
        error = MPI_Waitall(3, requests, statuses);
        CHECK(error == MPI_ERR_IN_STATUS && handled == 3);
        CHECK(class_of(statuses[0].MPI_ERROR) == MPI_ERR_TRUNCATE && statuses[1].MPI_ERROR == MPI_SUCCESS);
        CHECK(in[5000] == 10 * before);
        MPI_Wait(&one, MPI_STATUS_IGNORE);

        MPI_Irecv(in, 3, MPI_INT, before, 5, comm, &requests[0]);
        MPI_Isend(out, count, MPI_INT, next, 5, comm, &one);
        for (flag = 0, error = MPI_SUCCESS; error == MPI_SUCCESS && !flag;)
            error = MPI_Test(&requests[0], &flag, &status);
        CHECK(class_of(error) == MPI_ERR_TRUNCATE && handled == 4);
        MPI_Wait(&one, MPI_STATUS_IGNORE);
    }
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    /* MPI itself judges arguments. */
    CHECK(class_of(MPI_Send(out, -1, MPI_INT, next, 0, comm)) == MPI_ERR_COUNT);
    CHECK(class_of(MPI_Isend(out, 1, MPI_INT, size, 0, comm, &one)) == MPI_ERR_RANK);
    CHECK(class_of(MPI_Irecv(in, 1, MPI_INT, -77, 0, comm, &one)) == MPI_ERR_RANK);
    CHECK(class_of(MPI_Recv(in, 1, MPI_DATATYPE_NULL, next, 0, comm, &status)) == MPI_ERR_TYPE);
    CHECK(class_of(MPI_Send(out, 1, MPI_INT, next, -5, comm)) == MPI_ERR_TAG);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL);
    MPI_Errhandler_free(&errors);
    MPI_Barrier(comm);
}

/* MPI promises that these end: the receiver is inside a call that is not about this message. */
static void progress(void)
{
    static char out[LARGE], in[LARGE];
    MPI_Request request, small;
    MPI_Comm plain;
    int there;
    MPI_Comm_idup(comm, &plain, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    memset(out, rank + 1, LARGE);
    MPI_Irecv(in, LARGE, MPI_BYTE, before, 1, comm, &request);
    MPI_Isend(out, 1, MPI_BYTE, next, 2, comm, &small);
    MPI_Ssend(out, LARGE, MPI_BYTE, next, 1, comm);
    PMPI_Barrier(comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(in[0] == before + 1 && in[LARGE - 1] == before + 1);
    /* Sent, and waited for by a message of a plain communicator. */
    MPI_Wait(&small, MPI_STATUS_IGNORE);
    MPI_Recv(in, 1, MPI_BYTE, before, 2, comm, MPI_STATUS_IGNORE);
    MPI_Isend(out, LARGE, MPI_BYTE, next, 3, comm, &request);
    MPI_Isend(out, 1, MPI_BYTE, next, 0, plain, &small);
    MPI_Recv(in, 1, MPI_BYTE, before, 0, plain, MPI_STATUS_IGNORE);
    MPI_Wait(&small, MPI_STATUS_IGNORE);
    MPI_Recv(in, LARGE, MPI_BYTE, before, 3, comm, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    /* Unsent until something is waited for, which is a receive that is only tested. */
    MPI_Isend(out, 4, MPI_BYTE, next, 4, comm, &small);
    MPI_Request_free(&small);
    MPI_Irecv(in, 4, MPI_BYTE, before, 4, comm, &request);
    for (there = 0; !there;)
        MPI_Request_get_status(request, &there, MPI_STATUS_IGNORE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    CHECK(request == MPI_REQUEST_NULL && in[3] == before + 1);
    MPI_Comm_free(&plain);
}

struct mixed {
    char letter;
    double number;
};

/* Types with gaps, freed before they are used; parts of an element; absolute addresses. */
static void types(void)
{
    struct mixed out[3] = {{'a', rank + 0.5}, {'b', rank + 1.5}, {'c', rank + 2.5}}, in[3];
    int lengths[] = {1, 1}, elements = 0;
    MPI_Aint places[] = {offsetof(struct mixed, letter), offsetof(struct mixed, number)};
    MPI_Datatype parts[] = {MPI_CHAR, MPI_DOUBLE}, raw, mixed, absolute;
    MPI_Request request, send;
    MPI_Status status;
    MPI_Message message;
    MPI_Type_create_struct(2, lengths, places, parts, &raw);
    MPI_Type_create_resized(raw, 0, sizeof(struct mixed), &mixed);
    MPI_Type_commit(&mixed);
    for (int late = 0; late < 2; late++) {
        MPI_Datatype kept;
        MPI_Type_dup(mixed, &kept);
        memset(in, 0, sizeof in);
        if (late)
            MPI_Isend(out, 3, mixed, next, 1, comm, &send);
        MPI_Irecv(in, 3, kept, before, 1, comm, &request);
        MPI_Type_free(&kept);
        if (!late)
            MPI_Isend(out, 3, mixed, next, 1, comm, &send);
        MPI_Wait(&request, &status);
        MPI_Wait(&send, MPI_STATUS_IGNORE);
        CHECK(count_of(&status, mixed) == 3 && in[2].letter == 'c' && in[2].number == before + 2.5 && in[0].number == before + 0.5);
    }
    /* One element and the first part of another. */
    struct {
        char letter;
        double number;
        char more;
    } head = {'x', rank, 'y'};
    MPI_Aint starts[3];
    MPI_Datatype three[] = {MPI_CHAR, MPI_DOUBLE, MPI_CHAR};
    int ones[] = {1, 1, 1};
    MPI_Get_address(&head.letter, &starts[0]);
    MPI_Get_address(&head.number, &starts[1]);
    MPI_Get_address(&head.more, &starts[2]);
    MPI_Type_create_struct(3, ones, starts, three, &absolute);
    MPI_Type_commit(&absolute);
    memset(in, 0, sizeof in);
    MPI_Isend(MPI_BOTTOM, 1, absolute, next, 2, comm, &send);
    MPI_Mprobe(before, 2, comm, &message, &status);
    MPI_Mrecv(in, 3, mixed, &message, &status);
    MPI_Get_elements(&status, mixed, &elements);
    CHECK(message == MPI_MESSAGE_NULL && elements == 3 && count_of(&status, mixed) == MPI_UNDEFINED);
    CHECK(in[0].letter == 'x' && in[0].number == before && in[1].letter == 'y' && in[2].letter == 0);
    MPI_Wait(&send, MPI_STATUS_IGNORE);
    MPI_Type_free(&raw), MPI_Type_free(&mixed), MPI_Type_free(&absolute);
}

/* More than a receiver keeps, and nobody asks for it yet. */
static void room(void)
{
    enum { COUNT = 6000, BYTES = 3000 };
    char *out = malloc((size_t)COUNT * BYTES), *in = malloc(BYTES);
    MPI_Request *requests = malloc(COUNT * sizeof *requests);
    for (int at = 0; at < COUNT; at++) {
        memset(out + (size_t)at * BYTES, at % 127 + 1, BYTES);
        MPI_Isend(out + (size_t)at * BYTES, BYTES, MPI_BYTE, next, 9, comm, &requests[at]);
    }
    PMPI_Barrier(comm);
    for (int at = 0; at < COUNT; at++) {
        MPI_Recv(in, BYTES, MPI_BYTE, before, 9, comm, MPI_STATUS_IGNORE);
        CHECK(in[0] == at % 127 + 1 && in[BYTES - 1] == at % 127 + 1);
    }
    MPI_Waitall(COUNT, requests, MPI_STATUSES_IGNORE);
    free(out), free(in), free(requests);
}

/* Persistent receives that are cancelled, too long, tested, and given up while they are active. */
static void persistent(void)
{
    int out[2] = {rank, rank + 1}, in[2] = {-1, -1}, flag, cancelled;
    MPI_Request requests[3];
    MPI_Status status, statuses[2];
    MPI_Recv_init(in, 1, MPI_INT, before, 7, comm, &requests[0]);
    MPI_Send_init(out, 1, MPI_INT, next, 7, comm, &requests[1]);
    MPI_Start(&requests[0]);
    MPI_Test(&requests[0], &flag, &status);
    CHECK(!flag);
    MPI_Cancel(&requests[0]);
    MPI_Wait(&requests[0], &status);
    MPI_Test_cancelled(&status, &cancelled);
    CHECK(cancelled && requests[0] != MPI_REQUEST_NULL);
    PMPI_Barrier(comm);
    MPI_Startall(2, requests);
    MPI_Waitall(2, requests, statuses);
    MPI_Test_cancelled(&statuses[0], &cancelled);
    CHECK(!cancelled && in[0] == before && statuses[0].MPI_SOURCE == before && statuses[0].MPI_TAG == 7);
    MPI_Wait(&requests[0], &status);
    CHECK(status.MPI_SOURCE == MPI_ANY_SOURCE && count_of(&status, MPI_INT) == 0);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    MPI_Request failing;
    MPI_Recv_init(in, 1, MPI_INT, before, 8, comm, &failing);
    MPI_Start(&failing);
    MPI_Isend(out, 2, MPI_INT, next, 8, comm, &requests[2]);
    CHECK(class_of(MPI_Wait(&failing, &status)) == MPI_ERR_TRUNCATE);
    MPI_Wait(&requests[2], MPI_STATUS_IGNORE);
    /* Open MPI has freed it. */
    if (failing != MPI_REQUEST_NULL)
        MPI_Request_free(&failing);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_ARE_FATAL);
    in[0] = -1;
    MPI_Startall(2, requests);
    MPI_Request_free(&requests[0]);
    MPI_Request_free(&requests[1]);
    CHECK(requests[0] == MPI_REQUEST_NULL);
    MPI_Barrier(comm);
    for (flag = 0; *(volatile int *)in != before && flag < 100000000; flag++)
        MPI_Iprobe(MPI_ANY_SOURCE, 12345, comm, &cancelled, MPI_STATUS_IGNORE);
    CHECK(in[0] == before);
    MPI_Barrier(comm);
}

/* A communicator that is freed while a message is under way. */
static void freed(void)
{
    MPI_Comm gone;
    MPI_Request requests[2];
    MPI_Status statuses[2];
    int out = rank, in = -1;
    MPI_Comm_split(comm, 0, -rank, &gone);
    MPI_Irecv(&in, 1, MPI_INT, MPI_ANY_SOURCE, 1, gone, &requests[0]);
    /* To who is before us: ranks count backwards. */
    MPI_Isend(&out, 1, MPI_INT, (size - 1 - rank + 1) % size, 1, gone, &requests[1]);
    MPI_Comm_free(&gone);
    MPI_Waitall(2, requests, statuses);
    CHECK(in == next && statuses[0].MPI_SOURCE == size - 1 - next);
}

/* One request twice in a wait: MPI forbids it; it must not hang. */
static void twice(void)
{
    MPI_Request requests[3];
    int out = rank, in = -1;
    MPI_Isend(&out, 1, MPI_INT, next, 2, comm, &requests[1]);
    MPI_Irecv(&in, 1, MPI_INT, before, 2, comm, &requests[0]);
    requests[2] = requests[0];
    MPI_Waitall(3, requests, MPI_STATUSES_IGNORE);
    CHECK(in == before && requests[0] == MPI_REQUEST_NULL && requests[2] == MPI_REQUEST_NULL);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 2;
    MPI_Init(&argc, &argv);
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    next = (rank + 1) % size, before = (rank + size - 1) % size;
    for (int round = 0; round < rounds; round++) {
        supersteps(round);
        order(round);
        truncation();
        /* Synchronous sends around a ring of one would wait for their own receive. */
        progress();
        types();
        room();
        persistent();
        freed();
        twice();
    }
    /* The end finds messages that nobody has waited for. */
    MPI_Request left;
    MPI_Isend(&rank, 1, MPI_INT, next, 77, comm, &left);
    MPI_Request_free(&left);
    int last = -1;
    MPI_Recv(&last, 1, MPI_INT, before, 77, comm, MPI_STATUS_IGNORE);
    CHECK(last == before);
    long all = 0;
    MPI_Reduce(&wrong, &all, 1, MPI_LONG, MPI_SUM, 0, comm);
    if (rank == 0)
        printf("wrong %ld\n", all);
    MPI_Finalize();
    return wrong > 0;
}
