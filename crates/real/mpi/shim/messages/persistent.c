/* Persistent sends and receives: to the program a persistent plain receive from ourselves, which an empty message to
 * ourselves completes, since generalized requests cannot be started again. */
#include <limits.h>
#include <stdlib.h>

#include "messages/messages.h"

enum kind { SENDS, RECEIVES };

struct persistent {
    MPI_Request handle; /* the program's */
    enum kind kind;
    int mode; /* of a send */
    struct piece piece;
    int holds_type;
    int peer, tag; /* as the program named them */
    struct scope *scope;
    int own_tag;
    struct receive receive;
    int under_way; /* not complete */
    int unreported; /* complete, which the program does not know */
    int freed;
};

int raddle_persistent_count;

static struct handles requests;
static int last_tag = -1;

static void discard(struct persistent *persistent)
{
    if (persistent->holds_type)
        PMPI_Type_free(&persistent->piece.type);
    persistent->scope->pinned--;
    raddle_let_go(persistent->scope);
    free(persistent);
}

static void complete(struct persistent *persistent)
{
    MPI_Request sent;
    raddle_must(PMPI_Isend(NULL, 0, MPI_BYTE, 0, persistent->own_tag, raddle_alone, &sent), "MPI_Isend");
    raddle_must(PMPI_Request_free(&sent), "MPI_Request_free");
    persistent->under_way = 0;
    persistent->unreported = 1;
    if (persistent->freed)
        discard(persistent);
}

static void send_complete(void *persistent)
{
    complete(persistent);
}

static void receive_complete(struct receive *receive)
{
    complete(receive->owner);
}

static int init(enum kind kind, int mode, const struct piece *piece, int peer, int tag, struct scope *scope, MPI_Request *request)
{
    int error = kind == SENDS ? raddle_check_send(piece, tag, scope->comm) : raddle_check_receive(piece, tag, scope->comm);
    if (error != MPI_SUCCESS)
        return error;
    struct persistent *made = calloc(1, sizeof *made);
    if (made == NULL)
        raddle_fail("no memory for a request");
    *made = (struct persistent){.kind = kind, .mode = mode, .piece = *piece, .peer = peer, .tag = tag, .scope = scope};
    made->receive = (struct receive){.request = MPI_REQUEST_NULL, .finish = receive_complete, .owner = made};
    scope->uses++;
    scope->pinned++;
    if (!piece->direct) {
        raddle_hold_type(&made->piece);
        made->holds_type = 1;
    }
    last_tag = last_tag >= INT_MAX - 1 ? 1 : last_tag + 2;
    made->own_tag = last_tag;
    raddle_must(PMPI_Recv_init(NULL, 0, MPI_BYTE, 0, made->own_tag, raddle_alone, &made->handle), "MPI_Recv_init");
    *request = made->handle;
    raddle_put(&requests, (uintptr_t)made->handle, made);
    raddle_persistent_count++;
    return MPI_SUCCESS;
}

static struct persistent *ours(const MPI_Request *request)
{
    return request == NULL || raddle_persistent_count == 0 ? NULL : raddle_get(&requests, (uintptr_t)*request);
}

static void start_send(struct persistent *persistent)
{
    MPI_Request sent;
    if (raddle_post(&persistent->piece, persistent->peer, persistent->tag, persistent->scope, persistent->mode, &sent)) {
        raddle_enter();
        raddle_watch(sent, send_complete, persistent);
        raddle_leave();
    } else {
        complete(persistent);
    }
}

static int start(struct persistent *persistent)
{
    int error = PMPI_Start(&persistent->handle);
    if (error != MPI_SUCCESS)
        return error;
    persistent->under_way = 1;
    persistent->unreported = 0;
    if (persistent->kind == SENDS)
        start_send(persistent);
    else
        raddle_begin_receive(&persistent->receive, &persistent->piece, persistent->peer, persistent->tag, persistent->scope);
    return MPI_SUCCESS;
}

int matching_Start(MPI_Request *request)
{
    struct persistent *persistent = ours(request);
    return persistent == NULL ? PMPI_Start(request) : start(persistent);
}

int matching_Startall(int count, MPI_Request requests[])
{
    if (raddle_persistent_count == 0)
        return PMPI_Startall(count, requests);
    for (int at = 0; at < count; at++) {
        int error = matching_Start(&requests[at]);
        if (error != MPI_SUCCESS)
            return error;
    }
    return MPI_SUCCESS;
}

void raddle_persistent_status(MPI_Request request, MPI_Status *status, int reported)
{
    struct persistent *persistent = ours(&request);
    if (persistent == NULL || !persistent->unreported)
        return;
    if (reported)
        persistent->unreported = 0;
    if (persistent->kind == SENDS)
        return;
    const struct receive *receive = &persistent->receive;
    raddle_receive_status(receive, status);
}

int matching_Request_free(MPI_Request *request)
{
    struct persistent *persistent = ours(request);
    raddle_flush();
    if (request != NULL) {
        raddle_hand_over(1, request);
        raddle_pin_request(*request);
    }
    int error = PMPI_Request_free(request);
    if (persistent == NULL || error != MPI_SUCCESS)
        return error;
    raddle_take(&requests, (uintptr_t)persistent->handle);
    raddle_persistent_count--;
    persistent->freed = 1;
    if (!persistent->under_way)
        discard(persistent);
    return MPI_SUCCESS;
}

int matching_Cancel(MPI_Request *request)
{
    struct persistent *persistent = ours(request);
    raddle_flush();
    if (persistent == NULL) {
        if (request != NULL)
            raddle_pin_request(*request);
        return PMPI_Cancel(request);
    }
    if (persistent->kind == RECEIVES && persistent->under_way)
        raddle_take_back(&persistent->receive);
    return MPI_SUCCESS;
}

#define SEND_INIT(name, mode) \
    int matching_##name(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request *request) \
    { \
        struct scope *scope = scope_of(comm); \
        if (scope == NULL || !is_rank(scope, dest) || request == NULL) \
            return raddle_pin_plain(comm), PMPI_##name(buf, count, datatype, dest, tag, comm, request); \
        struct piece piece = raddle_piece(buf, count, datatype); \
        return init(SENDS, mode, &piece, dest, tag, scope, request); \
    }

SEND_INIT(Send_init, RADDLE_STANDARD)
SEND_INIT(Rsend_init, RADDLE_STANDARD)
SEND_INIT(Ssend_init, RADDLE_SYNCHRONOUS)
SEND_INIT(Bsend_init, RADDLE_BUFFERED)

int matching_Recv_init(void *buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Request *request)
{
    struct scope *scope = scope_of(comm);
    if (scope == NULL || (source != MPI_ANY_SOURCE && !is_rank(scope, source)) || request == NULL)
        return raddle_pin_plain(comm), PMPI_Recv_init(buf, count, datatype, source, tag, comm, request);
    struct piece piece = raddle_piece(buf, count, datatype);
    return init(RECEIVES, RADDLE_STANDARD, &piece, source, tag, scope, request);
}
