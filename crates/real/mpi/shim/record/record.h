/* The recorder's layer: what functions.toml says of a call is noted here. Each `note_…` stands in a function that
 * build/record.rs makes; `begun` and `error` are its variables. */
#ifndef RADDLE_RECORD_H
#define RADDLE_RECORD_H

#include "communicators/communicators.h"

/* Handles before a call that may overwrite them, and room for statuses that the program does not want. */
enum { FEW = 32 };
struct held {
    int count;
    uintptr_t *requests;
    MPI_Status *statuses; /* NULL: the program has some */
    uintptr_t few[FEW];
    MPI_Status few_statuses[FEW];
};
void hold(struct held *held, int count, const MPI_Request requests[], int needs_statuses);
void let_go(struct held *held, const MPI_Request requests[]);

/* Whether several threads may call MPI at the same time. */
extern int raddle_threads;

static inline uintptr_t raddle_before(uintptr_t handle)
{
    return raddle_threads ? raddle_recorder->claim(handle) : handle;
}

/* A handle that is still there after the call. */
static inline void raddle_after(uintptr_t before, uintptr_t handle)
{
    if (before >> 62 == RADDLE_CLAIMED)
        raddle_recorder->restore(before, handle);
}

/* Sizes of what goes to the ranks of a communicator, or to neighbours. */
struct shares {
    MPI_Count count;             /* for each, unless one of the next two says it */
    const int *counts;
    const MPI_Count *large;
    MPI_Datatype type;
    const MPI_Datatype *types; /* if not NULL, of each */
};
#define one(number, datatype) ((struct shares){.count = (number), .type = (datatype)})
#define many(numbers, datatype) _Generic((numbers), const MPI_Count *: many_large, const int *: many_small)(numbers, datatype, NULL)
#define each(numbers, datatypes) \
    _Generic((numbers), const MPI_Count *: many_large, const int *: many_small)(numbers, MPI_DATATYPE_NULL, datatypes)

static inline struct shares many_small(const int *counts, MPI_Datatype type, const MPI_Datatype *types)
{
    return (struct shares){.counts = counts, .type = type, .types = types};
}

static inline struct shares many_large(const MPI_Count *counts, MPI_Datatype type, const MPI_Datatype *types)
{
    return (struct shares){.large = counts, .type = type, .types = types};
}

uint64_t raddle_share_bytes(const struct shares *shares, int index);
uint64_t raddle_total_bytes(const struct known *known, struct shares shares);

static inline uint64_t bytes(MPI_Count count, MPI_Datatype datatype)
{
    const struct raddle_type *type = raddle_type_find(datatype);
    MPI_Count size = type == NULL ? 0 : type->bytes;
    if (size == 0 && count > 0)
        PMPI_Type_size_x(datatype, &size);
    return count > 0 && size > 0 ? (uint64_t)count * (uint64_t)size : 0;
}

static inline uint64_t mine_of(const struct known *known, struct shares shares)
{
    return raddle_share_bytes(&shares, known->rank);
}

/* Inside note_collective, which knows the communicator. */
#define total(shares) raddle_total_bytes(known, shares)
#define mine(shares) mine_of(known, shares)

/* An entry of a communicator that is recorded. */
static inline const struct known *raddle_recorded(MPI_Comm comm)
{
    const struct known *known = raddle_find(comm);
    return known != NULL && known->number >= 0 ? known : NULL;
}

static inline uintptr_t handle_of(const MPI_Request *request)
{
    return request == NULL ? 0 : (uintptr_t)*request;
}

static inline struct raddle_message message_of(const struct known *known, uint64_t bytes, int peer, int tag)
{
    return (struct raddle_message){
        .bytes = bytes,
        .comm = known->number,
        .peer = peer,
        .tag = tag,
        .any_source = peer == MPI_ANY_SOURCE,
        .any_tag = tag == MPI_ANY_TAG,
    };
}

#define NO_ROOT (-1)
#define note_pass() raddle_recorder->pass(begun)
#define note_made(newcomm) raddle_note_made(begun, *(newcomm))

/* Types are asked for their size only where MPI looked at them too. */
#define note_send(bytes, dest, tag, comm, request) \
    do { \
        const struct known *known = (dest) == MPI_PROC_NULL ? NULL : raddle_recorded(comm); \
        if (known == NULL) { \
            note_pass(); \
            break; \
        } \
        struct raddle_message message = message_of(known, bytes, dest, tag); \
        raddle_recorder->send(begun, &message, handle_of(request)); \
    } while (0)
