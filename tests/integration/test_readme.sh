#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# The commands of README, typed one after the other in one shell by somebody who has nothing else.
set -eu
. "$ESDM_SOURCE/tests/support/site.sh"
. "$ESDM_SOURCE/tests/support/expect.sh"
[ -z "${ESDM_SANITIZE:-}" ] || skip "programs would need the sanitizer's runtime"
for program in ncks cdo; do
    command -v $program >/dev/null || skip "$program is not installed"
done
/usr/bin/python3 -c 'import netCDF4, xarray' 2>/dev/null || skip "xarray is not installed"
mkdir home archive quick
trap 'fusermount3 -uz home/esdm 2>/dev/null || true; chmod -R u+rwX "$SITE_DIR" 2>/dev/null; rm -rf "$SITE_DIR"' EXIT
/usr/bin/python3 - <<'PYTHON'
import netCDF4
import numpy as np
with netCDF4.Dataset("quick/input.nc", "w") as f:
    f.setncatts({"source_id": "QUICK-1", "experiment_id": "historical"})
    for name, size, units in (("time", None, "days since 2001-01-01"), ("lat", 24, "degrees_north"),
                              ("lon", 48, "degrees_east")):
        f.createDimension(name, size)
        v = f.createVariable(name, "f8", (name,))
        v.setncatts({"units": units})
        v[:] = range(0, 730, 10) if size is None else range(size)
    v = f.createVariable("tas", "f4", ("time", "lat", "lon"))
    v.setncatts({"units": "K", "standard_name": "air_temperature"})
    v[:] = 273.15 + np.random.default_rng(1).normal(0, 9, (73, 24, 48))
PYTHON
cp quick/input.nc archive/

# What stands in the fences of a section, with what is an example there as it is here.
section() {
    sed -n "/^## $1\$/,/^## /p" "$ESDM_SOURCE/README.md" | sed -n "/^\`\`\`$2\$/,/^\`\`\`\$/{/^\`\`\`/d;p}" |
        sed "s#FOLDER/#$SITE_DIR/quick/#; s#/archive/CMIP6#$SITE_DIR/archive#; s#\$PWD/build/tools#$ESDM_BUILD/tools#"
}
{
    echo "set -eux"
    section "Find, open as one, refer to an archive" sh
    section "Use it" sh
    echo "export PYTHONPATH=$ESDM_SOURCE/python"
    echo "/usr/bin/python3 - <<'PYTHON'"
    section "Python and notebooks" python | sed 's/^\(esdm.open(\)\(.*\), snapshot=-1)/\1\2, snapshot=1)/'
    echo PYTHON
    if [ -e "$ESDM_BUILD/tools/esdm-mount" ] && [ -w /dev/fuse ] && command -v h5dump fusermount3 >/dev/null; then
        section "A folder" sh
    fi
    section "Accuracy" sh
    sed -n '/^## Share/,/^## /{s/`/\n/g;p}' "$ESDM_SOURCE/README.md" | sed -n '/^esdm-[a-z]* /p'
    echo "esdm-run cdo -s infon esdm://run1/ocean.nc@tag:v1"
} >typed.sh
[ "$(grep -c '^esdm' typed.sh)" -ge 15 ] || fail "README has other commands: $(cat typed.sh)"
env -u ESDM_CONFIG -u XDG_DATA_HOME -u XDG_CONFIG_HOME HOME="$PWD/home" bash typed.sh >typed.txt 2>&1 ||
    fail "$(cat typed.sh typed.txt)"
for text in "years/2001.nc:/tas" "cmip6/input.nc:/tas" "2002-" "restored" "largest error"; do
    grep -q "$text" typed.txt || fail "no '$text': $(cat typed.txt)"
done
[ -d home/.local/share/esdm ] && [ -e run1/ocean.nc ] && [ -e ocean.nc ] || fail "data lie elsewhere: $(find . | head -n 50)"
