/* Collectives in switches: a call in the core's words, and the core's answer. */
#include <stdlib.h>

#include "communicators/communicators.h"
#include "functions.h"

static int is_logical(uint8_t operation)
{
    return operation == RADDLE_OP_LAND || operation == RADDLE_OP_LOR || operation == RADDLE_OP_LXOR;
}

static int is_bitwise(uint8_t operation)
{
    return operation == RADDLE_OP_BAND || operation == RADDLE_OP_BOR || operation == RADDLE_OP_BXOR;
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
    if (type == NULL || type->code == RADDLE_DATA_NONE) {
        call.reason = RADDLE_TYPE;
        return call;
    }
    call.data_type = type->code;
    int logical = is_logical(call.operation), bitwise = is_bitwise(call.operation);
    if (call.operation == RADDLE_OP_NONE || (type->operations == RADDLE_LOGICAL && !logical) ||
        (type->operations == RADDLE_BITWISE && !bitwise) || (type->operations == RADDLE_NOT_LOGICAL && logical))
        call.reason = RADDLE_OPERATION;
    return call;
}

static inline int decide(const struct known *entry, const struct raddle_call *call)
{
    return entry == NULL ? RADDLE_PLAIN : raddle_collectives->begin(entry->state, call);
}

int raddle_Allreduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, MPI_Comm comm)
{
    struct known *entry = raddle_find(comm);
    struct raddle_call call = reduction(RADDLE_ALLREDUCE, count, datatype, op);
    call.send = sendbuf == MPI_IN_PLACE ? recvbuf : sendbuf;
    call.receive = recvbuf;
    if (call.reason == RADDLE_ELIGIBLE && (call.send == NULL || recvbuf == NULL || recvbuf == MPI_IN_PLACE || sendbuf == recvbuf))
        call.reason = RADDLE_ARGUMENTS;
    int verdict = decide(entry, &call);
    if (verdict == RADDLE_OFFLOAD && raddle_collectives->run(entry->state, &call))
        return MPI_SUCCESS;
    int error = PMPI_Allreduce(sendbuf, recvbuf, count, datatype, op, comm);
    if (verdict == RADDLE_PLAIN_TIMED)
        raddle_collectives->timed(entry->state);
    return error;
}

int raddle_Reduce(const void *sendbuf, void *recvbuf, int count, MPI_Datatype datatype, MPI_Op op, int root, MPI_Comm comm)
{
    struct known *entry = raddle_find(comm);
    struct raddle_call call = reduction(RADDLE_REDUCE, count, datatype, op);
    int rank = entry == NULL ? -1 : entry->rank, size = entry == NULL ? 0 : entry->size;
    int in_place = sendbuf == MPI_IN_PLACE;
    call.root = root;
    call.send = in_place ? recvbuf : sendbuf;
    call.receive = rank == root ? recvbuf : NULL;
    if (call.reason == RADDLE_ELIGIBLE && (root < 0 || root >= size || call.send == NULL || (in_place && rank != root) ||
                             (rank == root && (recvbuf == NULL || recvbuf == MPI_IN_PLACE || sendbuf == recvbuf))))
        call.reason = RADDLE_ARGUMENTS;
    int verdict = decide(entry, &call);
    if (verdict == RADDLE_OFFLOAD && raddle_collectives->run(entry->state, &call))
        return MPI_SUCCESS;
    int error = PMPI_Reduce(sendbuf, recvbuf, count, datatype, op, root, comm);
    if (verdict == RADDLE_PLAIN_TIMED)
        raddle_collectives->timed(entry->state);
    return error;
}

int raddle_Barrier(MPI_Comm comm)
{
    struct known *entry = raddle_find(comm);
    struct raddle_call call = {.collective = RADDLE_BARRIER};
    int verdict = decide(entry, &call);
    if (verdict == RADDLE_OFFLOAD && raddle_collectives->run(entry->state, &call))
        return MPI_SUCCESS;
    int error = PMPI_Barrier(comm);
    if (verdict == RADDLE_PLAIN_TIMED)
        raddle_collectives->timed(entry->state);
    return error;
}

/* Ranks may describe the same bytes by different types: a decision may depend on the number of bytes only. */
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
    int done = raddle_collectives->run(entry->state, call);
    at = 0;
    if (done && !is_root)
        PMPI_Unpack(packed, (int)call->count, &at, buffer, count, datatype, comm);
    if (packed != small)
        free(packed);
    return done;
}

int raddle_Bcast(void *buffer, int count, MPI_Datatype datatype, int root, MPI_Comm comm)
{
    struct known *entry = raddle_find(comm);
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
        if (direct ? raddle_collectives->run(entry->state, &call) : bcast_packed(entry, &call, buffer, count, datatype, comm))
            return MPI_SUCCESS;
    }
    int error = PMPI_Bcast(buffer, count, datatype, root, comm);
    if (verdict == RADDLE_PLAIN_TIMED)
        raddle_collectives->timed(entry->state);
    return error;
}

/* What we split off a communicator goes before it: MPI may not be called while its attributes are deleted. */
static void release(const MPI_Comm *comm)
{
    struct known *entry = comm == NULL ? NULL : raddle_known(*comm);
    if (entry != NULL)
        raddle_collectives->release(entry->state);
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
