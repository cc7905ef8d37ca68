#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# Fortran programs with nf90 and nf calls, compiled against stock netcdf-fortran, do the same on an
# esdm:// path as on a file.
. "$ESDM_SOURCE/tests/support/site.sh"
command -v gfortran >/dev/null || skip "gfortran is not installed"
command -v nf-config >/dev/null || skip "libnetcdff-dev is not installed"

# As programs of F77 are compiled nowadays.
for program in model.f90 model77.f; do
    gfortran -std=legacy -w $(nf-config --fflags) "$ESDM_SOURCE/tests/netcdf/clients/$program" -o model \
        $(nf-config --flibs) || fail "cannot compile $program"
    ./model file.nc >expected.txt || fail "$program on a file: $(cat expected.txt)"
    client ./model esdm://fortran/output.nc >got.txt || fail "$program: $(cat got.txt)"
    diff expected.txt got.txt || fail "$program: another output than on a file"
    client nccopy esdm://fortran/output.nc copy.nc
    "$ESDM_BUILD/tests/netcdf/clients/nc_compare" file.nc copy.nc || fail "$program: other data"
done

# Models are often compiled to stop at a division by zero, and Fortran's STOP tells which flags are set: neither
# is the business of what ESDM computes (chunk shapes, statistics, codecs, accuracy).
cat >trapped.f90 <<'END'
program trapped
    use netcdf
    implicit none
    integer :: nc, dims(3), id, step
    real :: field(36, 18), again(36, 18)
    double precision :: wide(36, 18)
    call check(nf90_create("esdm://fortran/trapped.nc", nf90_netcdf4, nc))
    call check(nf90_def_dim(nc, "lon", 36, dims(1)))
    call check(nf90_def_dim(nc, "lat", 18, dims(2)))
    call check(nf90_def_dim(nc, "time", nf90_unlimited, dims(3)))
    call check(nf90_def_var(nc, "tas", nf90_float, dims, id, deflate_level=1))
    call check(nf90_put_att(nc, id, "units", "K"))
    call check(nf90_put_att(nc, id, "esdm_absolute_tolerance", "0.01 K"))
    call check(nf90_put_att(nc, id, "esdm_conserve", "mean"))
    call check(nf90_enddef(nc))
    do step = 1, 20
        call random_number(field)
        field = 270 + 30 * field
        call check(nf90_put_var(nc, id, field, [1, 1, step], [36, 18, 1]))
    end do
    call check(nf90_close(nc))
    call check(nf90_open("esdm://fortran/trapped.nc", nf90_write, nc))
    call check(nf90_get_var(nc, id, again, [1, 1, 20], [36, 18, 1]))
    call check(nf90_get_var(nc, id, wide, [1, 1, 1], [36, 18, 1]))
    call check(nf90_close(nc))
    if (maxval(abs(again - field)) > 0.0101) stop 9
    stop 3
contains
    subroutine check(status)
        integer, intent(in) :: status
        if (status /= nf90_noerr) then
            print *, trim(nf90_strerror(status))
            stop 1
        end if
    end subroutine
end program
END
for flags in "-ffpe-trap=zero,invalid,overflow" "-Ofast" ""; do
    gfortran $flags $(nf-config --fflags) trapped.f90 -o trapped $(nf-config --flibs)
    status=0
    client ./trapped >told.txt 2>&1 || status=$?
    [ "$status" = 3 ] || fail "gfortran $flags: status $status: $(cat told.txt)"
    ! grep -E "DIVIDE_BY_ZERO|INVALID|OVERFLOW" told.txt || fail "gfortran $flags: flags of ESDM"
done
