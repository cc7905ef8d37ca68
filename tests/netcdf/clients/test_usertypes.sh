#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# User-defined types of every class, nested, in variables, attributes and fill values: programs write
# and copy them as on files, esdm-cp copies and verifies them, esdm-stat shows them.
. "$ESDM_SOURCE/tests/support/site.sh"
types=$ESDM_BUILD/tests/netcdf/clients/nc_types

"$types" types.nc || fail "nc_types on a file"
ncdump types.nc >expected.txt

# same PATH WHAT: ncdump prints it as the file
same() {
    client ncdump -n types "$1" >got.txt || fail "ncdump of $2"
    diff expected.txt got.txt >differences.txt || fail "$2: $(head -20 differences.txt)"
}

client "$types" esdm://written || fail "nc_types on ESDM"
same esdm://written "what a program wrote"

esdm-cp types.nc esdm://from/file || fail "esdm-cp of a file"
same esdm://from/file "esdm-cp of a file"
esdm-cp esdm://from/file esdm://from/container || fail "esdm-cp of a container"
same esdm://from/container "esdm-cp of a container"
esdm-cp esdm://from/container back.nc || fail "esdm-cp into a file"
same back.nc "esdm-cp into a file"
client cp esdm://from/file esdm://from/cp || fail "cp"
same esdm://from/cp "cp"

client nccopy esdm://written nccopy.nc || fail "nccopy into a file"
same nccopy.nc "nccopy into a file"
client nccopy types.nc esdm://from/nccopy || fail "nccopy into ESDM"
same esdm://from/nccopy "nccopy into ESDM"

# NCO leaves such variables out unless told otherwise; both as with files.
for options in "" "--udt -v names" "-x -v names"; do
    status=0 got=0
    ncks -O -h $options types.nc ncks.nc 2>expected.err || status=$?
    client ncks -O -h $options esdm://written esdm://from/ncks 2>got.err || got=$?
    [ $got = $status ] || fail "another exit status of ncks $options"
    [ $status = 0 ] || continue
    diff expected.err got.err || fail "other messages of ncks $options"
    ncdump -n ncks ncks.nc >expected_ncks.txt
    client ncdump -n ncks esdm://from/ncks | diff expected_ncks.txt - || fail "ncks $options"
done

esdm-stat -a from/file >stat.txt || fail "esdm-stat"
for text in "compound point: int8 n, float64 y, int16 s\[2\]\[3\]" "enum cloud of uint8: clear = 0ub," \
    "vlen words of string" "opaque raw, 11 bytes" "enum wide of int64: low = -5ll, high = 9000000000ll" \
    "flags = clear, cumulus, clear" "rows = {1f}, {1f, 2.5f, -3f}" "pair = {high, 0.5}" "0X202122"; do
    grep -q "$text" stat.txt || fail "esdm-stat does not show $text: $(cat stat.txt)"
done
esdm-stat --json from/file >stat.json || fail "esdm-stat --json"
python3 - <<'PYTHON' || fail "JSON of esdm-stat: $(cat stat.json)"
import json

root = json.load(open("stat.json"))["containers"][0]["root"]
types = {t["name"]: t for t in root["types"]}
assert list(types) == ["cloud", "raw", "row", "words", "point", "observation"], list(types)
assert types["point"]["members"][2] == {"name": "s", "type": "int16", "shape": [2, 3]}
assert types["cloud"]["members"][2] == {"name": "missing", "value": 255}
assert types["raw"]["bytes"] == 11 and types["words"]["base"] == "string"
datasets = {d["name"]: d for d in root["datasets"]}
assert datasets["sky"]["fill"] == ["missing"]
assert datasets["place"]["fill"][0]["s"] == [300, 301, 302, 303, 304, 305]
example = datasets["day"]["attributes"][0]["value"][1]
assert example["station"] == "Hamburg" and example["samples"] == [1, 2.5]
assert example["words"] == ["erstes", "zweites ü"] and example["sky"] == "cumulus"
group = root["groups"][0]
assert [t["name"] for t in group["types"]] == ["wide", "many", "pair"]
PYTHON
