/* What a shim and the core (src/abi.rs) say to each other. No MPI type crosses this border: a communicator is a number
 * (the bits of its handle), types and operations have the codes of our wire format. Change RADDLE_ABI with anything. */
#ifndef RADDLE_H
#define RADDLE_H

#include <stddef.h>
#include <stdint.h>

#define RADDLE_ABI 2

/* Codes of raddle_wire::native::Collective. */
enum raddle_collective {
    RADDLE_ALLREDUCE = 1,
    RADDLE_REDUCE = 2,
    RADDLE_BARRIER = 3,
    RADDLE_BCAST = 4
};

/* Why the shim alone already knows that a call stays plain; 0: it does not. The names are in src/reason.rs. */
enum raddle_reason {
    RADDLE_ELIGIBLE = 0,
    RADDLE_NO_ELEMENTS = 1,
    RADDLE_ARGUMENTS = 2,
    RADDLE_TYPE = 3,
    RADDLE_OPERATION = 4
};

/* What the core decides about a call. */
enum raddle_verdict {
    RADDLE_PLAIN = 0,       /* call PMPI */
    RADDLE_PLAIN_TIMED = 1, /* call PMPI, then `timed` */
    RADDLE_OFFLOAD = 2      /* call `run` */
};

/* One collective call of one rank. */
struct raddle_call {
    const void *send;   /* this rank's values in the layout of C; a Bcast has them in `receive` */
    void *receive;      /* room for the result; NULL where this rank gets none */
    uint64_t count;     /* elements; of a Bcast, bytes */
    uintptr_t handle;   /* of the datatype: libraries treat types of one layout differently */
    int32_t root;       /* 0 where there is none */
    uint8_t collective;
    uint8_t operation;  /* code on the wire, 0: none */
    uint8_t type;       /* code on the wire, 0: none */
    uint8_t reason;     /* enum raddle_reason */
};

/* A communicator when it is first seen. */
struct raddle_view {
    uintptr_t handle;
    int32_t rank;
    int32_t size;
    uint8_t inter;     /* an intercommunicator */
    uint8_t world;     /* MPI_COMM_WORLD */
    uint8_t session;   /* MPI was not initialised by MPI_Init */
    char name[64];
};

/* Plain MPI for the core, on a communicator by its number; they return 0 or an error code of MPI. Counts are bytes. */
struct raddle_plain {
    int (*allgather)(uintptr_t comm, const void *mine, void *all, int bytes_each);
    int (*gather)(uintptr_t comm, const void *mine, void *all, int bytes_each, int root);
    int (*gatherv)(uintptr_t comm, const void *mine, int bytes, void *all, const int *lengths, const int *offsets, int root);
    int (*bcast)(uintptr_t comm, void *data, int bytes, int root);
    int (*barrier)(uintptr_t comm);
    int (*send)(uintptr_t comm, const void *data, int bytes, int to);
    int (*receive)(uintptr_t comm, void *data, int bytes, int from);
    int (*least)(uintptr_t comm, int32_t mine, int32_t *least);
    int (*sum)(uintptr_t comm, const double *mine, double *sums, int count);
    int (*split)(uintptr_t comm, int colour, int key, uintptr_t *part);
    int (*free)(uintptr_t comm);
    /* The program's own kind of call on values of ours: which tree of additions does this library make? */
    int (*reduce)(uintptr_t comm, uint8_t collective, uint8_t operation, uintptr_t type, const void *mine, void *result, int count, int root);
    /* One step of its arithmetic: inout = in op inout. */
    int (*reduce_local)(uint8_t operation, uintptr_t type, const void *in, void *inout, int count);
    /* Let the library move its messages while we wait. */
    void (*progress)(void);
};

/* What the core does for a shim. */
struct raddle_core {
    void *(*communicator)(const struct raddle_view *view);
    /* The communicator is about to be freed: give back what was split off it. */
    void (*release)(void *state);
    /* It is gone. */
    void (*forget)(void *state);
    int (*begin)(void *state, const struct raddle_call *call);
    /* 1: done, 0: PMPI is to be called after all. */
    int (*run)(void *state, const struct raddle_call *call);
    void (*timed)(void *state);
    void (*initialised)(void);
    void (*finalize)(uintptr_t world, int rank, int size);
};

/* A function of the shim that stands behind the symbol of this name. */
struct raddle_entry {
    const char *symbol;
    void (*function)(void);
};

/* A shim once it is attached. */
struct raddle_shim {
    uint32_t abi;
    uint32_t library; /* 1 Open MPI, 2 MPICH */
    int version[3];   /* of the MPI library that runs */
    const struct raddle_entry *entries;
    size_t entry_count;
    struct raddle_plain plain;
};

/* The only symbol of a shim: NULL and one line in `why` if it does not fit the MPI library that is loaded. */
__attribute__((visibility("default")))
const struct raddle_shim *raddle_shim_attach(const struct raddle_core *core, uint32_t abi, char *why, size_t why_bytes);

#endif
