#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# The same input gives the same bytes whatever compiled the codecs. Usage: compilers.sh SOURCE
# PROGRAM: builds PROGRAM (bytes_of_all.c) with clang, and compares what both print.
set -euo pipefail
source=$1 program=$2
clang=$(command -v clang-14 || command -v clang) || { echo "SKIPPED: there is no clang" && exit 77; }
[ "${ESDM_TEST_SIZE:-default}" != quick ] || { echo "SKIPPED: not in the quick form" && exit 77; }

work=$(mktemp -d "${TMPDIR:-/tmp}/esdm-test.XXXXXX")
trap 'rm -rf "$work"' EXIT
codec=$source/backends/codec
flags=(-std=gnu11 -O2 -ffp-contract=off -fno-strict-aliasing -D_GNU_SOURCE -Wno-psabi
    -I"$source/src" -I"$source/src/include" -I"$source/tests" -I"$codec/field" -I"$codec/bitround")
# What was compiled before is in its cache, where there is one.
ccache=$(command -v ccache || true)
export clang ccache work
# As in cmake/EsdmBuild.cmake.
compile() {
    local file=$1 vectors=()
    shift
    case $file in
    *_avx512.c) vectors=(-mavx2 -mbmi -mbmi2 -mlzcnt -mpopcnt -mavx512f -mavx512bw -mavx512dq -mavx512vl) ;;
    *_avx2.c) vectors=(-mavx2 -mbmi -mbmi2 -mlzcnt -mpopcnt) ;;
    esac
    [ "$(uname -m)" = x86_64 ] || vectors=()
    ${ccache:+"$ccache"} "$clang" "$@" "${vectors[@]}" -c -o "$work/$(basename "$(dirname "$file")")-$(basename "$file" .c).o" "$file"
}
export -f compile
printf '%s\n' "$codec"/field/*.c "$codec"/bitround/*.c "$source"/src/base/{buffer,error,per_thread,scratch}.c \
    "$source/tests/unit/field/bytes_of_all.c" |
    xargs -P "$(nproc)" -I{} bash -c 'compile "$@"' compile {} "${flags[@]}"
"$clang" -o "$work/by_clang" "$work"/*.o -pthread -lzstd -lm

"$program" >"$work/one"
"$work/by_clang" >"$work/other"
wc -l <"$work/one"
cmp "$work/one" "$work/other" || { diff "$work/one" "$work/other" | head -20 && exit 1; }
