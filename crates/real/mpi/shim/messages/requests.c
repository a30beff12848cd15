/* Requests of receives. Each is a generalized request: the only kind whose status is ours to fill. The library hears that one is
 * complete only where it may be asked: a receive that our own waits find complete it never hears of, and its request is used
 * again. */
#include <stdlib.h>

#include "messages/messages.h"

int raddle_receives;

/* Receives by requests of which the library has heard nothing, and is to be asked nothing. */
static struct handles ours;
/* Those of them that are done. */
static struct receive *done;
/* Receives that are free to be used again; some still have such a request. */
static struct receive *spare;

static void keep_spare(struct receive *receive)
{
    raddle_let_go(receive->scope);
    receive->scope = NULL;
    receive->next = spare;
    spare = receive;
}

static int query(void *receive, MPI_Status *status)
{
    raddle_receive_status(receive, status);
    return MPI_SUCCESS;
}

/* The library has let the request go. */
static int release(void *state)
{
    struct receive *receive = state;
    receive->request = MPI_REQUEST_NULL;
    if (receive->scope == NULL)
        free(receive);
    else
        keep_spare(receive);
    return MPI_SUCCESS;
}

static int cancel(void *receive, int complete)
{
    if (!complete)
        raddle_take_back(receive);
    return MPI_SUCCESS;
}

struct receive *raddle_new_receive(struct scope *scope)
{
    struct receive *receive = spare;
    if (receive != NULL)
        spare = receive->next;
    else if ((receive = calloc(1, sizeof *receive)) == NULL)
        raddle_fail("no memory for a receive");
    else
        receive->request = MPI_REQUEST_NULL;
    if (receive->request == MPI_REQUEST_NULL) {
        raddle_must(PMPI_Grequest_start(query, release, cancel, receive, &receive->request), "MPI_Grequest_start");
        raddle_put(&ours, (uintptr_t)receive->request, receive);
    }
    receive->is_ours = 1;
    receive->finish = raddle_receive_done;
    raddle_receives++;
    scope->uses++;
    return receive;
}

/* The library is asked for this one from now on. */
static void hand_over(struct receive *receive)
{
    raddle_take(&ours, (uintptr_t)receive->request);
    receive->is_ours = 0;
    raddle_receives--;
}

static void tell(const struct receive *receive)
{
    raddle_must(PMPI_Grequest_complete(receive->request), "MPI_Grequest_complete");
}

static void list(struct receive *receive)
{
    receive->next = done;
    receive->link = &done;
    if (done != NULL)
        done->link = &receive->next;
    done = receive;
    raddle_awake++;
}

static void unlist(struct receive *receive)
{
    *receive->link = receive->next;
    if (receive->next != NULL)
        receive->next->link = receive->link;
    raddle_awake--;
}

void raddle_receive_done(struct receive *receive)
{
    if (receive->is_ours)
        list(receive);
    else
        tell(receive);
}

int raddle_tell_library(void)
{
    int told = 0;
    for (struct receive *receive; (receive = done) != NULL; told++) {
        unlist(receive);
        hand_over(receive);
        tell(receive);
    }
    return told;
}

struct receive *raddle_receive_of(MPI_Request request)
{
    return raddle_receives == 0 ? NULL : raddle_get(&ours, (uintptr_t)request);
}

void raddle_hand_over(int count, const MPI_Request requests[])
{
    for (int at = 0; raddle_receives > 0 && requests != NULL && at < count; at++) {
        struct receive *receive = raddle_get(&ours, (uintptr_t)requests[at]);
        if (receive == NULL)
            continue;
        hand_over(receive);
        if (receive->done) {
            unlist(receive);
            tell(receive);
        }
    }
}

void raddle_take_request(struct receive *receive)
{
    unlist(receive);
    raddle_receives--;
}

void raddle_end_receive(struct receive *receive, MPI_Status *status)
{
    raddle_receive_status(receive, status);
    receive->in_wait = 0;
    keep_spare(receive);
}

void raddle_free_receives(void)
{
    for (struct receive *receive; (receive = spare) != NULL;) {
        spare = receive->next;
        if (receive->request == MPI_REQUEST_NULL) {
            free(receive);
            continue;
        }
        MPI_Request request = receive->request;
        tell(receive);
        PMPI_Request_free(&request);
    }
}
