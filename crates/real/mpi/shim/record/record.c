/* The recorder's functions that are not generated: start and end of the program, and notes too long for a macro. */
#include <stdlib.h>

#include "functions.h"
#include "messages/messages.h"
#include "record/record.h"

/* The program's ranks in MPI_COMM_WORLD; NULL if one is not in there. */
static int32_t *ranks_of(MPI_Group group, MPI_Group world, int *size)
{
    if (PMPI_Group_size(group, size) != MPI_SUCCESS)
        return NULL;
    size_t count = (size_t)*size;
    int *own = malloc((count + 1) * sizeof *own);
    int32_t *ranks = malloc((count + 1) * sizeof *ranks);
    int known = own != NULL && ranks != NULL;
    for (size_t at = 0; known && at < count; at++)
        own[at] = (int)at;
    known = known && PMPI_Group_translate_ranks(group, *size, own, world, ranks) == MPI_SUCCESS;
    for (size_t at = 0; known && at < count; at++)
        known = ranks[at] != MPI_UNDEFINED;
    free(own);
    if (known)
        return ranks;
    free(ranks);
    return NULL;
}

int32_t raddle_number_of(MPI_Comm comm, int inter)
{
    MPI_Group world = MPI_GROUP_NULL, local = MPI_GROUP_NULL, remote = MPI_GROUP_NULL;
    int size = 0, remote_size = 0;
    int32_t *members = NULL, *others = NULL, number = -1;
    if (PMPI_Comm_group(MPI_COMM_WORLD, &world) == MPI_SUCCESS && PMPI_Comm_group(comm, &local) == MPI_SUCCESS)
        members = ranks_of(local, world, &size);
    if (members != NULL && inter && PMPI_Comm_remote_group(comm, &remote) == MPI_SUCCESS)
        others = ranks_of(remote, world, &remote_size);
    if (members != NULL && (!inter || others != NULL))
        number = raddle_recorder->communicator(members, (size_t)size, others, (size_t)remote_size);
    free(members);
    free(others);
    MPI_Group *all[] = {&world, &local, &remote};
    for (size_t at = 0; at < 3; at++)
        if (*all[at] != MPI_GROUP_NULL)
            PMPI_Group_free(all[at]);
    return number;
}

int raddle_threads;

static void open_recording(void)
{
    int rank = 0, size = 0, level = MPI_THREAD_SINGLE;
    PMPI_Query_thread(&level);
    raddle_threads = level == MPI_THREAD_MULTIPLE;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    raddle_recorder->open(rank, size);
    uint64_t begun = raddle_recorder->clock();
    raddle_find(MPI_COMM_WORLD);
    raddle_agree_world();
    note_pass();
}

int record_Init(int *argc, char ***argv)
{
    int error = raddle_Init(argc, argv);
    if (error == MPI_SUCCESS)
        open_recording();
    return error;
}

int record_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int error = raddle_Init_thread(argc, argv, required, provided);
    if (error == MPI_SUCCESS)
        open_recording();
    return error;
}

int record_Finalize(void)
{
    raddle_recorder->close(1);
    return raddle_Finalize();
}

int record_Abort(MPI_Comm comm, int errorcode)
{
    raddle_recorder->close(0);
    return PMPI_Abort(comm, errorcode);
}

void hold(struct held *held, int count, const MPI_Request requests[], int needs_statuses)
{
    size_t number = count < 0 || requests == NULL ? 0 : (size_t)count;
    held->count = (int)number;
    held->requests = number <= FEW ? held->few : malloc(number * sizeof *held->requests);
    held->statuses = NULL;
    if (needs_statuses)
        held->statuses = number <= FEW ? held->few_statuses : malloc(number * sizeof *held->statuses);
    if (held->requests == NULL || (needs_statuses && held->statuses == NULL)) {
        /* Without knowing what became of requests there is nothing more to record. */
        raddle_recorder->close(0);
        held->count = 0;
        return;
    }
    for (size_t at = 0; at < number; at++)
        held->requests[at] = raddle_before((uintptr_t)requests[at]);
}

void let_go(struct held *held, const MPI_Request requests[])
{
    for (int at = 0; raddle_threads && at < held->count; at++)
        if (requests[at] != MPI_REQUEST_NULL)
            raddle_after(held->requests[at], (uintptr_t)requests[at]);
    if (held->requests != held->few)
        free(held->requests);
    if (held->statuses != held->few_statuses)
        free(held->statuses);
}

