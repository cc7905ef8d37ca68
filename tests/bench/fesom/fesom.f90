! SPDX-License-Identifier: LGPL-3.0-or-later
! The output of an ocean model on a mesh of triangles, as FESOM2 writes it: 31 variables of nodes and
! time with "deflate 1", gathered on rank 0, one nf90_put_var for each variable and step.
!     fesom make FIELDS NODES STEPS INPUT       what the model has computed: real fields on a mesh
!     fesom write INPUT PATH KIND MILLISECONDS  writes that, and computes so long between two steps
!     fesom check INPUT PATH KIND               reads it back and compares all bits
! KIND: one    one file of all variables
!       files  a file PATH.VARIABLE.nc for each variable, synchronised after each record
!       ranks  one file that all ranks write parts of, independently; plain: the same without deflate
! Rank 0 prints the seconds of the slowest rank in output (gather, NetCDF, waiting), and the bytes of values.
program fesom
    use mpi
    use netcdf
    implicit none
    integer, parameter :: variables = 31
    character(len=400) :: task, input, path, kind, text
    integer :: rank, ranks, ierr, nodes, steps
    integer, allocatable :: counts(:), first(:)
    integer :: nc(variables), id(variables), time(variables)
    ! For C, a mesh is a row: longitude runs fastest in all sources.
    type source
        character(len=12) :: file, name
        integer :: step, level ! of the first; a step is added for each step of the model
    end type

    call MPI_Init(ierr)
    call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
    call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierr)
    call get_command_argument(1, task)
    select case (task)
    case ('make')
        call make()
    case ('write')
        call write_all()
    case ('check')
        call check_all()
    case default
        call stop_all('what? make, write or check')
    end select
    call MPI_Finalize(ierr)

