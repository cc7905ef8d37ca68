! SPDX-License-Identifier: LGPL-3.0-or-later
! Writes a file by MPI in Fortran, with the modules mpi and mpi_f08: 5 collective calls and 3 independent ones each.
program mpi_files
  implicit none
  character(len=1000) :: path
  call get_command_argument(1, path)
  call with_integers(trim(path) // '.old')
  call with_types(trim(path) // '.f08')
contains
  subroutine with_integers(name)
    use mpi
    character(len=*), intent(in) :: name
    integer :: file, rank, ierr, step
    integer :: values(100)
    call mpi_init(ierr)
    call mpi_comm_rank(mpi_comm_world, rank, ierr)
    values = rank
    call mpi_file_open(mpi_comm_world, name, mpi_mode_create + mpi_mode_wronly, mpi_info_null, file, ierr)
    do step = 0, 4
      call mpi_file_write_at_all(file, int((step * 4 + rank) * 400, mpi_offset_kind), values, 100, mpi_integer, &
                                 mpi_status_ignore, ierr)
    end do
    do step = 5, 7
      call mpi_file_write_at(file, int((step * 4 + rank) * 400, mpi_offset_kind), values, 100, mpi_integer, &
                             mpi_status_ignore, ierr)
    end do
    call mpi_file_close(file, ierr)
  end subroutine

  subroutine with_types(name)
    use mpi_f08
    character(len=*), intent(in) :: name
    type(mpi_file) :: file
    integer :: rank, step
    integer :: values(100)
    call mpi_comm_rank(mpi_comm_world, rank)
    values = rank
    call mpi_file_open(mpi_comm_world, name, mpi_mode_create + mpi_mode_wronly, mpi_info_null, file)
    do step = 0, 4
      call mpi_file_write_at_all(file, int((step * 4 + rank) * 400, mpi_offset_kind), values, 100, mpi_integer, &
                                 mpi_status_ignore)
    end do
    do step = 5, 7
      call mpi_file_write_at(file, int((step * 4 + rank) * 400, mpi_offset_kind), values, 100, mpi_integer, &
                             mpi_status_ignore)
    end do
    call mpi_file_close(file)
    call mpi_finalize()
  end subroutine
end program
