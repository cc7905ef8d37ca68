#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# Tries a wheel on a machine that has nothing: a fresh Debian in a folder, with python3-venv alone, and PyPI's packages.
#
#   packaging/try-in-chroot.sh WHEEL FOLDER     as root; needs debootstrap; FOLDER is made, and used again when it is there
#
# Prints what was tried, and ends with the exit status 0 when all of it works.
set -euo pipefail
case ${1:-} in
'' | -h | --help) sed -n '3,8s/^# \{0,1\}//p' "$0" && exit 0 ;;
esac
wheel=$1 root=$2
if [ ! -x "$root/usr/bin/python3" ]; then
    debootstrap --variant=minbase --include=python3-venv,ca-certificates bookworm "$root" >"$root.log" 2>&1 || {
        tail -5 "$root.log" >&2
        exit 1
    }
fi
# How this machine reaches the package index.
for file in /etc/resolv.conf /etc/hosts /etc/pip.conf; do
    [ ! -f "$file" ] || cp -L "$file" "$root$file"
done
cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
rm -rf "$root/try" && mkdir "$root/try"
cp "$wheel" "$root/try/"
cat >"$root/try/order.py" <<'PY'
# A notebook as a script: modules in any order, then reading and writing. argv: the modules.
import sys

for module in sys.argv[1:]:
    __import__(module)
import netCDF4
import numpy
import xarray
import esdm

name = "esdm://try/" + "-".join(sys.argv[1:]) + ".nc"
with netCDF4.Dataset(name, "w") as dataset:
    dataset.createDimension("t", None)
    dataset.createDimension("x", 100)
    dataset.createVariable("v", "f4", ("t", "x"))[:] = numpy.arange(300).reshape(3, 100)
with xarray.open_dataset(name, chunks={}) as found:
    assert found.v.sizes == {"t": 3, "x": 100} and float(found.v.sum().compute()) == 44850, found
    (found * 2).to_netcdf(name[:-3] + "-2.nc")
assert float(xarray.open_dataset(name[:-3] + "-2.nc").v.max()) == 598
assert [row.name for row in esdm.ls(name[7:])] == [name[7:]]
PY
cat >"$root/try/first.py" <<'PY'
# xarray alone, which writes first.
import xarray

xarray.Dataset({"v": ("x", [1, 2, 3])}).to_netcdf("esdm://try/first.nc")
assert xarray.open_dataset("esdm://try/first.nc").v.values.tolist() == [1, 2, 3]
PY
cat >"$root/try/plain.py" <<'PY'
# Plain files, by netCDF4 and by h5netcdf. argv: the folder, and what is imported before.
import os
import sys

os.makedirs(sys.argv[1])
os.chdir(sys.argv[1])
for module in sys.argv[2:]:
    __import__(module)
import netCDF4
import numpy
import xarray

for kind in ("NETCDF4", "NETCDF3_CLASSIC", "NETCDF3_64BIT_DATA", "NETCDF4_CLASSIC"):
    with netCDF4.Dataset(kind + ".nc", "w", format=kind) as dataset:
        dataset.createDimension("t", None)
        dataset.createDimension("x", 1000)
        packed = {"zlib": True, "shuffle": True} if kind.startswith("NETCDF4") else {}
        v = dataset.createVariable("v", "f4", ("t", "x"), **packed)
        for step in range(5):
            v[step] = numpy.arange(1000) * step
    assert netCDF4.Dataset(kind + ".nc")["v"][4, 999] == 3996
xarray.Dataset({"v": ("x", [1, 2])}).to_netcdf("x.nc")
xarray.Dataset({"v": ("x", [1, 2])}).to_netcdf("h.nc", engine="h5netcdf")
PY
cat >"$root/try/start.py" <<'PY'
# What it costs that the package is there, and what `import esdm` costs: processor time, least of many.
import os
import subprocess
import sys
import time


def least(code, *options):
    best = 9e9
    for _ in range(40):
        before = os.times()
        subprocess.run([sys.executable, *options, "-c", code], check=True)
        after = os.times()
        best = min(best, after.children_user + after.children_system - before.children_user - before.children_system)
    return best * 1000


def inside(before):
    code = f"{before}\nimport time\nb = time.process_time()\nimport esdm\nprint(time.process_time() - b)"
    return min(float(subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.PIPE, text=True).stdout)
               for _ in range(15)) * 1000


watching = "import time\nb = time.process_time()\nimport esdm_start\nprint(time.process_time() - b)"
start = min(float(subprocess.run([sys.executable, "-S", "-c", "import sys; sys.path += " + repr(sys.path) + "\n" + watching], check=True,
                                 stdout=subprocess.PIPE, text=True).stdout) for _ in range(15)) * 1000
after_netcdf, alone = inside("import netCDF4"), inside("")
print(f"start of Python {start:.2f} ms more; import esdm after netCDF4 {after_netcdf:.2f} ms, alone {alone:.2f} ms")
assert max(start, after_netcdf, alone) <= 5
PY
cat >"$root/try/all.sh" <<'SH'
set -eu
cd /try
for version in '' ==1.6.5 ==1.7.2; do
    env=env$version
    python3 -m venv "$env"
    older=$([ -z "$version" ] || echo 'numpy<2')
    "$env/bin/pip" -q install esdm-*.whl "netCDF4$version" xarray h5netcdf h5py dask ${older:+"$older"}
    export PATH="/try/$env/bin:/usr/bin:/bin" XDG_DATA_HOME="/try/data$version"
    python first.py
    for order in "esdm netCDF4" "netCDF4 esdm" "xarray esdm" "netCDF4 xarray esdm" "h5py netCDF4 esdm" "esdm h5py dask netCDF4" \
        "netCDF4 h5netcdf xarray" "xarray netCDF4" "dask xarray h5netcdf esdm"; do
        python order.py $order
    done
    python plain.py "plain$version/without" && python plain.py "plain$version/before" esdm && python plain.py "plain$version/after" netCDF4 esdm
    diff -r "plain$version/without" "plain$version/before" && diff -r "plain$version/without" "plain$version/after"
    echo "netCDF4 $(python -c 'import netCDF4; print(netCDF4.__version__)'): xarray alone, 9 orders of imports, plain files equal"
    python start.py
done
for tool in env/bin/esdm*; do
    "$tool" --help >/dev/null
done
esdm-cp -q esdm://try/first.nc out.nc
python -c 'import netCDF4; assert netCDF4.Dataset("out.nc")["v"][2] == 3'
SH
# Programs find what lies beside them by /proc. Nothing of this machine's environment goes in but where certificates are.
unshare -m sh -c 'mount -t proc proc "$1/proc" && shift && exec chroot "$@"' sh "$root" "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root PIP_CERT=/etc/ssl/certs/ca-certificates.crt \
    SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt sh /try/all.sh
echo "all of it works"
