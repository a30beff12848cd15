/* Large messages that rails may carry. The sender's bytes stay where they are until the receiver has said how they come: on
 * the rails, or as a plain message by reference. */
#include <stdlib.h>

#include "rails/rails.h"

/* Bytes of the shortest message that is offered. */
enum { LEAST_OFFER = 64 << 10 };

/* A send of the program's, until its buffer is free. */
struct offer {
    struct piece piece;
    int to;
    MPI_Request request;
};

void raddle_begin_rails(void)
{
    unsigned char secret[RADDLE_SECRET];
    if (!raddle_messages->secret(secret))
        return;
    raddle_must(PMPI_Bcast(secret, RADDLE_SECRET, MPI_BYTE, 0, MPI_COMM_WORLD), "MPI_Bcast");
    raddle_messages->begin_rails(secret);
    raddle_rails = 1;
}

static int query(void *offer, MPI_Status *status)
{
    (void)offer;
    raddle_fill_status(status, MPI_ANY_SOURCE, MPI_ANY_TAG, 0, 0);
    return MPI_SUCCESS;
}

static int release(void *offer)
{
    free(offer);
    return MPI_SUCCESS;
}

/* A send is never cancelled. */
static int cancel(void *offer, int complete)
{
    (void)offer, (void)complete;
    return MPI_SUCCESS;
}

int raddle_offer(const struct piece *piece, const struct raddle_outgoing *message, int mode, MPI_Request *request)
{
    /* A buffered send is complete at once, from the program's attached buffer; the library does that. */
    if (!raddle_rails || !piece->direct || mode == RADDLE_BUFFERED || piece->bytes < LEAST_OFFER)
        return 0;
    struct offer *offer = malloc(sizeof *offer);
    if (offer == NULL)
        return 0;
    *offer = (struct offer){.piece = *piece, .to = (int)message->to};
    raddle_enter();
    int made = raddle_messages->offer(message, piece->buf, (uintptr_t)offer);
    if (made) {
        raddle_must(PMPI_Grequest_start(query, release, cancel, offer, &offer->request), "MPI_Grequest_start");
        *request = offer->request;
    } else {
        free(offer);
    }
    raddle_leave();
    return made;
}

static void sent(void *offer)
{
    raddle_must(PMPI_Grequest_complete(((struct offer *)offer)->request), "MPI_Grequest_complete");
}

void raddle_send_offered(uint64_t name, uint32_t key)
{
    struct offer *offer = (struct offer *)(uintptr_t)name;
    const struct piece *piece = &offer->piece;
    MPI_Request request;
    raddle_must(PMPI_Isend(piece->buf, piece->count, piece->type, offer->to, (int)key, raddle_shadow, &request),
                "MPI_Isend of a message");
    raddle_watch(request, sent, offer);
}

void raddle_offer_sent(uint64_t name)
{
    sent((void *)(uintptr_t)name);
}

void *raddle_land(uint64_t name, const struct raddle_envelope *message)
{
    struct receive *receive = (struct receive *)(uintptr_t)name;
    raddle_meet(receive, message);
    if (receive->piece.direct && message->bytes <= receive->piece.bytes)
        return receive->piece.buf;
    if (!receive->piece.direct && !receive->holds_type) {
        raddle_hold_type(&receive->piece);
        receive->holds_type = 1;
    }
    receive->landing = malloc(message->bytes);
    return receive->landing;
}

void raddle_landed(uint64_t name)
{
    struct receive *receive = (struct receive *)(uintptr_t)name;
    if (receive->landing != NULL)
        raddle_store(&receive->piece, receive->landing, receive->bytes);
    free(receive->landing);
    receive->landing = NULL;
    raddle_complete_receive(receive);
}

static void came(void *what)
{
    struct receive *receive = what;
    raddle_messages->offered_came(receive->offered_by, receive->offered_key);
    raddle_complete_receive(receive);
}

void raddle_fetch_offered(uint64_t name, const struct raddle_envelope *message, uint32_t key)
{
    struct receive *receive = (struct receive *)(uintptr_t)name;
    const struct piece *piece = &receive->piece;
    MPI_Request request;
    free(receive->landing);
    receive->landing = NULL;
    raddle_meet(receive, message);
    receive->offered_by = message->source;
    receive->offered_key = key;
    raddle_must(PMPI_Irecv(piece->buf, piece->count, piece->type, (int)message->source, (int)key, raddle_shadow, &request),
                "MPI_Irecv of a message");
    raddle_watch(request, came, receive);
}
