/* Predefined types and operations of MPI, and their codes on the wire. */
#include <stdbool.h>
#include <string.h>

#include "library/library.h"

/* Handles in a table of open addressing: at most a third of it is used. */
enum { SLOTS = 256 };
static struct raddle_type types[SLOTS];
static struct raddle_type operations[64];

static size_t place(uintptr_t handle, size_t slots)
{
    /* Open MPI's handles are addresses of large structures, MPICH's small numbers with a kind above them. */
    uintptr_t mixed = (handle ^ (handle >> 7) ^ (handle >> 17)) * (uintptr_t)0x9e3779b97f4a7c15ull;
    return (size_t)(mixed >> 40) & (slots - 1);
}

static void put(struct raddle_type *table, size_t slots, struct raddle_type entry)
{
    size_t at = place(entry.handle, slots);
    while (table[at].handle != 0 && table[at].handle != entry.handle)
        at = (at + 1) & (slots - 1);
    /* Some names are the same handle: the first one said more. */
    if (table[at].handle == 0)
        table[at] = entry;
}

static const struct raddle_type *get(const struct raddle_type *table, size_t slots, uintptr_t handle)
{
    for (size_t at = place(handle, slots); table[at].handle != 0; at = (at + 1) & (slots - 1))
        if (table[at].handle == handle)
            return &table[at];
    return NULL;
}

static void type(MPI_Datatype handle, uint8_t code, size_t bytes, uint8_t of)
{
    /* Optional types that the library was built without are MPI_DATATYPE_NULL. */
    if (handle != MPI_DATATYPE_NULL)
        put(types, SLOTS, (struct raddle_type){(uintptr_t)handle, code, (uint8_t)bytes, of});
}

static uint8_t integer(size_t bytes, bool is_signed)
{
    switch (bytes) {
    case 1: return is_signed ? RADDLE_DATA_INT8 : RADDLE_DATA_UINT8;
    case 2: return is_signed ? RADDLE_DATA_INT16 : RADDLE_DATA_UINT16;
    case 4: return is_signed ? RADDLE_DATA_INT32 : RADDLE_DATA_UINT32;
    case 8: return is_signed ? RADDLE_DATA_INT64 : RADDLE_DATA_UINT64;
    default: return RADDLE_DATA_NONE;
    }
}

#define SIGNED(name, c) type(name, integer(sizeof(c), true), sizeof(c), RADDLE_ANY)
#define UNSIGNED(name, c) type(name, integer(sizeof(c), false), sizeof(c), RADDLE_ANY)
/* Only moved, never combined by us. */
#define MOVED(name, c) type(name, RADDLE_DATA_NONE, sizeof(c), RADDLE_ANY)

static void add_c_types(void)
{
    SIGNED(MPI_INT, int);
    SIGNED(MPI_LONG, long);
    SIGNED(MPI_LONG_LONG, long long);
    SIGNED(MPI_SHORT, short);
    SIGNED(MPI_SIGNED_CHAR, signed char);
    SIGNED(MPI_INT8_T, int8_t);
    SIGNED(MPI_INT16_T, int16_t);
    SIGNED(MPI_INT32_T, int32_t);
    SIGNED(MPI_INT64_T, int64_t);
    SIGNED(MPI_AINT, MPI_Aint);
    SIGNED(MPI_OFFSET, MPI_Offset);
    SIGNED(MPI_COUNT, MPI_Count);
    UNSIGNED(MPI_UNSIGNED, unsigned);
    UNSIGNED(MPI_UNSIGNED_LONG, unsigned long);
    UNSIGNED(MPI_UNSIGNED_LONG_LONG, unsigned long long);
    UNSIGNED(MPI_UNSIGNED_SHORT, unsigned short);
    UNSIGNED(MPI_UNSIGNED_CHAR, unsigned char);
    UNSIGNED(MPI_UINT8_T, uint8_t);
    UNSIGNED(MPI_UINT16_T, uint16_t);
    UNSIGNED(MPI_UINT32_T, uint32_t);
    UNSIGNED(MPI_UINT64_T, uint64_t);
    type(MPI_FLOAT, RADDLE_DATA_FLOAT, sizeof(float), RADDLE_ANY);
    type(MPI_DOUBLE, RADDLE_DATA_DOUBLE, sizeof(double), RADDLE_ANY);
    type(MPI_C_BOOL, sizeof(bool) == 1 ? RADDLE_DATA_UINT8 : RADDLE_DATA_NONE, sizeof(bool), RADDLE_LOGICAL);
    type(MPI_BYTE, RADDLE_DATA_UINT8, 1, RADDLE_BITWISE);
    MOVED(MPI_CHAR, char);
    MOVED(MPI_WCHAR, wchar_t);
    MOVED(MPI_PACKED, char);
    MOVED(MPI_C_FLOAT_COMPLEX, float[2]);
    MOVED(MPI_C_DOUBLE_COMPLEX, double[2]);
    type(MPI_2INT, RADDLE_DATA_INT32_INDEX, 8, RADDLE_ANY);
    type(MPI_FLOAT_INT, RADDLE_DATA_FLOAT_INDEX, 8, RADDLE_ANY);
    type(MPI_SHORT_INT, RADDLE_DATA_INT16_INDEX, 0, RADDLE_ANY);
    type(MPI_LONG_INT, sizeof(long) == 8 ? RADDLE_DATA_INT64_INDEX : RADDLE_DATA_NONE, 0, RADDLE_ANY);
    type(MPI_DOUBLE_INT, RADDLE_DATA_DOUBLE_INDEX, 0, RADDLE_ANY);
}

