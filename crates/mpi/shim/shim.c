/* What stands behind each function of functions.toml: it puts a call into the core's words, and asks. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shim.h"

static const struct raddle_core *core;

/* A communicator's entry is the value of an attribute of it. Entries are reused but never given back: a reader of
 * `last` may look into one while another thread frees that communicator. */
struct known {
    _Atomic(MPI_Comm) comm;
    void *state;
    int rank, size;
    struct known *next_free;
};
static _Atomic(struct known *) last;
static struct known *free_entries;
static pthread_mutex_t entries_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t prepared = PTHREAD_ONCE_INIT;
static int keyval = MPI_KEYVAL_INVALID;
static atomic_bool running; /* between MPI_Init (or a session's first call) and MPI_Finalize */
static int by_session;

static int forget(MPI_Comm comm, int key, void *value, void *extra)
{
    struct known *entry = value;
    (void)comm, (void)key, (void)extra;
    core->forget(entry->state);
    struct known *self = entry;
    atomic_compare_exchange_strong(&last, &self, NULL);
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

/* The slow way: by the attribute, which is made if it is not there. NULL: the call is none of ours. */
static struct known *look_up(MPI_Comm comm)
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
    if (keyval == MPI_KEYVAL_INVALID || comm == MPI_COMM_NULL)
        return NULL;
    void *value = NULL;
    int found = 0;
    if (PMPI_Comm_get_attr(comm, keyval, &value, &found) != MPI_SUCCESS)
        return NULL;
    if (found) {
        atomic_store_explicit(&last, value, memory_order_release);
        return value;
    }
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
    entry->state = core->communicator(&view);
    atomic_store(&entry->comm, comm);
    if (entry->state == NULL || PMPI_Comm_set_attr(comm, keyval, entry) != MPI_SUCCESS)
        return NULL;
    atomic_store_explicit(&last, entry, memory_order_release);
    return entry;
}

static inline struct known *find(MPI_Comm comm)
{
    struct known *entry = atomic_load_explicit(&last, memory_order_acquire);
    if (entry != NULL && atomic_load_explicit(&entry->comm, memory_order_relaxed) == comm)
        return entry;
    return look_up(comm);
}

/* The part of a call that Allreduce and Reduce have in common. */
static struct raddle_call reduction(uint8_t collective, int count, MPI_Datatype datatype, MPI_Op op)
{
    struct raddle_call call = {.collective = collective, .count = (uint64_t)count, .handle = (uintptr_t)datatype};
    if (count <= 0) {
        call.reason = count == 0 ? RADDLE_NO_ELEMENTS : RADDLE_ARGUMENTS;
        return call;
    }
    const struct raddle_type *type = raddle_type_find(datatype);
    call.operation = raddle_operation_find(op);
    if (type == NULL || type->code == 0) {
        call.reason = RADDLE_TYPE;
        return call;
    }
    call.type = type->code;
    int logical = call.operation == 5 || call.operation == 7 || call.operation == 9;
    int bitwise = call.operation == 6 || call.operation == 8 || call.operation == 10;
    if (call.operation == 0 || (type->operations == RADDLE_LOGICAL && !logical) ||
        (type->operations == RADDLE_BITWISE && !bitwise) || (type->operations == RADDLE_NOT_LOGICAL && logical))
        call.reason = RADDLE_OPERATION;
    return call;
}

static inline int decide(const struct known *entry, const struct raddle_call *call)
{
    return entry == NULL ? RADDLE_PLAIN : core->begin(entry->state, call);
}

int raddle_Allreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
    struct known *entry = find(comm);
    struct raddle_call call = reduction(RADDLE_ALLREDUCE, count, datatype, op);
    call.send = sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf;
    call.receive = recvbuf;
    if (call.reason == 0 && (call.send == NULL || recvbuf == NULL || recvbuf == MPI_IN_PLACE || sendbuf == recvbuf))
        call.reason = RADDLE_ARGUMENTS;
    int verdict = decide(entry, &call);
    if (verdict == RADDLE_OFFLOAD && core->run(entry->state, &call))
        return MPI_SUCCESS;
    int error = PMPI_Allreduce(sendbuf, recvbuf, count, datatype, op, comm);
    if (verdict == RADDLE_PLAIN_TIMED)
        core->timed(entry->state);
    return error;
}

