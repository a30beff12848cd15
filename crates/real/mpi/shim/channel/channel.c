/* The shadow of MPI_COMM_WORLD: parcels out and in, messages by reference, and the handler inside the library's
 * progress. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "channel/channel.h"

/* MPICH's MPI_STATUSES_IGNORE is an address of nothing. */
#pragma GCC diagnostic ignored "-Wstringop-overflow"

/* Receives for parcels that are always posted. So few that their memory stays in the cache; the library keeps what comes
 * beyond them. */
enum { RING = 8 };
/* The handler asks the library at least so often. */
enum { ASK = 64 };

MPI_Comm raddle_shadow = MPI_COMM_NULL;
MPI_Comm raddle_alone = MPI_COMM_NULL;

/* What is done when a request is complete. */
struct watched {
    void (*done)(void *what);
    void *what;
    int is_done;
};

/* All state of this file that others do not see. */
static struct {
    int ranks;
    int (*inside)(void); /* raddle_open_channel */
    /* Receives for parcels. */
    struct {
        char *memory;
        size_t longest; /* bytes of a parcel */
        MPI_Request requests[RING];
        int head; /* the one that gets the next parcel */
        unsigned asked;
    } ring;
    /* Requests of ours under way, beside those of the ring. */
    struct {
        int count, room;
        MPI_Request *requests;
        struct watched *watched;
        int *indices;
    } way;
    /* Counts of parcels: sent to each rank, received, not yet sent. */
    uint64_t *sent_to, received;
    int sending;
    uint64_t looks;
} channel;

int raddle_awake;
int raddle_unsent;
int raddle_busy;
int raddle_rails;
uint64_t raddle_supersteps = 1;
MPI_Request raddle_sent = MPI_REQUEST_NULL;

void raddle_fail(const char *what)
{
    fprintf(stderr, "raddle: %s: message scheduling cannot go on\n", what);
    PMPI_Abort(MPI_COMM_WORLD, MPI_ERR_INTERN);
    abort();
}

static void make_room(int room)
{
    channel.way.room = room;
    channel.way.requests = realloc(channel.way.requests, (size_t)room * sizeof *channel.way.requests);
    channel.way.watched = realloc(channel.way.watched, (size_t)room * sizeof *channel.way.watched);
    channel.way.indices = realloc(channel.way.indices, (size_t)room * sizeof *channel.way.indices);
    if (channel.way.requests == NULL || channel.way.watched == NULL || channel.way.indices == NULL)
        raddle_fail("no memory for requests");
}

void raddle_watch(MPI_Request request, void (*done)(void *what), void *what)
{
    if (channel.way.count == channel.way.room)
        make_room(2 * channel.way.room);
    channel.way.requests[channel.way.count] = request;
    channel.way.watched[channel.way.count++] = (struct watched){.done = done, .what = what};
    raddle_awake++;
}

static void parcel_sent(void *slot)
{
    channel.sending--;
    raddle_messages->sent((uint32_t)(uintptr_t)slot);
}

void raddle_send_parcel(uint32_t to, const void *bytes, size_t length, uint32_t slot)
{
    MPI_Request request;
    raddle_must(PMPI_Isend(bytes, (int)length, MPI_BYTE, (int)to, 0, raddle_shadow, &request), "MPI_Isend of a parcel");
    channel.sent_to[to]++;
    channel.sending++;
    raddle_watch(request, parcel_sent, (void *)(uintptr_t)slot);
}

static char *first_byte(int place)
{
    return channel.ring.memory + (size_t)place * channel.ring.longest;
}

static void start(int place)
{
    *first_byte(place) = 0;
    raddle_must(PMPI_Start(&channel.ring.requests[place]), "MPI_Start");
}

static void take_parcel(const MPI_Status *status)
{
    int length = 0;
    PMPI_Get_count(status, MPI_BYTE, &length);
    channel.received++;
    if (!raddle_messages->parcel(status->MPI_SOURCE, first_byte(channel.ring.head), (size_t)length))
        raddle_fail("what came is not a parcel");
    start(channel.ring.head);
    channel.ring.head = (channel.ring.head + 1) % RING;
}

/* Parcels do not begin with 0: as long as the first byte is, none has come. Inside the library's progress this is asked
 * instead of the library, which would look at the network again. */
static int seems_empty(void)
{
    return *(volatile char *)first_byte(channel.ring.head) == 0 && ++channel.ring.asked % ASK != 0;
}

/* Whether a parcel is there; the library looks at the network once if it is not. */
static int has_parcel(void)
{
    int flag = 0;
    MPI_Status status;
    raddle_must(PMPI_Test(&channel.ring.requests[channel.ring.head], &flag, &status), "MPI_Test");
    if (flag)
        take_parcel(&status);
    return flag;
}

/* Takes complete requests off the list. Errors of single requests are seen elsewhere: a message by reference that is too long
 * has its length in its envelope. */
static int settle(void)
{
    int completed = 0, error = PMPI_Testsome(channel.way.count, channel.way.requests, &completed, channel.way.indices, MPI_STATUSES_IGNORE);
    if (error != MPI_SUCCESS && error != MPI_ERR_IN_STATUS)
        raddle_fail("MPI_Testsome");
    if (completed == MPI_UNDEFINED)
        return 0;
    /* In the order in which they were begun; what follows may begin others. */
    for (int at = 0; at < completed; at++)
        channel.way.watched[channel.way.indices[at]].is_done = 1;
    int kept = 0, count = channel.way.count;
    for (int at = 0; completed > 0 && at < channel.way.count; at++) {
        struct watched watched = channel.way.watched[at];
        if (at < count && watched.is_done) {
            watched.done(watched.what);
            continue;
        }
        channel.way.requests[kept] = channel.way.requests[at];
        channel.way.watched[kept++] = watched;
    }
    if (completed > 0)
        channel.way.count = kept;
    raddle_awake -= completed;
    return completed;
}

