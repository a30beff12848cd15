/* What every part of a shim knows: the MPI library, against whose mpi.h it is compiled, and the tables of the core. */
#ifndef RADDLE_LIBRARY_H
#define RADDLE_LIBRARY_H

#include <mpi.h>
#include <stdatomic.h>

#include "border.h"

#if defined(OPEN_MPI)
#define RADDLE_LIBRARY RADDLE_OPEN_MPI
#elif defined(MPICH_VERSION)
#define RADDLE_LIBRARY RADDLE_MPICH
#else
#error "neither Open MPI nor MPICH"
#endif

/* MPI_Count in calls: the functions with _c. */
#if defined(MPICH_VERSION) && MPI_VERSION >= 4
#define RADDLE_LARGE
#endif

/* core.c: the core's tables, set when the shim is attached. No recorder: nothing is recorded. No messages: none are scheduled. */
extern const struct raddle_process *raddle_process;
extern const struct raddle_collectives *raddle_collectives;
extern const struct raddle_recorder *raddle_recorder;
extern const struct raddle_messages *raddle_messages;

/* types.c: codes of a predefined type or operation. */
struct raddle_type {
    uintptr_t handle;
    uint8_t code;       /* enum raddle_data_type */
    uint8_t bytes;      /* of an element in memory, without gaps; 0: it has gaps */
    uint8_t operations; /* RADDLE_ANY or one of the others */
};
/* Operations that MPI knows for a type. */
enum { RADDLE_ANY, RADDLE_LOGICAL, RADDLE_BITWISE, RADDLE_NOT_LOGICAL };
void raddle_types_prepare(void);
const struct raddle_type *raddle_type_find(MPI_Datatype type);
/* One of enum raddle_operation. */
uint8_t raddle_operation_find(MPI_Op operation);
MPI_Op raddle_operation_of(uint8_t code);

/* plain.c: plain MPI for the core. */
extern const struct raddle_plain raddle_plain_calls;
void raddle_plain_prepare(void);

#endif
