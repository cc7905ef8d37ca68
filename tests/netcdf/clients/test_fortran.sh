#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# A Fortran program with nf90 calls, compiled against stock netcdf-fortran, does the same on an
# esdm:// path as on a file.
. "$ESDM_SOURCE/tests/support/site.sh"
command -v gfortran >/dev/null || skip "gfortran is not installed"
command -v nf-config >/dev/null || skip "libnetcdff-dev is not installed"

gfortran $(nf-config --fflags) "$ESDM_SOURCE/tests/netcdf/clients/model.f90" -o model \
    $(nf-config --flibs) || fail "cannot compile"
./model file.nc >expected.txt
client ./model esdm://fortran/output.nc >got.txt || fail "$(cat got.txt)"
diff expected.txt got.txt || fail "another output than on a file"
client nccopy esdm://fortran/output.nc copy.nc
"$ESDM_BUILD/tests/netcdf/clients/nc_compare" file.nc copy.nc || fail "other data than in a file"
