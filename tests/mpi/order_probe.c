/* What an MPI library computes, to the bit: one line of text per answer.
 *
 *   order_probe local
 *       MPI_Reduce_local of every operation and type of in-network Allreduce on values that tell orders of operands apart:
 *       "local OPERATION TYPE LEFT RIGHT RESULT", elements in hexadecimal, most significant byte first, pairs without gap.
 *
 *   order_probe calls TRIALS LARGEST_SIZE [COUNT...]
 *       MPI_Allreduce and MPI_Reduce on the first 1, 2, ... ranks, on values from `value` (below):
 *       "call COLLECTIVE OPERATION TYPE KIND COUNT SIZE ROOT SEED DIGEST [DIGEST...]", a digest of the result per rank that
 *       has one; equal digests of all ranks are printed once. Before that, for each operation, type and count,
 *       "zeros OPERATION TYPE COUNT left|right|both": which operand MPI_Reduce_local keeps of two equal zeros.
 *
 * Values are made from numbers alone, so that another program can make the same.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum shape { UNSIGNED, SIGNED, FLOATING, PAIR };

struct type {
    const char *name;
    MPI_Datatype handle;
    enum shape shape;
    int value_bytes;  /* of the number, without the index of a pair */
    int extent;       /* bytes of an element in C */
    int index_at;     /* byte of a pair's index in C */
    int floating;     /* the number is a float */
};

struct operation {
    const char *name;
    MPI_Op handle;
};

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

/* Zeros of both signs, NaNs of two payloads and both signs, infinities, small numbers. */
static const uint64_t SPECIAL_DOUBLE[] = {
    0x0000000000000000u, 0x8000000000000000u, 0x7ff8000000000001u, 0xfff8000000000002u,
    0x3ff0000000000000u, 0xbff0000000000000u, 0x7ff0000000000000u, 0xfff0000000000000u,
};
static const uint32_t SPECIAL_FLOAT[] = {
    0x00000000u, 0x80000000u, 0x7fc00001u, 0xffc00002u,
    0x3f800000u, 0xbf800000u, 0x7f800000u, 0xff800000u,
};

/* The bits of a value: kind 'w' is wild (signs and magnitudes differ, every bit counts), 'z' has zeros of both signs and
 * few other numbers, 's' is special (also NaN and infinities). */
static uint64_t value(const struct type *type, char kind, uint64_t seed, int rank, int element)
{
    uint64_t draw = mix(mix(mix(seed) ^ (uint64_t)rank) ^ (uint64_t)element);
    if (!type->floating)
        return draw;
    if (type->value_bytes == 8) {
        if (kind == 's')
            return SPECIAL_DOUBLE[draw >> 61];
        if (kind == 'z')
            return (draw >> 62 << 63) | (draw >> 61 & 1 ? (uint64_t)0x3ff << 52 : 0);
        return (draw >> 63 << 63) | (1003 + (draw >> 52) % 41) << 52 | (draw & 0xfffffffffffffu);
    }
    if (kind == 's')
        return SPECIAL_FLOAT[draw >> 61];
    if (kind == 'z')
        return (draw >> 62 << 31 & 0x80000000u) | (draw >> 61 & 1 ? 0x7fu << 23 : 0);
    return (draw >> 63 << 31) | (123 + (draw >> 52) % 9) << 23 | (draw & 0x7fffffu);
}

/* Writes an element as the machine has it. */
static void put(const struct type *type, unsigned char *to, uint64_t bits, uint32_t index)
{
    memset(to, 0, (size_t)type->extent);
    memcpy(to, &bits, (size_t)type->value_bytes); /* little-endian machines only, see main */
    if (type->shape == PAIR)
        memcpy(to + type->index_at, &index, 4);
}

/* An element's bytes, most significant first, without gaps. */
static int wire(const struct type *type, const unsigned char *from, unsigned char *to)
{
    int length = 0;
    for (int i = type->value_bytes - 1; i >= 0; i--)
        to[length++] = from[i];
    if (type->shape == PAIR)
        for (int i = 3; i >= 0; i--)
            to[length++] = from[type->index_at + i];
    return length;
}

static void print_element(const struct type *type, const unsigned char *from)
{
    unsigned char bytes[12];
    int length = wire(type, from, bytes);
    putchar(' ');
    for (int i = 0; i < length; i++)
        printf("%02x", bytes[i]);
}

/* FNV-1a over the elements' bytes in wire order. */
static uint64_t digest(const struct type *type, const unsigned char *from, int count)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (int element = 0; element < count; element++) {
        unsigned char bytes[12];
        int length = wire(type, from + (size_t)element * (size_t)type->extent, bytes);
        for (int i = 0; i < length; i++)
            hash = (hash ^ bytes[i]) * 0x100000001b3u;
    }
    return hash;
}

struct value_index { double value; int index; };
struct short_index { short value; int index; };
struct long_index { long value; int index; };
struct float_index { float value; int index; };
struct int_index { int value; int index; };

