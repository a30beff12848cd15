/* Inside a shim: compiled once per MPI library, against its mpi.h. */
#ifndef RADDLE_SHIM_H
#define RADDLE_SHIM_H

#include <mpi.h>
#include <stdatomic.h>

#include "border.h"

#if defined(OPEN_MPI)
#define RADDLE_LIBRARY 1
#elif defined(MPICH_VERSION)
#define RADDLE_LIBRARY 2
#else
#error "neither Open MPI nor MPICH"
#endif

/* MPI_Count in calls: the functions with _c. */
#if defined(MPICH_VERSION) && MPI_VERSION >= 4
#define RADDLE_LARGE
#endif

/* shim.c. No recorder: nothing is recorded. No messages: none are scheduled. */
extern const struct raddle_core *raddle_core;
extern const struct raddle_recorder *raddle_recorder;
extern const struct raddle_messages *raddle_messages;

/* known.c: what is known of a communicator. */
struct known {
    _Atomic(MPI_Comm) comm;
    void *state;      /* of offload */
    int32_t number;   /* at the recorder; negative: it is not recorded */
    int rank, size, inter;
    struct scope *scope; /* of the layer of messages; NULL: they are plain */
    struct known *next_free;
};
extern _Atomic(struct known *) raddle_last;
/* The entry if there is one. */
struct known *raddle_known(MPI_Comm comm);
/* The slow way: by the attribute, which is made if it is not there. NULL: the call is none of ours. */
struct known *raddle_look_up(MPI_Comm comm);
/* MPI ends. */
void raddle_forget_all(void);

static inline struct known *raddle_find(MPI_Comm comm)
{
    struct known *entry = atomic_load_explicit(&raddle_last, memory_order_acquire);
    if (entry != NULL && atomic_load_explicit(&entry->comm, memory_order_relaxed) == comm)
        return entry;
    return raddle_look_up(comm);
}

/* messages/agree.c: communicators whose messages are ours now, or may come to be while they are on trial. */
extern int raddle_scopes;
/* MPI runs: all ranks agree. */
void raddle_agree_world(void);
/* Its ranks have made a communicator. */
void raddle_agree(MPI_Comm comm);
void raddle_forget_scope(struct scope *scope);
/* MPI is about to end. */
void raddle_end_messages(void);
/* messages/channel.c: what is open leaves. */
extern int raddle_unsent; /* something may be open */
extern int raddle_turns;  /* communicators on trial that are plain for a turn: supersteps are counted for them */
void raddle_end_superstep(void);
static inline void raddle_flush(void)
{
    if (raddle_unsent | raddle_turns)
        raddle_end_superstep();
}
/* messages/trial.c: a blocking collective begins. */
void raddle_begin_collective(MPI_Comm comm);
static inline void raddle_collective(MPI_Comm comm)
{
    if (raddle_unsent | raddle_scopes)
        raddle_begin_collective(comm);
}

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
