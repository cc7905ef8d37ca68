! SPDX-License-Identifier: LGPL-3.0-or-later
! A small "model" with nf90 calls: writes restart-like and history-like output to the path given
! as its argument, appends to it, and reads it back. Knows nothing of ESDM.
program model
    use netcdf
    implicit none
    integer, parameter :: nx = 36, ny = 18, nz = 4, steps = 6
    character(len=1024) :: path
    integer :: ncid, dims(4), x_id, y_id, z_id, t_id, temp_id, time_id, mask_id, step
    integer :: i, j, length, format_number
    real :: temp(nx, ny, nz)
    real :: slice(nx, ny), series(steps + 1), strided(nx / 3, ny / 2)
    integer(selected_int_kind(2)) :: mask(nx, ny)
    double precision :: time(1), times(steps + 1)
    character(len=80) :: title

    call get_command_argument(1, path)

    call check(nf90_create(trim(path), ior(NF90_NETCDF4, NF90_CLOBBER), ncid))
    call check(nf90_def_dim(ncid, "x", nx, x_id))
    call check(nf90_def_dim(ncid, "y", ny, y_id))
    call check(nf90_def_dim(ncid, "z", nz, z_id))
    call check(nf90_def_dim(ncid, "time", NF90_UNLIMITED, t_id))
    dims = [x_id, y_id, z_id, t_id]
    call check(nf90_def_var(ncid, "time", NF90_DOUBLE, [t_id], time_id))
    call check(nf90_put_att(ncid, time_id, "units", "days since 1850-01-01"))
    call check(nf90_def_var(ncid, "temp", NF90_REAL, dims, temp_id, chunksizes=[nx, ny, nz, 1]))
    call check(nf90_put_att(ncid, temp_id, "units", "K"))
    call check(nf90_put_att(ncid, temp_id, "_FillValue", -1.0e10))
    call check(nf90_put_att(ncid, temp_id, "range", [180.0, 330.0]))
    call check(nf90_def_var(ncid, "mask", NF90_BYTE, [x_id, y_id], mask_id))
    call check(nf90_put_att(ncid, NF90_GLOBAL, "title", "a model's output"))
    call check(nf90_enddef(ncid))
    do j = 1, ny
        do i = 1, nx
            mask(i, j) = int(mod(i * j, 3), selected_int_kind(2))
        end do
    end do
    call check(nf90_put_var(ncid, mask_id, mask))
    do step = 1, steps
        call put_step(step)
        if (mod(step, 3) == 0) call check(nf90_sync(ncid))
    end do
    call check(nf90_close(ncid))

    call check(nf90_open(trim(path), NF90_WRITE, ncid))
    call check(nf90_inq_varid(ncid, "temp", temp_id))
    call check(nf90_inq_varid(ncid, "time", time_id))
    call put_step(steps + 1)
    call check(nf90_redef(ncid))
    call check(nf90_put_att(ncid, NF90_GLOBAL, "history", "appended one step"))
    call check(nf90_enddef(ncid))
    call check(nf90_close(ncid))

    call check(nf90_open(trim(path), NF90_NOWRITE, ncid))
    call check(nf90_inquire(ncid, unlimitedDimId=t_id, formatNum=format_number))
    call check(nf90_inquire_dimension(ncid, t_id, len=length))
    print *, "steps", length, "format", format_number
    call check(nf90_get_att(ncid, NF90_GLOBAL, "title", title))
    print *, trim(title)
    call check(nf90_get_var(ncid, time_id, times))
    print *, times
    call check(nf90_get_var(ncid, temp_id, series, start=[3, 5, 2, 1], count=[1, 1, 1, length]))
    print *, series
    call check(nf90_get_var(ncid, temp_id, slice, start=[1, 1, 3, 4], count=[nx, ny, 1, 1]))
    print *, sum(slice), maxval(slice)
    call check(nf90_get_var(ncid, temp_id, strided, start=[1, 2, 1, 7], &
        count=[nx / 3, ny / 2, 1, 1], stride=[3, 2, 1, 1]))
    print *, strided(:, 3)
    call check(nf90_get_var(ncid, mask_id, mask))
    print *, sum(int(mask))
    if (nf90_get_var(ncid, mask_id, mask, start=[nx, ny], count=[2, 2]) == NF90_NOERR) stop 3
    call check(nf90_close(ncid))
    if (nf90_open(trim(path)//"-nowhere", NF90_NOWRITE, ncid) == NF90_NOERR) stop 4

contains

    subroutine put_step(number)
        integer, intent(in) :: number
        integer :: a, b, c
        do c = 1, nz
            do b = 1, ny
                do a = 1, nx
                    temp(a, b, c) = 200.0 + number * 10 + a * 0.5 + b * 0.25 + c
                end do
            end do
        end do
        time(1) = number * 0.5d0
        call check(nf90_put_var(ncid, time_id, time, start=[number], count=[1]))
        call check(nf90_put_var(ncid, temp_id, temp, start=[1, 1, 1, number], &
            count=[nx, ny, nz, 1]))
    end subroutine put_step

    subroutine check(status)
        integer, intent(in) :: status
        if (status /= NF90_NOERR) then
            print *, trim(nf90_strerror(status))
            stop 2
        end if
    end subroutine check
end program model
