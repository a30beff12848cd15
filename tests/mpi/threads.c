/* Threads of a rank that send at the same time, on a communicator that none of them has used before. Prints "sent N wrong
 * W" of all ranks; exits 1 if W > 0.
 *
 * usage: threads MESSAGES */
#include <mpi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS = 4 };

static MPI_Comm comm;
static long messages;
static int rank, size;
static atomic_long wrong;

static void *work(void *number)
{
    int tag = (int)(long)number, peer = (rank + 1) % size, before = (rank + size - 1) % size;
    for (long at = 0; at < messages; at++) {
        long value = at * THREADS + tag, got = -1;
        MPI_Request requests[2];
        MPI_Status status;
        MPI_Irecv(&got, 1, MPI_LONG, MPI_ANY_SOURCE, tag, comm, &requests[0]);
        MPI_Isend(&value, 1, MPI_LONG, peer, tag, comm, &requests[1]);
        MPI_Wait(&requests[0], &status);
        MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
        if (got != value || status.MPI_SOURCE != before)
            wrong++;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    int provided;
    long all = 0, mine;
    pthread_t threads[THREADS];
    messages = argc > 1 ? atol(argv[1]) : 1000;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (provided < MPI_THREAD_MULTIPLE)
        messages = 0;
    PMPI_Comm_dup(MPI_COMM_WORLD, &comm);
    for (long at = 0; at < THREADS && messages > 0; at++)
        pthread_create(&threads[at], NULL, work, (void *)at);
    for (int at = 0; at < THREADS && messages > 0; at++)
        pthread_join(threads[at], NULL);
    mine = wrong;
    PMPI_Allreduce(&mine, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0)
        printf("sent %ld wrong %ld\n", messages * THREADS * size, all);
    MPI_Comm_free(&comm);
    MPI_Finalize();
    return all > 0;
}
