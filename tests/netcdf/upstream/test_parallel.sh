#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# test_parallel.sh WORK ESDM-RUN: the parallel test programs of netCDF-C and netCDF-Fortran on stock
# netCDF and on ESDM; as test_upstream.sh.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
[ -z "${ESDM_SANITIZE:-}" ] || { echo "skipped: stock programs without sanitizers" && exit 77; }
size=${ESDM_TEST_SIZE:-default}
all=() some=()
[ "$size" = long ] && all=(--fetch)
[ "$size" = quick ] || some=(--fetch)
source=$("$here/fetch.sh" "$1" netcdf "${all[@]}") || source=
fortran=$("$here/fetch.sh" "$1" netcdf-fortran "${some[@]}") || fortran=
[ -n "$source$fortran" ] || exit 77
exec python3 "$here/parallel.py" --source "$source" --fortran "$fortran" --work "$1/parallel" \
    --esdm-run "$2" --size "$size"