int raddle_Reduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm)
{
    struct known *entry = find(comm);
    struct raddle_call call = reduction(RADDLE_REDUCE, count, datatype, op);
    int rank = entry == NULL ? -1 : entry->rank, size = entry == NULL ? 0 : entry->size;
    int in_place = sendbuf == MPI_IN_PLACE;
    call.root = root;
    call.send = in_place ? recvbuf : sendbuf;
    call.receive = rank == root ? recvbuf : NULL;
    if (call.reason == 0 && (root < 0 || root >= size || call.send == NULL || (in_place && rank != root) ||
                             (rank == root && (recvbuf == NULL || recvbuf == MPI_IN_PLACE || sendbuf == recvbuf))))
        call.reason = RADDLE_ARGUMENTS;
    int verdict = decide(entry, &call);
    if (verdict == RADDLE_OFFLOAD && core->run(entry->state, &call))
        return MPI_SUCCESS;
    int error = PMPI_Reduce(sendbuf, recvbuf, count, datatype, op, root, comm);
    if (verdict == RADDLE_PLAIN_TIMED)
        core->timed(entry->state);
    return error;
}

int raddle_Barrier(MPI_Comm comm)
{
    struct known *entry = find(comm);
    struct raddle_call call = {.collective = RADDLE_BARRIER};
    int verdict = decide(entry, &call);
    if (verdict == RADDLE_OFFLOAD && core->run(entry->state, &call))
        return MPI_SUCCESS;
    int error = PMPI_Barrier(comm);
    if (verdict == RADDLE_PLAIN_TIMED)
        core->timed(entry->state);
    return error;
}

/* Ranks may describe the same bytes by different types; what is decided may depend on their number only. */
static int64_t message_bytes(int count, MPI_Datatype datatype, const struct raddle_type *type)
{
    if (count < 0 || datatype == MPI_DATATYPE_NULL)
        return -1;
    if (type != NULL && type->bytes != 0)
        return (int64_t)count * type->bytes;
    MPI_Count size = 0;
    if (PMPI_Type_size_x(datatype, &size) != MPI_SUCCESS || size < 0 || size > INT64_C(1) << 30)
        return -1;
    return (int64_t)count * size;
}

/* A Bcast of a type with gaps goes through a packed copy. 1: done; 0: the plain call is to be made. */
static int bcast_packed(struct known *entry, struct raddle_call *call, void *buffer, int count, MPI_Datatype datatype, MPI_Comm comm)
{
    char small[512];
    int room = 0, at = 0;
    if (PMPI_Pack_size(count, datatype, comm, &room) != MPI_SUCCESS || room < 0)
        room = 0;
    size_t bytes = (size_t)room > call->count ? (size_t)room : (size_t)call->count;
    char *packed = bytes <= sizeof small ? small : malloc(bytes);
    /* All other ranks take part now: there is no way back to the plain call. */
    if (packed == NULL)
        PMPI_Abort(comm, MPI_ERR_NO_MEM);
    int is_root = entry->rank == call->root;
    if (is_root)
        PMPI_Pack(buffer, count, datatype, packed, (int)bytes, &at, comm);
    call->send = call->receive = packed;
    int done = core->run(entry->state, call);
    at = 0;
    if (done && !is_root)
        PMPI_Unpack(packed, (int)call->count, &at, buffer, count, datatype, comm);
    if (packed != small)
        free(packed);
    return done;
}

