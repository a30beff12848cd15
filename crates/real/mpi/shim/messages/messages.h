/* The layer of message scheduling: it puts point-to-point calls into the matcher's words, and carries out what the
 * matcher says on a shadow of MPI_COMM_WORLD (docs/concepts/matching.md). One thread at a time calls MPI here. */
#ifndef RADDLE_MATCHING_H
#define RADDLE_MATCHING_H

#include "shim.h"

/* agree.c. A communicator whose messages are ours: its number and its ranks. Receives that wait keep it. */
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
void raddle_let_go(struct scope *scope);

/* channel.c */
extern MPI_Comm raddle_shadow; /* of MPI_COMM_WORLD. Tag 0: parcels; other tags: messages by reference */
extern MPI_Comm raddle_alone;  /* of MPI_COMM_SELF: messages to ourselves, such as empty ones that complete requests */
/* Tags there: odd ones are those of persistent requests. */
enum { RADDLE_PIECE_TAG = 0, RADDLE_MESSAGE_TAG = 2 };
extern const struct raddle_channel raddle_channel_calls;
/* The request of a send that is complete, if the library has one for all of them; else MPI_REQUEST_NULL. */
extern MPI_Request raddle_sent;
/* One look at everything that is under way. */
void raddle_look(void);
/* What is open leaves, and one look. Nothing from inside another call of ours. */
void raddle_poll(void);
/* What this process waits for: receives of ours without a message, requests of ours under way; and one each for rails, and
 * for ranks whose messages it hands on. 0: it sleeps. What comes then stays with the library until somebody asks for it. */
extern int raddle_awake;
/* Calls `done` when the request is complete. */
void raddle_watch(MPI_Request request, void (*done)(void *what), void *what);
/* Gives the library's progress a handler of ours: 1; 0: there is no way. */
int raddle_hook(void);
void raddle_open_channel(int ranks);
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

/* The scope of a communicator; NULL: its messages are plain now. */
static inline struct scope *scope_of(MPI_Comm comm)
{
    struct known *known = raddle_scopes > 0 ? raddle_find(comm) : NULL;
    return known == NULL || known->scope == NULL || known->scope->plain ? NULL : known->scope;
}

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

/* A buffer of the program's. */
struct piece {
    void *buf;
    int count;
    int direct; /* its bytes lie in a row */
    MPI_Datatype type;
    uint64_t bytes;
};
/* Of a type that is none of MPI's own, or has gaps. */
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
/* MPI_TAG_UB is at least this. */
enum { RADDLE_LEAST_TAG_UB = 32767 };
/* 1: nothing can be wrong with these arguments. */
static inline int raddle_is_right(const struct piece *piece, int tag)
{
    return piece->direct && piece->count >= 0 && piece->buf != NULL && tag >= 0 && tag <= RADDLE_LEAST_TAG_UB;
}

/* send.c. The mode of a send. */
enum { RADDLE_STANDARD, RADDLE_SYNCHRONOUS, RADDLE_BUFFERED };
/* Sends: 1 if `request` is to be waited for, 0 if the send is complete. Arguments were checked. */
int raddle_post(const struct piece *piece, int dest, int tag, const struct scope *scope, int mode, MPI_Request *request);

/* receive.c. A receive; its address is the matcher's name for it. */
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
    void (*finish)(struct receive *); /* instead of completing `request` */
    void *owner;         /* for `finish` */
    char *landing;       /* memory of ours for what rails bring; NULL: none */
    uint32_t offered_by, offered_key;
    struct receive *next, **link; /* in a list of requests.c */
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
/* Puts bytes where the program wants them. */
void raddle_store(const struct piece *piece, const void *bytes, size_t length);
/* Everything is where it belongs. */
void raddle_complete_receive(struct receive *receive);
/* Begins a receive; the record stays where it is until it is done. */
void raddle_begin_receive(struct receive *receive, const struct piece *piece, int source, int tag, struct scope *scope);
/* A request of the program for a receive: `claim` is NULL, or names its message. */
int raddle_start_receive(const struct piece *piece, int source, int tag, struct scope *scope, const uint64_t *claim,
                         MPI_Request *request);
