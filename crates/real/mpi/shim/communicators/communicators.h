/* The communicators of the program as the layers know them. */
#ifndef RADDLE_COMMUNICATORS_H
#define RADDLE_COMMUNICATORS_H

#include "library/library.h"

/* What the layers know of a communicator. */
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
/* The slow way: by the attribute, which is made if it is not there. NULL: MPI does not run, or does not know the communicator. */
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

/* What the layers above do when a communicator is first seen and when it is gone; set when the shim is attached. */
struct raddle_observers {
    int32_t (*number)(MPI_Comm comm, int inter); /* its number at the recorder */
    void (*forget_scope)(struct scope *scope);
};
extern struct raddle_observers raddle_observers;

#endif
