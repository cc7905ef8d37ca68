#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# From a fresh Debian 12 to real NetCDF data in ESDM, with one command.
#
#   tools/quickstart.sh [--built BUILD] [FOLDER]
#
# Installs what is missing (root or sudo), builds into build/, makes a site in FOLDER (default: a
# new folder below $TMPDIR), then writes and reads a NetCDF file with unmodified ncks, cdo, ncdump and
# Python, and shows what ESDM stored. With --built it takes the tools of a build folder instead of
# installing and building. Touches nothing else; remove FOLDER to undo it.
set -euo pipefail
source=$(realpath "$(dirname "$0")/..")
build=
if [ "${1:-}" = --built ]; then
    build=$(realpath "${2:?--built needs a build folder}") && shift 2
fi
case ${1:-} in
-h | --help) sed -n '3,10s/^# \{0,1\}//p' "$0" && exit 0 ;;
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
# What a shell takes apart is shown in quotes, as it is to be typed.
quoted() {
    local word
    for word in "$@"; do
        case $word in
        *[!A-Za-z0-9_./:=,%@+-]*) printf "'%s' " "$word" ;;
        *) printf '%s ' "$word" ;;
        esac
    done
}
# Shows a command, then runs it.
show() { local shown && shown=$(quoted "$@") && prompt "${shown% }" && "$@"; }

install_packages() {
    step "1. Install what is missing"
    "$source/tools/install-deps.sh" build mpi clients
    echo "done"
}

# Tells how far a build is: on a terminal all the time, else every tenth.
progress() {
    local line done all last=-1
    while IFS= read -r line; do
        printf '%s\n' "$line" >>"$folder/build.log"
        [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]] || continue
        done=${BASH_REMATCH[1]} all=${BASH_REMATCH[2]}
        if [ -t 1 ]; then
            printf '\r%d of %d steps ' "$done" "$all"
        elif [ $((done * 10 / all)) != "$last" ]; then
            last=$((done * 10 / all))
            echo "$done of $all steps"
        fi
    done
    [ ! -t 1 ] || printf '\r\033[K'
}

build_all() {
    step "2. Build: some minutes on two cores"
    cmake -S "$source" -B "$source/build" -G Ninja -DESDM_TESTS=OFF -DESDM_WERROR=OFF >"$folder/build.log" 2>&1 &&
        sed -n '/is built with/,$p' "$folder/build.log" | grep -vE 'Configuring|Generating|Build files' &&
        ninja -C "$source/build" 2>&1 | progress ||
        { tail -n 40 "$folder/build.log" >&2 && echo "the build failed: $folder/build.log" >&2 && exit 1; }
    rm -f "$folder/build.log"
    echo "the tools are in $source/build/tools"
}

if [ -z "$build" ]; then
    install_packages
    build_all
    build=$source/build
fi
export PATH=$build/tools:$PATH

step "3. Make a site: where data and metadata lie"
cd "$folder"
export ESDM_CONFIG=$folder/site.json
if [ ! -e site.json ]; then
    cat >site.json <<'JSON'
{
    "site": { "name": "quickstart" },
    "targets": [
        { "name": "disk1", "plugin": "posix", "directory": "disk1" },
        { "name": "disk2", "plugin": "posix", "directory": "disk2" }
    ],
    "metadata": { "plugin": "sqlite", "directory": "metadata" },
    "history": 3
}
JSON
fi
show cat site.json
show esdm-mkfs

step "4. A NetCDF file: two years of a made-up climate, every fifth day"
cat >climate.py <<'PYTHON'
import netCDF4
import numpy as np
days, lats, lons = np.arange(0, 730, 5.0), np.linspace(-88.75, 88.75, 72), np.arange(0, 360, 2.5)
random = np.random.default_rng(1)
year = 2 * np.pi * (days[:, None, None] - 15) / 365
lat, lon = np.radians(lats)[None, :, None], np.radians(lons)[None, None, :]
waves = np.sin(3 * lon + year * 12) * np.cos(lat) ** 2
weather = random.normal(0, 1, (days.size, lats.size, lons.size))
fields = {
    "tas": ("K", "air_temperature", 288 - 45 * np.sin(lat) ** 2 - 15 * np.sin(lat) * np.cos(year) +
            5 * waves + weather),
    "pr": ("kg m-2 s-1", "precipitation_flux",
           np.maximum(0, 6e-5 * np.exp(-(lat * 6) ** 2) + 3e-5 * waves * weather)),
    "psl": ("Pa", "air_pressure_at_mean_sea_level", 101325 + 900 * waves + 60 * weather)}
