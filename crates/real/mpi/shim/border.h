/* The border between a shim, in C, and the core, in Rust. No MPI type crosses it: a communicator is a number (the bits of
 * its handle), types and operations have the codes of the wire format.
 *
 * This file is the only place that says what crosses: src/ffi/border.rs is made from it (`make generate`), and tests/border.rs
 * holds both equal. No pointer to a function is NULL but those of type raddle_function. Change RADDLE_ABI with anything. */
#ifndef RADDLE_BORDER_H
#define RADDLE_BORDER_H

#include <stddef.h>
#include <stdint.h>

#define RADDLE_ABI 8

/* A function whose real type its user knows. A pointer to one may be NULL. */
typedef void raddle_function(void);

/* Codes of raddle_wire::native::Collective. */
enum raddle_collective {
    RADDLE_ALLREDUCE = 1,
    RADDLE_REDUCE = 2,
    RADDLE_BARRIER = 3,
    RADDLE_BCAST = 4
};

/* Codes of raddle_wire::Operation. */
enum raddle_operation {
    RADDLE_OP_NONE = 0,
    RADDLE_OP_MAX = 1,
    RADDLE_OP_MIN = 2,
    RADDLE_OP_SUM = 3,
    RADDLE_OP_PROD = 4,
    RADDLE_OP_LAND = 5,
    RADDLE_OP_BAND = 6,
    RADDLE_OP_LOR = 7,
    RADDLE_OP_BOR = 8,
    RADDLE_OP_LXOR = 9,
    RADDLE_OP_BXOR = 10,
    RADDLE_OP_MAXLOC = 11,
    RADDLE_OP_MINLOC = 12
};

/* Codes of raddle_wire::DataType. */
enum raddle_data_type {
    RADDLE_DATA_NONE = 0,
    RADDLE_DATA_INT8 = 1,
    RADDLE_DATA_UINT8 = 2,
    RADDLE_DATA_INT16 = 3,
    RADDLE_DATA_UINT16 = 4,
    RADDLE_DATA_INT32 = 5,
    RADDLE_DATA_UINT32 = 6,
    RADDLE_DATA_INT64 = 7,
    RADDLE_DATA_UINT64 = 8,
    RADDLE_DATA_FLOAT = 9,
    RADDLE_DATA_DOUBLE = 10,
    RADDLE_DATA_INT16_INDEX = 32,
    RADDLE_DATA_INT32_INDEX = 33,
    RADDLE_DATA_INT64_INDEX = 34,
    RADDLE_DATA_FLOAT_INDEX = 35,
    RADDLE_DATA_DOUBLE_INDEX = 36
};

/* Why the shim alone already knows that a call stays plain: the first codes of Reason in src/collectives/reason.rs. */
enum raddle_reason {
    RADDLE_ELIGIBLE = 0, /* nothing speaks against it */
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
    uint8_t collective; /* enum raddle_collective */
    uint8_t operation;  /* enum raddle_operation */
    uint8_t data_type;  /* enum raddle_data_type */
    uint8_t reason;     /* enum raddle_reason */
};

