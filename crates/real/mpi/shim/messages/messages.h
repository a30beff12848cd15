/* The layer of message scheduling: it puts point-to-point calls into the matcher's words, and carries out what the
 * matcher says on a shadow of MPI_COMM_WORLD (docs/concepts/matching.md). One thread at a time calls MPI here. */
#ifndef RADDLE_MESSAGES_H
#define RADDLE_MESSAGES_H

#include "rails/rails.h"

/* agree.c. Communicators whose messages are ours now, or may come to be while they are on trial. */
extern int raddle_scopes;
/* MPI runs: all ranks agree. */
void raddle_agree_world(void);
/* Its ranks have made a communicator. */
void raddle_agree(MPI_Comm comm);
void raddle_forget_scope(struct scope *scope);
/* MPI is about to end. */
void raddle_end_messages(void);
extern int raddle_turns;  /* communicators on trial that are plain for a turn: supersteps are counted for them */
/* Ends the superstep if something belongs to it. */
static inline void raddle_flush(void)
{
    if (raddle_unsent | raddle_turns)
        raddle_end_superstep();
}
/* trial.c. A blocking collective begins. */
void raddle_begin_collective(MPI_Comm comm);
static inline void raddle_collective(MPI_Comm comm)
{
    if (raddle_unsent | raddle_scopes)
        raddle_begin_collective(comm);
}

void raddle_let_go(struct scope *scope);

/* The scope of a communicator; NULL: its messages are plain now. */
static inline struct scope *scope_of(MPI_Comm comm)
{
    struct known *known = raddle_scopes > 0 ? raddle_find(comm) : NULL;
    return known == NULL || known->scope == NULL || known->scope->plain ? NULL : known->scope;
}

/* MPI_TAG_UB is at least this. */
enum { RADDLE_LEAST_TAG_UB = 32767 };
/* 1: nothing can be wrong with these arguments. */
static inline int raddle_is_right(const struct piece *piece, int tag)
{
    return piece->direct && piece->count >= 0 && piece->buf != NULL && tag >= 0 && tag <= RADDLE_LEAST_TAG_UB;
}

/* send.c. Sends: 1 if `request` is to be waited for, 0 if the send is complete. Arguments were checked. */
int raddle_post(const struct piece *piece, int dest, int tag, const struct scope *scope, int mode, MPI_Request *request);

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
void raddle_sent_plain(MPI_Comm comm, int dest);
void raddle_received_plain(MPI_Comm comm, int source);
void raddle_begun_plain(MPI_Comm comm, int source, MPI_Request request);
/* A plain message or request that cannot be counted: its communicator keeps its way from here on. */
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

#endif