contains

    subroutine stop_all(why)
        character(len=*), intent(in) :: why
        integer :: ignored
        write (*, '(a,i0,2a)') 'rank ', rank, ': ', why
        call MPI_Abort(MPI_COMM_WORLD, 1, ignored)
        stop 1
    end subroutine

    subroutine ok(status)
        integer, intent(in) :: status
        if (status /= nf90_noerr) call stop_all(trim(nf90_strerror(status)))
    end subroutine

    ! ---- what is written -----------------------------------------------------------------------

    ! The name, and the field behind it. Salinity and humidity of many levels stand for the 3-d fields.
    function origin(i) result(s)
        integer, intent(in) :: i
        type(source) :: s
        select case (i)
        case (1:2)
            s = source('pop_SST', 'sst', 1 + 25 * (i - 1), 0)
        case (3)
            s = source('pop_SSH', 'ssh', 1, 0)
        case (4:6)
            s = source('cesm_TS', 'tair', 1 + 33 * (i - 4), 0)
        case (7:8)
            s = source('cesm_PRECT', 'prec', 1 + 25 * (i - 7), 0)
        case (9:10)
            s = source('ccm_fice', 'a_ice', 1 + 60 * (i - 9), 0)
        case (11:19)
            s = source('levitus_SALT', 'salt', i - 10, 0)
        case default
            s = source('merra_q', 'shum', 1, i - 1)
        end select
    end function

    function name_of(i) result(name)
        integer, intent(in) :: i
        character(len=20) :: name
        type(source) :: s
        s = origin(i)
        write (name, '(2a,i2.2)') trim(s%name), '_', i
    end function

    ! The place of a node on a curve that keeps neighbours together, as the numbers of a mesh do.
    pure function along(x, y) result(key)
        real(8), intent(in) :: x, y
        integer(8) :: key, a, b
        integer :: bit
        a = int(x * 65536, 8)
        b = int(y * 65536, 8)
        key = 0
        do bit = 15, 0, -1
            key = 4 * key + 2 * ibits(b, bit, 1) + ibits(a, bit, 1)
        end do
    end function

    ! Values of a field, as a C array of steps, rows and columns; land is huge.
    subroutine load(folder, s, field)
        character(len=*), intent(in) :: folder
        type(source), intent(in) :: s
        real(4), allocatable, intent(out) :: field(:, :, :)
        real(4), allocatable :: levels(:, :, :, :)
        integer :: file, var, dims(nf90_max_var_dims), n, i, shape(4)
        call ok(nf90_open(trim(folder)//'/'//trim(s%file)//'.nc', nf90_nowrite, file))
        call ok(nf90_inq_varid(file, trim(s%file), var))
        call ok(nf90_inquire_variable(file, var, ndims=n, dimids=dims))
        shape = 1
        do i = 1, n
            call ok(nf90_inquire_dimension(file, dims(i), len=shape(i)))
        end do
        if (n == 3) then
            allocate (field(shape(1), shape(2), shape(3)))
            call ok(nf90_get_var(file, var, field))
        else
            allocate (levels(shape(1), shape(2), 1, shape(4)))
            call ok(nf90_get_var(file, var, levels, [1, 1, s%level, 1], [shape(1), shape(2), 1, shape(4)]))
            field = levels(:, :, 1, :)
        end if
        call ok(nf90_close(file))
        where (.not. abs(field) < 1e9) field = huge(1.)
    end subroutine

    ! Between the four values around a place (0 ... 1 each way); of the nearest that are there.
    pure function at(plane, x, y) result(value)
        real(4), intent(in) :: plane(:, :)
        real(8), intent(in) :: x, y
        real(4) :: value
        real(8) :: u, v, weight, sum, w
        integer :: i, j, a, b, column, row
        u = x * size(plane, 1)
        v = y * (size(plane, 2) - 1)
        i = int(u)
        j = int(v)
        weight = 0
        sum = 0
        do b = 0, 1
            do a = 0, 1
                column = modulo(i + a, size(plane, 1)) + 1
                row = min(j + b, size(plane, 2) - 1) + 1
                w = merge(u - i, 1 - u + i, a == 1) * merge(v - j, 1 - v + j, b == 1)
                if (plane(column, row) < 1e9 .and. w > 0) then
                    weight = weight + w
                    sum = sum + w * plane(column, row)
                end if
            end do
        end do
        value = huge(1.)
        if (weight > 0) value = real(sum / weight, 4)
    end function

    ! Fields between two steps of the source: its steps are far apart, those of a model are not.
    subroutine step_of(field, s, step, x, y, values)
        real(4), intent(in) :: field(:, :, :)
        type(source), intent(in) :: s
        integer, intent(in) :: step
        real(8), intent(in) :: x(:), y(:)
        real(4), intent(out) :: values(:)
        real(8) :: part
        real(4) :: a, b
        integer :: before, after, i
        part = (step - 1) / 4d0
        before = modulo(s%step - 1 + int(part), size(field, 3)) + 1
        after = modulo(before, size(field, 3)) + 1
        part = part - int(part)
        do i = 1, size(values)
            a = at(field(:, :, before), x(i), y(i))
            b = at(field(:, :, after), x(i), y(i))
            if (a > 1e9) a = merge(0., b, b > 1e9)
            if (b > 1e9) b = a
            values(i) = real((1 - part) * a + part * b, 4)
        end do
    end subroutine

    ! Places spread evenly over a sphere, those in the sea, in the order of the curve.
    subroutine mesh(sea, x, y)
        real(4), intent(in) :: sea(:, :)
        real(8), allocatable, intent(out) :: x(:), y(:)
        real(8), parameter :: golden = 0.6180339887498949d0
        integer(8), allocatable :: keys(:)
        integer, allocatable :: order(:)
        real(8) :: a, b
        integer :: i, places, found
        places = nodes
        do ! until as many are in the sea
            places = places + nodes / 8 + 1
            found = 0
            allocate (x(places), y(places), keys(places))
            do i = 1, places
                a = modulo(i * golden, 1d0)
                b = acos(1 - 2 * (i - 0.5d0) / places) / acos(-1d0)
                if (at(sea, a, b) > 1e9) cycle
                found = found + 1
                x(found) = a
                y(found) = b
                keys(found) = along(a, b)
            end do
            if (found >= nodes) exit
            deallocate (x, y, keys)
        end do
        order = [(i, i=1, found)]
        call sort(keys, order)
        x = x(order)
        y = y(order)
        ! As many of them as were asked for, from everywhere.
        x = [(x(1 + int((i - 1_8) * found / nodes)), i=1, nodes)]
        y = [(y(1 + int((i - 1_8) * found / nodes)), i=1, nodes)]
    end subroutine

    subroutine sort(keys, order)
        integer(8), intent(in) :: keys(:)
        integer, intent(inout) :: order(:)
        integer, allocatable :: merged(:)
        integer :: width, lo, mid, hi, a, b, k
        allocate (merged(size(order)))
        width = 1
        do while (width < size(order))
            do lo = 1, size(order), 2 * width
                mid = min(lo + width - 1, size(order))
                hi = min(lo + 2 * width - 1, size(order))
                a = lo
                b = mid + 1
                do k = lo, hi
                    if (a > mid) then
                        merged(k) = order(b)
                        b = b + 1
                    else if (b > hi) then
                        merged(k) = order(a)
                        a = a + 1
                    else if (keys(order(a)) <= keys(order(b))) then
                        merged(k) = order(a)
                        a = a + 1
                    else
                        merged(k) = order(b)
                        b = b + 1
                    end if
                end do
            end do
            order = merged
            width = 2 * width
        end do
    end subroutine

    ! A file of two integers, and of all values as the model has them.
    subroutine make()
        character(len=400) :: folder
        real(4), allocatable :: field(:, :, :), values(:)
        real(8), allocatable :: x(:), y(:)
        type(source) :: s
        integer :: unit, i, step
        call get_command_argument(2, folder)
        call get_command_argument(3, text)
        read (text, *) nodes
        call get_command_argument(4, text)
        read (text, *) steps
        call get_command_argument(5, input)
        call load(folder, source('pop_SST', 'sst', 1, 0), field)
        call mesh(field(:, :, 1), x, y)
        allocate (values(nodes))
        open (newunit=unit, file=input, access='stream', form='unformatted', status='replace')
        write (unit) nodes, steps
        do i = 1, variables
            s = origin(i)
            call load(folder, s, field)
            do step = 1, steps
                call step_of(field, s, step, x, y, values)
                write (unit, pos=place(step, i, 1)) values
            end do
        end do
        close (unit)
    end subroutine

    pure function place(step, variable, node) result(pos)
        integer, intent(in) :: step, variable, node
        integer(8) :: pos
        pos = 9 + 4 * (((step - 1_8) * variables + variable - 1) * nodes + node - 1)
    end function

    subroutine open_input(unit)
        integer, intent(out) :: unit
        integer :: i
        call get_command_argument(2, input)
        call get_command_argument(3, path)
        call get_command_argument(4, kind)
        if (all(kind /= [character(len=5) :: 'one', 'files', 'ranks', 'plain'])) &
            call stop_all('a kind is one, files, ranks or plain')
        open (newunit=unit, file=input, access='stream', form='unformatted', status='old', action='read')
        read (unit) nodes, steps
        allocate (counts(ranks), first(ranks))
        first = [(int(int(i - 1, 8) * nodes / ranks), i=1, ranks)]
        counts = [first(2:), nodes] - first
    end subroutine

    ! ---- the output of the model ---------------------------------------------------------------

    logical function together()
        together = kind == 'ranks' .or. kind == 'plain'
    end function

    function file_name(i) result(name)
        integer, intent(in) :: i
        character(len=440) :: name
        name = path
        if (kind == 'files') name = trim(path)//'.'//trim(name_of(i))//'.nc'
    end function

    subroutine define(i)
        integer, intent(in) :: i
        integer :: dims(2)
        if (i == 1 .or. kind == 'files') then
            if (together()) then
                call ok(nf90_create(file_name(i), ior(nf90_netcdf4, nf90_clobber), nc(i), &
                                    comm=MPI_COMM_WORLD, info=MPI_INFO_NULL))
            else
                call ok(nf90_create(file_name(i), ior(nf90_netcdf4, nf90_clobber), nc(i)))
            end if
            call ok(nf90_def_dim(nc(i), 'nod2', nodes, dims(1)))
            call ok(nf90_def_dim(nc(i), 'time', merge(steps, nf90_unlimited, together()), dims(2)))
            call ok(nf90_def_var(nc(i), 'time', nf90_double, dims(2:2), time(i)))
            call ok(nf90_put_att(nc(i), time(i), 'units', 'seconds since 1958-01-01 0:0:0'))
            call ok(nf90_put_att(nc(i), nf90_global, 'FESOM_model', 'FESOM2'))
        else
            nc(i) = nc(1)
            time(i) = time(1)
            call ok(nf90_inq_dimid(nc(i), 'nod2', dims(1)))
            call ok(nf90_inq_dimid(nc(i), 'time', dims(2)))
        end if
        call ok(nf90_def_var(nc(i), trim(name_of(i)), nf90_float, dims, id(i)))
        if (kind /= 'plain') call ok(nf90_def_var_deflate(nc(i), id(i), 0, 1, 1))
        call ok(nf90_put_att(nc(i), id(i), 'description', 'of '//trim(name_of(i))))
        call ok(nf90_put_att(nc(i), id(i), 'units', '1'))
        if (kind == 'files') call ok(nf90_enddef(nc(i)))
    end subroutine

    subroutine write_all()
        real(4), allocatable :: own(:, :), all(:)
        real(8) :: begun, output, slowest, seconds
        integer :: unit, i, step, milliseconds
        call open_input(unit)
        call get_command_argument(5, text)
        read (text, *) milliseconds
        allocate (own(counts(rank + 1), variables), all(merge(nodes, 1, rank == 0)))
        call MPI_Barrier(MPI_COMM_WORLD, ierr)
        begun = MPI_Wtime()
        if (rank == 0 .or. together()) then
            do i = 1, variables
                call define(i)
            end do
            if (kind /= 'files') call ok(nf90_enddef(nc(1)))
        end if
        output = MPI_Wtime() - begun
        do step = 1, steps
            do i = 1, variables ! "computed"
                read (unit, pos=place(step, i, first(rank + 1) + 1)) own(:, i)
            end do
            call compute(milliseconds)
            call MPI_Barrier(MPI_COMM_WORLD, ierr)
            begun = MPI_Wtime()
            do i = 1, variables
                call put(step, i, own(:, i), all)
            end do
            output = output + MPI_Wtime() - begun
        end do
        begun = MPI_Wtime()
        if (rank == 0 .or. together()) then
            do i = 1, merge(variables, 1, kind == 'files')
                call ok(nf90_close(nc(i)))
            end do
        end if
        seconds = MPI_Wtime() - begun
        output = output + seconds
        call MPI_Reduce(output, slowest, 1, MPI_DOUBLE_PRECISION, MPI_MAX, 0, MPI_COMM_WORLD, ierr)
        if (rank == 0) write (*, '(a,f0.6,a,f0.6,a,i0)') 'seconds ', slowest, ' close ', seconds, &
            ' bytes ', 4_8 * nodes * steps * variables
    end subroutine

    ! Computes, as a model does between two steps; its threads do not wait meanwhile.
    subroutine compute(milliseconds)
        integer, intent(in) :: milliseconds
        real(8) :: until
        real(8), volatile :: work
        integer :: i
        until = MPI_Wtime() + milliseconds / 1d3
        work = 1
        do while (MPI_Wtime() < until)
            do i = 1, 1000
                work = sqrt(work + i)
            end do
        end do
    end subroutine

    subroutine put(step, i, own, all)
        integer, intent(in) :: step, i
        real(4), intent(in) :: own(:)
        real(4), intent(inout) :: all(:)
        if (together()) then
            if (i == 1 .and. rank == 0) &
                call ok(nf90_put_var(nc(i), time(i), [3600d0 * step], [step], [1]))
            call ok(nf90_put_var(nc(i), id(i), own, [first(rank + 1) + 1, step], [size(own), 1]))
            return
        end if
        call MPI_Gatherv(own, size(own), MPI_REAL, all, counts, first, MPI_REAL, 0, MPI_COMM_WORLD, ierr)
        if (rank /= 0) return
        if (i == 1 .or. kind == 'files') &
            call ok(nf90_put_var(nc(i), time(i), [3600d0 * step], [step], [1]))
        call ok(nf90_put_var(nc(i), id(i), all, [1, step], [nodes, 1]))
        if (kind == 'files') call ok(nf90_sync(nc(i)))
    end subroutine

    ! ---- whether all of it is there ------------------------------------------------------------

    subroutine check_all()
        real(4), allocatable :: expected(:), got(:)
        real(8) :: times(1)
        integer :: unit, i, step
        call open_input(unit)
        allocate (expected(nodes), got(nodes))
        do i = 1, variables
            if (i == 1 .or. kind == 'files') then
                call ok(nf90_open(file_name(i), nf90_nowrite, nc(i)))
            else
                nc(i) = nc(1)
            end if
            call ok(nf90_inq_varid(nc(i), 'time', time(i)))
            call ok(nf90_inq_varid(nc(i), trim(name_of(i)), id(i)))
            do step = 1, steps
                call ok(nf90_get_var(nc(i), time(i), times, [step], [1]))
                if (times(1) /= 3600d0 * step) call stop_all('another time')
                read (unit, pos=place(step, i, 1)) expected
                call ok(nf90_get_var(nc(i), id(i), got, [1, step], [nodes, 1]))
                if (any(transfer(got, [1]) /= transfer(expected, [1]))) then
                    write (text, '(3a,i0)') 'other values of ', trim(name_of(i)), ' in step ', step
                    call stop_all(trim(text))
                end if
            end do
            if (kind == 'files') call ok(nf90_close(nc(i)))
        end do
        if (kind /= 'files') call ok(nf90_close(nc(1)))
        print '(a)', 'equal'
    end subroutine
end program
