#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# With --long: the wheel that carries everything is built, and works in an environment of its own with PyPI's
# netCDF4 and xarray, whatever is imported first, and with older ones; plain files have the bytes that they have without it; its tools run,
# and convert units on machines without UDUNITS-2.
. "$ESDM_SOURCE/tests/support/site.sh"

[ "${ESDM_TEST_SIZE:-}" = long ] || skip "wheels are built with --long alone"
if [ -n "${ESDM_TEST_WHEEL:-}" ]; then # one that is made already
    mkdir dist && cp "$ESDM_TEST_WHEEL" dist/
else
    ESDM_WHEEL_BUILD=$SITE_DIR/build "$ESDM_SOURCE/tools/make-wheel.sh" "$SITE_DIR/dist" >make.log 2>&1 || {
        grep -qE 'No matching distribution|Connection|Max retries' make.log && skip "no package index: $(tail -1 make.log)"
        fail "$(tail -20 make.log)"
    }
fi
/usr/bin/python3 -m venv env
env/bin/pip -q install dist/esdm-*.whl netCDF4 xarray h5netcdf h5py dask >pip.log 2>&1 || skip "no package index: $(tail -1 pip.log)"
cat >orders.py <<'PY'
import sys

for module in sys.argv[1:]:
    __import__(module)
import esdm
import netCDF4
import numpy
import xarray

name = "esdm://wheel/" + "-".join(sys.argv[1:]) + ".nc"
with netCDF4.Dataset(name, "w") as dataset:
    dataset.createDimension("x", 100)
    v = dataset.createVariable("v", "f4", ("x",))
    v.units = "m"
    v[:] = numpy.arange(100)
assert netCDF4.Dataset(name)["v"][99] == 99
assert float(xarray.open_dataset(name).v.sum()) == 4950
assert [row.name for row in esdm.ls(name[7:])] == [name[7:]]
PY
unset ESDM_LIBRARY_DIR LD_LIBRARY_PATH PYTHONPATH
PATH=$PWD/env/bin:/usr/bin:/bin
orders=0
check_orders() { # PYTHON WHICH
    for order in "esdm netCDF4" "netCDF4 esdm" "xarray esdm" "netCDF4 xarray esdm" "h5py netCDF4 esdm" "esdm h5py dask netCDF4"; do
        "$1" orders.py $order >orders.log 2>&1 || fail "$2: $order: $(cat orders.log)"
        orders=$((orders + 1))
    done
}
check_orders python "the newest netCDF4"

# A plain file of a process that has imported esdm is the one that it would be without.
cat >plain.py <<'PY'
import sys

if sys.argv[2] == "esdm":
    import esdm
import netCDF4
import numpy

for kind in ("NETCDF4", "NETCDF3_CLASSIC", "NETCDF3_64BIT_DATA", "NETCDF4_CLASSIC"):
    with netCDF4.Dataset(f"{sys.argv[1]}-{kind}.nc", "w", format=kind) as dataset:
        dataset.title = "plain"
        dataset.createDimension("t", None)
        dataset.createDimension("x", 1000)
        packed = {"zlib": True, "shuffle": True} if kind.startswith("NETCDF4") else {}
        v = dataset.createVariable("v", "f4", ("t", "x"), **packed)
        v.units = "K"
        for step in range(5):
            v[step] = numpy.arange(1000) * step
    with netCDF4.Dataset(f"{sys.argv[1]}-{kind}.nc") as dataset:
        assert dataset["v"][4, 999] == 3996
PY
check_plain() { # PYTHON WHICH
    mkdir -p a b && for way in a:esdm b:without; do
        (cd "${way%:*}" && "$1" ../plain.py p "${way#*:}") || fail "$2: plain files ${way#*:}"
    done
    diff -r a b || fail "$2: plain files have other bytes"
    rm -r a b
}
check_plain python "the newest netCDF4"
python -c 'import xarray; xarray.Dataset({"v": ("x", [1, 2])}).to_netcdf("esdm://wheel/first.nc")' || fail "xarray alone writes"
esdm-ls wheel/first.nc | grep -q first.nc || fail "xarray alone has written elsewhere"

# Other versions: what pip has for this Python, and Debian's.
for version in 1.6.5 1.7.2; do
    /usr/bin/python3 -m venv "env$version"
    "env$version/bin/pip" -q install dist/esdm-*.whl "netCDF4==$version" "numpy<2" xarray h5netcdf h5py dask >pip.log 2>&1 || {
        echo "netCDF4 $version: $(tail -1 pip.log)"
        continue
    }
    check_orders "$PWD/env$version/bin/python" "netCDF4 $version"
    check_plain "$PWD/env$version/bin/python" "netCDF4 $version"
done
if /usr/bin/python3 -c 'import netCDF4, xarray, dask, h5py' 2>/dev/null; then
    /usr/bin/python3 -m venv --system-site-packages debian
    debian/bin/pip -q install --no-deps dist/esdm-*.whl >pip.log 2>&1 || fail "$(cat pip.log)"
    check_orders "$PWD/debian/bin/python" "Debian's netCDF4"
    check_plain "$PWD/debian/bin/python" "Debian's netCDF4"
fi
echo "$orders orders of imports"
esdm-cp -q esdm://wheel/netCDF4-esdm.nc out.nc || fail "esdm-cp"
python -c 'import netCDF4; assert netCDF4.Dataset("out.nc")["v"][3] == 3' || fail "what esdm-cp made"
for tool in env/bin/esdm-*; do
    "$tool" --help >help.txt 2>&1 || fail "$tool: $(cat help.txt)"
done

# Units are converted where there is no UDUNITS-2.
hidden=$(/sbin/ldconfig -p | sed -n 's/.*libudunits2.so.0 .*=> //p' | head -n 1)
cat >hide.sh <<HIDE
[ -z "$hidden" ] || mount --bind /dev/null "$(realpath "${hidden:-/dev/null}")"
for folder in /usr/share/xml/udunits /usr/share/udunits; do
    [ ! -d \$folder ] || mount -t tmpfs none \$folder
done
exec "\$@"
HIDE
if unshare -rm sh hide.sh true 2>/dev/null; then
    unshare -rm sh hide.sh esdm-find 'max(v) > 0.05 km' >units.log 2>&1 || fail "units: $(cat units.log)"
    grep -q '^wheel/netCDF4-esdm.nc' units.log || fail "units: $(cat units.log)"
fi
