/* The communicators of the program as the layers know them: each has an entry, the value of an attribute of it. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "communicators/communicators.h"

/* Entries are reused but never given back: a reader of `raddle_last` may look into one while another thread frees that
 * communicator. */
_Atomic(struct known *) raddle_last;
struct raddle_observers raddle_observers;
static struct known *free_entries;
static pthread_mutex_t entries_lock = PTHREAD_MUTEX_INITIALIZER;
/* Threads may send on a communicator at the same time: it is seen for the first time once. */
static pthread_mutex_t first_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t prepared = PTHREAD_ONCE_INIT;
static int keyval = MPI_KEYVAL_INVALID;
static atomic_bool running; /* between MPI_Init (or a session's first call) and MPI_Finalize */
static int by_session;

static int forget(MPI_Comm comm, int key, void *value, void *extra)
{
    struct known *entry = value;
    (void)comm, (void)key, (void)extra;
    raddle_collectives->forget(entry->state);
    if (entry->scope != NULL)
        raddle_observers.forget_scope(entry->scope);
    entry->scope = NULL;
    struct known *self = entry;
    atomic_compare_exchange_strong(&raddle_last, &self, NULL);
    atomic_store(&entry->comm, MPI_COMM_NULL);
    pthread_mutex_lock(&entries_lock);
    entry->next_free = free_entries;
    free_entries = entry;
    pthread_mutex_unlock(&entries_lock);
    return MPI_SUCCESS;
}

static struct known *new_entry(void)
{
    pthread_mutex_lock(&entries_lock);
    struct known *entry = free_entries;
    if (entry != NULL)
        free_entries = entry->next_free;
    pthread_mutex_unlock(&entries_lock);
    return entry != NULL ? entry : calloc(1, sizeof *entry);
}

static void prepare(void)
{
    raddle_types_prepare();
    raddle_plain_prepare();
    int initialised = 0;
    PMPI_Initialized(&initialised);
    by_session = !initialised;
    if (PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &keyval, NULL) != MPI_SUCCESS)
        keyval = MPI_KEYVAL_INVALID;
}

static struct known *enter(MPI_Comm comm)
{
    struct raddle_view view = {.handle = (uintptr_t)comm, .world = comm == MPI_COMM_WORLD, .session = (uint8_t)by_session};
    int inter = 0, rank = 0, size = 0, length = 0;
    char name[MPI_MAX_OBJECT_NAME] = "";
    if (PMPI_Comm_test_inter(comm, &inter) != MPI_SUCCESS || PMPI_Comm_rank(comm, &rank) != MPI_SUCCESS ||
        PMPI_Comm_size(comm, &size) != MPI_SUCCESS || PMPI_Comm_get_name(comm, name, &length) != MPI_SUCCESS)
        return NULL;
    view.inter = (uint8_t)inter;
    view.rank = rank;
    view.size = size;
    snprintf(view.name, sizeof view.name, "%s", name);
    struct known *entry = new_entry();
    if (entry == NULL)
        return NULL;
    entry->rank = rank;
    entry->size = size;
    entry->inter = inter;
    entry->number = raddle_recorder == NULL ? -1 : raddle_observers.number(comm, inter);
    entry->state = raddle_collectives->communicator(&view);
    atomic_store(&entry->comm, comm);
    if (entry->state == NULL || PMPI_Comm_set_attr(comm, keyval, entry) != MPI_SUCCESS)
        return NULL;
    return entry;
}

/* Gives NULL for a communicator that was not seen yet, and what MPI says of it. */
static int read_entry(MPI_Comm comm, struct known **entry)
{
    void *value = NULL;
    int found = 0;
    *entry = NULL;
    if (comm == MPI_COMM_NULL || keyval == MPI_KEYVAL_INVALID || !atomic_load(&running))
        return MPI_ERR_COMM;
    int error = PMPI_Comm_get_attr(comm, keyval, &value, &found);
    if (error == MPI_SUCCESS && found)
        *entry = value;
    return error;
}

struct known *raddle_known(MPI_Comm comm)
{
    struct known *entry;
    read_entry(comm, &entry);
    return entry;
}

struct known *raddle_look_up(MPI_Comm comm)
{
    if (!atomic_load(&running)) {
        int finalized = 0, initialised = 0;
        if (PMPI_Finalized(&finalized) != MPI_SUCCESS || finalized)
            return NULL;
        PMPI_Initialized(&initialised);
        if (!initialised)
            return NULL;
        atomic_store(&running, 1);
    }
    pthread_once(&prepared, prepare);
    struct known *entry;
    if (read_entry(comm, &entry) == MPI_SUCCESS && entry == NULL) {
        pthread_mutex_lock(&first_lock);
        if (read_entry(comm, &entry) == MPI_SUCCESS && entry == NULL)
            entry = enter(comm);
        pthread_mutex_unlock(&first_lock);
    }
    if (entry != NULL)
        atomic_store_explicit(&raddle_last, entry, memory_order_release);
    return entry;
}

void raddle_forget_all(void)
{
    atomic_store(&running, 0);
    atomic_store(&raddle_last, NULL);
}