#define note_exchange(bytes, dest, sendtag, source, recvtag, comm, status) \
    do { \
        const struct known *known = raddle_recorded(comm); \
        if (known == NULL) { \
            note_pass(); \
            break; \
        } \
        struct raddle_message sent = {0}, received = {0}; \
        int sends = (dest) != MPI_PROC_NULL, receives = (source) != MPI_PROC_NULL; \
        if (sends) \
            sent = message_of(known, bytes, dest, sendtag); \
        if (receives) \
            received = raddle_received(known, source, recvtag, status); \
        raddle_recorder->exchange(begun, sends ? &sent : NULL, receives ? &received : NULL); \
    } while (0)
#define note_collective(kind, bytes, root, comm, request) \
    do { \
        const struct known *known = raddle_recorded(comm); \
        /* On an intercommunicator, arguments mean something else. */ \
        if (known == NULL || known->inter) { \
            note_pass(); \
            break; \
        } \
        raddle_recorder->collective(begun, known->number, RADDLE_KIND_##kind, bytes, root, handle_of(request)); \
    } while (0)
#define note_persist_send(bytes, dest, tag, comm, request) \
    do { \
        const struct known *known = (dest) == MPI_PROC_NULL ? NULL : raddle_recorded(comm); \
        if (known != NULL) { \
            struct raddle_message message = message_of(known, bytes, dest, tag); \
            raddle_recorder->persist(&message, 0, (uintptr_t)(request)); \
        } \
        note_pass(); \
    } while (0)

#define note_receive(error, source, tag, comm, status) raddle_note_receive(begun, error, source, tag, comm, status)
#define note_start_receive(source, tag, comm, request) raddle_note_start_receive(begun, source, tag, comm, (uintptr_t)(request))
#define note_persist_receive(source, tag, comm, request) raddle_note_persist_receive(begun, source, tag, comm, (uintptr_t)(request))
#define note_neighbours(sent, received, comm, request) raddle_note_neighbours(begun, sent, received, comm, handle_of(request))

/* A wait that fails has come to the end of the request too; a flag is not set then. */
#define note_complete(error, done, before, status) \
    do { \
        if (error != MPI_SUCCESS || (done)) \
            raddle_recorder->complete(begun, &before, NULL, status, 1); \
        else \
            note_pass(); \
    } while (0)
#define note_complete_any(error, held, index, status) raddle_note_any(begun, error, held, index, status)
#define note_complete_all(error, done, held, statuses) raddle_note_all(begun, error, error != MPI_SUCCESS || (done), held, statuses)
#define note_complete_some(error, held, outcount, indices, statuses) raddle_note_some(begun, error, held, outcount, indices, statuses)
#define note_start(request) raddle_recorder->start(begun, &request, 1)
#define note_start_all(held) raddle_recorder->start(begun, (held)->requests, (size_t)(held)->count)
#define note_rename(from, to) raddle_recorder->rename(begun, from, (uintptr_t)(to))
#define note_cancel(request) raddle_recorder->cancel(begun, request)
#define note_release(request) raddle_recorder->release(begun, request)

struct raddle_message raddle_received(const struct known *known, int source, int tag, const MPI_Status *status);
void raddle_note_made(uint64_t begun, MPI_Comm comm);
void raddle_note_receive(uint64_t begun, int error, int source, int tag, MPI_Comm comm, const MPI_Status *status);
void raddle_note_start_receive(uint64_t begun, int source, int tag, MPI_Comm comm, uintptr_t request);
void raddle_note_persist_receive(uint64_t begun, int source, int tag, MPI_Comm comm, uintptr_t request);
void raddle_note_any(uint64_t begun, int error, const struct held *held, const int *index, const MPI_Status *status);
void raddle_note_all(uint64_t begun, int error, int done, const struct held *held, const MPI_Status statuses[]);
void raddle_note_some(uint64_t begun, int error, const struct held *held, const int *count, const int which[], const MPI_Status statuses[]);

/* neighbours.c */
void raddle_note_neighbours(uint64_t begun, struct shares sent, struct shares received, MPI_Comm comm, uintptr_t request);

/* The recorder's number of a communicator that is seen for the first time. */
int32_t raddle_number_of(MPI_Comm comm, int inter);
/* What a status says of a request. */
void raddle_matched(const void *status, struct raddle_matched *matched);

#endif
