/* Sends. One that is copied is complete at once: its request is that of a send to MPI_PROC_NULL, which every call of MPI knows. */
#include <string.h>

#include "messages/messages.h"

int raddle_check_send(const struct piece *piece, int tag, MPI_Comm comm)
{
    if (raddle_is_right(piece, tag))
        return MPI_SUCCESS;
    return PMPI_Send(piece->buf, piece->count, piece->type, MPI_PROC_NULL, tag, comm);
}

/* Writes the bytes of a piece where they are sent from. */
static void fill(const void *from, void *room)
{
    const struct piece *piece = from;
    int at = 0;
    if (piece->bytes == 0)
        return;
    if (piece->direct)
        memcpy(room, piece->buf, piece->bytes);
    else
        raddle_must(PMPI_Pack(piece->buf, piece->count, piece->type, room, (int)piece->bytes, &at, raddle_shadow), "MPI_Pack");
}

static int send_by_reference(const struct piece *piece, uint32_t to, int key, int mode, MPI_Request *request)
{
    int (*send)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *) =
        mode == RADDLE_BUFFERED ? PMPI_Ibsend : mode == RADDLE_SYNCHRONOUS ? PMPI_Issend : PMPI_Isend;
    return send(piece->buf, piece->count, piece->type, (int)to, key, raddle_shadow, request);
}

int raddle_post(const struct piece *piece, int dest, int tag, const struct scope *scope, int mode, MPI_Request *request)
{
    struct raddle_outgoing message = {
        .bytes = piece->bytes,
        .to = world_rank(scope, dest),
        .context = scope->context,
        .tag = tag,
        .synchronous = mode == RADDLE_SYNCHRONOUS,
    };
    uint32_t key = 0;
    raddle_unsent = 1;
    if (raddle_rails && raddle_offer(piece, &message, mode, request))
        return 1;
    raddle_enter();
    int how = raddle_messages->send(&message, fill, piece, &key);
    raddle_leave();
    if (how & RADDLE_SCARCE)
        raddle_look();
    if (how & RADDLE_COPIED)
        return 0;
    if (how & RADDLE_WITHOUT_ROOM && mode == RADDLE_STANDARD)
        mode = RADDLE_SYNCHRONOUS;
    raddle_must(send_by_reference(piece, message.to, (int)key, mode, request), "MPI_Isend of a message");
    return 1;
}

static int send_blocking(const struct piece *piece, int dest, int tag, const struct scope *scope, int mode)
{
    MPI_Request request;
    int error = raddle_check_send(piece, tag, scope->comm);
    if (error != MPI_SUCCESS)
        return error;
    int waits = raddle_post(piece, dest, tag, scope, mode, &request);
    raddle_flush();
    return waits ? PMPI_Wait(&request, MPI_STATUS_IGNORE) : MPI_SUCCESS;
}

static int send_nonblocking(const struct piece *piece, int dest, int tag, const struct scope *scope, int mode, MPI_Request *request)
{
    MPI_Request complete = raddle_sent;
    if (complete == MPI_REQUEST_NULL || !raddle_is_right(piece, tag)) {
        /* MPI judges the arguments, and gives the request of a send that is complete. */
        int error = PMPI_Isend(piece->buf, piece->count, piece->type, MPI_PROC_NULL, tag, scope->comm, &complete);
        if (error != MPI_SUCCESS)
            return error;
    }
    if (!raddle_post(piece, dest, tag, scope, mode, request))
        *request = complete;
    else if (complete != raddle_sent)
        PMPI_Request_free(&complete);
    return MPI_SUCCESS;
}

#define BLOCKING(name, mode) \
    int matching_##name(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) \
    { \
        const struct scope *scope = scope_of(comm); \
        if (scope == NULL || !is_rank(scope, dest)) { \
            raddle_flush(); \
            int error = PMPI_##name(buf, count, datatype, dest, tag, comm); \
            if (raddle_turns > 0 && error == MPI_SUCCESS) \
                raddle_sent_plain(comm, dest); \
            return error; \
        } \
        struct piece piece = raddle_piece(buf, count, datatype); \
        return send_blocking(&piece, dest, tag, scope, mode); \
    }

#define NONBLOCKING(name, mode) \
    int matching_##name(const void *buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request *request) \
    { \
        const struct scope *scope = scope_of(comm); \
        if (scope == NULL || !is_rank(scope, dest) || request == NULL) { \
            int error = PMPI_##name(buf, count, datatype, dest, tag, comm, request); \
            if (raddle_turns > 0 && error == MPI_SUCCESS) \
                raddle_sent_plain(comm, dest); \
            return error; \
        } \
        struct piece piece = raddle_piece(buf, count, datatype); \
        return send_nonblocking(&piece, dest, tag, scope, mode, request); \
    }

/* The receive of a ready send is posted: it needs nothing else. */
BLOCKING(Send, RADDLE_STANDARD)
BLOCKING(Rsend, RADDLE_STANDARD)
BLOCKING(Ssend, RADDLE_SYNCHRONOUS)
BLOCKING(Bsend, RADDLE_BUFFERED)
NONBLOCKING(Isend, RADDLE_STANDARD)
NONBLOCKING(Irsend, RADDLE_STANDARD)
NONBLOCKING(Issend, RADDLE_SYNCHRONOUS)
NONBLOCKING(Ibsend, RADDLE_BUFFERED)
