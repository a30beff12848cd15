/* Every intercepted collective, on every predefined type and operation, communicators of many shapes, in place or not:
 * the bits must be those of the PMPI call. Prints "checks N differences D", exits 1 if D > 0.
 *
 * usage: collectives [--rounds N] [--largest BYTES] [--seed N] */
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REAL = 1, WHOLE = 2, PAIR = 4, LOGICAL = 8, BITS = 16, MOVED = 32, FORTRAN = 64 };

struct kind {
    const char *name;
    MPI_Datatype type;
    size_t bytes;  /* from one element to the next */
    size_t value;  /* of a pair: bytes of the value */
    size_t index;  /* of a pair: where the index is */
    int of;
};
struct op {
    const char *name;
    MPI_Op op;
    int on;
};

static uint64_t state;
static long checks, differences;
static int world_rank;

static uint64_t draw(void)
{
    state += 0x9e3779b97f4a7c15ull;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

static double wild(void)
{
    double mantissa = 1.0 + (double)(draw() >> 12) * 0x1p-52;
    int exponent = (int)(draw() % 40) - 20;
    switch (draw() % 40) {
    case 0: return 0.0;
    case 1: return -0.0;
    case 2: return 0x1p-1060;
    default: break;
    }
    double scale = 1.0;
    for (int i = 0; i < abs(exponent); i++)
        scale *= exponent < 0 ? 0.5 : 2.0;
    return (draw() & 1 ? -mantissa : mantissa) * scale;
}

/* Values that this rank contributes. */
static void fill(const struct kind *kind, unsigned char *at, int count)
{
    for (int i = 0; i < count; i++, at += kind->bytes) {
        size_t value = kind->of & PAIR ? kind->value : kind->bytes;
        double real = wild();
        float single = (float)real;
        uint64_t whole = draw();
        if (draw() % 4 == 0)
            whole = draw() % 3; /* ties and zeros */
        if (kind->of & REAL && value == 8)
            memcpy(at, &real, 8);
        else if (kind->of & REAL && value == 4)
            memcpy(at, &single, 4);
        else if (kind->of & LOGICAL && !(kind->of & WHOLE)) {
            whole &= 1;
            memset(at, 0, value);
            at[0] = (unsigned char)whole;
        } else
            for (size_t byte = 0; byte < value; byte++)
                at[byte] = (unsigned char)(whole >> (8 * (byte % 8)));
        if (kind->of & PAIR) {
            int32_t index = (int32_t)(draw() % 5);
            memcpy(at + kind->index, &index, 4);
        }
    }
}

/* Gaps of pairs hold anything. */
static bool same(const struct kind *kind, const unsigned char *a, const unsigned char *b, int count)
{
    if (!(kind->of & PAIR))
        return memcmp(a, b, kind->bytes * (size_t)count) == 0;
    for (int i = 0; i < count; i++, a += kind->bytes, b += kind->bytes)
        if (memcmp(a, b, kind->value) != 0 || memcmp(a + kind->index, b + kind->index, 4) != 0)
            return false;
    return true;
}

static void judge(bool good, const char *call, const struct kind *kind, const char *op, const char *shape, int count, int root, bool in_place)
{
    checks++;
    if (good)
        return;
    differences++;
    if (differences <= 10)
        fprintf(stderr, "rank %d: %s %s %s on %s: count %d root %d%s: other bits\n", world_rank, call, kind->name, op, shape, count, root,
                in_place ? " in place" : "");
}

static unsigned char *mine, *ours, *theirs;

static void all_of(MPI_Comm comm, const char *shape, const struct kind *kind, const struct op *op, int count, int root)
{
    int rank;
    size_t bytes = kind->bytes * (size_t)count;
    MPI_Comm_rank(comm, &rank);
    fill(kind, mine, count);
    for (int in_place = 0; in_place < 2; in_place++) {
        memcpy(ours, mine, bytes);
        memcpy(theirs, mine, bytes);
        MPI_Allreduce(in_place ? MPI_IN_PLACE : mine, ours, count, kind->type, op->op, comm);
        PMPI_Allreduce(in_place ? MPI_IN_PLACE : mine, theirs, count, kind->type, op->op, comm);
        judge(same(kind, ours, theirs, count), "Allreduce", kind, op->name, shape, count, 0, in_place);

        memcpy(ours, mine, bytes);
        memcpy(theirs, mine, bytes);
        bool here = in_place && rank == root;
        MPI_Reduce(here ? MPI_IN_PLACE : mine, ours, count, kind->type, op->op, root, comm);
        PMPI_Reduce(here ? MPI_IN_PLACE : mine, theirs, count, kind->type, op->op, root, comm);
        if (rank == root)
            judge(same(kind, ours, theirs, count), "Reduce", kind, op->name, shape, count, root, in_place);
    }
}

static void moved(MPI_Comm comm, const char *shape, const struct kind *kind, int count, int root)
{
    int rank;
    size_t bytes = kind->bytes * (size_t)count;
    MPI_Comm_rank(comm, &rank);
    fill(kind, mine, count);
    memcpy(ours, mine, bytes);
    memcpy(theirs, mine, bytes);
    MPI_Bcast(ours, count, kind->type, root, comm);
    PMPI_Bcast(theirs, count, kind->type, root, comm);
    judge(same(kind, ours, theirs, count), "Bcast", kind, "", shape, count, root, false);
    MPI_Barrier(comm);

    /* The root's elements in a row, every second element elsewhere: equal signatures by different types. */
    MPI_Datatype spread;
    MPI_Type_vector(count, 1, 2, kind->type, &spread);
    MPI_Type_commit(&spread);
    memset(ours, 0x55, 2 * bytes);
    memset(theirs, 0x55, 2 * bytes);
    if (rank == root) {
        memcpy(ours, mine, bytes);
        memcpy(theirs, mine, bytes);
        MPI_Bcast(ours, count, kind->type, root, comm);
        PMPI_Bcast(theirs, count, kind->type, root, comm);
    } else {
        MPI_Bcast(ours, 1, spread, root, comm);
        PMPI_Bcast(theirs, 1, spread, root, comm);
    }
    judge(same(kind, ours, theirs, rank == root ? count : 2 * count - 1), "Bcast", kind, "spread", shape, count, root, false);
    MPI_Type_free(&spread);
}

static void user_sum(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *count; i++)
        ((int *)inout)[i] += ((int *)in)[i];
}