/* A communicator when it is first seen. */
struct raddle_view {
    uintptr_t handle;
    int32_t rank;
    int32_t size;
    uint8_t inter;     /* an intercommunicator */
    uint8_t world;     /* MPI_COMM_WORLD */
    uint8_t session;   /* MPI was initialised by a session, not by MPI_Init */
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

/* The process from MPI_Init to MPI_Finalize. */
struct raddle_process {
    /* MPI_Init has come back. */
    void (*initialised)(void);
    /* MPI runs: rank 0 logs what runs and its faults, another rank its faults unless all are `alike`. */
    void (*introduce)(int rank, uint8_t alike);
    /* A digest of the faults in this rank's settings, to compare; 0: there are none. */
    uint64_t (*faults)(void);
    void (*finalize)(uintptr_t world, int rank, int size);
    /* The MPI library's own function of this name; NULL if it has none. */
    raddle_function *(*own)(const char *symbol);
};

/* Collectives in switches. */
struct raddle_collectives {
    /* A communicator is seen for the first time; gives its `state`, or NULL where there is none. */
    void *(*communicator)(const struct raddle_view *view);
    /* The communicator is about to be freed: give back what was split off it. */
    void (*release)(void *state);
    /* It is gone. */
    void (*forget)(void *state);
    /* Decides about a call: one of enum raddle_verdict. */
    int (*begin)(void *state, const struct raddle_call *call);
    /* 1: done, 0: PMPI is to be called after all. */
    int (*run)(void *state, const struct raddle_call *call);
    /* The plain call that was to be timed has come back. */
    void (*timed)(void *state);
};

/* Codes of raddle_trace::CollectiveKind, which count from 0. */
enum raddle_kind {
    RADDLE_KIND_BARRIER,
    RADDLE_KIND_BCAST,
    RADDLE_KIND_REDUCE,
    RADDLE_KIND_ALLREDUCE,
    RADDLE_KIND_GATHER,
    RADDLE_KIND_ALLGATHER,
    RADDLE_KIND_SCATTER,
    RADDLE_KIND_REDUCE_SCATTER,
    RADDLE_KIND_ALLTOALL,
    RADDLE_KIND_SCAN,
    RADDLE_KIND_EXSCAN
};

/* A message as one of its ends names it. */
struct raddle_message {
    uint64_t bytes;
    int32_t comm;       /* its number */
    int32_t peer;       /* rank in the communicator, in the remote group of an intercommunicator */
    int32_t tag;
    uint8_t any_source; /* the receiver left its source open */
    uint8_t any_tag;
};

/* What a neighbourhood collective sends to a rank of the communicator, or gets from it. */
struct raddle_share {
    uint64_t bytes;
    int32_t rank;
};

/* What a request did, by its status. */
struct raddle_matched {
    uint64_t bytes;
    int32_t source, tag;
    uint8_t cancelled;
};

/* What a claimed request has in its two highest bits: neither addresses nor numbers of 32 bits have it. */
#define RADDLE_CLAIMED 1

/* What the recorder does for a shim. From `send` on, each notes a call that has come back, and `begun` is what the clock
 * said before it. A request is the bits of its handle; 0: the call blocked. */
struct raddle_recorder {
    uint64_t (*clock)(void); /* ns */
    /* MPI runs; this is the rank in MPI_COMM_WORLD. */
    void (*open)(int rank, int size);
    /* The program is at MPI_Finalize (1), or ends in another way (0). */
    void (*close)(int complete);
    /* The number of a new communicator; MPI_COMM_WORLD is the first. Members are its ranks in MPI_COMM_WORLD; `remote` are
     * those of an intercommunicator's other group, or NULL. Negative: it is not recorded. */
    int32_t (*communicator)(const int32_t *members, size_t count, const int32_t *remote, size_t remote_count);
    /* Where threads call MPI at the same time, a handle that one completes may be another's new one before that is noted.
     * So a call that may complete a request claims it first, under a word that no handle has (RADDLE_CLAIMED), or the
     * handle where there is nothing to claim; and gives back what it did not complete. */
    uintptr_t (*claim)(uintptr_t request);
    void (*restore)(uintptr_t claimed, uintptr_t request);
    void (*persist)(const struct raddle_message *message, int receives, uintptr_t request);
    void (*send)(uint64_t begun, const struct raddle_message *message, uintptr_t request);
    void (*receive)(uint64_t begun, const struct raddle_message *message, uintptr_t request);
    /* A send and a receive at once; NULL: with MPI_PROC_NULL. */
    void (*exchange)(uint64_t begun, const struct raddle_message *sent, const struct raddle_message *received);
    void (*collective)(uint64_t begun, int32_t comm, uint8_t kind, uint64_t bytes, int32_t root, uintptr_t request);
    void (*neighbours)(uint64_t begun, int32_t comm, const struct raddle_share *sent, size_t sent_count,
                       const struct raddle_share *received, size_t received_count, uintptr_t request);
    /* Persistent requests were started. */
    void (*start)(uint64_t begun, const uintptr_t *requests, size_t count);
    /* Of requests[which[i]], statuses[i] says how it ended; without `which` of requests[i]. */
    void (*complete)(uint64_t begun, const uintptr_t *requests, const int *which, const void *statuses, size_t count);
    /* A message that a probe took became a request. */
    void (*rename)(uint64_t begun, uintptr_t from, uintptr_t to);
    void (*cancel)(uint64_t begun, uintptr_t request);
    void (*release)(uint64_t begun, uintptr_t request);
    /* Time in a call that leaves no event in a trace. */
    void (*pass)(uint64_t begun);
};

/* A message that the program sends, or one that came. Ranks are those of MPI_COMM_WORLD. */
struct raddle_outgoing {
    uint64_t bytes;
    uint32_t to, context;
    int32_t tag;
    uint8_t synchronous;
};
struct raddle_envelope {
    uint64_t bytes;
    uint32_t context, source;
    int32_t tag;
};

/* What a receive or probe asks for. */
struct raddle_wanted {
    uint32_t context, source;
    int32_t tag;
    uint8_t any_source, any_tag;
};

/* How a message is sent. */
enum raddle_way {
    RADDLE_COPIED = 1,       /* complete */
    RADDLE_BY_REFERENCE = 2, /* by the shim, under the key */
    RADDLE_WITHOUT_ROOM = 4, /* by reference, and not before it is asked for */
    RADDLE_SCARCE = 8        /* there may be a grant: look */
};

/* Messages of a communicator that took the plain way: sent, received, receives that wait; and the parcels that those sent
 * would have been. */
struct raddle_counts {
    uint64_t sent, received, waiting, parcels;
};
/* Words of a vote. */
#define RADDLE_VOTE 6
/* What a vote has decided. */
enum raddle_decision {
    RADDLE_PLAIN_NOW = 1, /* messages take the plain way from here on */
    RADDLE_SETTLED = 2    /* for good */
};

/* How messages are scheduled here. */
enum raddle_opened {
    RADDLE_FORCED = 1,  /* communicators of one node are ours too */
    RADDLE_HANDS_ON = 2 /* this rank hands on what comes for others of its node */
};

/* Why no communicator is scheduled. Their names in a report are in src/messages/mod.rs. */
enum raddle_plain_state {
    RADDLE_SETTINGS = 0,
    RADDLE_THREADS = 1,
    RADDLE_SPAWNED = 2,
    RADDLE_LIBRARY_UNKNOWN = 3
};

/* Bytes of the secret of a job's rails. */
#define RADDLE_SECRET 20

/* What the matcher of this process does for a shim. One call at a time, and none from inside `raddle_channel`. */
struct raddle_messages {
    /* A number that all ranks which can work together have; `keys` is the largest tag. 0: this one cannot. */
    uint64_t (*ability)(int keys);
    uint64_t (*node)(void);
    void (*stay_plain)(int why);
    /* The nodes of all ranks. Gives some of enum raddle_opened. */
    int (*open)(int rank, int size, const uint64_t *nodes);
    /* Bytes of the longest parcel. */
    size_t (*longest)(void);
    /* `fill` is called at once where the message is copied. Gives some of enum raddle_way. */
    int (*send)(const struct raddle_outgoing *message, void (*fill)(const void *from, void *room), const void *from, uint32_t *key);
    /* 1: it waits, under the ticket; 0: it has its message. */
    int (*receive)(const struct raddle_wanted *wanted, uint64_t capacity, uint64_t receive, uint64_t *ticket);
    /* 1: there is one; with `claim` it is taken out of the matching. */
    int (*probe)(const struct raddle_wanted *wanted, struct raddle_envelope *found, uint64_t *claim);
    void (*receive_claimed)(uint64_t claim, uint64_t capacity, uint64_t receive);
    /* 1: the receive was taken back. */
    int (*cancel)(uint64_t ticket);
    void (*flush)(void);
    /* A parcel came; 0: its bytes are not those of a parcel. */
    int (*parcel)(int from, const void *bytes, size_t length);
    /* A parcel was sent. */
    void (*sent)(uint32_t slot);
    /* From here on it is measured whether the matcher should have a communicator's messages. */
    void (*begin_trial)(uint32_t context);
    /* A blocking collective of a communicator on trial; 1: its ranks vote. `plain` is counted by the shim. */
    int (*collective)(uint32_t context);
    void (*vote)(uint32_t context, const struct raddle_counts *plain, int64_t words[RADDLE_VOTE]);
    /* By the sum of all votes: some of RADDLE_PLAIN_NOW, RADDLE_SETTLED. */
    int (*decide)(uint32_t context, const int64_t words[RADDLE_VOTE]);
    /* Rails. Random bytes, of which those of rank 0 hold for all; 0: nothing is offered to rails. */
    int (*secret)(unsigned char secret[RADDLE_SECRET]);
    void (*begin_rails)(const unsigned char secret[RADDLE_SECRET]);
    /* 1: it was offered, and waits at `start` until the shim is told to send it, or that it was sent; `offer` is the shim's
     * name for it. 0: `send` it. */
    int (*offer)(const struct raddle_outgoing *message, const void *start, uint64_t offer);
    /* What `fetch_offered` asked for is there. */
    void (*offered_came)(uint32_t source, uint32_t key);
    /* One look at the rails on which something is under way; how much was found. */
    int (*step_rails)(void);
    size_t (*open_offers)(void);
    void (*close_rails)(void);
    /* The program is at its end, and the channel was looked at so often. */
    void (*looked)(uint64_t looks);
};

/* What a shim does for the matcher, at once; `receive` is its name for a receive. */
struct raddle_channel {
    void (*send)(uint32_t to, const void *bytes, size_t length, uint32_t slot);
    void (*deliver)(uint64_t receive, const struct raddle_envelope *message, const void *bytes, size_t length);
    void (*fetch)(uint64_t receive, const struct raddle_envelope *message, uint32_t key);
    void (*fetch_aside)(uint64_t receive, const struct raddle_envelope *message, uint64_t aside);
    void (*set_aside)(uint64_t aside, const struct raddle_envelope *message, uint32_t key);
    /* Where rails are to put the message of a receive: NULL, there is no memory. Then `landed` says that it is there, or
     * `fetch_offered` that it comes on the shadow channel after all; the latter also for one that was not landed. */
    void *(*land)(uint64_t receive, const struct raddle_envelope *message);
    void (*landed)(uint64_t receive);
    void (*fetch_offered)(uint64_t receive, const struct raddle_envelope *message, uint32_t key);
    /* Send an offered message under its key; it has arrived by rails. */
    void (*send_offered)(uint64_t offer, uint32_t key);
    void (*offer_sent)(uint64_t offer);
};

/* The functions of our layers behind the symbol of this name, from the lowest; NULL: the layer does not wrap it. */
struct raddle_entry {
    const char *symbol;
    raddle_function *offload;
    raddle_function *matching;
    raddle_function *record;
};

/* What the core does for a shim. */
struct raddle_core {
    const struct raddle_process *process;
    const struct raddle_collectives *collectives;
    const struct raddle_recorder *recorder; /* NULL: nothing is recorded */
    const struct raddle_messages *messages; /* NULL: no messages are scheduled */
};

/* The MPI library that a shim is for. */
enum raddle_library {
    RADDLE_OPEN_MPI = 1,
    RADDLE_MPICH = 2
};

/* What a shim does for the core. */
struct raddle_shim {
    uint32_t abi;     /* RADDLE_ABI */
    uint32_t library; /* enum raddle_library */
    int version[3];   /* of the MPI library that runs */
    const struct raddle_entry *entries;
    size_t entry_count;
    struct raddle_plain plain;
    /* What a status says of its request. */
    void (*matched)(const void *status, struct raddle_matched *matched);
    size_t status_bytes;
    const struct raddle_channel *channel;
};

/* The type of raddle_shim_attach, the only symbol of a shim: NULL and one line in `why` if it does not fit the MPI library
 * that is loaded. */
typedef const struct raddle_shim *raddle_attach(const struct raddle_core *core, uint32_t abi, char *why, size_t why_bytes);

#endif
