#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# tests/golden/make.sh NAME [few]: makes the store tests/golden/NAME with the build in $ESDM_BUILD. To be
# run once for each version of a stored format; what exists is never made anew. `few` leaves out what an
# earlier store has in the same form: 10, of nudged blocks, was made so.
set -euo pipefail
name=${1:?name of the format version, as in: make.sh 1} few=${2:-}
export ESDM_SOURCE=$(realpath "$(dirname "$0")/../..") ESDM_BUILD=${ESDM_BUILD:-$PWD/build}
golden=$ESDM_SOURCE/tests/golden/$name
[ ! -e "$golden" ] || { echo "$golden exists already" >&2 && exit 1; }
. "$ESDM_SOURCE/tests/support/site.sh"
. "$ESDM_SOURCE/tests/golden/shown.sh"
export ESDM_PLUGIN_PATH=$ESDM_BUILD/plugins

# Chains and accuracies that do not depend on what is measured.
python3 - <<'PYTHON'
import json

with open("site.json", encoding="utf-8") as file:
    site = json.load(file)
site.setdefault("engine", {})["codec_on_request"] = "bitround+shuffle+zstd"
# What is far away as long as this runs: index pages of version 5 (outlines).
site["targets"].append({"name": "far", "plugin": "background", "directory": "far"})
site["policies"] = [{"container": "outlines.nc", "targets": ["far"]},
                    {"variable": "*", "targets": ["disk"]}]
site["accuracy"] = [{"variable": "rounded*", "quantities": "abs=0.5; conserve=sum"}]
with open("site.json", "w", encoding="utf-8") as file:
    json.dump(site, file)
PYTHON
esdm-mkfs >/dev/null

cdl=$ESDM_SOURCE/tests/netcdf/clients
client ncgen -k cdf5 -o esdm://folder/classic.nc "$cdl/classic.cdl"
client /usr/bin/python3 - <<'PYTHON'
import netCDF4
import numpy as np

field = np.arange(2000, dtype="f4").reshape(40, 50)
with netCDF4.Dataset("esdm://fields.nc", "w") as nc:
    nc.createDimension("time", None)
    nc.createDimension("y", 40)
    nc.createDimension("x", 50)
    nc.createVariable("plain", "f4", ("y", "x"))[:] = field
    nc.createVariable("packed", "f4", ("y", "x"), zlib=True, chunksizes=(10, 25))[:] = field // 100
    nc.createVariable("equal", "f4", ("y", "x"))[:] = 5  # a fragment without bytes
    nc.createVariable("series", "f8", ("time",))[0] = 0
    nc.createVariable("steps", "i2", ("time", "y"))[0] = np.arange(40)
for time in range(1, 40):  # many commits, so that pages are merged
    with netCDF4.Dataset("esdm://fields.nc", "a") as nc:
        nc["series"][time] = time / 4
        nc["steps"][time] = np.arange(40) * time
        nc["plain"][time % 7 : 30 : 3, time : time + 5] = -time  # overlaps
PYTHON

# Blocks of codec `field` of format 6, whole and in parts: what coarse levels are off by is made good for in
# the sum.
client /usr/bin/python3 - <<'PYTHON'
import netCDF4
import numpy as np

with netCDF4.Dataset("esdm://nudged.nc", "w") as nc:
    for name, length in ("t", 12), ("y", 40), ("x", 60), ("level", 24), ("row", 96), ("column", 200):
        nc.createDimension(name, length)
    for name, dimensions, quantity, tolerance in (
            ("whole", ("t", "y", "x"), "absolute", 0.5), ("shares", ("t", "y", "x"), "relative", 0.01),
            ("parts", ("level", "row", "column"), "absolute", 0.5)):
        nudged = nc.createVariable(name, "f4", dimensions)
        nudged.esdm_mode = "archive"
        nudged.setncattr(f"esdm_{quantity}_tolerance", tolerance)
        t, y, x = np.meshgrid(*map(np.arange, nudged.shape), indexing="ij")
        noise = np.random.default_rng(6).random(nudged.shape)
        nudged[:] = 280 + 20 * np.sin(x * 0.06) * np.cos(y * 0.05 + t * 0.1) + 0.5 * noise
PYTHON
python3 "$ESDM_SOURCE/tests/golden/blocks.py" packs 6 "6 in parts"

