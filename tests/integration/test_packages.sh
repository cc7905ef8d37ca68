#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# With --long: packages of Debian are made; what they hold, unpacked, works: tools find the library, plug-ins and the
# NetCDF plug-in, Python finds the libraries, xarray the engine.
. "$ESDM_SOURCE/tests/support/site.sh"

[ "${ESDM_TEST_SIZE:-}" = long ] || skip "packages are built with --long alone"
command -v dpkg-shlibdeps >/dev/null || skip "dpkg-dev is not installed"
export ESDM_PACKAGES_BUILD=${ESDM_PACKAGES_BUILD:-$SITE_DIR/build} # or one that was begun already
"$ESDM_SOURCE/tools/make-packages.sh" "$SITE_DIR/packages" >make.log 2>&1 ||
    fail "$(tail -20 make.log)"
for name in libesdm0 libesdm-dev esdm python3-esdm; do
    package=$(echo packages/"$name"_*.deb)
    [ -s "$package" ] || fail "no package $name: $(ls packages)"
    [ "$(dpkg-deb -f "$package" Package)" = "$name" ] || fail "name of $package"
    dpkg-deb -x "$package" root || fail "$package"
done
# Others are part of libesdm where static ones are installed.
dpkg-deb -f packages/libesdm0_*.deb Depends | grep -q 'libjansson4' || fail "libesdm0 depends on nothing"
dpkg-deb -f packages/libesdm0_*.deb Depends | grep -q 'libudunits2-0' || fail "libesdm0 does not ask for units"
dpkg-deb -f packages/esdm_*.deb Depends | grep -q '^libesdm0 (= ' || fail "esdm depends on no libesdm0"

# Where Debian's zsh looks.
for file in _esdm _esdm-ls _esdm_operands; do
    [ -s "root/usr/share/zsh/vendor-completions/$file" ] || fail "zsh will not find $file"
done

PATH=$PWD/root/usr/bin:$PATH
esdm-pattern --shape 4x8x8 esdm://packages/x.nc >pattern.log 2>&1 || fail "$(cat pattern.log)"
esdm-ls | grep -q '^packages/x.nc$' || fail "esdm-ls"
client ncdump -h esdm://packages/x.nc | grep -q '^netcdf x' || fail "esdm-run"
PYTHONPATH=$PWD/root/usr/lib/python3/dist-packages /usr/bin/python3 -c '
import xarray
assert xarray.open_dataset("esdm://packages/x.nc").sizes' || fail "xarray"
