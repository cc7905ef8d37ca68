C SPDX-License-Identifier: LGPL-3.0-or-later
C A small "model" with nf calls of F77: writes restart and history
C output to the path given as its argument, appends to it, renames,
C and reads it back. Knows nothing of ESDM.
      program model
      implicit none
      include 'netcdf.inc'
      integer nx, ny, steps
      parameter (nx = 36, ny = 18, steps = 5)
      character*1024 path
      character*(NF_MAX_NAME) name
      character*40 title
      integer ncid, xdim, ydim, tdim, tempid, timeid, maskid, levid
      integer dims(3), start(3), count(3), stride(3), imap(2)
      integer i, j, step, length, vartype, ndims, nvars, natts, unlim
      integer format, status, old
      integer*2 levels(4)
      real temp(nx, ny), part(nx / 3, ny / 2), turned(ny, nx), range(2)
      double precision time, times(steps + 1), total
      integer mask(nx, ny)
      integer modes(3), kind

      call getarg(1, path)
      length = len_trim(path)
      modes(1) = NF_CLOBBER
      modes(2) = ior(NF_CLOBBER, NF_64BIT_OFFSET)
      modes(3) = ior(NF_CLOBBER, ior(NF_NETCDF4, NF_CLASSIC_MODEL))

      do kind = 1, 3
      call check(nf_create(path(1:length), modes(kind), ncid))
      call check(nf_set_fill(ncid, NF_NOFILL, old))
      call check(nf_set_fill(ncid, NF_FILL, old))
      call check(nf_def_dim(ncid, 'x', nx, xdim))
      call check(nf_def_dim(ncid, 'y', ny, ydim))
      call check(nf_def_dim(ncid, 'time', NF_UNLIMITED, tdim))
      dims(1) = xdim
      dims(2) = ydim
      dims(3) = tdim
      call check(nf_def_var(ncid, 'time', NF_DOUBLE, 1, tdim, timeid))
      call check(nf_put_att_text(ncid, timeid, 'units', 21,
     +     'days since 1850-01-01'))
      call check(nf_def_var(ncid, 'temp', NF_REAL, 3, dims, tempid))
      range(1) = 180.0
      range(2) = 330.0
      call check(nf_put_att_real(ncid, tempid, 'valid_range', NF_REAL,
     +     2, range))
      call check(nf_put_att_real(ncid, tempid, '_FillValue', NF_REAL, 1,
     +     -1.0e10))
      call check(nf_def_var(ncid, 'mask', NF_BYTE, 2, dims, maskid))
      call check(nf_put_att_text(ncid, NF_GLOBAL, 'title', 14,
     +     'output of F77 '))
C     data mode is needed first
      do j = 1, ny
         do i = 1, nx
            mask(i, j) = mod(i * j, 3)
         end do
      end do
      status = nf_put_var_int(ncid, maskid, mask)
      print *, 'in define mode: ', trim(nf_strerror(status))
      call check(nf_enddef(ncid))
      call check(nf_put_var_int(ncid, maskid, mask))
      count(1) = nx
      count(2) = ny
      count(3) = 1
      start(1) = 1
      start(2) = 1
      do step = 1, steps
         do j = 1, ny
            do i = 1, nx
               temp(i, j) = 273.15 + step + 0.5 * i - 0.25 * j
            end do
         end do
         start(3) = step
         time = 30.5d0 * step
         call check(nf_put_var1_double(ncid, timeid, step, time))
         call check(nf_put_vara_real(ncid, tempid, start, count, temp))
      end do
      call check(nf_sync(ncid))
      call check(nf_close(ncid))

