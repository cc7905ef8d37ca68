#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# Run by conda-build, which sets $PREFIX, $SRC_DIR, $CPU_COUNT and, with the compilers, $CMAKE_ARGS.
set -euo pipefail
cmake -S "$SRC_DIR" -B build-conda -G Ninja ${CMAKE_ARGS:-} -DCMAKE_INSTALL_PREFIX="$PREFIX" -DCMAKE_INSTALL_LIBDIR=lib \
    -DCMAKE_PREFIX_PATH="$PREFIX" -DESDM_TESTS=OFF -DESDM_MPI=OFF -DESDM_STATIC_LIBRARIES=OFF
cmake --build build-conda --parallel "${CPU_COUNT:-2}"
cmake --install build-conda