with netCDF4.Dataset("input.nc", "w") as f:
    f.setncatts({"Conventions": "CF-1.8", "title": "made-up climate", "source_id": "QUICK-1",
                 "experiment_id": "historical", "frequency": "day"})
    for name, values, units, standard, axis in (
            ("time", days, "days since 2001-01-01", "time", "T"),
            ("lat", lats, "degrees_north", "latitude", "Y"),
            ("lon", lons, "degrees_east", "longitude", "X")):
        f.createDimension(name, None if name == "time" else values.size)
        v = f.createVariable(name, "f8", (name,))
        v.setncatts({"units": units, "standard_name": standard, "axis": axis})
        v[:] = values
    f["time"].calendar = "noleap"
    for name, (units, standard, values) in fields.items():
        v = f.createVariable(name, "f4", ("time", "lat", "lon"), fill_value=1e20)
        v.setncatts({"units": units, "standard_name": standard, "cell_methods": "time: mean"})
        v[:] = values.astype("f4")
PYTHON
show /usr/bin/python3 climate.py
show ls -l input.nc

step "5. Unmodified programs write it to ESDM and read it"
show esdm-run ncks -h -O input.nc esdm://demo/input.nc
esdm-run ncdump -h esdm://demo/input.nc >header.txt
prompt 'esdm-run ncdump -h esdm://demo/input.nc | head -n 20'
head -n 20 header.txt
show esdm-run cdo -s -O timmean esdm://demo/input.nc esdm://demo/mean.nc
show esdm-run cdo -s infon esdm://demo/mean.nc
cat >analysis.py <<'PYTHON'
import xarray
with xarray.open_dataset("esdm://demo/input.nc", decode_times=False) as dataset:
    anomaly = dataset[["tas"]] - dataset[["tas"]].mean("time")
    anomaly.to_netcdf("esdm://demo/anomaly.nc")
    print(f"tas: {dataset['tas'].shape}, largest anomaly {float(abs(anomaly['tas']).max()):.1f} K")
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

step "7. What ESDM did: fragments, and where they lie"
show esdm-run ncatted -h -a comment,global,o,c,checked esdm://demo/input.nc
show esdm-ls -l
# Two snapshots: what it was before ncatted, and after.
show esdm-stat demo/input.nc
show esdm-stat --explain demo/input.nc/tas

step "8. As accurate as you need it: 0.01 K are enough"
show esdm-cp --accuracy 'tas: abs=0.01 K; mode=archive' input.nc esdm://demo/rounded.nc
show esdm-stat --accuracy demo/rounded.nc
show esdm-ls -l demo

step "9. Found by what they are"
show esdm-find 'standard_name = air_temperature and source_id = QUICK-1'

step "10. Several opened as one"
for year in 2001 2002; do
    show esdm-run cdo -s -O -setattribute,experiment_id=by-year -selyear,$year input.nc esdm://demo/$year.nc
done
show esdm-run cdo -s ntime 'esdm://?source_id=QUICK-1&experiment_id=by-year'
show esdm-run cdo -s infon -timmean 'esdm://?source_id=QUICK-1&experiment_id=by-year'

step "11. A compressed file for somebody without ESDM"
show esdm-cp --deflate 4 esdm://demo/input.nc compressed.nc
show ls -l input.nc compressed.nc
rm -f reference.nc header.txt

step "Done"
cat <<EOF
Everything is in $folder. Go on with:
    export ESDM_CONFIG=$ESDM_CONFIG PATH=$build/tools:\$PATH
    esdm-run ncdump -h esdm://demo/anomaly.nc
    esdm-run YOUR_PROGRAM esdm://demo/yours.nc
The same data in Python, without esdm-run, in any script or notebook:
    export PYTHONPATH=$source/python     # or, in an environment of your own: pip install $source/python
    python3 -c 'import esdm, xarray; print(xarray.open_dataset("esdm://demo/input.nc"))'
in a folder, for every other program:
    mkdir seen && esdm-mount seen        # "fusermount3 -u seen" ends it
    ncdump -h seen/demo/input.nc
in a browser:
    esdm-serve                           # http://localhost:8680/
EOF