static struct type types[15];
static struct operation operations[12];

static void fill_tables(void)
{
    const struct type all[15] = {
        {"MPI_INT8_T", MPI_INT8_T, SIGNED, 1, 1, 0, 0},
        {"MPI_UINT8_T", MPI_UINT8_T, UNSIGNED, 1, 1, 0, 0},
        {"MPI_INT16_T", MPI_INT16_T, SIGNED, 2, 2, 0, 0},
        {"MPI_UINT16_T", MPI_UINT16_T, UNSIGNED, 2, 2, 0, 0},
        {"MPI_INT32_T", MPI_INT32_T, SIGNED, 4, 4, 0, 0},
        {"MPI_UINT32_T", MPI_UINT32_T, UNSIGNED, 4, 4, 0, 0},
        {"MPI_INT64_T", MPI_INT64_T, SIGNED, 8, 8, 0, 0},
        {"MPI_UINT64_T", MPI_UINT64_T, UNSIGNED, 8, 8, 0, 0},
        {"MPI_FLOAT", MPI_FLOAT, FLOATING, 4, 4, 0, 1},
        {"MPI_DOUBLE", MPI_DOUBLE, FLOATING, 8, 8, 0, 1},
        {"MPI_SHORT_INT", MPI_SHORT_INT, PAIR, 2, sizeof(struct short_index), 4, 0},
        {"MPI_2INT", MPI_2INT, PAIR, 4, sizeof(struct int_index), 4, 0},
        {"MPI_LONG_INT", MPI_LONG_INT, PAIR, 8, sizeof(struct long_index), 8, 0},
        {"MPI_FLOAT_INT", MPI_FLOAT_INT, PAIR, 4, sizeof(struct float_index), 4, 1},
        {"MPI_DOUBLE_INT", MPI_DOUBLE_INT, PAIR, 8, sizeof(struct value_index), 8, 1},
    };
    const struct operation every[12] = {
        {"MPI_MAX", MPI_MAX},       {"MPI_MIN", MPI_MIN},       {"MPI_SUM", MPI_SUM},
        {"MPI_PROD", MPI_PROD},     {"MPI_LAND", MPI_LAND},     {"MPI_BAND", MPI_BAND},
        {"MPI_LOR", MPI_LOR},       {"MPI_BOR", MPI_BOR},       {"MPI_LXOR", MPI_LXOR},
        {"MPI_BXOR", MPI_BXOR},     {"MPI_MAXLOC", MPI_MAXLOC}, {"MPI_MINLOC", MPI_MINLOC},
    };
    memcpy(types, all, sizeof all);
    memcpy(operations, every, sizeof every);
}

static int accepts(int operation, const struct type *type)
{
    if (operation >= 10)
        return type->shape == PAIR;
    if (type->shape == PAIR)
        return 0;
    return operation < 4 || type->shape != FLOATING;
}

/* Small whole numbers, so that they meet as equals, and numbers with every bit. */
static uint64_t local_value(const struct type *type, uint64_t seed, int element)
{
    if (type->floating)
        return value(type, element % 3 ? 's' : 'w', seed, 0, element);
    uint64_t draw = mix(mix(seed) ^ (uint64_t)element);
    return element % 2 ? draw : draw % 4 - 1;
}

static void print_local(void)
{
    enum { COUNT = 67 }; /* vectors of every width and what is left over */
    static unsigned char left[COUNT * 16], right[COUNT * 16], result[COUNT * 16];
    for (int o = 0; o < 12; o++)
        for (int t = 0; t < 15; t++) {
            const struct type *type = &types[t];
            if (!accepts(o, type))
                continue;
            for (int i = 0; i < COUNT; i++) {
                put(type, left + i * type->extent, local_value(type, 1, i), (uint32_t)mix(i) % 3);
                put(type, right + i * type->extent, local_value(type, 2, i), (uint32_t)mix(i + 99) % 3);
            }
            memcpy(result, right, sizeof right);
            MPI_Reduce_local(left, result, COUNT, type->handle, operations[o].handle);
            for (int i = 0; i < COUNT; i++) {
                printf("local %s %s", operations[o].name, type->name);
                print_element(type, left + i * type->extent);
                print_element(type, right + i * type->extent);
                print_element(type, result + i * type->extent);
                putchar('\n');
            }
        }
}

