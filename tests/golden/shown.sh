# SPDX-License-Identifier: LGPL-3.0-or-later
# Sourced by make.sh and test_read.sh: all that a container holds, as text; of large ones points, and a sum.
shown()
{
    case $1 in
    outlines.nc | nudged.nc) ;;
    *) client ncdump "esdm://$1" && return ;;
    esac
    client ncdump -h "esdm://$1"
    client /usr/bin/python3 - "esdm://$1" <<'PYTHON'
import hashlib
import sys

import netCDF4

with netCDF4.Dataset(sys.argv[1]) as nc:
    for name, variable in nc.variables.items():
        points = [variable[t, y, 7].item() for t in range(2) for y in range(0, variable.shape[1], 97)]
        print(name, points, hashlib.sha256(variable[:].tobytes()).hexdigest())
PYTHON
}
