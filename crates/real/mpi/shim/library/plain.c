/* Plain MPI for the core. */
#include "library/library.h"

static MPI_Comm comm_of(uintptr_t number)
{
    return (MPI_Comm)number;
}

static int plain_allgather(uintptr_t comm, const void *mine, void *all, int bytes_each)
{
    return PMPI_Allgather(mine, bytes_each, MPI_BYTE, all, bytes_each, MPI_BYTE, comm_of(comm));
}

static int plain_gather(uintptr_t comm, const void *mine, void *all, int bytes_each, int root)
{
    return PMPI_Gather(mine, bytes_each, MPI_BYTE, all, bytes_each, MPI_BYTE, root, comm_of(comm));
}

static int plain_gatherv(uintptr_t comm, const void *mine, int bytes, void *all, const int *lengths, const int *offsets, int root)
{
    return PMPI_Gatherv(mine, bytes, MPI_BYTE, all, lengths, offsets, MPI_BYTE, root, comm_of(comm));
}

static int plain_bcast(uintptr_t comm, void *data, int bytes, int root)
{
    return PMPI_Bcast(data, bytes, MPI_BYTE, root, comm_of(comm));
}

static int plain_barrier(uintptr_t comm)
{
    return PMPI_Barrier(comm_of(comm));
}

/* Only on communicators of ours: the tag meets no message of the program. */
static int plain_send(uintptr_t comm, const void *data, int bytes, int to)
{
    return PMPI_Send(data, bytes, MPI_BYTE, to, 1, comm_of(comm));
}

static int plain_receive(uintptr_t comm, void *data, int bytes, int from)
{
    return PMPI_Recv(data, bytes, MPI_BYTE, from, 1, comm_of(comm), MPI_STATUS_IGNORE);
}

static int plain_least(uintptr_t comm, int32_t mine, int32_t *least)
{
    return PMPI_Allreduce(&mine, least, 1, MPI_INT32_T, MPI_MIN, comm_of(comm));
}

static int plain_sum(uintptr_t comm, const double *mine, double *sums, int count)
{
    /* Not Allreduce: MPI only recommends that all ranks get the same bits from it. */
    int error = PMPI_Reduce(mine, sums, count, MPI_DOUBLE, MPI_SUM, 0, comm_of(comm));
    return error != MPI_SUCCESS ? error : PMPI_Bcast(sums, count, MPI_DOUBLE, 0, comm_of(comm));
}

static int plain_split(uintptr_t comm, int colour, int key, uintptr_t *part)
{
    MPI_Comm made = MPI_COMM_NULL;
    int error = PMPI_Comm_split(comm_of(comm), colour, key, &made);
    *part = (uintptr_t)made;
    return error;
}

static int plain_free(uintptr_t comm)
{
    MPI_Comm freed = comm_of(comm);
    return freed == MPI_COMM_NULL ? 0 : PMPI_Comm_free(&freed);
}

static int plain_reduce(uintptr_t comm, uint8_t collective, uint8_t operation, uintptr_t type, const void *mine, void *result, int count, int root)
{
    MPI_Op op = raddle_operation_of(operation);
    MPI_Datatype datatype = (MPI_Datatype)type;
    if (collective == RADDLE_REDUCE)
        return PMPI_Reduce(mine, result, count, datatype, op, root, comm_of(comm));
    return PMPI_Allreduce(mine, result, count, datatype, op, comm_of(comm));
}

static int plain_reduce_local(uint8_t operation, uintptr_t type, const void *in, void *inout, int count)
{
    return PMPI_Reduce_local(in, inout, count, (MPI_Datatype)type, raddle_operation_of(operation));
}

static int self_rank; /* in MPI_COMM_WORLD */

static void plain_progress(void)
{
    /* A message of this process to itself with a tag that is not used: looking for it makes the library look after all its messages. */
    int found;
    PMPI_Iprobe(self_rank, 32767, MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE);
}

void raddle_plain_prepare(void)
{
    int initialised = 0;
    if (PMPI_Initialized(&initialised) == MPI_SUCCESS && initialised)
        PMPI_Comm_rank(MPI_COMM_WORLD, &self_rank);
}

const struct raddle_plain raddle_plain_calls = {
    .allgather = plain_allgather,
    .gather = plain_gather,
    .gatherv = plain_gatherv,
    .bcast = plain_bcast,
    .barrier = plain_barrier,
    .send = plain_send,
    .receive = plain_receive,
    .least = plain_least,
    .sum = plain_sum,
    .split = plain_split,
    .free = plain_free,
    .reduce = plain_reduce,
    .reduce_local = plain_reduce_local,
    .progress = plain_progress,
};
