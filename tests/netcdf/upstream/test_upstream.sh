#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# test_upstream.sh WORK ESDM-RUN SUITE: the test programs of netCDF-C (SUITE: c) or netCDF-Fortran
# (fortran) on stock netCDF and on ESDM. All of them in the long form of the tests, else the quick
# ones. The source of netCDF-C is large: it is fetched in the long form alone.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
size=${ESDM_TEST_SIZE:-default}
[ -z "${ESDM_SANITIZE:-}" ] || { echo "skipped: stock programs without sanitizers" && exit 77; }
fetch=()
if [ "$3" = fortran ]; then
    name=netcdf-fortran
    command -v gfortran >/dev/null || { echo "skipped: gfortran is not installed" && exit 77; }
    [ "$size" = quick ] || fetch=(--fetch)
else
    name=netcdf
    command -v m4 >/dev/null || { echo "skipped: m4 is not installed" && exit 77; }
    [ "$size" = long ] && fetch=(--fetch)
fi
source=$("$here/fetch.sh" "$1" $name "${fetch[@]}")
exec python3 "$here/upstream.py" --suite "$3" --source "$source" --work "$1/$3" --esdm-run "$2" \
    --size "$size"
