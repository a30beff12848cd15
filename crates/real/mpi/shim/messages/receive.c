/* Receives: what the program asks for. */
#include <stdlib.h>

#include "messages/messages.h"

int raddle_check_receive(const struct piece *piece, int tag, MPI_Comm comm)
{
    if (raddle_is_right(piece, tag))
        return MPI_SUCCESS;
    MPI_Request checked = MPI_REQUEST_NULL;
    int error = PMPI_Irecv(piece->buf, piece->count, piece->type, MPI_PROC_NULL, tag, comm, &checked);
    if (error == MPI_SUCCESS)
        PMPI_Request_free(&checked);
    return error;
}

static void begin(struct receive *receive, const struct piece *piece, struct scope *scope)
{
    receive->piece = *piece;
    receive->scope = scope;
    receive->waits = receive->done = receive->cancelled = receive->holds_type = 0;
    receive->error = MPI_SUCCESS;
    receive->source = MPI_ANY_SOURCE;
    receive->tag = MPI_ANY_TAG;
    receive->bytes = 0;
    receive->landing = NULL;
}

static struct raddle_wanted wanted(const struct scope *scope, int source, int tag)
{
    return (struct raddle_wanted){
        .context = scope->context,
        .source = source == MPI_ANY_SOURCE ? 0 : world_rank(scope, source),
        .tag = tag == MPI_ANY_TAG ? 0 : tag,
        .any_source = source == MPI_ANY_SOURCE,
        .any_tag = tag == MPI_ANY_TAG,
    };
}

static void ask(struct receive *receive, int source, int tag)
{
    struct raddle_wanted what = wanted(receive->scope, source, tag);
    uint64_t ticket = 0;
    raddle_enter();
    int waits = raddle_messages->receive(&what, receive->piece.bytes, (uintptr_t)receive, &ticket);
    if (waits) {
        raddle_await(receive, 1);
        receive->ticket = ticket;
        /* The program may free a derived type before it is used. */
        if (!receive->piece.direct && !receive->holds_type && receive->request != MPI_REQUEST_NULL) {
            raddle_hold_type(&receive->piece);
            receive->holds_type = 1;
        }
    }
    raddle_leave();
}

void raddle_begin_receive(struct receive *receive, const struct piece *piece, int source, int tag, struct scope *scope)
{
    begin(receive, piece, scope);
    ask(receive, source, tag);
}

int raddle_take_back(struct receive *receive)
{
    raddle_enter();
    int taken = receive->waits && raddle_messages->cancel(receive->ticket);
    if (taken) {
        receive->cancelled = 1;
        raddle_complete_receive(receive);
    }
    raddle_leave();
    return taken;
}

void raddle_receive_status(const struct receive *receive, MPI_Status *status)
{
    int source = receive->source;
    if (receive->error != MPI_SUCCESS) {
        /* Not as the error of the request: the library would call the error handler of MPI_COMM_WORLD. */
        raddle_failure = (struct failure){receive->error, receive->scope->comm};
        source = RADDLE_FAILED - source;
    }
    raddle_fill_status(status, source, receive->tag, receive->bytes, receive->cancelled);
}

int raddle_start_receive(const struct piece *piece, int source, int tag, struct scope *scope, const uint64_t *claim, MPI_Request *request)
{
    struct receive *receive = raddle_new_receive(scope);
    begin(receive, piece, scope);
    /* A request that is complete may be gone before this comes back. */
    *request = receive->request;
    if (claim == NULL) {
        ask(receive, source, tag);
    } else {
        raddle_enter();
        raddle_messages->receive_claimed(*claim, piece->bytes, (uintptr_t)receive);
        raddle_leave();
    }
    return MPI_SUCCESS;
}

int raddle_finish_receive(struct receive *receive, MPI_Status *status)
{
    raddle_flush();
    while (!receive->done)
        raddle_poll();
    raddle_fill_status(status, receive->source, receive->tag, receive->bytes, 0);
    return receive->error == MPI_SUCCESS ? MPI_SUCCESS : raddle_error(receive->scope->comm, receive->error);
}

static int is_source(const struct scope *scope, int source)
{
    return source == MPI_ANY_SOURCE || is_rank(scope, source);
}

int matching_Recv(void *buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Status *status)
{
    struct scope *scope = scope_of(comm);
    if (scope == NULL || !is_source(scope, source)) {
        raddle_flush();
        int error = PMPI_Recv(buf, count, datatype, source, tag, comm, status);
        if (raddle_turns > 0)
            raddle_received_plain(comm, source);
        return error;
    }
    struct piece piece = raddle_piece(buf, count, datatype);
    int error = raddle_check_receive(&piece, tag, comm);
    if (error != MPI_SUCCESS)
        return error;
    struct receive receive = {.request = MPI_REQUEST_NULL};
    raddle_begin_receive(&receive, &piece, source, tag, scope);
    return raddle_finish_receive(&receive, status);
}

