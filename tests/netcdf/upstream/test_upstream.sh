#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# test_upstream.sh WORK ESDM-RUN: netCDF-C's test programs on stock netCDF and on ESDM. All of them,
# with the source fetched when needed, in the long form of the tests; else the quick ones, where the
# source is at hand.
set -euo pipefail
here=$(dirname "$(realpath "$0")")
size=${ESDM_TEST_SIZE:-default}
fetch=()
[ "$size" = long ] && fetch=(--fetch)
command -v m4 >/dev/null || { echo "skipped: m4 is not installed" && exit 77; }
source=$("$here/fetch.sh" "$1" "${fetch[@]}")
exec python3 "$here/upstream.py" --source "$source" --work "$1" --esdm-run "$2" --size "$size"
