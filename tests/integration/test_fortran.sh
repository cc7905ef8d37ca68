#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# The Fortran module: compiled by gfortran, used as a model would; what it wrote is what C sees.
. "$ESDM_SOURCE/tests/support/site.sh"
command -v gfortran >/dev/null || skip "gfortran is not installed"
[ -z "${ESDM_SANITIZE:-}" ] || skip "Fortran is compiled without sanitizers"

gfortran -std=f2018 -Wall -Wextra -O1 -fcheck=all "$ESDM_SOURCE/fortran/esdm.f90" \
    "$ESDM_SOURCE/tests/integration/fortran_module.f90" -J . -o program \
    -L"$ESDM_BUILD" -lesdm -Wl,-rpath,"$ESDM_BUILD" >compile.log 2>&1 || fail "cannot compile: $(cat compile.log)"
status=0
./program >out.txt 2>err.txt || status=$?
grep -qx ok out.txt || fail "it says: $(cat out.txt err.txt)"
[ $status -ne 0 ] || fail "a failure that nobody looks at did not end the program"
grep -q 'esdm: .*/none/site.json' err.txt || fail "no message: $(cat err.txt)"
client ncdump model/run1.nc 2>/dev/null && fail "a path that is no container was read"
client ncdump -v mask esdm://model/run1.nc >dump.txt
grep -q 'float tas(time, y, x)' dump.txt || fail "another order of dimensions: $(cat dump.txt)"
tr -d ' \n' <dump.txt | grep -q 'mask=1,2,3,4,5,6,7,8,9,10,11,12;' || fail "other values: $(cat dump.txt)"
esdm_tool=$ESDM_BUILD/tools
"$esdm_tool/esdm-stat" --accuracy model/run1.nc | grep -q 'tas' || fail "no accuracy"
echo "ok      the Fortran module"