int raddle_Bcast(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    struct known *entry = find(comm);
    struct raddle_call call = {.collective = RADDLE_BCAST, .root = root, .send = buffer, .receive = buffer};
    const struct raddle_type *type = raddle_type_find(datatype);
    int64_t bytes = entry == NULL ? -1 : message_bytes(count, datatype, type);
    int direct = type != NULL && type->bytes != 0;
    if (bytes <= 0)
        call.reason = bytes == 0 ? RADDLE_NO_ELEMENTS : RADDLE_ARGUMENTS;
    else if (root < 0 || root >= entry->size || (direct && (buffer == NULL || buffer == MPI_IN_PLACE)))
        call.reason = RADDLE_ARGUMENTS;
    else
        call.count = (uint64_t)bytes;
    int verdict = decide(entry, &call);
    if (verdict == RADDLE_OFFLOAD) {
        if (direct ? core->run(entry->state, &call) : bcast_packed(entry, &call, buffer, count, datatype, comm))
            return MPI_SUCCESS;
    }
    int error = PMPI_Bcast(buffer, count, datatype, root, comm);
    if (verdict == RADDLE_PLAIN_TIMED)
        core->timed(entry->state);
    return error;
}

int raddle_Init(int *argc, char ***argv)
{
    int error = PMPI_Init(argc, argv);
    if (error == MPI_SUCCESS)
        core->initialised();
    return error;
}

int raddle_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int error = PMPI_Init_thread(argc, argv, required, provided);
    if (error == MPI_SUCCESS)
        core->initialised();
    return error;
}

/* What we split off a communicator goes before it: MPI may not be called while its attributes are deleted. */
static void release(const MPI_Comm *comm)
{
    void *value = NULL;
    int found = 0;
    if (comm == NULL || *comm == MPI_COMM_NULL || keyval == MPI_KEYVAL_INVALID || !atomic_load(&running))
        return;
    if (PMPI_Comm_get_attr(*comm, keyval, &value, &found) == MPI_SUCCESS && found)
        core->release(((struct known *)value)->state);
}

int raddle_Comm_free(MPI_Comm *comm)
{
    release(comm);
    return PMPI_Comm_free(comm);
}

int raddle_Comm_disconnect(MPI_Comm *comm)
{
    release(comm);
    return PMPI_Comm_disconnect(comm);
}

int raddle_Finalize(void)
{
    int finalized = 0, initialised = 0, rank = 0, size = 0;
    PMPI_Finalized(&finalized);
    PMPI_Initialized(&initialised);
    if (initialised && !finalized && PMPI_Comm_rank(MPI_COMM_WORLD, &rank) == MPI_SUCCESS &&
        PMPI_Comm_size(MPI_COMM_WORLD, &size) == MPI_SUCCESS)
        core->finalize((uintptr_t)MPI_COMM_WORLD, rank, size);
    atomic_store(&running, 0);
    atomic_store(&last, NULL);
    return PMPI_Finalize();
}

static void read_version(int version[3])
{
    char text[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int length = 0;
    PMPI_Get_library_version(text, &length);
    const char *at = strstr(text, RADDLE_LIBRARY == 1 ? "Open MPI v" : "MPICH Version:");
    at = at == NULL ? text : at + strcspn(at, "0123456789");
    if (sscanf(at, "%d.%d.%d", &version[0], &version[1], &version[2]) < 2)
        version[0] = version[1] = version[2] = 0;
}

static int built_for(void)
{
#if RADDLE_LIBRARY == 1
    return OMPI_MAJOR_VERSION;
#else
    return MPICH_NUMVERSION / 10000000;
#endif
}

const struct raddle_shim *raddle_shim_attach(const struct raddle_core *ours, uint32_t abi, char *why, size_t why_bytes)
{
    static struct raddle_shim shim;
    if (abi != RADDLE_ABI) {
        snprintf(why, why_bytes, "the shim was built with another version of libraddle_mpi.so");
        return NULL;
    }
    read_version(shim.version);
    if (shim.version[0] != built_for()) {
        snprintf(why, why_bytes, "the shim was built for version %d of the MPI library, and %d.%d.%d is loaded", built_for(),
                 shim.version[0], shim.version[1], shim.version[2]);
        return NULL;
    }
    core = ours;
    shim.abi = RADDLE_ABI;
    shim.library = RADDLE_LIBRARY;
    shim.entries = raddle_entries;
    shim.entry_count = raddle_entry_count;
    shim.plain = raddle_plain_calls;
    return &shim;
}