int matching_Irecv(void *buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Request *request)
{
    struct scope *scope = scope_of(comm);
    if (scope == NULL || !is_source(scope, source) || request == NULL) {
        int error = PMPI_Irecv(buf, count, datatype, source, tag, comm, request);
        if (raddle_turns > 0 && error == MPI_SUCCESS)
            raddle_begun_plain(comm, source, *request);
        return error;
    }
    struct piece piece = raddle_piece(buf, count, datatype);
    int error = raddle_check_receive(&piece, tag, comm);
    return error != MPI_SUCCESS ? error : raddle_start_receive(&piece, source, tag, scope, NULL, request);
}

/* Both ends of a Sendrecv; what one of them has with MPI_PROC_NULL is the library's. */
static int exchange(const struct piece *out, int dest, int sendtag, const struct piece *in, int source, int recvtag, struct scope *scope,
                    MPI_Status *status)
{
    MPI_Request sent = MPI_REQUEST_NULL;
    struct receive receive = {.request = MPI_REQUEST_NULL};
    int error = raddle_check_send(out, sendtag, scope->comm);
    if (error == MPI_SUCCESS)
        error = raddle_check_receive(in, recvtag, scope->comm);
    if (error != MPI_SUCCESS)
        return error;
    if (source != MPI_PROC_NULL)
        raddle_begin_receive(&receive, in, source, recvtag, scope);
    if (dest != MPI_PROC_NULL)
        raddle_post(out, dest, sendtag, scope, RADDLE_STANDARD, &sent);
    if (source != MPI_PROC_NULL)
        error = raddle_finish_receive(&receive, status);
    else
        error = PMPI_Recv(in->buf, in->count, in->type, MPI_PROC_NULL, recvtag, scope->comm, status);
    raddle_flush();
    int failed = PMPI_Wait(&sent, MPI_STATUS_IGNORE);
    return error != MPI_SUCCESS ? error : failed;
}

static int is_exchange(const struct scope *scope, int dest, int source)
{
    return scope != NULL && (dest == MPI_PROC_NULL || is_rank(scope, dest)) && (source == MPI_PROC_NULL || is_source(scope, source));
}

static void count_plain(MPI_Comm comm, int dest, int source)
{
    if (raddle_turns == 0)
        return;
    raddle_sent_plain(comm, dest);
    raddle_received_plain(comm, source);
}

int matching_Sendrecv(const void *sendbuf, int sendcount, MPI_Datatype sendtype, int dest, int sendtag, void *recvbuf, int recvcount,
                      MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Status *status)
{
    struct scope *scope = scope_of(comm);
    if (!is_exchange(scope, dest, source)) {
        raddle_flush();
        int error = PMPI_Sendrecv(sendbuf, sendcount, sendtype, dest, sendtag, recvbuf, recvcount, recvtype, source, recvtag, comm, status);
        count_plain(comm, dest, source);
        return error;
    }
    struct piece out = raddle_piece(sendbuf, sendcount, sendtype), in = raddle_piece(recvbuf, recvcount, recvtype);
    return exchange(&out, dest, sendtag, &in, source, recvtag, scope, status);
}

int matching_Sendrecv_replace(void *buf, int count, MPI_Datatype datatype, int dest, int sendtag, int source, int recvtag, MPI_Comm comm,
                              MPI_Status *status)
{
    struct scope *scope = scope_of(comm);
    if (!is_exchange(scope, dest, source)) {
        raddle_flush();
        int error = PMPI_Sendrecv_replace(buf, count, datatype, dest, sendtag, source, recvtag, comm, status);
        count_plain(comm, dest, source);
        return error;
    }
    struct piece in = raddle_piece(buf, count, datatype);
    char *packed = in.bytes <= INT32_MAX ? malloc(in.bytes + 1) : NULL;
    if (packed == NULL)
        return raddle_error(comm, MPI_ERR_NO_MEM);
    int error = raddle_check_send(&in, sendtag, comm), at = 0;
    if (error == MPI_SUCCESS && in.bytes > 0)
        error = PMPI_Pack(buf, count, datatype, packed, (int)in.bytes, &at, comm);
    struct piece out = raddle_piece(packed, (int)in.bytes, MPI_PACKED);
    if (error == MPI_SUCCESS)
        error = exchange(&out, dest, sendtag, &in, source, recvtag, scope, status);
    free(packed);
    return error;
}
