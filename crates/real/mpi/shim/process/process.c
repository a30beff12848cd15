/* The process from MPI_Init to MPI_Finalize. */
#include "functions.h"
#include "messages/messages.h"

static void initialised(void)
{
    raddle_process->initialised();
    /* The recorder comes first: it numbers communicators when they are first seen. */
    if (raddle_recorder == NULL)
        raddle_agree_world();
}

int raddle_Init(int *argc, char ***argv)
{
    int error = PMPI_Init(argc, argv);
    if (error == MPI_SUCCESS)
        initialised();
    return error;
}

int raddle_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int error = PMPI_Init_thread(argc, argv, required, provided);
    if (error == MPI_SUCCESS)
        initialised();
    return error;
}

int raddle_Finalize(void)
{
    int finalized = 0, initialised = 0, rank = 0, size = 0;
    PMPI_Finalized(&finalized);
    PMPI_Initialized(&initialised);
    if (initialised && !finalized && PMPI_Comm_rank(MPI_COMM_WORLD, &rank) == MPI_SUCCESS &&
        PMPI_Comm_size(MPI_COMM_WORLD, &size) == MPI_SUCCESS) {
        raddle_end_messages();
        raddle_process->finalize((uintptr_t)MPI_COMM_WORLD, rank, size);
    }
    raddle_forget_all();
    return PMPI_Finalize();
}