/* One look; how much was found. */
static int turn(int inside)
{
    channel.looks++;
    int found = inside ? 0 : has_parcel();
    while (!seems_empty() && has_parcel())
        found++;
    if (raddle_rails)
        found += raddle_messages->step_rails();
    return channel.way.count > 0 ? found + settle() : found;
}

void raddle_look(void)
{
    raddle_enter();
    turn(0);
    raddle_leave();
}

static void send_open(void)
{
    if (raddle_unsent)
        raddle_messages->flush();
    raddle_unsent = 0;
}

static int look(int inside)
{
    if (raddle_busy)
        return 0;
    raddle_enter();
    send_open();
    int found = turn(inside);
    if (inside)
        found += channel.inside();
    raddle_leave();
    return found;
}

void raddle_poll(void)
{
    raddle_supersteps++;
    look(0);
}

void raddle_end_superstep(void)
{
    raddle_supersteps++;
    raddle_enter();
    send_open();
    raddle_leave();
}

/* Called by the library in every wait, whatever call it is in. If something was found it looks at what it waits for
 * before it gives the processor away. */
static int handler(void)
{
    return raddle_awake | raddle_unsent ? look(1) : 0;
}

#if defined(OPEN_MPI)
typedef int (*progress_function)(int (*handler)(void));

/* A function of the library that runs, or of those that it is linked with. */
static progress_function look_up(const char *symbol)
{
    Dl_info info;
    if (dladdr((void *)PMPI_Init, &info) == 0 || info.dli_fname == NULL)
        return NULL;
    void *library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
    progress_function function = library == NULL ? NULL : (progress_function)dlsym(library, symbol);
    if (library != NULL)
        dlclose(library);
    return function;
}

int raddle_hook(void)
{
    static int hooked;
    progress_function add = look_up("opal_progress_register");
    if (!hooked && add != NULL && look_up("opal_progress_unregister") != NULL)
        hooked = add(handler) == 0;
    return hooked;
}

static void unhook(void)
{
    look_up("opal_progress_unregister")(handler);
}

/* All its sends to MPI_PROC_NULL are one request, which is never freed. */
static void find_sent(void)
{
    raddle_must(PMPI_Isend(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, raddle_alone, &raddle_sent), "MPI_Isend");
    MPI_Request other = MPI_REQUEST_NULL;
    raddle_must(PMPI_Isend(NULL, 0, MPI_BYTE, MPI_PROC_NULL, 0, raddle_alone, &other), "MPI_Isend");
    if (other != raddle_sent)
        raddle_sent = MPI_REQUEST_NULL;
}
#else
int raddle_hook(void)
{
    (void)handler;
    return 0;
}

static void unhook(void)
{
}

static void find_sent(void)
{
}
#endif

void raddle_open_channel(int size, int (*inside)(void))
{
    channel.inside = inside;
    channel.ranks = size;
    channel.ring.longest = raddle_messages->longest();
    channel.ring.memory = malloc(RING * channel.ring.longest);
    channel.sent_to = calloc((size_t)size, sizeof *channel.sent_to);
    if (channel.ring.memory == NULL || channel.sent_to == NULL)
        raddle_fail("no memory for parcels");
    raddle_must(PMPI_Comm_dup(MPI_COMM_WORLD, &raddle_shadow), "MPI_Comm_dup");
    raddle_must(PMPI_Comm_dup(MPI_COMM_SELF, &raddle_alone), "MPI_Comm_dup");
    PMPI_Comm_set_errhandler(raddle_shadow, MPI_ERRORS_RETURN);
    PMPI_Comm_set_errhandler(raddle_alone, MPI_ERRORS_RETURN);
    find_sent();
    make_room(64);
    for (int at = 0; at < RING; at++) {
        raddle_must(PMPI_Recv_init(first_byte(at), (int)channel.ring.longest, MPI_BYTE, MPI_ANY_SOURCE, 0, raddle_shadow, &channel.ring.requests[at]),
                    "MPI_Recv_init");
        start(at);
    }
}

/* What others wait for is handed on until all are here; then everything that is still under way is taken. */
void raddle_close_channel(void)
{
    uint64_t expected = 0, *sent = malloc((size_t)channel.ranks * sizeof *sent);
    if (sent == NULL)
        raddle_fail("no memory");
    raddle_messages->looked(channel.looks);
    raddle_end_superstep();
    while (raddle_rails && raddle_messages->open_offers() > 0)
        raddle_poll();
    raddle_must(PMPI_Barrier(raddle_shadow), "MPI_Barrier");
    /* What was offered has arrived, everywhere. */
    raddle_enter();
    raddle_messages->close_rails();
    raddle_leave();
    memcpy(sent, channel.sent_to, (size_t)channel.ranks * sizeof *sent);
    raddle_must(PMPI_Reduce_scatter_block(sent, &expected, 1, MPI_UINT64_T, MPI_SUM, raddle_shadow), "MPI_Reduce_scatter_block");
    free(sent);
    while (channel.received < expected || channel.sending > 0)
        raddle_poll();
    raddle_enter();
    unhook();
    for (int at = 0; at < RING; at++) {
        PMPI_Cancel(&channel.ring.requests[at]);
        PMPI_Wait(&channel.ring.requests[at], MPI_STATUS_IGNORE);
        PMPI_Request_free(&channel.ring.requests[at]);
    }
    raddle_leave();
}
