#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# For scripts that run the tools: results, messages, exit statuses. To be sourced after site.sh.

python=/usr/bin/python3
steps=0

# expect STATUS COMMAND…: runs it; its output is in $output.
expect() {
    local wanted=$1 status=0
    shift
    output=$("$@" 2>&1 </dev/null) || status=$?
    steps=$((steps + 1))
    [ "$status" = "$wanted" ] || fail "status $status instead of $wanted: $*"$'\n'"$output"
}
# says TEXT: the last output contains it.
says() {
    case $output in
    *"$1"*) ;;
    *) fail "'$1' is missing in: $output" ;;
    esac
}
# same_file A B: equal headers, storage settings and data, as ncdump shows them.
same_file() {
    local versions='_NCProperties|_SuperblockVersion'
    diff <(ncdump -s "$1" 2>/dev/null | grep -vE "$versions") \
        <(ncdump -s "$2" 2>/dev/null | grep -vE "$versions") >difference ||
        fail "$1 and $2 differ: $(head -5 difference)"
}
no_leftovers() {
    [ -z "$(find . -name '.esdm-cp-*')" ] || fail "unfinished files are left: $1"
    case $(esdm-ls) in
    *.esdm-cp-*) fail "unfinished containers are left: $1" ;;
    esac
}
# small.nc and field.nc in this folder.
make_small_files() {
    cat >small.cdl <<'END'
netcdf small { dimensions: x = 3 ; variables: int v(x) ; v:units = "K" ; :title = "small" ;
data: v = 1, 2, 3 ; }
END
    ncgen -o small.nc small.cdl
    $python -c 'import netCDF4
with netCDF4.Dataset("field.nc", "w") as f:
    f.createDimension("x", 5000)
    f.createVariable("v", "f8", ("x",))[:] = range(5000)'
}