/* One collective on `comm`; prints on its rank 0. */
static void print_call(MPI_Comm comm, int allreduce, int operation, const struct type *type,
                       char kind, int count, int root, uint64_t seed)
{
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    size_t bytes = (size_t)count * (size_t)type->extent;
    unsigned char *in = malloc(bytes), *out = calloc(1, bytes);
    for (int i = 0; i < count; i++)
        put(type, in + (size_t)i * (size_t)type->extent, value(type, kind, seed, rank, i),
            (uint32_t)mix(seed + (uint64_t)i) % 5 + (uint32_t)rank);
    if (allreduce)
        MPI_Allreduce(in, out, count, type->handle, operations[operation].handle, comm);
    else
        MPI_Reduce(in, out, count, type->handle, operations[operation].handle, root, comm);
    uint64_t mine = digest(type, out, count), *all = calloc((size_t)size, sizeof mine);
    MPI_Gather(&mine, 1, MPI_UINT64_T, all, 1, MPI_UINT64_T, 0, comm);
    if (rank == 0) {
        printf("call %s %s %s %c %d %d %d %llu", allreduce ? "allreduce" : "reduce",
               operations[operation].name, type->name, kind, count, size, root,
               (unsigned long long)seed);
        if (!allreduce) {
            printf(" %016llx", (unsigned long long)all[root]);
        } else {
            int same = 1;
            for (int i = 1; i < size; i++)
                same &= all[i] == all[0];
            for (int i = 0; i < (same ? 1 : size); i++)
                printf(" %016llx", (unsigned long long)all[i]);
        }
        putchar('\n');
    }
    free(all);
    free(in);
    free(out);
}

/* What is asked of every size and count: operation, type, kind of values. */
static const struct question {
    int operation, type;
    char kind;
} QUESTIONS[] = {
    {2, 9, 'w'}, {2, 8, 'w'}, {3, 9, 'w'}, {0, 9, 'z'}, {1, 8, 'z'}, {11, 14, 'z'}, {10, 13, 'z'},
};

/* Which of +0 and -0 the library keeps of MIN and MAX: it depends on vectors, and on what is left over. */
static void print_zeros(const struct question *ask, int count)
{
    const struct type *type = &types[ask->type];
    size_t bytes = (size_t)count * (size_t)type->extent;
    unsigned char *left = calloc(1, bytes), *right = malloc(bytes);
    for (int i = 0; i < count; i++)
        put(type, right + (size_t)i * (size_t)type->extent, (uint64_t)1 << (8 * type->value_bytes - 1), 0);
    MPI_Reduce_local(left, right, count, type->handle, operations[ask->operation].handle);
    int kept = 0; /* of the right operand */
    for (int i = 0; i < count; i++)
        kept += right[i * type->extent + type->value_bytes - 1] == 0x80;
    printf("zeros %s %s %d %s\n", operations[ask->operation].name, type->name, count,
           kept == count ? "right" : kept ? "both" : "left");
    free(left);
    free(right);
}

static void print_calls(int trials, int largest, int counts, char **count)
{
    static const int usual[] = {1,   2,   3,   4,    5,    7,    8,    15,   16,   31,   32,  33,
                                63,  64,  65,  127,  128,  255,  256,  257,  511,  512,  513, 1023,
                                1024, 1025, 2047, 2048, 2500, 4096, 8192};
    int world, rank;
    MPI_Comm_size(MPI_COMM_WORLD, &world);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int number = counts ? counts : (int)(sizeof usual / sizeof *usual);
    for (size_t q = 0; rank == 0 && q < sizeof QUESTIONS / sizeof *QUESTIONS; q++)
        for (int c = 0; c < number; c++)
            if (QUESTIONS[q].kind == 'z')
                print_zeros(&QUESTIONS[q], counts ? atoi(count[c]) : usual[c]);
    for (int size = 1; size <= world && size <= largest; size++) {
        MPI_Comm part;
        MPI_Comm_split(MPI_COMM_WORLD, rank < size ? 0 : MPI_UNDEFINED, rank, &part);
        if (part == MPI_COMM_NULL)
            continue;
        for (int c = 0; c < number; c++)
            for (size_t q = 0; q < sizeof QUESTIONS / sizeof *QUESTIONS; q++)
                for (int trial = 0; trial < trials; trial++) {
                    int elements = counts ? atoi(count[c]) : usual[c];
                    const struct question *ask = &QUESTIONS[q];
                    uint64_t seed = mix(((uint64_t)size << 40) ^ ((uint64_t)elements << 16) ^
                                        (q << 8) ^ (uint64_t)trial) >> 1;
                    int root = trial == 0 ? 0 : (int)(seed % (uint64_t)size);
                    print_call(part, 1, ask->operation, &types[ask->type], ask->kind, elements, 0, seed);
                    print_call(part, 0, ask->operation, &types[ask->type], ask->kind, elements, root, seed);
                }
        MPI_Comm_free(&part);
    }
}

int main(int argc, char **argv)
{
    const uint16_t one = 1;
    if (*(const unsigned char *)&one != 1) {
        fputs("order_probe: needs a little-endian machine\n", stderr);
        return 2;
    }
    MPI_Init(&argc, &argv);
    fill_tables();
    if (argc >= 4 && strcmp(argv[1], "calls") == 0)
        print_calls(atoi(argv[2]), atoi(argv[3]), argc - 4, argv + 4);
    else if (argc == 2 && strcmp(argv[1], "local") == 0)
        print_local();
    else
        fputs("usage: order_probe local | calls TRIALS LARGEST_SIZE [COUNT...]\n", stderr);
    MPI_Finalize();
    return 0;
}