/* Waits for a receive of a blocking call, and gives its error. */
int raddle_finish_receive(struct receive *receive, MPI_Status *status);
/* 1: the receive was taken back, and is done. */
int raddle_take_back(struct receive *receive);
/* What a wait or test is told of a receive that is complete; a failure is noted. */
void raddle_receive_status(const struct receive *receive, MPI_Status *status);
void raddle_fill_status(MPI_Status *status, int source, int tag, uint64_t bytes, int cancelled);
/* Keeps a derived type that the program may free. */
void raddle_hold_type(struct piece *piece);
/* MPI itself judges arguments: the call with MPI_PROC_NULL for the other end, unless nothing can be wrong. */
int raddle_check_send(const struct piece *piece, int tag, MPI_Comm comm);
int raddle_check_receive(const struct piece *piece, int tag, MPI_Comm comm);

/* requests.c. Requests of the program's for receives of which the library has heard nothing. */
extern int raddle_receives;
/* A receive with such a request. */
struct receive *raddle_new_receive(struct scope *scope);
/* By its request; NULL: the library is to be asked. */
struct receive *raddle_receive_of(MPI_Request request);
/* A receive with a request has its message. */
void raddle_receive_done(struct receive *receive);
/* A receive that is done has its request no more; the program is told of it next, by `raddle_end_receive`. */
void raddle_take_request(struct receive *receive);
void raddle_end_receive(struct receive *receive, MPI_Status *status);
/* The library is asked for these from now on. */
void raddle_hand_over(int count, const MPI_Request requests[]);
/* It is told of all that are done: it may be waiting for them. How many there were. */
int raddle_tell_library(void);
void raddle_free_receives(void);

/* rails.c. Messages that are offered to rails. */
extern int raddle_rails; /* there may be some */
/* 1: it was offered, and `request` completes when its buffer is free. */
int raddle_offer(const struct piece *piece, const struct raddle_outgoing *message, int mode, MPI_Request *request);
void *raddle_land(uint64_t receive, const struct raddle_envelope *message);
void raddle_landed(uint64_t receive);
void raddle_fetch_offered(uint64_t receive, const struct raddle_envelope *message, uint32_t key);
void raddle_send_offered(uint64_t offer, uint32_t key);
void raddle_offer_sent(uint64_t offer);
/* All ranks agree on a secret. */
void raddle_begin_rails(void);

/* wait.c. Receives that failed, since the library does not know whose error handler to call. */
extern struct failure {
    int error; /* 0: none */
    MPI_Comm comm;
} raddle_failure;
/* A source of so little or less is that of a receive that failed: the rank is RADDLE_FAILED minus this. */
enum { RADDLE_FAILED = -4096 };
/* Calls the error handler of a communicator, or of MPI_COMM_WORLD if it was freed, and gives the error. */
int raddle_error(MPI_Comm comm, int error);

/* persistent.c. Statuses of persistent requests of ours: the library knows nothing of their messages. */
extern int raddle_persistent_count;
/* A request is complete; `reported`: and the program learns it, once. */
void raddle_persistent_status(MPI_Request request, MPI_Status *status, int reported);

/* trial.c. Plain messages are counted while a communicator is plain for a turn: it comes back where none is under way. */
extern uint64_t raddle_supersteps; /* so far, one more: what is joined belongs to one */
void raddle_sent_plain(MPI_Comm comm, int dest);
void raddle_received_plain(MPI_Comm comm, int source);
void raddle_begun_plain(MPI_Comm comm, int source, MPI_Request request);
/* What is not counted: it stays plain. */
void raddle_pin_plain(MPI_Comm comm);
void raddle_pin_request(MPI_Request request);
/* Around a call that completes requests. */
void raddle_keep_requests(int count, const MPI_Request requests[]);
void raddle_count_completed(const MPI_Request requests[]);
static inline void raddle_before_wait(int count, const MPI_Request requests[])
{
    if (raddle_turns > 0)
        raddle_keep_requests(count, requests);
}
static inline void raddle_after_wait(const MPI_Request requests[])
{
    if (raddle_turns > 0)
        raddle_count_completed(requests);
}

/* handles.c. What we know of handles of the program's. */
struct handles {
    struct handle_entry *entries;
    size_t count, room;
};
void raddle_put(struct handles *handles, uintptr_t handle, void *what);
void *raddle_get(const struct handles *handles, uintptr_t handle);
void *raddle_take(struct handles *handles, uintptr_t handle);

#endif
