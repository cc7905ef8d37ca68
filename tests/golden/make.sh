#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# tests/golden/make.sh NAME: makes the store tests/golden/NAME with the build in $ESDM_BUILD. To be run
# once for each version of a stored format; what exists is never made anew.
set -euo pipefail
name=${1:?name of the format version, as in: make.sh 1}
export ESDM_SOURCE=$(realpath "$(dirname "$0")/../..") ESDM_BUILD=${ESDM_BUILD:-$PWD/build}
golden=$ESDM_SOURCE/tests/golden/$name
[ ! -e "$golden" ] || { echo "$golden exists already" >&2 && exit 1; }
. "$ESDM_SOURCE/tests/support/site.sh"

cdl=$ESDM_SOURCE/tests/netcdf/clients
client ncgen -k nc4 -o esdm://all_types.nc "$cdl/all_types.cdl"
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
    nc.createVariable("series", "f8", ("time",))[0] = 0
    nc.createVariable("steps", "i2", ("time", "y"))[0] = np.arange(40)
for time in range(1, 40):  # many commits, so that pages are merged
    with netCDF4.Dataset("esdm://fields.nc", "a") as nc:
        nc["series"][time] = time / 4
        nc["steps"][time] = np.arange(40) * time
        nc["plain"][time % 7 : 30 : 3, time : time + 5] = -time  # overlaps
PYTHON

mkdir "$golden"
for container in $(esdm-ls); do
    client ncdump "esdm://$container" >"$golden/$(basename "$container" .nc).cdl"
done
tar -cJf "$golden/store.tar.xz" --sort=name --owner=0 --group=0 --mtime=@0 site.json packs metadata
ls -l "$golden"
