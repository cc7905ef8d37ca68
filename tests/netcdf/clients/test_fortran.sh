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
