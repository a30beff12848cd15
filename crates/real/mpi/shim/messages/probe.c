/* Probes. A matched message has the handle of an empty plain one to ourselves, by which we know it again. */
#include <stdlib.h>

#include "functions.h"
#include "messages/messages.h"

struct claimed {
    uint64_t claim;
    struct scope *scope;
};
static struct handles messages;

static int is_ours(const struct scope *scope, int source)
{
    return scope != NULL && (source == MPI_ANY_SOURCE || is_rank(scope, source));
}

/* Looks once; 1: there is one. With `claim`, it is taken out of the matching. */
static int look(const struct scope *scope, int source, int tag, MPI_Status *status, uint64_t *claim)
{
    struct raddle_wanted what = {
        .context = scope->context,
        .source = source == MPI_ANY_SOURCE ? 0 : world_rank(scope, source),
        .tag = tag == MPI_ANY_TAG ? 0 : tag,
        .any_source = source == MPI_ANY_SOURCE,
        .any_tag = tag == MPI_ANY_TAG,
    };
    struct raddle_envelope found;
    raddle_poll();
    raddle_enter();
    int there = raddle_messages->probe(&what, &found, claim);
    raddle_leave();
    if (there)
        raddle_fill_status(status, rank_of(scope, found.source), found.tag, found.bytes, 0);
    return there;
}

/* MPI judges a tag. */
static int check(int tag, MPI_Comm comm)
{
    struct piece nothing = {.type = MPI_BYTE};
    return raddle_check_receive(&nothing, tag, comm);
}

static void name(struct scope *scope, uint64_t claim, MPI_Message *message)
{
    struct claimed *claimed = malloc(sizeof *claimed);
    MPI_Request sent;
    if (claimed == NULL)
        raddle_fail("no memory for a message");
    *claimed = (struct claimed){claim, scope};
    scope->uses++;
    raddle_must(PMPI_Isend(NULL, 0, MPI_BYTE, 0, RADDLE_MESSAGE_TAG, raddle_alone, &sent), "MPI_Isend");
    raddle_must(PMPI_Mprobe(0, RADDLE_MESSAGE_TAG, raddle_alone, message, MPI_STATUS_IGNORE), "MPI_Mprobe");
    raddle_must(PMPI_Request_free(&sent), "MPI_Request_free");
    raddle_put(&messages, (uintptr_t)*message, claimed);
}

int matching_Probe(int source, int tag, MPI_Comm comm, MPI_Status *status)
{
    const struct scope *scope = scope_of(comm);
    if (!is_ours(scope, source)) {
        raddle_flush();
        return PMPI_Probe(source, tag, comm, status);
    }
    int error = check(tag, comm);
    while (error == MPI_SUCCESS && !look(scope, source, tag, status, NULL))
        continue;
    return error;
}

int matching_Iprobe(int source, int tag, MPI_Comm comm, int *flag, MPI_Status *status)
{
    const struct scope *scope = scope_of(comm);
    if (!is_ours(scope, source) || flag == NULL) {
        raddle_flush();
        return PMPI_Iprobe(source, tag, comm, flag, status);
    }
    int error = check(tag, comm);
    if (error == MPI_SUCCESS)
        *flag = look(scope, source, tag, status, NULL);
    return error;
}

int matching_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message *message, MPI_Status *status)
{
    struct scope *scope = scope_of(comm);
    uint64_t claim;
    if (!is_ours(scope, source) || message == NULL) {
        raddle_flush();
        raddle_pin_plain(comm);
        return PMPI_Mprobe(source, tag, comm, message, status);
    }
    int error = check(tag, comm);
    if (error != MPI_SUCCESS)
        return error;
    while (!look(scope, source, tag, status, &claim))
        continue;
    name(scope, claim, message);
    return MPI_SUCCESS;
}

int matching_Improbe(int source, int tag, MPI_Comm comm, int *flag, MPI_Message *message, MPI_Status *status)
{
    struct scope *scope = scope_of(comm);
    uint64_t claim;
    if (!is_ours(scope, source) || message == NULL || flag == NULL) {
        raddle_flush();
        raddle_pin_plain(comm);
        return PMPI_Improbe(source, tag, comm, flag, message, status);
    }
    int error = check(tag, comm);
    if (error != MPI_SUCCESS)
        return error;
    *flag = look(scope, source, tag, status, &claim);
    if (*flag)
        name(scope, claim, message);
    return MPI_SUCCESS;
}

/* Ours by its handle, which is used up; 0: a plain one. */
static int take(MPI_Message *message, struct claimed *claimed)
{
    struct claimed *found = message == NULL ? NULL : raddle_take(&messages, (uintptr_t)*message);
    if (found == NULL)
        return 0;
    *claimed = *found;
    free(found);
    raddle_must(PMPI_Mrecv(NULL, 0, MPI_BYTE, message, MPI_STATUS_IGNORE), "MPI_Mrecv");
    return 1;
}

int matching_Mrecv(void *buf, int count, MPI_Datatype datatype, MPI_Message *message, MPI_Status *status)
{
    struct claimed claimed;
    raddle_flush();
    if (!take(message, &claimed))
        return PMPI_Mrecv(buf, count, datatype, message, status);
    struct piece piece = raddle_piece(buf, count, datatype);
    MPI_Request request;
    int error = raddle_check_receive(&piece, MPI_ANY_TAG, MPI_COMM_SELF);
    if (error == MPI_SUCCESS)
        error = raddle_start_receive(&piece, 0, 0, claimed.scope, &claimed.claim, &request);
    raddle_let_go(claimed.scope);
    return error != MPI_SUCCESS ? error : matching_Wait(&request, status);
}

int matching_Imrecv(void *buf, int count, MPI_Datatype datatype, MPI_Message *message, MPI_Request *request)
{
    struct claimed claimed;
    if (!take(message, &claimed))
        return PMPI_Imrecv(buf, count, datatype, message, request);
    struct piece piece = raddle_piece(buf, count, datatype);
    int error = raddle_check_receive(&piece, MPI_ANY_TAG, MPI_COMM_SELF);
    if (error == MPI_SUCCESS)
        error = raddle_start_receive(&piece, 0, 0, claimed.scope, &claimed.claim, request);
    raddle_let_go(claimed.scope);
    return error;
}
