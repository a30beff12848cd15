! Messages from Fortran: by `use mpi` (-DUSE_MPI) or by mpi_f08. Each rank sends 4-byte integers around the ring, and
! checks what comes. Prints "sent MESSAGES BYTES" of all ranks, and "wrong 0".
program messages
#ifdef USE_MPI
   use mpi
   implicit none
   integer :: comm, half, requests(4), status(MPI_STATUS_SIZE), statuses(MPI_STATUS_SIZE, 4), message
#else
   use mpi_f08
   implicit none
   type(MPI_Comm) :: comm, half
   type(MPI_Request) :: requests(4)
   type(MPI_Status) :: status, statuses(4)
   type(MPI_Message) :: message
#endif
   integer :: rank, size, next, before, wrong, error, round, sent, total, bytes, all_bytes, got, index, some, which(4)
   integer :: values(8), more(8), dims(1)
   logical :: flag, periods(1)

   call MPI_Init(error)
   call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
   call MPI_Comm_size(MPI_COMM_WORLD, size, error)
   next = mod(rank + 1, size)
   before = mod(rank + size - 1, size)
   wrong = 0
   sent = 0
   bytes = 0
   dims = [size]
   periods = [.true.]
   call MPI_Cart_create(MPI_COMM_WORLD, 1, dims, periods, .false., comm, error)
   call MPI_Comm_split(comm, mod(rank, 2), rank, half, error)
   do round = 1, 10
      ! Blocking, with a status.
      values = rank + round
      call MPI_Irecv(more, 8, MPI_INTEGER, MPI_ANY_SOURCE, round, comm, requests(1), error)
      call MPI_Send(values, round - 1 - (round - 1) / 8, MPI_INTEGER, next, round, comm, error)
      call count_sent(round - 1 - (round - 1) / 8)
      call MPI_Wait(requests(1), status, error)
      call expect_from(before, round)

      ! Without a status.
      call MPI_Isend(values, 2, MPI_INTEGER, next, 20, comm, requests(1), error)
      call count_sent(2)
      call MPI_Recv(more, 8, MPI_INTEGER, before, MPI_ANY_TAG, comm, MPI_STATUS_IGNORE, error)
      if (more(2) /= before + round) wrong = wrong + 1
      flag = .false.
      do while (.not. flag)
         call MPI_Test(requests(1), flag, MPI_STATUS_IGNORE, error)
      end do

      ! All, any, some.
      call start_two(3)
      call MPI_Waitall(4, requests, statuses, error)
      call start_two(4)
      call MPI_Waitall(4, requests, MPI_STATUSES_IGNORE, error)
      call start_two(5)
      do total = 1, 4
         call MPI_Waitany(4, requests, index, status, error)
         if (index < 1 .or. index > 4) wrong = wrong + 1
      end do
      call MPI_Waitany(4, requests, index, status, error)
      if (index > 0) wrong = wrong + 1 ! MPICH 4.0 adds one to MPI_UNDEFINED
      call start_two(6)
      total = 0
      do while (total < 4)
         call MPI_Waitsome(4, requests, some, which, statuses, error)
         if (any(which(1:some) < 1) .or. any(which(1:some) > 4)) wrong = wrong + 1
         total = total + some
      end do
      call start_two(7)
      flag = .false.
      do while (.not. flag)
         call MPI_Testall(4, requests, flag, statuses, error)
      end do

      ! Both ways, and a matched probe.
      call MPI_Sendrecv(values, 3, MPI_INTEGER, next, 30, more, 8, MPI_INTEGER, before, 30, comm, status, error)
      call count_sent(3)
      call expect_from(before, 30)
      call MPI_Isend(values, 4, MPI_INTEGER, next, 31, comm, requests(1), error)
      call count_sent(4)
      call MPI_Mprobe(before, 31, comm, message, status, error)
      call MPI_Mrecv(more, 8, MPI_INTEGER, message, status, error)
      call expect_from(before, 31)
      call MPI_Wait(requests(1), MPI_STATUS_IGNORE, error)
      got = 0
      call MPI_Allreduce(1, got, 1, MPI_INTEGER, MPI_SUM, half, error)
      if (got /= (size + 1 - mod(rank, 2)) / 2) wrong = wrong + 1
   end do

   ! Persistent.
   call MPI_Recv_init(more, 8, MPI_INTEGER, before, 40, comm, requests(1), error)
   call MPI_Send_init(values, 5, MPI_INTEGER, next, 40, comm, requests(2), error)
   do round = 1, 3
      values = rank + round
      call MPI_Startall(2, requests, error)
      call count_sent(5)
      call MPI_Waitall(2, requests, MPI_STATUSES_IGNORE, error)
      if (more(5) /= before + round) wrong = wrong + 1
   end do
   call MPI_Request_free(requests(1), error)
   call MPI_Request_free(requests(2), error)
   if (requests(1) /= MPI_REQUEST_NULL) wrong = wrong + 1
   call MPI_Comm_free(half, error)
   call MPI_Comm_free(comm, error)

   call MPI_Allreduce(wrong, got, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
   call MPI_Allreduce(sent, total, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
   call MPI_Allreduce(bytes, all_bytes, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, error)
   if (rank == 0) print '(a,i0,a,i0)', 'sent ', total, ' ', all_bytes
   if (rank == 0) print '(a,i0)', 'wrong ', got
   call MPI_Finalize(error)

contains

   subroutine count_sent(integers)
      integer, intent(in) :: integers
      sent = sent + 1
      bytes = bytes + 4 * integers
   end subroutine

   subroutine expect_from(source, tag)
      integer, intent(in) :: source, tag
#ifdef USE_MPI
      if (status(MPI_SOURCE) /= source .or. status(MPI_TAG) /= tag) wrong = wrong + 1
#else
      if (status%MPI_SOURCE /= source .or. status%MPI_TAG /= tag) wrong = wrong + 1
#endif
      call MPI_Get_count(status, MPI_INTEGER, got, error)
      if (got > 0) then
         if (more(1) /= source + round) wrong = wrong + 1
      end if
   end subroutine

   ! Two receives and two sends.
   subroutine start_two(tag)
      integer, intent(in) :: tag
      call MPI_Irecv(more, 4, MPI_INTEGER, before, tag, comm, requests(1), error)
      call MPI_Irecv(more(5), 4, MPI_INTEGER, before, tag, comm, requests(2), error)
      call MPI_Isend(values, 1, MPI_INTEGER, next, tag, comm, requests(3), error)
      call MPI_Issend(values, 4, MPI_INTEGER, next, tag, comm, requests(4), error)
      call count_sent(1)
      call count_sent(4)
   end subroutine
end program messages
