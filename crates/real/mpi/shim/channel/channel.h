/* The channel: a shadow of MPI_COMM_WORLD, on which parcels and messages by reference travel (docs/concepts/matching.md), and
 * what becomes of the program's receives there. One thread at a time calls MPI here. */
#ifndef RADDLE_CHANNEL_H
#define RADDLE_CHANNEL_H

#include "communicators/communicators.h"

/* A communicator whose messages are ours: its number and its ranks. Receives that wait keep it. */
struct scope {
    MPI_Comm comm; /* MPI_COMM_NULL: it was freed */
    uint32_t context;
    int uses, size;
    int on_trial, plain;         /* by turns, while it is measured which way is faster */
    struct raddle_counts counts; /* of the plain way, while it is on trial */
    uint64_t pinned;             /* what keeps it from changing its way */
    uint64_t *last_sent;         /* raddle_supersteps when a plain message was sent to each rank; NULL: none was */
    int32_t *world; /* of each rank, that in MPI_COMM_WORLD; NULL: the same */
    int32_t *ranks; /* of each rank of MPI_COMM_WORLD, that here */
};

static inline int is_rank(const struct scope *scope, int rank)
{
    return rank >= 0 && rank < scope->size;
}

static inline uint32_t world_rank(const struct scope *scope, int rank)
{
    return (uint32_t)(scope->world == NULL ? rank : scope->world[rank]);
}

static inline int rank_of(const struct scope *scope, uint32_t world)
{
    return scope->ranks == NULL ? (int)world : scope->ranks[world];
}

/* channel.c */
extern MPI_Comm raddle_shadow; /* of MPI_COMM_WORLD. Tag 0: parcels; other tags: messages by reference */
extern MPI_Comm raddle_alone;  /* of MPI_COMM_SELF: messages to ourselves, such as empty ones that complete requests */
/* Tags there: odd ones are those of persistent requests. */
enum { RADDLE_PIECE_TAG = 0, RADDLE_MESSAGE_TAG = 2 };
/* The request of a send that is complete, if the library has one for all of them; else MPI_REQUEST_NULL. */
extern MPI_Request raddle_sent;
/* Messages may wait in the matcher to be joined. */
extern int raddle_unsent;
/* Ends the superstep: what waits in the matcher is sent. */
void raddle_end_superstep(void);
/* The number of this superstep, from 1: only messages of one superstep are joined. */
extern uint64_t raddle_supersteps;
/* Some messages may be offered to rails. */
extern int raddle_rails;
/* What the matcher sends. */
void raddle_send_parcel(uint32_t to, const void *bytes, size_t length, uint32_t slot);
/* One look at everything that is under way. */
void raddle_look(void);
/* Ends the superstep and looks once. From inside another call of ours it does nothing. */
void raddle_poll(void);
/* What this process waits for: receives of ours without a message, requests of ours under way; and one each for rails, and
 * for ranks whose messages it hands on. 0: it sleeps. What comes then stays with the library until somebody asks for it. */
extern int raddle_awake;
/* Calls `done` when the request is complete. */
void raddle_watch(MPI_Request request, void (*done)(void *what), void *what);
/* Gives the library's progress a handler of ours: 1; 0: there is no way. */
int raddle_hook(void);
/* Opens it among so many ranks. `inside` is called when something was found inside the library's progress; it tells the library
 * which requests are complete, and gives their number. */
void raddle_open_channel(int ranks, int (*inside)(void));
void raddle_close_channel(void);
/* What cannot be undone and cannot go on. */
_Noreturn void raddle_fail(const char *what);
/* The matcher is used between these two; what the library's progress finds meanwhile waits. No atomic operations: they would
 * cost a call more than most of what it does, and one thread at a time calls MPI. */
extern int raddle_busy;
static inline void raddle_enter(void)
{
    if (raddle_busy)
        raddle_fail("a call of MPI inside another");
    raddle_busy = 1;
}
static inline void raddle_leave(void)
{
    raddle_busy = 0;
}
/* An error of a call on the shadow: the arguments are ours or were checked, so that the job cannot go on. */
static inline void raddle_must(int error, const char *what)
{
    if (error != MPI_SUCCESS)
        raddle_fail(what);
}

/* pieces.c. A buffer of the program's. */
struct piece {
    void *buf;
    int count;
    int direct; /* its bytes lie in a row */
    MPI_Datatype type;
    uint64_t bytes;
};
/* A piece of a derived type, or of one that has gaps. */
struct piece raddle_other_piece(const void *buf, int count, MPI_Datatype type);
/* What programs use again and again. */
extern const struct raddle_type *raddle_last_type;
static inline struct piece raddle_piece(const void *buf, int count, MPI_Datatype type)
{
    const struct raddle_type *known = raddle_last_type;
    if (known == NULL || known->handle != (uintptr_t)type)
        known = raddle_last_type = raddle_type_find(type);
    if (known == NULL || known->bytes == 0)
        return raddle_other_piece(buf, count, type);
    uint64_t bytes = count > 0 ? (uint64_t)count * known->bytes : 0;
    return (struct piece){.buf = (void *)buf, .count = count, .type = type, .bytes = bytes, .direct = 1};
}
/* Puts bytes where the program wants them. */
void raddle_store(const struct piece *piece, const void *bytes, size_t length);
/* Keeps a derived type that the program may free. */
void raddle_hold_type(struct piece *piece);

/* The mode of a send. */
enum { RADDLE_STANDARD, RADDLE_SYNCHRONOUS, RADDLE_BUFFERED };

/* receives.c. A receive; its address is the matcher's name for it. */
struct receive {
    struct piece piece;
    struct scope *scope;
    uint64_t ticket;     /* while it waits */
    uint8_t waits;       /* in the matcher */
    uint8_t done, cancelled;
    uint8_t holds_type;  /* piece.type is ours */
    uint8_t is_ours;     /* the library is told nothing of its request */
    int error;
    int source, tag;     /* of its message, as the program sees them */
    uint64_t bytes;      /* that were stored */
    MPI_Request request; /* the program's; MPI_REQUEST_NULL: a blocking call */
    void (*finish)(struct receive *); /* called when it is done; NULL: a blocking call looks at `done` */
    void *owner;         /* for `finish` */
    char *landing;       /* memory of ours for what rails bring; NULL: none */
    uint32_t offered_by, offered_key;
    struct receive *next, **link; /* in a list of messages/requests.c */
    uint8_t in_wait;              /* one wait for several has it */
    struct receive *after;        /* there */
    int place;                    /* of its request there */
};
void raddle_deliver(uint64_t receive, const struct raddle_envelope *message, const void *bytes, size_t length);
void raddle_fetch(uint64_t receive, const struct raddle_envelope *message, uint32_t key);
void raddle_fetch_aside(uint64_t receive, const struct raddle_envelope *message, uint64_t aside);
void raddle_set_aside(uint64_t aside, const struct raddle_envelope *message, uint32_t key);
/* Its message is known. */
void raddle_meet(struct receive *receive, const struct raddle_envelope *message);
/* Everything is where it belongs. */
void raddle_complete_receive(struct receive *receive);
/* As long as a receive waits for its message, we look for one. */
void raddle_await(struct receive *receive, int waits);
void raddle_fill_status(MPI_Status *status, int source, int tag, uint64_t bytes, int cancelled);

/* handles.c. What we know of handles of the program's. */
struct handles {
    struct handle_entry *entries;
    size_t count, room;
};
void raddle_put(struct handles *handles, uintptr_t handle, void *what);
void *raddle_get(const struct handles *handles, uintptr_t handle);
void *raddle_take(struct handles *handles, uintptr_t handle);

#endif
