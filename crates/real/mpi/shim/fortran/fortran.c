/* What Fortran passes, in C's words. */
#include <stdlib.h>

#include "fortran/fortran.h"

enum { FEW_REQUESTS = sizeof((struct raddle_requests){0}).few / sizeof(MPI_Request) };

void raddle_requests_in(struct raddle_requests *requests, const MPI_Fint *from, int count)
{
    requests->all = requests->few;
    if (count > FEW_REQUESTS)
        requests->all = malloc((size_t)count * sizeof(MPI_Request));
    /* As the libraries do where they have no room for this. */
    if (requests->all == NULL)
        PMPI_Abort(MPI_COMM_WORLD, MPI_ERR_NO_MEM);
    for (int at = 0; at < count; at++)
        requests->all[at] = PMPI_Request_f2c(from[at]);
}

void raddle_requests_out(struct raddle_requests *requests, MPI_Fint *to, int count)
{
    for (int at = 0; at < count; at++)
        to[at] = PMPI_Request_c2f(requests->all[at]);
    if (requests->all != requests->few)
        free(requests->all);
}

void raddle_from_one(int result, int *indices, int count)
{
    if (result != MPI_SUCCESS && result != MPI_ERR_IN_STATUS)
        return;
    for (int at = 0; at < count; at++)
        indices[at]++;
}

void (*raddle_own(_Atomic(void (*)(void)) *own, const char *mpif, const char *mpi_f08))(void)
{
    void (*function)(void) = atomic_load_explicit(own, memory_order_relaxed);
    if (function == NULL) {
        function = raddle_process->own(RADDLE_LIBRARY == RADDLE_OPEN_MPI ? mpif : mpi_f08);
        /* It stands in the library beside the one that the program called. */
        if (function == NULL)
            PMPI_Abort(MPI_COMM_WORLD, MPI_ERR_INTERN);
        atomic_store_explicit(own, function, memory_order_relaxed);
    }
    return function;
}

int raddle_true(void)
{
    static _Atomic int known;
    int value = atomic_load_explicit(&known, memory_order_relaxed);
    if (value == 0) {
        /* That MPI was initialised is true. */
        MPI_Fint flag = 1, error = 0;
        void (*initialised)(void) = raddle_process->own("mpi_initialized_");
        if (initialised != NULL)
            ((void (*)(MPI_Fint *, MPI_Fint *))initialised)(&flag, &error);
        value = flag == 0 ? 1 : flag;
        atomic_store_explicit(&known, value, memory_order_relaxed);
    }
    return value;
}
