#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# ncgen writes CDL into ESDM and ncdump prints the same as for a file, in every kind of file.
. "$ESDM_SOURCE/tests/support/site.sh"
cdl=$ESDM_SOURCE/tests/netcdf/clients
mkdir files

# round_trip CDL KIND
round_trip() {
    name=$(basename "$1" .cdl)
    file=files/$name.nc url=esdm://cdl/$2/$name.nc
    ncgen -k "$2" -o "$file" "$1"
    client ncgen -k "$2" -o "$url" "$1" || fail "ncgen -k $2 $url"
    for options in "" "-h" "-k" "-p 9,17"; do
        ncdump $options "$file" >expected.txt
        client ncdump $options "$url" >got.txt || fail "ncdump $options $url"
        diff expected.txt got.txt >differences.txt ||
            fail "ncdump $options of $url: $(head -40 differences.txt)"
    done
    # What ncdump printed makes the same container again.
    client ncdump -p 9,17 "$url" >again.cdl
    client ncgen -k "$2" -o "$url-again.nc" again.cdl
    client nccopy "$url-again.nc" copy.nc
    "$ESDM_BUILD/tests/netcdf/clients/nc_compare" "$file" copy.nc || fail "$url-again.nc differs"
    [ "$(ncdump -k "$file")" = "$(ncdump -k copy.nc)" ] || fail "the kind of $url changed"
}

round_trip "$cdl/all_types.cdl" nc4
for kind in classic 64-bit-offset cdf5 nc4 nc7; do
    round_trip "$cdl/classic.cdl" $kind
done

# A type that the kind of file does not have is refused as for a file.
expect_fail client ncgen -k classic -o esdm://cdl/wrong.nc "$cdl/all_types.cdl"
expect_fail client ncdump esdm://cdl/nowhere.nc
