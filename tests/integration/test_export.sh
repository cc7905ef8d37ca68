#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# Compression of files that esdm-cp makes: kept, asked for, and told where it cannot be.
set -eu
. "$ESDM_SOURCE/tests/support/site.sh"
. "$ESDM_SOURCE/tests/support/expect.sh"
mkdir out again
export HDF5_PLUGIN_PATH=/nonexistent # no filters but libnetcdf's own
# What other machines have: a filter of zstd's number, which leaves the bytes as they are.
mkdir plugins
cat >zstd.c <<'END'
#include <stddef.h>
static size_t
keep(unsigned flags, size_t count, const unsigned *values, size_t bytes, size_t *room, void **buffer)
{
    (void) flags, (void) count, (void) values, (void) room, (void) buffer;
    return bytes;
}
static const struct { /* H5Z_class2_t */
    int version, id;
    unsigned encoder_present, decoder_present;
    const char *name;
    void *can_apply, *set_local;
    size_t (*filter)(unsigned, size_t, const unsigned *, size_t, size_t *, void **);
} filter = {1, 32015, 1, 1, "zstd", NULL, NULL, keep};
int H5PLget_plugin_type(void) { return 0; }
const void *H5PLget_plugin_info(void) { return &filter; }
END
cc -shared -fPIC -o plugins/libh5zstd.so zstd.c
cat >make.py <<'END'
import sys
import netCDF4
path, kind, *wishes = sys.argv[1:]
with netCDF4.Dataset(path, "w", format=kind) as f:
    f.createDimension("x", 4096)
    f.createVariable("v", "f4", ("x",), **({"zlib": True} if "deflate" in wishes else {}))[:] = 1.5
    f.createVariable("scalar", "i4", ())[...] = 7
END
same_data() {
    diff <(ncdump "$1" | tail -n +2) <(ncdump "$2" | tail -n +2) || fail "$1 and $2 differ"
}
filters() { ncdump -hs "$1" | grep -oE '(_DeflateLevel|_Shuffle) = [^ ]+' | tr '\n' ' '; }
expect 0 $python make.py plain.nc NETCDF4
expect 0 $python make.py deflated.nc NETCDF4 deflate
expect 0 $python make.py older.nc NETCDF3_CLASSIC
for file in plain deflated older; do expect 0 esdm-cp $file.nc esdm://filters/$file.nc; done
expect 0 esdm-cp esdm://filters/deflated.nc out/kept.nc
[ "$(filters out/kept.nc)" = "$(filters deflated.nc)" ] || fail "deflate is not kept"
expect 0 esdm-cp --deflate 5 esdm://filters/plain.nc out/deflated.nc
[ "$(filters out/deflated.nc)" = '_Shuffle = "true" _DeflateLevel = 5 ' ] || fail "--deflate"
[ "$(stat -c %s out/deflated.nc)" -lt "$(stat -c %s plain.nc)" ] || fail "nothing is compressed"
same_data plain.nc out/deflated.nc
expect 0 esdm-cp --deflate 0 esdm://filters/deflated.nc out/plain.nc
[ -z "$(filters out/plain.nc)" ] || fail "--deflate 0"
expect 0 esdm-cp --deflate 1 esdm://filters/older.nc out/newer.nc
[ "$(ncdump -k out/newer.nc)" = "netCDF-4 classic model" ] || fail "kind of a compressed file"
same_data older.nc out/newer.nc
expect 1 esdm-cp --zstd 3 esdm://filters/plain.nc out/zstd.nc
says "has no filter zstd"
[ ! -e out/zstd.nc ] || fail "a half file was left"
expect 2 esdm-cp --zstd 3 --deflate 3 esdm://filters/plain.nc out/x.nc
expect 2 esdm-cp --deflate 10 esdm://filters/plain.nc out/x.nc
expect 2 esdm-cp --deflate 3 plain.nc esdm://x.nc
expect 2 esdm-cp --deflate 3 --format classic esdm://filters/plain.nc out/x.nc
with_zstd="env HDF5_PLUGIN_PATH=$PWD/plugins"
expect 0 $with_zstd esdm-cp --zstd 3 esdm://filters/plain.nc out/zstd.nc
[ "$(ncdump -hs out/zstd.nc | grep -c _Filter)" = 1 ] || fail "--zstd"
expect 0 $with_zstd esdm-cp out/zstd.nc esdm://filters/zstd.nc
expect 0 $with_zstd esdm-cp esdm://filters/zstd.nc again/zstd.nc
HDF5_PLUGIN_PATH=$PWD/plugins same_file out/zstd.nc again/zstd.nc
expect 0 esdm-cp esdm://filters/zstd.nc out/without.nc
says "1 variable is stored without zstd"
same_data plain.nc out/without.nc
expect 0 esdm-cp --json -f esdm://filters/zstd.nc out/without.nc
says '"without_filters": "zstd"'
expect 0 esdm-cp --format=classic esdm://filters/deflated.nc out/classic.nc
says "without shuffle, deflate, which the source has and the classic formats do not have"
no_leftovers "after exporting"