void raddle_matched(const void *status, struct raddle_matched *matched)
{
    const MPI_Status *of = status;
    MPI_Count long_count = 0;
    int count = 0, cancelled = 0;
    PMPI_Test_cancelled(of, &cancelled);
    matched->cancelled = (uint8_t)(cancelled != 0);
    matched->source = of->MPI_SOURCE;
    matched->tag = of->MPI_TAG;
    matched->bytes = 0;
    if (cancelled)
        return;
    if (PMPI_Get_count(of, MPI_BYTE, &count) == MPI_SUCCESS && count >= 0)
        matched->bytes = (uint64_t)count;
    else if (PMPI_Get_elements_x(of, MPI_BYTE, &long_count) == MPI_SUCCESS && long_count >= 0)
        matched->bytes = (uint64_t)long_count;
}

struct raddle_message raddle_received(const struct known *known, int source, int tag, const MPI_Status *status)
{
    struct raddle_matched matched;
    raddle_matched(status, &matched);
    struct raddle_message message = message_of(known, matched.bytes, source, tag);
    message.peer = matched.source;
    message.tag = matched.tag;
    return message;
}

void raddle_note_made(uint64_t begun, MPI_Comm comm)
{
    if (comm != MPI_COMM_NULL)
        raddle_find(comm);
    note_pass();
}

void raddle_note_receive(uint64_t begun, int error, int source, int tag, MPI_Comm comm, const MPI_Status *status)
{
    int kind = MPI_SUCCESS;
    if (error != MPI_SUCCESS)
        PMPI_Error_class(error, &kind);
    /* A message that was too long is gone as well. */
    int came = source != MPI_PROC_NULL && (kind == MPI_SUCCESS || kind == MPI_ERR_TRUNCATE);
    const struct known *known = came ? raddle_recorded(comm) : NULL;
    if (known == NULL) {
        note_pass();
        return;
    }
    struct raddle_message message = raddle_received(known, source, tag, status);
    raddle_recorder->receive(begun, &message, 0);
}

void raddle_note_start_receive(uint64_t begun, int source, int tag, MPI_Comm comm, uintptr_t request)
{
    const struct known *known = source == MPI_PROC_NULL ? NULL : raddle_recorded(comm);
    if (known == NULL) {
        note_pass();
        return;
    }
    struct raddle_message message = message_of(known, 0, source, tag);
    raddle_recorder->receive(begun, &message, request);
}

void raddle_note_persist_receive(uint64_t begun, int source, int tag, MPI_Comm comm, uintptr_t request)
{
    const struct known *known = source == MPI_PROC_NULL ? NULL : raddle_recorded(comm);
    if (known != NULL) {
        struct raddle_message message = message_of(known, 0, source, tag);
        raddle_recorder->persist(&message, 1, request);
    }
    note_pass();
}

void raddle_note_any(uint64_t begun, int error, const struct held *held, const int *index, const MPI_Status *status)
{
    int which = error != MPI_SUCCESS && index == NULL ? MPI_UNDEFINED : *index;
    if (which < 0 || which >= held->count)
        note_pass();
    else
        raddle_recorder->complete(begun, held->requests + which, NULL, status, 1);
}

void raddle_note_all(uint64_t begun, int error, int done, const struct held *held, const MPI_Status statuses[])
{
    int kind = MPI_SUCCESS;
    if (error != MPI_SUCCESS)
        PMPI_Error_class(error, &kind);
    if (!done || held->count == 0 || (kind != MPI_SUCCESS && kind != MPI_ERR_IN_STATUS)) {
        note_pass();
        return;
    }
    if (kind == MPI_SUCCESS) {
        raddle_recorder->complete(begun, held->requests, NULL, statuses, (size_t)held->count);
        return;
    }
    for (int at = 0; at < held->count; at++)
        if (statuses[at].MPI_ERROR != MPI_ERR_PENDING)
            raddle_recorder->complete(begun, held->requests + at, NULL, statuses + at, 1);
}

void raddle_note_some(uint64_t begun, int error, const struct held *held, const int *count, const int which[], const MPI_Status statuses[])
{
    int kind = MPI_SUCCESS;
    if (error != MPI_SUCCESS)
        PMPI_Error_class(error, &kind);
    int completed = kind == MPI_SUCCESS || kind == MPI_ERR_IN_STATUS ? *count : 0;
    /* Without requests that are active, the count is MPI_UNDEFINED, which is negative. */
    if (completed <= 0 || completed > held->count)
        note_pass();
    else
        raddle_recorder->complete(begun, held->requests, which, statuses, (size_t)completed);
}

uint64_t raddle_share_bytes(const struct shares *shares, int index)
{
    MPI_Count count = shares->counts != NULL ? shares->counts[index] : shares->large != NULL ? shares->large[index] : shares->count;
    return bytes(count, shares->types != NULL ? shares->types[index] : shares->type);
}

uint64_t raddle_total_bytes(const struct known *known, struct shares shares)
{
    uint64_t sum = 0;
    for (int at = 0; at < known->size; at++)
        sum += raddle_share_bytes(&shares, at);
    return sum;
}
