/* Whether a communicator stays ours: its ranks vote inside blocking collectives, and change their way where nothing is under
 * way (docs/concepts/matching.md, Going back). */
#include <stdlib.h>

#include "messages/messages.h"

int raddle_turns;

static struct handles waiting; /* plain receives, by request */

/* Requests before a call that may overwrite them. */
static struct {
    MPI_Request *requests;
    int count, room;
} before;

/* The scope of a communicator in a plain turn. */
static struct scope *in_turn(MPI_Comm comm)
{
    struct known *known = raddle_turns > 0 ? raddle_find(comm) : NULL;
    struct scope *scope = known == NULL ? NULL : known->scope;
    return scope != NULL && scope->on_trial && scope->plain ? scope : NULL;
}

void raddle_sent_plain(MPI_Comm comm, int dest)
{
    struct scope *scope = in_turn(comm);
    if (scope == NULL || dest == MPI_PROC_NULL)
        return;
    scope->counts.sent++;
    if (scope->last_sent == NULL && (scope->last_sent = calloc((size_t)scope->size, sizeof *scope->last_sent)) == NULL)
        raddle_fail("no memory for a communicator");
    scope->counts.parcels += scope->last_sent[dest] != raddle_supersteps;
    scope->last_sent[dest] = raddle_supersteps;
}

void raddle_received_plain(MPI_Comm comm, int source)
{
    struct scope *scope = in_turn(comm);
    if (scope != NULL && source != MPI_PROC_NULL)
        scope->counts.received++;
}

void raddle_begun_plain(MPI_Comm comm, int source, MPI_Request request)
{
    struct scope *scope = in_turn(comm);
    if (scope == NULL || source == MPI_PROC_NULL)
        return;
    scope->counts.waiting++;
    scope->uses++;
    raddle_put(&waiting, (uintptr_t)request, scope);
}

void raddle_pin_plain(MPI_Comm comm)
{
    struct scope *scope = in_turn(comm);
    if (scope != NULL)
        scope->pinned++;
}

void raddle_pin_request(MPI_Request request)
{
    struct scope *scope = raddle_turns == 0 ? NULL : raddle_take(&waiting, (uintptr_t)request);
    if (scope == NULL)
        return;
    scope->pinned++;
    raddle_let_go(scope);
}

void raddle_keep_requests(int count, const MPI_Request requests[])
{
    before.count = 0;
    if (count <= 0)
        return;
    if (count > before.room) {
        before.room = 2 * count;
        before.requests = realloc(before.requests, (size_t)before.room * sizeof *before.requests);
        if (before.requests == NULL)
            raddle_fail("no memory for requests");
    }
    for (int at = 0; at < count; at++)
        before.requests[at] = requests[at];
    before.count = count;
}

void raddle_count_completed(const MPI_Request requests[])
{
    for (int at = 0; at < before.count; at++) {
        if (requests[at] == before.requests[at])
            continue;
        struct scope *scope = raddle_take(&waiting, (uintptr_t)before.requests[at]);
        if (scope == NULL)
            continue;
        scope->counts.waiting--;
        scope->counts.received++;
        raddle_let_go(scope);
    }
    before.count = 0;
}

static void vote(struct scope *scope)
{
    int64_t mine[RADDLE_VOTE], sum[RADDLE_VOTE];
    struct raddle_counts counts = scope->counts;
    counts.waiting += scope->pinned;
    raddle_enter();
    raddle_messages->vote(scope->context, &counts, mine);
    raddle_leave();
    /* Ranks that do not agree would never meet again. */
    raddle_must(PMPI_Allreduce(mine, sum, RADDLE_VOTE, MPI_INT64_T, MPI_SUM, scope->comm), "MPI_Allreduce");
    raddle_enter();
    int decided = raddle_messages->decide(scope->context, sum);
    raddle_leave();
    raddle_turns -= scope->plain;
    scope->plain = (decided & RADDLE_PLAIN_NOW) != 0;
    scope->on_trial = (decided & RADDLE_SETTLED) == 0;
    raddle_turns += scope->plain && scope->on_trial;
    raddle_scopes -= scope->plain && !scope->on_trial;
}

void raddle_begin_collective(MPI_Comm comm)
{
    raddle_flush();
    struct known *known = raddle_scopes > 0 ? raddle_find(comm) : NULL;
    struct scope *scope = known == NULL ? NULL : known->scope;
    if (scope == NULL || !scope->on_trial)
        return;
    raddle_enter();
    int is_point = raddle_messages->collective(scope->context);
    raddle_leave();
    if (is_point)
        vote(scope);
}