C     a second run appends, adds a variable, and renames
      call check(nf_open(path(1:length), NF_WRITE, ncid))
      call check(nf_inq_unlimdim(ncid, tdim))
      call check(nf_inq_dimlen(ncid, tdim, step))
      call check(nf_inq_varid(ncid, 'temp', tempid))
      call check(nf_inq_varid(ncid, 'time', timeid))
      print *, 'steps: ', step
      start(1) = nx
      start(2) = ny
      start(3) = step + 1
      call check(nf_put_var1_real(ncid, tempid, start, 300.25))
      call check(nf_redef(ncid))
      call check(nf_def_dim(ncid, 'level', 4, dims(1)))
      call check(nf_def_var(ncid, 'level', NF_SHORT, 1, dims(1), levid))
C     netCDF-4 files end in an HDF5 error here
      if (kind .lt. 3) then
         call check(nf_rename_var(ncid, tempid, 'temperature'))
         call check(nf_rename_dim(ncid, xdim, 'longitude'))
      end if
      call check(nf_enddef(ncid))
      do i = 1, 4
         levels(i) = int(10 * i, 2)
      end do
      call check(nf_put_var_int2(ncid, levid, levels))
      call check(nf_rename_att(ncid, NF_GLOBAL, 'title', 'name'))
      call check(nf_close(ncid))

C     and a third program looks at what there is
      call check(nf_open(path(1:length), NF_NOWRITE, ncid))
      call check(nf_inq(ncid, ndims, nvars, natts, unlim))
      call check(nf_inq_format(ncid, format))
      print *, ndims, nvars, natts, unlim, format
      do i = 1, ndims
         call check(nf_inq_dim(ncid, i, name, length))
         print *, trim(name), length
      end do
      do i = 1, nvars
         call check(nf_inq_var(ncid, i, name, vartype, ndims, dims, j))
         print *, trim(name), vartype, ndims, j
      end do
      call check(nf_get_att_text(ncid, NF_GLOBAL, 'name', title))
      print *, title(1:14)
      call check(nf_get_var_double(ncid, timeid, times))
      print *, times
      start(1) = 2
      start(2) = 1
      start(3) = 3
      count(1) = nx / 3
      count(2) = ny / 2
      count(3) = 1
      stride(1) = 3
      stride(2) = 2
      stride(3) = 1
      call check(nf_get_vars_real(ncid, tempid, start, count, stride,
     +     part))
      print *, part(1, 1), part(nx / 3, ny / 2), sum(part)
C     longitude by latitude, turned in memory
      imap(1) = ny
      imap(2) = 1
      count(1) = nx
      count(2) = ny
      stride(1) = 1
      stride(2) = 1
      start(1) = 1
      start(3) = 1
      call turn(ncid, tempid, start, count, stride, imap, turned)
      print *, turned(1, 2), turned(2, 1), turned(ny, nx)
      start(3) = steps + 1
      call check(nf_get_vara_real(ncid, tempid, start, count, temp))
      total = 0
      do j = 1, ny
         do i = 1, nx
            if (temp(i, j) .ne. -1.0e10) total = total + temp(i, j)
         end do
      end do
      print *, total
      status = nf_put_var_int(ncid, maskid, mask)
      print *, 'read only: ', trim(nf_strerror(status))
      status = nf_get_var_int(ncid, 99, mask)
      print *, 'no such variable: ', trim(nf_strerror(status))
      start(3) = 99
      status = nf_get_vara_real(ncid, tempid, start, count, temp)
      print *, 'past the end: ', trim(nf_strerror(status))
      call check(nf_close(ncid))
      length = len_trim(path)
      end do
      end

      subroutine turn(ncid, varid, start, count, stride, imap, values)
      implicit none
      include 'netcdf.inc'
      integer ncid, varid, start(3), count(3), stride(3), imap(2)
      integer map(3)
      real values(*)
      map(1) = imap(1)
      map(2) = imap(2)
      map(3) = 1
      call check(nf_get_varm_real(ncid, varid, start, count, stride,
     +     map, values))
      end

      subroutine check(status)
      implicit none
      include 'netcdf.inc'
      integer status
      if (status .ne. NF_NOERR) then
         print *, 'failed: ', trim(nf_strerror(status))
         stop 1
      end if
      end
