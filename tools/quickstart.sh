#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# From a fresh Debian 12 to real NetCDF data in ESDM, with one command.
#
#   tools/quickstart.sh [FOLDER]
#
# Installs what is missing (root or sudo), builds into build/, makes a site in FOLDER (default: a
# new folder below $TMPDIR), then writes and reads a NetCDF file with unmodified ncks, cdo, ncdump and
# Python, and shows what ESDM stored. Touches nothing else; remove FOLDER to undo it.
set -euo pipefail
source=$(realpath "$(dirname "$0")/..")
case ${1:-} in
-h | --help) sed -n '3,9s/^# \{0,1\}//p' "$0" && exit 0 ;;
-*) echo "quickstart.sh: unknown option '$1' (see --help)" >&2 && exit 2 ;;
esac
if [ -n "${1:-}" ]; then
    mkdir -p "$1"
    folder=$(realpath "$1")
else
    folder=$(mktemp -d "${TMPDIR:-/tmp}/esdm-quickstart.XXXXXX")
fi

bold='' dim='' plain=''
if [ -t 1 ]; then
    bold=$'\033[1m' dim=$'\033[2m' plain=$'\033[0m'
fi
step() { printf '\n%s%s%s\n' "$bold" "$*" "$plain"; }
prompt() { printf '%s$%s %s\n' "$dim" "$plain" "$*"; }
# Shows a command, then runs it.
show() { prompt "$@" && "$@"; }

step "1. Install what is missing"
"$source/tools/install-deps.sh" build clients
echo "done"

step "2. Build"
cmake -S "$source" -B "$source/build" -G Ninja -DESDM_TESTS=OFF -DESDM_WERROR=OFF >"$folder/build.log" 2>&1 &&
    ninja -C "$source/build" >>"$folder/build.log" 2>&1 ||
    { tail -n 40 "$folder/build.log" >&2 && echo "the build failed: $folder/build.log" >&2 && exit 1; }
rm -f "$folder/build.log"
echo "the tools are in $source/build/tools"
export PATH=$source/build/tools:$PATH

step "3. Make a site: where data and metadata lie"
cd "$folder"
export ESDM_CONFIG=$folder/site.json
if [ ! -e site.json ]; then
    cat >site.json <<'JSON'
{
    "site": { "name": "quickstart" },
    "targets": [
        { "name": "disk", "plugin": "posix", "directory": "data" }
    ],
    "metadata": { "plugin": "sqlite", "directory": "metadata" }
}
JSON
fi
show cat site.json
show esdm-mkfs

step "4. A real NetCDF file"
data=${ESDM_TEST_DATA:-$source/../shared/data}
if [ -e "$data/fields/pop_SSH.nc" ]; then
    name=$(find "$data/cmip6" -name 'ta_day_*gr1*.nc' | sort | head -n 1)
    cp "${name:-$data/fields/pop_SSH.nc}" input.nc
    chmod u+w input.nc
else
    cat >input.cdl <<'CDL'
netcdf input {
dimensions:
    time = UNLIMITED ;
    lat = 3 ;
    lon = 4 ;
variables:
    double time(time) ;
        time:units = "days since 2000-01-01" ;
        time:axis = "T" ;
    float lat(lat) ;
        lat:units = "degrees_north" ;
    float lon(lon) ;
        lon:units = "degrees_east" ;
    float ta(time, lat, lon) ;
        ta:standard_name = "air_temperature" ;
        ta:units = "K" ;
        ta:_FillValue = 1.e20f ;
    :Conventions = "CF-1.8" ;
data:
    time = 0, 1 ;
    lat = -60, 0, 60 ;
    lon = 0, 90, 180, 270 ;
    ta = 251, 252, 253, 254, 295, 296, 297, 298, 261, 262, 263, 264,
        255, 256, 257, 258, 299, 300, 301, 302, 265, 266, 267, _ ;
}
CDL
    show ncgen -4 -o input.nc input.cdl
fi
show ls -l input.nc

step "5. Unmodified programs write it to ESDM and read it"
show esdm-run ncks -h -O input.nc esdm://demo/input.nc
esdm-run ncdump -h esdm://demo/input.nc >header.txt
prompt 'esdm-run ncdump -h esdm://demo/input.nc | head -n 20'
head -n 20 header.txt
show esdm-run cdo -O timmean esdm://demo/input.nc esdm://demo/mean.nc
show esdm-run cdo -s infon esdm://demo/mean.nc
cat >analysis.py <<'PYTHON'
import xarray
with xarray.open_dataset("esdm://demo/input.nc", decode_times=False) as dataset:
    name = next(n for n, v in dataset.data_vars.items() if v.ndim > 2)
    anomaly = dataset[[name]] - dataset[[name]].mean("time")
    anomaly.to_netcdf("esdm://demo/anomaly.nc")
    print(f"{name}: {dataset[name].shape}, largest anomaly {float(abs(anomaly[name]).max()):.3f}")
PYTHON
show cat analysis.py
show esdm-run /usr/bin/python3 analysis.py

step "6. It is the same data"
show esdm-run nccopy esdm://demo/input.nc output.nc
# ncks orders variables anew; so what it makes of a plain file is what to compare with.
show ncks -h -O input.nc reference.nc
prompt 'diff <(ncdump -n data reference.nc) <(ncdump -n data output.nc)'
if ! diff <(ncdump -n data reference.nc) <(ncdump -n data output.nc) | head -n 20; then
    echo "quickstart.sh: output.nc differs from reference.nc" >&2
    exit 1
fi
echo "no difference: every dimension, attribute and value came back"

step "7. What ESDM did"
show esdm-ls -l
show esdm-stat demo/input.nc
rm -f reference.nc header.txt

step "Done"
cat <<EOF
Everything is in $folder. Go on with:
    export ESDM_CONFIG=$ESDM_CONFIG PATH=$source/build/tools:\$PATH
    esdm-run ncdump -h esdm://demo/anomaly.nc
    esdm-run YOUR_PROGRAM esdm://demo/yours.nc
EOF
