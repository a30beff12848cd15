/* Calls that complete requests: the superstep ends, the library waits or tests, and we add what it cannot know. */
#include "messages/messages.h"

struct failure raddle_failure;

int raddle_error(MPI_Comm comm, int error)
{
    PMPI_Comm_call_errhandler(comm == MPI_COMM_NULL ? MPI_COMM_WORLD : comm, error);
    return error;
}

static void begin_own_wait(void)
{
    raddle_failure.error = MPI_SUCCESS;
    raddle_flush();
}

static void begin_wait(int count, const MPI_Request requests[])
{
    begin_own_wait();
    raddle_hand_over(count, requests);
    raddle_before_wait(count, requests);
}

/* A test looks at our own requests first: the library looks at them only after it has looked at the program's. */
static void begin_own_test(void)
{
    raddle_failure.error = MPI_SUCCESS;
    if (raddle_awake)
        raddle_poll();
    else
        raddle_flush();
}

static void begin_test(int count, const MPI_Request requests[])
{
    begin_own_test();
    raddle_hand_over(count, requests);
    raddle_before_wait(count, requests);
}

/* Calls the error handler of a receive that failed: as the library sees it, it belongs to no communicator. */
static int fail(void)
{
    return raddle_error(raddle_failure.comm, raddle_failure.error);
}

/* Says in a status that its receive failed; 1: it did. */
static int mark(MPI_Status *status)
{
    if (status->MPI_SOURCE > RADDLE_FAILED)
        return 0;
    status->MPI_SOURCE = RADDLE_FAILED - status->MPI_SOURCE;
    status->MPI_ERROR = raddle_failure.error;
    return 1;
}

static int end_one(int error, MPI_Status *status)
{
    if (raddle_failure.error == MPI_SUCCESS)
        return error;
    if (status != MPI_STATUS_IGNORE)
        mark(status);
    return fail();
}

static int end_several(int error, int count, MPI_Status statuses[])
{
    if (raddle_failure.error == MPI_SUCCESS)
        return error;
    for (int at = 0; statuses != MPI_STATUSES_IGNORE && at < count; at++)
        if (!mark(&statuses[at]) && error == MPI_SUCCESS)
            statuses[at].MPI_ERROR = MPI_SUCCESS;
    fail();
    return MPI_ERR_IN_STATUS;
}

static inline void report(MPI_Request request, MPI_Status *status)
{
    if (raddle_persistent_count > 0)
        raddle_persistent_status(request, status, 1);
}

static void report_all(int count, const MPI_Request requests[], MPI_Status statuses[])
{
    for (int at = 0; raddle_persistent_count > 0 && at < count; at++)
        raddle_persistent_status(requests[at], statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[at], 1);
}

static void report_some(int count, const MPI_Request requests[], const int which[], MPI_Status statuses[])
{
    if (raddle_persistent_count == 0 || count == MPI_UNDEFINED)
        return;
    for (int at = 0; at < count; at++)
        raddle_persistent_status(requests[which[at]], statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[at], 1);
}

static void wait_for(const struct receive *receive)
{
    while (!receive->done)
        raddle_poll();
}

static int end_own(struct receive *receive, MPI_Request *request, MPI_Status *status)
{
    *request = MPI_REQUEST_NULL;
    raddle_take_request(receive);
    raddle_end_receive(receive, status);
    return end_one(MPI_SUCCESS, status);
}

int matching_Wait(MPI_Request *request, MPI_Status *status)
{
    struct receive *receive = request == NULL ? NULL : raddle_receive_of(*request);
    if (receive != NULL) {
        begin_own_wait();
        wait_for(receive);
        return end_own(receive, request, status);
    }
    begin_wait(request == NULL ? 0 : 1, request);
    int error = PMPI_Wait(request, status);
    raddle_after_wait(request);
    if (error == MPI_SUCCESS)
        report(*request, status);
    return end_one(error, status);
}

int matching_Test(MPI_Request *request, int *flag, MPI_Status *status)
{
    struct receive *receive = request == NULL || flag == NULL ? NULL : raddle_receive_of(*request);
    if (receive != NULL) {
        begin_own_test();
        *flag = receive->done;
        return *flag ? end_own(receive, request, status) : MPI_SUCCESS;
    }
    begin_test(request == NULL ? 0 : 1, request);
    int error = PMPI_Test(request, flag, status);
    raddle_after_wait(request);
    if (error == MPI_SUCCESS && *flag)
        report(*request, status);
    return end_one(error, status);
}

