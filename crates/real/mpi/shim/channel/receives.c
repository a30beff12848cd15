/* What becomes of a receive: its message is known, its bytes come, it is complete. */
#include <stdlib.h>

#include "channel/channel.h"

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

static void drop_type(struct receive *receive)
{
    if (receive->holds_type)
        PMPI_Type_free(&receive->piece.type);
    receive->holds_type = 0;
}

void raddle_await(struct receive *receive, int waits)
{
    raddle_awake += waits - receive->waits;
    receive->waits = (uint8_t)waits;
}

void raddle_complete_receive(struct receive *receive)
{
    receive->done = 1;
    raddle_await(receive, 0);
    drop_type(receive);
    if (receive->finish != NULL)
        receive->finish(receive);
}

void raddle_meet(struct receive *receive, const struct raddle_envelope *message)
{
    raddle_await(receive, 0);
    receive->source = rank_of(receive->scope, message->source);
    receive->tag = message->tag;
    receive->bytes = message->bytes;
    if (message->bytes > receive->piece.bytes) {
        receive->bytes = receive->piece.bytes;
        receive->error = MPI_ERR_TRUNCATE;
    }
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
