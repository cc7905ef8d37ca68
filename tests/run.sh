#!/bin/bash
# SPDX-License-Identifier: LGPL-3.0-or-later
# Installs what is missing, builds ESDM and runs its tests. One command for a fresh Debian 12.
#
#   tests/run.sh                       everything, in less than 15 minutes on 2 cores
#   tests/run.sh --quick               smaller inputs
#   tests/run.sh --long                larger inputs and longer sweeps
#   tests/run.sh --sanitize address,undefined    the same tests, built with sanitizers
#   tests/run.sh --sanitize thread
#   tests/run.sh --fuzz SECONDS        fuzzes each target and NetCDF calls that long, nothing else
#   tests/run.sh --tidy                clang-tidy over the sources, and nothing else
#
# More options: --only REGEX (ctest -R), --no-install, --build FOLDER.
# Real data is looked for in $ESDM_TEST_DATA, else ../shared/data beside the project; where it is
# absent, tests/support/make_data.py makes some like it. Ends with ctest's own summary.
set -euo pipefail
cd "$(dirname "$0")/.."
source=$PWD

size=default sanitize= fuzz= tidy=no install=yes build= only=
usage() { sed -n '3,15s/^# \{0,1\}//p' "$source/tests/run.sh"; }
while [ $# -gt 0 ]; do
    case $1 in
    --quick) size=quick ;;
    --long) size=long ;;
    --sanitize) sanitize=${2:?--sanitize needs address,undefined or thread} && shift ;;
    --fuzz) fuzz=${2:?--fuzz needs seconds} && shift ;;
    --tidy) tidy=yes ;;
    --no-install) install=no ;;
    --build) build=${2:?--build needs a folder} && shift ;;
    --only) only=${2:?--only needs a regular expression} && shift ;;
    -h | --help) usage && exit 0 ;;
    *) echo "run.sh: unknown option '$1' (see --help)" >&2 && exit 2 ;;
    esac
    shift
done
jobs=$(nproc)
step() { printf '\n== %s (%d min %02d s)\n' "$1" $((SECONDS / 60)) $((SECONDS % 60)); }

if [ $install = yes ]; then
    step "packages"
    tools/install-deps.sh test
fi
# With the packages above MPI tests have all they need: they fail where they would be skipped.
if command -v dpkg-query >/dev/null && dpkg-query -W libnetcdf-mpi-dev mpich >/dev/null 2>&1; then
    export ESDM_TEST_MPI=${ESDM_TEST_MPI:-required}
fi
export ESDM_TEST_DATA=${ESDM_TEST_DATA:-$(realpath -m "$source/../shared/data")}
export ESDM_TEST_SIZE=$size
# ASan takes the 16 bytes before a block of thread-local memory of a loaded library for a header of
# glibc, which it is no more; where such a block begins a page, the search for leaks then reads wild
# addresses ("Tracer caught signal 11"). Without the interceptor such blocks are found as any other.
export ASAN_OPTIONS=${ASAN_OPTIONS:-strict_string_checks=1:detect_stack_use_after_return=1:intercept_tls_get_addr=0}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1:second_deadlock_stack=1}

# configure FOLDER [CMAKE OPTION…]
configure() {
    cmake -S "$source" -B "$1" -G Ninja -DESDM_WERROR=ON "${@:2}" >"$source/$1.log" 2>&1 ||
        { cat "$source/$1.log" && exit 1; }
    rm -f "$source/$1.log"
}

if [ -n "$fuzz" ]; then
    step "fuzzing, $fuzz s a target"
    build=${build:-build-fuzz}
    configure "$build" -DCMAKE_C_COMPILER=clang-14 -DESDM_FUZZ=ON \
        -DESDM_SANITIZE=fuzzer-no-link,address,undefined
    ninja -C "$build" fuzz-targets
    tests/fuzz/run.sh "$build" "$fuzz"
    # NetCDF programs need GCC's runtime, as with --sanitize.
    step "fuzzing of NetCDF calls, $fuzz s"
    configure "$build-netcdf" -DESDM_SANITIZE=address,undefined \
        -D{CMAKE_EXE,CMAKE_SHARED,CMAKE_MODULE}_LINKER_FLAGS=-static-libubsan
    ninja -C "$build-netcdf" nc_fuzz
    ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 \
        "$build-netcdf/tests/netcdf/compare/fuzz/nc_fuzz" --seconds "$fuzz" \
        --seed "${NC_FUZZ_SEED:-1}"
    exit
fi

if [ $tidy = yes ]; then
    step "clang-tidy"
    build=${build:-build-tidy}
    configure "$build" -DCMAKE_C_COMPILER=clang-14
    ninja -C "$build" >"$build/ninja.log" || { tail -30 "$build/ninja.log" && exit 1; } # generated headers
    find src backends netcdf-plugin tools -name '*.c' ! -path '*/template/*' |
        xargs -P "$jobs" -n 4 clang-tidy-14 --quiet -p "$build"
    exit
fi

step "build${sanitize:+ with $sanitize}"
build=${build:-build-test${sanitize:+-${sanitize%%,*}}}
options=()
if [ -n "$sanitize" ]; then
    options+=(-DESDM_SANITIZE="$sanitize")
    # Stock programs into which both of GCC's shared runtimes come hang at exit.
    case $sanitize in
    *undefined*)
        for kind in EXE SHARED MODULE; do
            options+=(-DCMAKE_${kind}_LINKER_FLAGS=-static-libubsan)
        done
        ;;
    esac
fi
configure "$build" "${options[@]}"
ninja -C "$build" -j "$jobs"

step "tests, size $size"
ctest --test-dir "$build" -j "$jobs" --output-on-failure --no-tests=error ${only:+-R "$only"} \
    </dev/null
