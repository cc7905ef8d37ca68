#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# The C sources are as clang-format 14 writes them. Usage: check_format.sh SOURCE_FOLDER
cd "$1" || exit 1
if ! command -v clang-format-14 >/dev/null; then
    echo "SKIPPED: clang-format-14 is not installed"
    exit 77
fi
find src backends netcdf-plugin tools tests -name '*.[ch]' -print0 |
    xargs -0 clang-format-14 --dry-run --Werror