/* Fortran's types by the size that this library gives them. */
static void fortran(MPI_Datatype handle, bool real, uint8_t of)
{
    int bytes = 0;
    if (handle == MPI_DATATYPE_NULL || PMPI_Type_size(handle, &bytes) != MPI_SUCCESS)
        return;
    uint8_t code = integer((size_t)bytes, true);
    if (real)
        code = bytes == 4 ? RADDLE_DATA_FLOAT : bytes == 8 ? RADDLE_DATA_DOUBLE : RADDLE_DATA_NONE;
    type(handle, code, (size_t)bytes, of);
}

static void add_fortran_types(void)
{
    fortran(MPI_INTEGER, false, RADDLE_NOT_LOGICAL);
    fortran(MPI_INTEGER1, false, RADDLE_NOT_LOGICAL);
    fortran(MPI_INTEGER2, false, RADDLE_NOT_LOGICAL);
    fortran(MPI_INTEGER4, false, RADDLE_NOT_LOGICAL);
    fortran(MPI_INTEGER8, false, RADDLE_NOT_LOGICAL);
    fortran(MPI_REAL, true, RADDLE_ANY);
    fortran(MPI_REAL4, true, RADDLE_ANY);
    fortran(MPI_REAL8, true, RADDLE_ANY);
    fortran(MPI_DOUBLE_PRECISION, true, RADDLE_ANY);
    fortran(MPI_LOGICAL, false, RADDLE_LOGICAL);
    if (sizeof(MPI_Fint) == 4)
        type(MPI_2INTEGER, RADDLE_DATA_INT32_INDEX, 8, RADDLE_ANY);
    MOVED(MPI_CHARACTER, char);
}

static const struct {
    uint8_t code;
    MPI_Op handle;
} all_operations[] = {
    {RADDLE_OP_MAX, MPI_MAX},
    {RADDLE_OP_MIN, MPI_MIN},
    {RADDLE_OP_SUM, MPI_SUM},
    {RADDLE_OP_PROD, MPI_PROD},
    {RADDLE_OP_LAND, MPI_LAND},
    {RADDLE_OP_BAND, MPI_BAND},
    {RADDLE_OP_LOR, MPI_LOR},
    {RADDLE_OP_BOR, MPI_BOR},
    {RADDLE_OP_LXOR, MPI_LXOR},
    {RADDLE_OP_BXOR, MPI_BXOR},
    {RADDLE_OP_MAXLOC, MPI_MAXLOC},
    {RADDLE_OP_MINLOC, MPI_MINLOC},
};
enum { OPERATIONS = sizeof all_operations / sizeof all_operations[0] };

void raddle_types_prepare(void)
{
    add_c_types();
    for (size_t at = 0; at < OPERATIONS; at++)
        put(operations, 64, (struct raddle_type){(uintptr_t)all_operations[at].handle, all_operations[at].code, 0, 0});
    /* Asking for sizes needs a library that runs. */
    int initialised = 0;
    if (PMPI_Initialized(&initialised) == MPI_SUCCESS && initialised)
        add_fortran_types();
}

const struct raddle_type *raddle_type_find(MPI_Datatype handle)
{
    return get(types, SLOTS, (uintptr_t)handle);
}

uint8_t raddle_operation_find(MPI_Op handle)
{
    const struct raddle_type *found = get(operations, 64, (uintptr_t)handle);
    return found == NULL ? RADDLE_OP_NONE : found->code;
}

MPI_Op raddle_operation_of(uint8_t code)
{
    for (size_t at = 0; at < OPERATIONS; at++)
        if (all_operations[at].code == code)
            return all_operations[at].handle;
    return MPI_OP_NULL;
}
