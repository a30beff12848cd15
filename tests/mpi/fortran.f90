! Intercepted collectives from Fortran: by `use mpi` or mpif.h (-DUSE_MPI) or by mpi_f08. The sums are whole numbers of
! known value. Prints "wrong 0".
program fortran
#ifdef USE_MPI
   use mpi
   implicit none
   integer :: comm
#else
   use mpi_f08
   implicit none
   type(MPI_Comm) :: comm
#endif
   integer :: rank, size, wrong, all, round, error, one, sum
   integer(kind=8) :: long, longs
   real :: single, singles
   double precision :: values(3), sums(3)
   logical :: mine, together

   call MPI_Init(error)
   call MPI_Comm_dup(MPI_COMM_WORLD, comm, error)
   call MPI_Comm_rank(comm, rank, error)
   call MPI_Comm_size(comm, size, error)
   wrong = 0
   do round = 1, 200
      one = round
      call MPI_Allreduce(one, sum, 1, MPI_INTEGER, MPI_SUM, comm, error)
      if (sum /= round * size) wrong = wrong + 1

      ! In place: the address of a Fortran constant, not of data.
      values = [1d0, dble(rank), dble(round)]
      call MPI_Allreduce(MPI_IN_PLACE, values, 3, MPI_DOUBLE_PRECISION, MPI_SUM, comm, error)
      if (any(values /= [dble(size), dble(size * (size - 1) / 2), dble(round * size)])) wrong = wrong + 1

      values = [1d0, dble(rank), dble(round)]
      sums = 0
      call MPI_Reduce(values, sums, 3, MPI_DOUBLE_PRECISION, MPI_MAX, mod(round, size), comm, error)
      if (rank == mod(round, size)) then
         if (any(sums /= [1d0, dble(size - 1), dble(round)])) wrong = wrong + 1
      end if

      values(1) = -1
      if (rank == mod(round, size)) values(1) = round
      call MPI_Bcast(values, 1, MPI_DOUBLE_PRECISION, mod(round, size), comm, error)
      if (values(1) /= round) wrong = wrong + 1

      long = rank + 1
      call MPI_Allreduce(long, longs, 1, MPI_INTEGER8, MPI_MAX, comm, error)
      if (longs /= size) wrong = wrong + 1

      single = real(rank)
      call MPI_Allreduce(single, singles, 1, MPI_REAL, MPI_MIN, comm, error)
      if (singles /= 0.0) wrong = wrong + 1

      mine = rank /= 0
      call MPI_Allreduce(mine, together, 1, MPI_LOGICAL, MPI_LAND, comm, error)
      if (together .and. size > 1) wrong = wrong + 1
      call MPI_Allreduce(mine, together, 1, MPI_LOGICAL, MPI_LOR, comm, error)
      if (.not. together .and. size > 1) wrong = wrong + 1

#ifdef USE_MPI
      call MPI_Barrier(comm, error)
#else
      call MPI_Barrier(comm) ! without the error, which mpi_f08 allows
#endif
   end do
   call MPI_Comm_free(comm, error)
   if (comm /= MPI_COMM_NULL) wrong = wrong + 1
   call MPI_Reduce(wrong, all, 1, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, error)
   if (rank == 0) print '(a,i0)', 'wrong ', all
   call MPI_Finalize(error)
end program fortran