int matching_Waitany(int count, MPI_Request requests[], int *index, MPI_Status *status)
{
    begin_wait(count, requests);
    int error = PMPI_Waitany(count, requests, index, status);
    raddle_after_wait(requests);
    if (error == MPI_SUCCESS && *index != MPI_UNDEFINED)
        report(requests[*index], status);
    return end_one(error, status);
}

int matching_Testany(int count, MPI_Request requests[], int *index, int *flag, MPI_Status *status)
{
    begin_test(count, requests);
    int error = PMPI_Testany(count, requests, index, flag, status);
    raddle_after_wait(requests);
    if (error == MPI_SUCCESS && *flag && *index != MPI_UNDEFINED)
        report(requests[*index], status);
    return end_one(error, status);
}

/* Waits for our receives among these requests, which are none any more, as sends that are complete. Gives the receives. */
static struct receive *wait_for_ours(int count, MPI_Request requests[], int *others)
{
    struct receive *first = NULL, **last = &first;
    for (int at = 0; at < count; at++) {
        int is_sent = requests[at] == raddle_sent;
        struct receive *receive = is_sent ? NULL : raddle_receive_of(requests[at]);
        if (receive == NULL && !is_sent) {
            *others += requests[at] != MPI_REQUEST_NULL;
            continue;
        }
        /* A program that names a request twice, against the rules, waits for it once. */
        if (receive != NULL && !receive->in_wait) {
            receive->in_wait = 1;
            receive->place = at;
            *last = receive;
            last = &receive->after;
        }
        requests[at] = MPI_REQUEST_NULL;
    }
    *last = NULL;
    for (struct receive *receive = first; receive != NULL; receive = receive->after) {
        wait_for(receive);
        raddle_take_request(receive);
    }
    return first;
}

/* The library waits for its own requests, if there are any. */
static int wait_for_others(int others, int count, MPI_Request requests[], MPI_Status statuses[])
{
    if (others > 0) {
        raddle_before_wait(count, requests);
        int error = PMPI_Waitall(count, requests, statuses);
        raddle_after_wait(requests);
        return error;
    }
    for (int at = 0; statuses != MPI_STATUSES_IGNORE && at < count; at++)
        raddle_fill_status(&statuses[at], MPI_ANY_SOURCE, MPI_ANY_TAG, 0, 0);
    return MPI_SUCCESS;
}

int matching_Waitall(int count, MPI_Request requests[], MPI_Status statuses[])
{
    begin_own_wait();
    /* Without receives of ours the library does it all, and judges these arguments. */
    int others = raddle_receives == 0 || requests == NULL || count <= 0;
    struct receive *receive = others ? NULL : wait_for_ours(count, requests, &others);
    int error = wait_for_others(others, count, requests, statuses);
    for (struct receive *next; receive != NULL; receive = next) {
        next = receive->after;
        raddle_end_receive(receive, statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[receive->place]);
    }
    if (error == MPI_SUCCESS || error == MPI_ERR_IN_STATUS)
        report_all(count, requests, statuses);
    return end_several(error, count, statuses);
}

int matching_Testall(int count, MPI_Request requests[], int *flag, MPI_Status statuses[])
{
    begin_test(count, requests);
    int error = PMPI_Testall(count, requests, flag, statuses);
    raddle_after_wait(requests);
    if (error == MPI_ERR_IN_STATUS || (error == MPI_SUCCESS && *flag))
        report_all(count, requests, statuses);
    return end_several(error, count, statuses);
}

int matching_Waitsome(int count, MPI_Request requests[], int *outcount, int indices[], MPI_Status statuses[])
{
    begin_wait(count, requests);
    int error = PMPI_Waitsome(count, requests, outcount, indices, statuses);
    raddle_after_wait(requests);
    if (error == MPI_SUCCESS || error == MPI_ERR_IN_STATUS)
        report_some(*outcount, requests, indices, statuses);
    return end_several(error, *outcount, statuses);
}

int matching_Testsome(int count, MPI_Request requests[], int *outcount, int indices[], MPI_Status statuses[])
{
    begin_test(count, requests);
    int error = PMPI_Testsome(count, requests, outcount, indices, statuses);
    raddle_after_wait(requests);
    if (error == MPI_SUCCESS || error == MPI_ERR_IN_STATUS)
        report_some(*outcount, requests, indices, statuses);
    return end_several(error, *outcount, statuses);
}

int matching_Request_get_status(MPI_Request request, int *flag, MPI_Status *status)
{
    begin_test(0, NULL);
    int error = PMPI_Request_get_status(request, flag, status);
    if (error == MPI_SUCCESS && *flag && raddle_persistent_count > 0)
        raddle_persistent_status(request, status, 0);
    return end_one(error, status);
}
