/* For Fortran's entry points, which build/fortran.rs makes: what Fortran passes, in C's words. */
#ifndef RADDLE_FORTRAN_H
#define RADDLE_FORTRAN_H

#include "library/library.h"

#if defined(OPEN_MPI)
extern int mpi_fortran_in_place_, mpi_fortran_bottom_, mpi_fortran_status_ignore_, mpi_fortran_statuses_ignore_;
#define FORTRAN_STATUS_IGNORE ((MPI_Fint *)&mpi_fortran_status_ignore_)
#define FORTRAN_STATUSES_IGNORE ((MPI_Fint *)&mpi_fortran_statuses_ignore_)

static inline void *raddle_buffer(char *address)
{
    if (address == (char *)&mpi_fortran_in_place_)
        return MPI_IN_PLACE;
    return address == (char *)&mpi_fortran_bottom_ ? MPI_BOTTOM : address;
}
#else
/* Only mpi_f08 comes here. */
#define FORTRAN_STATUS_IGNORE ((MPI_Fint *)MPI_F08_STATUS_IGNORE)
#define FORTRAN_STATUSES_IGNORE ((MPI_Fint *)MPI_F08_STATUSES_IGNORE)
#endif

/* Both libraries give a status in Fortran the layout of C's where a Fortran integer is an int. */
static inline MPI_Status *raddle_status(MPI_Fint *status)
{
    return status == FORTRAN_STATUS_IGNORE ? MPI_STATUS_IGNORE : (MPI_Status *)status;
}

static inline MPI_Status *raddle_statuses(MPI_Fint *statuses)
{
    return statuses == FORTRAN_STATUSES_IGNORE ? MPI_STATUSES_IGNORE : (MPI_Status *)statuses;
}

/* Handles of C while a call runs. */
struct raddle_requests {
    MPI_Request *all;
    MPI_Request few[32];
};
void raddle_requests_in(struct raddle_requests *requests, const MPI_Fint *from, int count);
/* Gives them back, and the room. */
void raddle_requests_out(struct raddle_requests *requests, MPI_Fint *to, int count);

/* Indices of a call that came back with `result`, as Fortran counts. */
void raddle_from_one(int result, int *indices, int count);
/* The compiler's .true., as the library knows it. */
int raddle_true(void);
/* The library's own function: `own`, or what it is set to; of Open MPI the one for mpif.h, of MPICH that of mpi_f08. */
void (*raddle_own(_Atomic(void (*)(void)) *own, const char *mpif, const char *mpi_f08))(void);

#endif
