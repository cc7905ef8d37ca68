#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# With --long: the wheel that carries everything is built, and works in an environment of its own with PyPI's
# netCDF4 and xarray, whatever is imported first; its tools run.
. "$ESDM_SOURCE/tests/support/site.sh"

[ "${ESDM_TEST_SIZE:-}" = long ] || skip "wheels are built with --long alone"
ESDM_WHEEL_BUILD=$SITE_DIR/build "$ESDM_SOURCE/tools/make-wheel.sh" "$SITE_DIR/dist" >make.log 2>&1 || {
    grep -qE 'No matching distribution|Connection|Max retries' make.log && skip "no package index: $(tail -1 make.log)"
    fail "$(tail -20 make.log)"
}
/usr/bin/python3 -m venv env
env/bin/pip -q install dist/esdm-*.whl netCDF4 xarray >pip.log 2>&1 || skip "no package index: $(tail -1 pip.log)"
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
    dataset.createVariable("v", "f4", ("x",))[:] = numpy.arange(100)
assert netCDF4.Dataset(name)["v"][99] == 99
assert float(xarray.open_dataset(name).v.sum()) == 4950
assert [row["name"] for row in esdm.ls(name[7:])] == [name[7:]]
PY
unset ESDM_LIBRARY_DIR LD_LIBRARY_PATH PYTHONPATH
PATH=$PWD/env/bin:/usr/bin:/bin
for order in "esdm netCDF4" "netCDF4 esdm" "xarray esdm" "netCDF4 xarray esdm"; do
    python orders.py $order || fail "$order"
done
[ "$(esdm-ls | grep -c '^wheel/')" = 4 ] || fail "esdm-ls: $(esdm-ls 2>&1)"
esdm-cp -q esdm://wheel/netCDF4-esdm.nc out.nc || fail "esdm-cp"
python -c 'import netCDF4; assert netCDF4.Dataset("out.nc")["v"][3] == 3' || fail "what esdm-cp made"
for tool in env/bin/esdm-*; do
    "$tool" --help >help.txt 2>&1 || fail "$tool: $(cat help.txt)"
done
