#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
# Builds ESDM for /usr and makes packages of Debian: libesdm0, libesdm-mpi0, libesdm-dev, esdm, python3-esdm.
#
#   tools/make-packages.sh [FOLDER]     default: packages/ in the build folder
#
# Installs nothing. `tools/install-deps.sh build mpi` has what the build needs; dpkg-dev tells the packages that they depend on.
# The build folder is build-packages (or $ESDM_PACKAGES_BUILD). Install them with: apt install FOLDER/*.deb
set -eu
source=$(cd "$(dirname "$0")/.." && pwd)
case ${1:-} in
-h | --help) sed -n '3,9s/^# \{0,1\}//p' "$0" && exit 0 ;;
-*) echo "make-packages.sh: unknown option '$1' (see --help)" >&2 && exit 2 ;;
esac
if ! command -v dpkg-shlibdeps >/dev/null; then
    echo "make-packages.sh: dpkg-shlibdeps is missing: apt install dpkg-dev" >&2
    exit 1
fi
build=${ESDM_PACKAGES_BUILD:-$source/build-packages}
launcher=
! command -v ccache >/dev/null || launcher=-DCMAKE_C_COMPILER_LAUNCHER=ccache
cmake -S "$source" -B "$build" -G Ninja -DCMAKE_INSTALL_PREFIX=/usr -DCMAKE_BUILD_TYPE=RelWithDebInfo \
    -DESDM_TESTS=OFF $launcher
ninja -C "$build"
folder=${1:-$build/packages}
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)
(cd "$build" && cpack -G DEB -B "$folder")
rm -rf "$folder/_CPack_Packages"
ls "$folder"/*.deb