/* A rank in MPI_Send of a long message to one that is in a collective already: it only ends if waiting ranks let MPI
 * move messages. */
static void while_a_message_is_under_way(MPI_Comm comm)
{
    enum { LONG = 1 << 20 };
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    if (size < 2)
        return;
    char *message = malloc(LONG);
    memset(message, rank + 1, LONG);
    MPI_Request request = MPI_REQUEST_NULL;
    if (rank == 0)
        MPI_Isend(message, LONG, MPI_CHAR, size - 1, 7, comm, &request);
    if (rank == size - 1)
        MPI_Recv(message, LONG, MPI_CHAR, 0, 7, comm, MPI_STATUS_IGNORE);
    int one = 1, sum = 0;
    MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    struct kind kind = {"MPI_INT", MPI_INT, 4, 0, 0, WHOLE};
    judge(sum == size && (rank != size - 1 || message[LONG - 1] == 1), "Allreduce", &kind, "behind MPI_Isend", "world", 1, 0, false);
    free(message);
}

#define TYPE(type, c, of) {#type, type, sizeof(c), 0, 0, of}
#define PAIRS(type, c, of) {#type, type, sizeof(struct { c v; int i; }), sizeof(c), offsetof(struct { c v; int i; }, i), (of) | PAIR}

int main(int argc, char **argv)
{
    int rounds = 1, largest = 2048, provided;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "--rounds") == 0)
            rounds = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--largest") == 0)
            largest = atoi(argv[i + 1]);
        else if (strcmp(argv[i], "--seed") == 0)
            state = strtoull(argv[i + 1], NULL, 0);
    }
    MPI_Init_thread(&argc, &argv, MPI_THREAD_SINGLE, &provided);
    const struct kind kinds[] = {
        TYPE(MPI_DOUBLE, double, REAL), TYPE(MPI_FLOAT, float, REAL), TYPE(MPI_INT, int, WHOLE), TYPE(MPI_LONG, long, WHOLE),
        TYPE(MPI_LONG_LONG, long long, WHOLE), TYPE(MPI_SHORT, short, WHOLE), TYPE(MPI_SIGNED_CHAR, signed char, WHOLE),
        TYPE(MPI_UNSIGNED, unsigned, WHOLE), TYPE(MPI_UNSIGNED_LONG, unsigned long, WHOLE),
        TYPE(MPI_UNSIGNED_LONG_LONG, unsigned long long, WHOLE), TYPE(MPI_UNSIGNED_SHORT, unsigned short, WHOLE),
        TYPE(MPI_UNSIGNED_CHAR, unsigned char, WHOLE), TYPE(MPI_INT8_T, int8_t, WHOLE), TYPE(MPI_INT16_T, int16_t, WHOLE),
        TYPE(MPI_INT32_T, int32_t, WHOLE), TYPE(MPI_INT64_T, int64_t, WHOLE), TYPE(MPI_UINT8_T, uint8_t, WHOLE),
        TYPE(MPI_UINT16_T, uint16_t, WHOLE), TYPE(MPI_UINT32_T, uint32_t, WHOLE), TYPE(MPI_UINT64_T, uint64_t, WHOLE),
        TYPE(MPI_AINT, MPI_Aint, WHOLE), TYPE(MPI_OFFSET, MPI_Offset, WHOLE), TYPE(MPI_COUNT, MPI_Count, WHOLE),
        TYPE(MPI_C_BOOL, bool, LOGICAL), TYPE(MPI_BYTE, char, BITS), TYPE(MPI_INTEGER, int, FORTRAN),
        TYPE(MPI_REAL, float, REAL), TYPE(MPI_DOUBLE_PRECISION, double, REAL), TYPE(MPI_LOGICAL, int, LOGICAL),
        TYPE(MPI_CHAR, char, MOVED), TYPE(MPI_C_DOUBLE_COMPLEX, double[2], MOVED), TYPE(MPI_LONG_DOUBLE, long double, MOVED),
        PAIRS(MPI_2INT, int, WHOLE), PAIRS(MPI_SHORT_INT, short, WHOLE), PAIRS(MPI_LONG_INT, long, WHOLE),
        PAIRS(MPI_FLOAT_INT, float, REAL), PAIRS(MPI_DOUBLE_INT, double, REAL),
    };
    const struct op ops[] = {
        {"MAX", MPI_MAX, REAL | WHOLE | FORTRAN}, {"MIN", MPI_MIN, REAL | WHOLE | FORTRAN}, {"SUM", MPI_SUM, REAL | WHOLE | FORTRAN}, {"PROD", MPI_PROD, REAL | WHOLE | FORTRAN},
        {"LAND", MPI_LAND, WHOLE | LOGICAL}, {"LOR", MPI_LOR, WHOLE | LOGICAL}, {"LXOR", MPI_LXOR, WHOLE | LOGICAL},
        {"BAND", MPI_BAND, WHOLE | BITS | FORTRAN}, {"BOR", MPI_BOR, WHOLE | BITS | FORTRAN}, {"BXOR", MPI_BXOR, WHOLE | BITS | FORTRAN},
        {"MAXLOC", MPI_MAXLOC, PAIR}, {"MINLOC", MPI_MINLOC, PAIR},
    };
    const int kind_count = sizeof kinds / sizeof kinds[0], op_count = sizeof ops / sizeof ops[0];
    int size;
    MPI_Comm_rank(MPI_COMM_WORLD, &world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    uint64_t seed = state;
    mine = malloc((size_t)largest * 4 + 4096);
    ours = malloc((size_t)largest * 4 + 4096);
    theirs = malloc((size_t)largest * 4 + 4096);

    struct {
        const char *name;
        MPI_Comm comm;
    } shapes[6] = {{"world", MPI_COMM_WORLD}};
    MPI_Comm_dup(MPI_COMM_WORLD, &shapes[1].comm);
    shapes[1].name = "duplicate";
    MPI_Comm_split(MPI_COMM_WORLD, world_rank % 2, 0, &shapes[2].comm);
    shapes[2].name = "every second";
    MPI_Comm_split(MPI_COMM_WORLD, 0, -world_rank, &shapes[3].comm);
    shapes[3].name = "reversed";
    MPI_Comm_split(MPI_COMM_WORLD, world_rank < size - 1 ? 0 : MPI_UNDEFINED, 0, &shapes[4].comm);
    shapes[4].name = "all but one";
    MPI_Comm_split(MPI_COMM_WORLD, world_rank / 3, (world_rank * 7) % 5, &shapes[5].comm);
    shapes[5].name = "threes, mixed";

    for (int round = 0; round < rounds; round++) {
        for (int shape = 0; shape < 6; shape++) {
            MPI_Comm comm = shapes[shape].comm;
            if (comm == MPI_COMM_NULL)
                continue;
            int rank, members;
            MPI_Comm_rank(comm, &rank);
            MPI_Comm_size(comm, &members);
            for (int k = 0; k < kind_count; k++) {
                const struct kind *kind = &kinds[k];
                int whole = largest / (int)kind->bytes, most = whole < 1 ? 1 : whole;
                const int counts[] = {1, 2, 3, 17, most};
                /* The same on all ranks: number of elements and root. */
                uint64_t choice = (uint64_t)(round * 31 + shape * 7 + k);
                for (int o = 0; o < op_count; o++) {
                    bool pair = kind->of & PAIR, wanted = ops[o].on & PAIR;
                    if (pair != wanted || !(kind->of & ops[o].on))
                        continue;
                    int count = counts[(choice + (uint64_t)o) % 5], root = (int)((choice + (uint64_t)o * 3) % (uint64_t)members);
                    state = seed + (uint64_t)world_rank * 1000003u + choice * 101u + (uint64_t)o;
                    all_of(comm, shapes[shape].name, kind, &ops[o], count > most ? most : count, root);
                }
                int count = counts[choice % 5];
                state = seed + (uint64_t)world_rank * 1000003u + choice * 77u;
                moved(comm, shapes[shape].name, kind, count > most ? most : count, (int)(choice % (uint64_t)members));
            }
        }
        while_a_message_is_under_way(MPI_COMM_WORLD);
    }

    /* What stays plain has to work as well. */
    MPI_Op user;
    MPI_Op_create(user_sum, 1, &user);
    int one[3] = {world_rank, 1, 2}, sums[3];
    MPI_Allreduce(one, sums, 3, MPI_INT, user, MPI_COMM_WORLD);
    judge(sums[0] == size * (size - 1) / 2 && sums[1] == size, "Allreduce", &kinds[2], "user", "world", 3, 0, false);
    MPI_Allreduce(NULL, NULL, 0, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Bcast(NULL, 0, MPI_INT, 0, MPI_COMM_WORLD);
    MPI_Op_free(&user);
#ifdef OPEN_MPI /* Debian's MPICH does not check arguments */
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    judge(MPI_Allreduce(one, sums, -1, MPI_INT, MPI_SUM, MPI_COMM_WORLD) != MPI_SUCCESS, "Allreduce", &kinds[2], "of -1", "world", -1, 0, false);
    judge(MPI_Bcast(one, 1, MPI_INT, size, MPI_COMM_WORLD) != MPI_SUCCESS, "Bcast", &kinds[2], "from nobody", "world", 1, size, false);
    judge(MPI_Allreduce(one, sums, 1, MPI_DATATYPE_NULL, MPI_SUM, MPI_COMM_WORLD) != MPI_SUCCESS, "Allreduce", &kinds[2], "of no type", "world", 1, 0, false);
#endif

    long total[2] = {checks, differences}, all[2];
    PMPI_Reduce(total, all, 2, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    PMPI_Bcast(all, 2, MPI_LONG, 0, MPI_COMM_WORLD);
    for (int shape = 1; shape < 6; shape++)
        if (shapes[shape].comm != MPI_COMM_NULL)
            MPI_Comm_free(&shapes[shape].comm);
    if (world_rank == 0)
        printf("checks %ld differences %ld\n", all[0], all[1]);
    MPI_Finalize();
    return all[1] > 0;
}
