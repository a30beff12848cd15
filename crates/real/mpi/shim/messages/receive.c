/* Receives: what the program asks for, and what becomes of it. */
#include <stdlib.h>
#include <string.h>

#include "messages/messages.h"

void raddle_fill_status(MPI_Status *status, int source, int tag, uint64_t bytes, int cancelled)
{
    if (status == MPI_STATUS_IGNORE)
        return;
    status->MPI_SOURCE = source;
    status->MPI_TAG = tag;
#if defined(OPEN_MPI)
    /* What the two calls below write: they would cost as much as all the rest of a receive's status. */
    status->_ucount = bytes;
    status->_cancelled = cancelled;
#else
    PMPI_Status_set_elements_x(status, MPI_BYTE, (MPI_Count)bytes);
    PMPI_Status_set_cancelled(status, cancelled);
#endif
}

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

void raddle_hold_type(struct piece *piece)
{
    MPI_Datatype kept;
    /* Not MPI_Type_dup, which calls the program's attribute functions. */
    raddle_must(PMPI_Type_contiguous(1, piece->type, &kept), "MPI_Type_contiguous");
    raddle_must(PMPI_Type_commit(&kept), "MPI_Type_commit");
    piece->type = kept;
}

static void drop_type(struct receive *receive)
{
    if (receive->holds_type)
        PMPI_Type_free(&receive->piece.type);
    receive->holds_type = 0;
}

/* As long as a receive waits, we look for its message. */
static void wait_for_message(struct receive *receive, int waits)
{
    raddle_awake += waits - receive->waits;
    receive->waits = (uint8_t)waits;
}

/* Everything is where it belongs. */
void raddle_complete_receive(struct receive *receive)
{
    receive->done = 1;
    wait_for_message(receive, 0);
    drop_type(receive);
    if (receive->finish != NULL)
        receive->finish(receive);
    else if (receive->request != MPI_REQUEST_NULL)
        raddle_receive_done(receive);
}

void raddle_meet(struct receive *receive, const struct raddle_envelope *message)
{
    wait_for_message(receive, 0);
    receive->source = rank_of(receive->scope, message->source);
    receive->tag = message->tag;
    receive->bytes = message->bytes;
    if (message->bytes > receive->piece.bytes) {
        receive->bytes = receive->piece.bytes;
        receive->error = MPI_ERR_TRUNCATE;
    }
}

void raddle_store(const struct piece *piece, const void *bytes, size_t length)
{
    MPI_Count size = 0;
    int at = 0;
    if (length == 0)
        return;
    if (piece->direct) {
        memcpy(piece->buf, bytes, length);
        return;
    }
    PMPI_Type_size_x(piece->type, &size);
    if (length % (size_t)size == 0)
        raddle_must(PMPI_Unpack(bytes, (int)length, &at, piece->buf, (int)(length / (size_t)size), piece->type, raddle_shadow),
                    "MPI_Unpack");
    else /* Part of an element, which MPI_Unpack does not know. */
        raddle_must(PMPI_Sendrecv(bytes, (int)length, MPI_PACKED, 0, RADDLE_PIECE_TAG, piece->buf, piece->count, piece->type, 0,
                                  RADDLE_PIECE_TAG, raddle_alone, MPI_STATUS_IGNORE),
                    "MPI_Sendrecv");
}

void raddle_deliver(uint64_t name, const struct raddle_envelope *message, const void *bytes, size_t length)
{
    struct receive *receive = (struct receive *)(uintptr_t)name;
    raddle_meet(receive, message);
    raddle_store(&receive->piece, bytes, length);
    raddle_complete_receive(receive);
}

static void fetched(void *receive)
{
    raddle_complete_receive(receive);
}

void raddle_fetch(uint64_t name, const struct raddle_envelope *message, uint32_t key)
{
    struct receive *receive = (struct receive *)(uintptr_t)name;
    const struct piece *piece = &receive->piece;
    MPI_Request request;
    raddle_meet(receive, message);
    raddle_must(PMPI_Irecv(piece->buf, piece->count, piece->type, (int)message->source, (int)key, raddle_shadow, &request),
                "MPI_Irecv of a message");
    raddle_watch(request, fetched, receive);
}

/* Messages by reference that came into memory of ours, since their sender uses their keys again. */
struct aside {
    uint64_t number, bytes;
    char *memory;
    int done;
    struct receive *receive; /* asked for it */
    struct aside *next;
};
static struct aside *asides;

static void give(struct aside *aside)
{
    struct aside **at = &asides;
    while (*at != aside)
        at = &(*at)->next;
    *at = aside->next;
    raddle_store(&aside->receive->piece, aside->memory, aside->receive->bytes);
    raddle_complete_receive(aside->receive);
    free(aside->memory);
    free(aside);
}

static void aside_came(void *what)
{
    struct aside *aside = what;
    aside->done = 1;
    if (aside->receive != NULL)
        give(aside);
}

void raddle_set_aside(uint64_t number, const struct raddle_envelope *message, uint32_t key)
{
    struct aside *aside = calloc(1, sizeof *aside);
    MPI_Request request;
    if (aside == NULL || message->bytes > INT32_MAX || (aside->memory = malloc(message->bytes + 1)) == NULL)
        raddle_fail("no memory for a message that nobody receives");
    aside->number = number;
    aside->bytes = message->bytes;
    aside->next = asides;
    asides = aside;
    raddle_must(PMPI_Irecv(aside->memory, (int)message->bytes, MPI_PACKED, (int)message->source, (int)key, raddle_shadow, &request),
                "MPI_Irecv of a message");
    raddle_watch(request, aside_came, aside);
}

void raddle_fetch_aside(uint64_t name, const struct raddle_envelope *message, uint64_t number)
{
    struct receive *receive = (struct receive *)(uintptr_t)name;
    struct aside *aside = asides;
    while (aside != NULL && aside->number != number)
        aside = aside->next;
    if (aside == NULL)
        raddle_fail("a message that was set aside is not there");
    raddle_meet(receive, message);
    aside->receive = receive;
    if (aside->done)
        give(aside);
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
        wait_for_message(receive, 1);
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
