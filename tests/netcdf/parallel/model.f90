! SPDX-License-Identifier: LGPL-3.0-or-later
! A model on several ranks, each of which has a band of latitudes:
!     model PATH FORMAT        FORMAT: nc4, cdf5
! It writes time steps, adds a variable later, opens the file again to append and reads all back.
! Every rank prints what it read.
program model
    use mpi
    use netcdf
    implicit none
    integer, parameter :: lons = 12, rows = 3
    character(len=200) :: path, kind
    integer :: rank, ranks, ierr, ncid, step

    call MPI_Init(ierr)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
    call get_command_argument(1, path)
    call get_command_argument(2, kind)

    call make()
    do step = 1, 3
        call write_step(step)
    end do
    call ok(nf90_sync(ncid), 'sync')
    call add_variable()
    call ok(nf90_close(ncid), 'close')

    call ok(nf90_open_par(trim(path), nf90_write, MPI_COMM_WORLD, MPI_INFO_NULL, ncid), 'append')
    call write_step(4)
    call ok(nf90_close(ncid), 'close')
    call read_back()
    call MPI_Finalize(ierr)

contains

    subroutine ok(status, what)
        integer, intent(in) :: status
        character(len=*), intent(in) :: what
        integer :: ignored
        if (status /= nf90_noerr) then
            print *, 'rank ', rank, ': ', what, ': ', trim(nf90_strerror(status))
            call MPI_Abort(MPI_COMM_WORLD, 1, ignored)
        end if
    end subroutine ok

    subroutine make()
        integer :: dims(3), varid, lat, mode
        real(8) :: values(rows)
        integer :: i
        if (kind == 'nc4') then
            mode = ior(nf90_netcdf4, nf90_clobber)
            call ok(nf90_create(trim(path), mode, ncid, comm=MPI_COMM_WORLD, info=MPI_INFO_NULL), 'create')
        else
            mode = ior(nf90_64bit_data, nf90_clobber)
            call ok(nf90_create_par(trim(path), mode, MPI_COMM_WORLD, MPI_INFO_NULL, ncid), 'create_par')
        end if
        call ok(nf90_def_dim(ncid, 'lon', lons, dims(1)), 'lon')
        call ok(nf90_def_dim(ncid, 'lat', rows * ranks, dims(2)), 'lat')
        call ok(nf90_def_dim(ncid, 'time', nf90_unlimited, dims(3)), 'time')
        call ok(nf90_def_var(ncid, 'lat', nf90_double, dims(2), lat), 'lat')
        call ok(nf90_put_att(ncid, lat, 'units', 'degrees_north'), 'units')
        if (kind == 'nc4') then
            call ok(nf90_def_var(ncid, 'tas', nf90_float, dims, varid, chunksizes=(/lons, rows, 1/), &
                deflate_level=1, shuffle=.true.), 'tas')
        else
            call ok(nf90_def_var(ncid, 'tas', nf90_float, dims, varid), 'tas')
        end if
        call ok(nf90_put_att(ncid, varid, '_FillValue', 1e20), 'fill')
        call ok(nf90_put_att(ncid, varid, 'valid_range', (/0.0, 500.0/)), 'range')
        call ok(nf90_put_att(ncid, nf90_global, 'title', 'on several ranks'), 'title')
        call ok(nf90_enddef(ncid), 'enddef')
        do i = 1, rows
            values(i) = -90.0d0 + 10.0d0 * (rank * rows + i)
        end do
        call ok(nf90_put_var(ncid, lat, values, start=(/rank * rows + 1/)), 'put lat')
    end subroutine make

    subroutine write_step(step)
        integer, intent(in) :: step
        integer :: varid, i, k
        real :: field(lons, rows)
        call ok(nf90_inq_varid(ncid, 'tas', varid), 'tas')
        call ok(nf90_var_par_access(ncid, varid, nf90_collective), 'collective')
        do k = 1, rows
            do i = 1, lons
                field(i, k) = 270.0 + step + 0.5 * i + 0.25 * (rank * rows + k)
            end do
        end do
        call ok(nf90_put_var(ncid, varid, field, start=(/1, rank * rows + 1, step/), &
            count=(/lons, rows, 1/)), 'put tas')
    end subroutine write_step

    subroutine add_variable()
        integer :: lat, varid, i
        integer :: values(rows)
        call ok(nf90_redef(ncid), 'redef')
        call ok(nf90_inq_dimid(ncid, 'lat', lat), 'lat')
        call ok(nf90_def_var(ncid, 'owner', nf90_int, (/lat/), varid), 'owner')
        call ok(nf90_enddef(ncid), 'enddef')
        call ok(nf90_var_par_access(ncid, varid, nf90_independent), 'independent')
        values = (/(rank, i = 1, rows)/)
        if (mod(rank, 2) == 0) call ok(nf90_put_var(ncid, varid, values, start=(/rank * rows + 1/)), 'put owner')
        if (mod(rank, 2) == 1) then
            do i = 1, rows
                call ok(nf90_put_var(ncid, varid, rank, start=(/rank * rows + i/)), 'put owner')
            end do
        end if
    end subroutine add_variable

    subroutine read_back()
        integer :: varid, steps, dimid, turn
        real, allocatable :: series(:, :)
        integer :: owners(rows * ranks)
        call ok(nf90_open(trim(path), nf90_nowrite, ncid, comm=MPI_COMM_WORLD, info=MPI_INFO_NULL), 'open')
        call ok(nf90_inq_dimid(ncid, 'time', dimid), 'time')
        call ok(nf90_inquire_dimension(ncid, dimid, len=steps), 'length')
        allocate (series(rows * ranks, steps))
        call ok(nf90_inq_varid(ncid, 'tas', varid), 'tas')
        call ok(nf90_var_par_access(ncid, varid, nf90_collective), 'collective')
        call ok(nf90_get_var(ncid, varid, series, start=(/rank + 1, 1, 1/), &
            count=(/1, rows * ranks, steps/)), 'get tas')
        call ok(nf90_inq_varid(ncid, 'owner', varid), 'owner')
        call ok(nf90_get_var(ncid, varid, owners), 'get owner')
        call ok(nf90_close(ncid), 'close')
        do turn = 0, ranks - 1
            if (turn == rank) then
                print *, 'rank', rank, 'steps', steps, 'sum', sum(dble(series)), 'owners', owners
                flush (6)
            end if
            call MPI_Barrier(MPI_COMM_WORLD, ierr)
        end do
    end subroutine read_back
end program model