if [ "$few" != few ]; then
client ncgen -k nc4 -o esdm://all_types.nc "$cdl/all_types.cdl"
# User-defined types (documents of format 2 and later), NULL as fill value, dimensions of other groups (3),
# fragments of version 2 (texts that are NULL).
client "$ESDM_BUILD/tests/netcdf/clients/nc_types" esdm://types.nc
esdm-cp esdm://types.nc esdm://copied_types.nc # with the layout that a C compiler gives
client ncgen -k nc4 -o esdm://nulls.nc "$cdl/nulls.cdl"

# Documents of format 5 are all that is made now; format 4 had accuracies. Fragments of version 3 (boxes as blocks, rounded numbers).
client /usr/bin/python3 - <<'PYTHON'
import netCDF4
import numpy as np

field = np.sin(np.arange(40000, dtype="f8") / 500).reshape(2, 100, 200) * 20 + 280
field[:, 20:30, 40:90] = np.nan
with netCDF4.Dataset("esdm://accuracy.nc", "w") as nc:
    for name, length in ("t", 2), ("y", 100), ("x", 200), ("few", 20):
        nc.createDimension(name, length)
    nc.createVariable("rounded", "f4", ("t", "y", "x"), zlib=True)[:] = field
    nc.createVariable("rounded_doubles", "f8", ("few", "x"), zlib=True)[:] = field[0, 15:35]
    numbers = nc.createVariable("rounded_numbers", "i4", ("few", "x"), zlib=True)
    numbers[:] = np.arange(4000).reshape(20, 200)
    stated = nc.createVariable("stated", "f4", ("few",))
    stated.esdm_significant_digits = 3
    stated.esdm_mode = "archive"
    stated[:] = np.arange(20) / 7
PYTHON

# Fragments of version 4 (layers).
client /usr/bin/python3 - <<'PYTHON'
import netCDF4
import numpy as np

field = np.sin(np.arange(3600, dtype="f8") / 99).reshape(2, 30, 60) * 20 + 280
field += np.cos(np.arange(3600, dtype="f8") ** 2).reshape(2, 30, 60) / 50
field[:, 20:23, 40:50] = np.nan
with netCDF4.Dataset("esdm://layers.nc", "w") as nc:
    for name, length in ("t", 2), ("y", 30), ("x", 60):
        nc.createDimension(name, length)
    for name, kind, tolerance in (("exact", "f4", 0), ("floats", "f4", 0.001), ("doubles", "f8", 1e-6),
                                  ("numbers", "i4", 0)):
        layered = nc.createVariable(name, kind, ("t", "y", "x"))
        layered.esdm_mode = "progressive"
        layered.units = "K"
        if tolerance > 0:
            layered.esdm_absolute_tolerance = tolerance
        layered[:] = np.nan_to_num(field) * 100 if kind == "i4" else field
PYTHON

# Format 5 of the catalogue: a clone that goes on, and a tag.
esdm-cp --reflink esdm://fields.nc esdm://clone.nc
client /usr/bin/python3 - <<'PYTHON'
import netCDF4

with netCDF4.Dataset("esdm://clone.nc", "a") as nc:
    nc["plain"][3] = -100
    nc["series"][40] = 10
PYTHON
esdm-tag clone.nc cited

# Pages of version 5: outlines of fragments that are not compressed, and of those that are. Each block of
# 64 KiB is as the one before, so that this file stays small.
client /usr/bin/python3 - <<'PYTHON'
import netCDF4
import numpy as np

block = np.random.default_rng(5).integers(0, 65536, 16384, dtype="i4")
field = np.resize(block, (2, 800, 800))
with netCDF4.Dataset("esdm://outlines.nc", "w") as nc:
    for name, length in ("t", 2), ("y", 800), ("x", 800):
        nc.createDimension(name, length)
    for name, zlib in ("plain", False), ("packed", True):
        nc.createVariable(name, "i4", ("t", "y", "x"), zlib=zlib, chunksizes=(1, 800, 800))[:] = field
PYTHON
pages=$(sqlite3 metadata/catalogue.sqlite "SELECT count(*) FROM page_data WHERE hex(substr(data, 17, 2)) = '0500'")
[ "$pages" = 2 ] || fail "$pages index pages of version 5"
fi
sed -i 's/"background"/"posix"/' site.json

mkdir "$golden"
for container in $(esdm-ls); do
    shown "$container" >"$golden/$(basename "$container" .nc).cdl"
done
[ "$few" = few ] || client ncdump 'esdm://layers.nc?accuracy=1%' >"$golden/layers.coarse"
tar -cJf "$golden/store.tar.xz" --sort=name --owner=0 --group=0 --mtime=@0 site.json packs far metadata
ls -l "$golden"
