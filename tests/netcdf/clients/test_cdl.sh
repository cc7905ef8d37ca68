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

# User-defined types, both ways with nccopy. Scopes and orders of types are as in a file.
ncgen -k nc4 -o files/user_types.nc "$cdl/user_types.cdl"
client ncgen -k nc4 -o esdm://cdl/user_types "$cdl/user_types.cdl" || fail "ncgen of user_types"
client nccopy files/user_types.nc esdm://cdl/in/user_types || fail "nccopy into ESDM"
client nccopy esdm://cdl/in/user_types out.nc || fail "nccopy out of ESDM"
ncdump files/user_types.nc >expected.txt
client ncdump -n user_types esdm://cdl/user_types >got.txt || fail "ncdump of user_types"
diff expected.txt got.txt || fail "user_types"
client ncdump -n user_types esdm://cdl/in/user_types >got.txt || fail "ncdump of a copy"
diff expected.txt got.txt || fail "user_types, copied in"
ncdump -n user_types out.nc >got.txt
diff expected.txt got.txt || fail "user_types, copied in and out"
esdm-stat --attributes cdl/user_types >stat.txt
grep -q "compound observation: int8 day, int16 elevation, point where\[2\]" stat.txt || fail "esdm-stat shows no types: $(cat stat.txt)"
esdm-stat --json cdl/user_types | grep -q '"point"' || fail "esdm-stat --json shows no types"

# A type that the kind of file does not have is refused as for a file.
expect_fail client ncgen -k classic -o esdm://cdl/wrong.nc "$cdl/all_types.cdl"
expect_fail client ncdump esdm://cdl/nowhere.nc
