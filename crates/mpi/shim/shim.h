/* Inside a shim: compiled once per MPI library, against its mpi.h. */
#ifndef RADDLE_SHIM_H
#define RADDLE_SHIM_H

#include <mpi.h>

#include "raddle.h"

#if defined(OPEN_MPI)
#define RADDLE_LIBRARY 1
#elif defined(MPICH_VERSION)
#define RADDLE_LIBRARY 2
#else
#error "neither Open MPI nor MPICH"
#endif

/* types.c: codes of a predefined type or operation. */
struct raddle_type {
    uintptr_t handle;
    uint8_t code;       /* on the wire; 0: none */
    uint8_t bytes;      /* of an element in memory, without gaps; 0: it has gaps */
    uint8_t operations; /* which ones MPI knows for it: RADDLE_ANY or one of the others */
};
enum { RADDLE_ANY, RADDLE_LOGICAL, RADDLE_BITWISE, RADDLE_NOT_LOGICAL };
void raddle_types_prepare(void);
const struct raddle_type *raddle_type_find(MPI_Datatype type);
uint8_t raddle_operation_find(MPI_Op operation);
MPI_Op raddle_operation_of(uint8_t code);

/* plain.c */
extern const struct raddle_plain raddle_plain_calls;
void raddle_plain_prepare(void);

/* Made from functions.toml. */
#include "functions.h"

#endif
